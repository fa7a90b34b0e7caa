// The files of this build, which lie beside the script under names made of their content: the same for everybody, and
// kept by the browser, so no line of the byte log is written for them.

/** The bytes of a file by its address relative to `base`. Throws Error where it can't be had. */
export async function ownFile(address: string, base: string): Promise<ArrayBuffer> {
  const answer = await fetch(new URL(address, base), { credentials: "omit", redirect: "error" });
  if (!answer.ok) throw new Error(`a file of this app can't be had (${answer.status})`);
  return answer.arrayBuffer();
}
