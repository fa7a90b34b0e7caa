// What the publisher's signed list of builds says of this app's: asked when the app is opened, the same by everybody.
import type { Device } from "../device";
import { type BuildVerdict, verdictOf } from "../wire/builds";
import type { Primitives } from "../wire/primitives";

/**
 * A verdict for each build, by its SHA-256 in hex. fetched: the server's list; "unknown" of all where it can't be had, or
 * while this device trusts no key. A list under another key is looked at again after a sync, which follows rotations.
 */
export async function buildVerdicts(
  builds: readonly string[],
  device: Device,
  primitives: Primitives,
  fetched: () => Promise<ArrayBuffer>,
): Promise<BuildVerdict[]> {
  const list = await fetched().then(
    (content) => new Uint8Array(content),
    () => null, // offline, or a server without a list: the page says so
  );
  const found = async (): Promise<BuildVerdict[]> => {
    const key = device.parts.stores.releases.trustedKey()?.publicKey;
    if (!list || !key) return builds.map(() => "unknown" as const);
    return Promise.all(builds.map((build) => verdictOf(build, list, key, primitives)));
  };
  const first = await found();
  if (!list || first.every((each) => each === "listed" || each === "unlisted")) return first;
  await device.sync();
  return found();
}
