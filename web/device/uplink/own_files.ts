// This build's files, beside the script under content-hash names: the same for every reader and cached by the browser,
// so they aren't in the byte log.

/** A file's bytes by its address relative to `base`. Throws Error if it isn't available. */
export async function ownFile(address: string, base: string): Promise<ArrayBuffer> {
  const answer = await fetch(new URL(address, base), { credentials: "omit", redirect: "error" });
  if (!answer.ok) throw new Error(`a file of this app can't be had (${answer.status})`);
  return answer.arrayBuffer();
}
