// Downloads blobs and checks their size and hash against a signed message: parts of releases and material of rounds.
// Also looks up this app's builds in the publisher's signed list, when the app is opened, the same way on every device.
import type { Device } from "../device";
import { BackendRefused, ReleaseRefused } from "../errors";
import { type BlobRef, type BuildVerdict, verdictOf } from "../protocol/releases";
import { contentHash, type Primitives } from "../protocol/primitives";
import type { Bytes } from "../protocol/forms";
import type { Blobs } from "../store/blobs";
import { REQUESTS, type HttpClient } from "../uplink/http";

const OCTETS = "application/octet-stream";

/** Number of blobs requested at once, with a limit on their bytes, so that none times out on a slow connection. */
const AT_ONCE = 8;
const BYTES_AT_ONCE = 1024 * 1024;

/** Groups of blobs to request together, in order; a large one is alone. */
export function groupsOf<R extends Pick<BlobRef, "size_bytes">>(refs: Iterable<R>): R[][] {
  const groups: R[][] = [];
  let bytes = 0;
  for (const ref of refs) {
    const last = groups.at(-1);
    bytes += ref.size_bytes;
    if (last && last.length < AT_ONCE && bytes <= BYTES_AT_ONCE) last.push(ref);
    else {
      groups.push([ref]);
      bytes = ref.size_bytes;
    }
  }
  return groups;
}

/** Fetches a group's blobs at once, the same way on every device, and checks each one's declared size and hash. */
export async function askedBlobs(
  client: HttpClient,
  group: readonly BlobRef[],
  words: string,
  release: string,
): Promise<Bytes[]> {
  const limitBytes = Math.max(1, ...group.map((ref) => ref.size_bytes));
  const look = { words, purpose: "sync", accept: OCTETS, limitBytes };
  const answers = await client.getAll(group.map((ref) => `/v1/blobs/${ref.sha256}`), look);
  return Promise.all(answers.map(({ body }, at) => checkedBlob(body, group[at] as BlobRef, release)));
}

/**
 * Fetches a group of a release's blobs at once. Throws ReleaseRefused if size or hash don't match the manifest, and
 * BackendRefused for a backend that can't answer now.
 */
export async function fetchBlobs(client: HttpClient, group: readonly BlobRef[], release: string): Promise<Bytes[]> {
  try {
    return await askedBlobs(client, group, REQUESTS.say("release_part"), release);
  } catch (refused) {
    // a backend failure says nothing against the release
    if (!(refused instanceof BackendRefused) || refused.problem.status >= 500) throw refused;
    const names = group.map((ref) => ref.sha256.slice(0, 12)).join(", ");
    throw new ReleaseRefused(release, `blob ${names} can't be downloaded: ${refused.message}`);
  }
}

/** Returns the content if size and hash match; otherwise throws ReleaseRefused. */
export async function checkedBlob(content: Bytes, ref: BlobRef, release: string): Promise<Bytes> {
  const name = `blob ${ref.sha256.slice(0, 12)}`;
  if (content.length !== ref.size_bytes)
    throw new ReleaseRefused(release, `${name} has ${content.length} bytes, declared ${ref.size_bytes}`);
  if ((await contentHash(content)) !== ref.sha256)
    throw new ReleaseRefused(release, `${name}: its hash differs from the declared one`);
  return content;
}

/** Blobs of rounds: requests depend on the round's offer, not on what the reader did. */
export class MaterialSync {
  constructor(
    private readonly client: HttpClient,
    private readonly blobs: Blobs,
  ) {}

  /** Fetches a blob and checks size and hash. Throws ReleaseRefused if they don't match, and HttpClient's errors. */
  async fetch(ref: BlobRef): Promise<Bytes> {
    const kept = await this.blobs.read(ref.sha256);
    if (kept) {
      this.blobs.touch(ref.sha256);
      return kept;
    }
    const [content] = (await askedBlobs(this.client, [ref], REQUESTS.say("round_part"), "of the round")) as [Bytes];
    await this.blobs.put(content);
    return content;
  }
}

/**
 * A verdict for each build, by its SHA-256 in hex. fetched: the server's list; all are "unknown" if it isn't available,
 * or while this device trusts no key. A list under another key is checked again after a sync, which follows rotations.
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
