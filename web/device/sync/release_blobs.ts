// Blobs of the backend whose size and hash are as a signed message says, and which round tasks need besides.
import { BackendRefused, ReleaseRefused } from "../errors";
import type { Blobs } from "../store/blobs";
import type { HttpClient } from "../uplink/http";
import { REQUESTS } from "../uplink/requests";
import type { BlobRef } from "../wire/releases";
import { contentHash } from "../wire/primitives";
import type { Bytes } from "../wire/values";

const OCTETS = "application/octet-stream";

/** So many blobs are asked for at once, and of no more bytes, so that none of them waits for a slow line. */
const AT_ONCE = 8;
const BYTES_AT_ONCE = 1024 * 1024;

/** Blobs in groups that are asked for at once, in their order; one that is large is alone. */
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

/** Blobs as everybody asks for them, all of a group at once, each of the size and hash that it's declared with. */
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
 * Blobs of a release, all of a group at once. Throws ReleaseRefused where size or hash are not as the manifest says, and
 * BackendRefused for a backend that can't answer now.
 */
export async function fetchBlobs(client: HttpClient, group: readonly BlobRef[], release: string): Promise<Bytes[]> {
  try {
    return await askedBlobs(client, group, REQUESTS.say("release_part"), release);
  } catch (refused) {
    // the backend's own trouble says nothing against the release
    if (!(refused instanceof BackendRefused) || refused.problem.status >= 500) throw refused;
    const names = group.map((ref) => ref.sha256.slice(0, 12)).join(", ");
    throw new ReleaseRefused(release, `blob ${names} can't be had: ${refused.message}`);
  }
}

/** The content itself, once its size and hash are right; throws ReleaseRefused otherwise. */
export async function checkedBlob(content: Bytes, ref: BlobRef, release: string): Promise<Bytes> {
  const name = `blob ${ref.sha256.slice(0, 12)}`;
  if (content.length !== ref.size_bytes)
    throw new ReleaseRefused(release, `${name} has ${content.length} bytes, declared ${ref.size_bytes}`);
  if ((await contentHash(content)) !== ref.sha256) throw new ReleaseRefused(release, `${name} has another hash than declared`);
  return content;
}

/** Blobs of rounds: what is asked for is named in the offer of a round, and by nothing the reader did. */
export class MaterialSync {
  constructor(
    private readonly client: HttpClient,
    private readonly blobs: Blobs,
  ) {}

  /** The blob, its size and hash checked. Throws ReleaseRefused if they don't fit, and errors as HttpClient. */
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
