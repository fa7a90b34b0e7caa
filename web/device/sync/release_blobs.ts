// Blobs of the backend whose size and hash are as a signed message says, and which round tasks need besides.
import { BackendRefused, ReleaseRefused } from "../errors";
import { digest } from "../privacy/sealed";
import type { Blobs } from "../store/blobs";
import type { HttpClient } from "../uplink/http";
import { REQUESTS } from "../uplink/requests";
import type { BlobRef } from "../wire/releases";
import type { Bytes } from "../wire/values";

const OCTETS = "application/octet-stream";

/** A blob as it is asked for by everybody; nothing of it is checked but its length. */
export async function askedBlob(client: HttpClient, ref: BlobRef, words: string): Promise<Bytes> {
  const limitBytes = Math.max(1, ref.size_bytes);
  const look = { words, purpose: "sync", accept: OCTETS, limitBytes };
  return (await client.get(`/v1/blobs/${ref.sha256}`, look)).body;
}

/**
 * A blob whose size and hash are as the manifest says. Throws ReleaseRefused otherwise, and BackendRefused for a backend
 * that can't answer now.
 */
export async function fetchBlob(client: HttpClient, ref: BlobRef, release: string): Promise<Bytes> {
  try {
    return checkedBlob(await askedBlob(client, ref, REQUESTS.say("release_part")), ref, release);
  } catch (refused) {
    // the backend's own trouble says nothing against the release
    if (!(refused instanceof BackendRefused) || refused.problem.status >= 500) throw refused;
    throw new ReleaseRefused(release, `blob ${ref.sha256.slice(0, 12)} can't be had: ${refused.message}`);
  }
}

/** The content itself, once its size and hash are right; throws ReleaseRefused otherwise. */
export function checkedBlob(content: Bytes, ref: BlobRef, release: string): Bytes {
  const name = `blob ${ref.sha256.slice(0, 12)}`;
  if (content.length !== ref.size_bytes)
    throw new ReleaseRefused(release, `${name} has ${content.length} bytes, declared ${ref.size_bytes}`);
  if (digest(content) !== ref.sha256) throw new ReleaseRefused(release, `${name} has another hash than declared`);
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
    const content = checkedBlob(await askedBlob(this.client, ref, REQUESTS.say("round_part")), ref, "of the round");
    await this.blobs.put(content);
    return content;
  }
}
