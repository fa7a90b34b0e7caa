// Pulls the pool's codes: whole publishing days, so that no request reveals a click.
import { AnswerMalformed, BackendRefused } from "../errors";
import type { Clock } from "../protocol/moments";
import type { CodeShard, PoolStore } from "../store/pool_codes";
import type { InstalledReleases } from "../store/releases";
import { parsed } from "../uplink/backend_client";
import { REQUESTS, type HttpClient } from "../uplink/http";
import { type PoolCodes, newsInPool, poolCodes, unpackBook, unpackCards, unpackCodes, unpackPriors } from "../protocol/broadcast";
import { shortened } from "../protocol/ids";
import type { BlobRef, ReleaseManifest } from "../protocol/releases";
import { TensorError } from "../protocol/tensors";
import type { Bytes } from "../protocol/forms";
import { etagOfBytes, manifestInUse } from "./lists";
import { askedBlobs, groupsOf } from "./release_blobs";

const LISTING_LIMIT_BYTES = 4 * 1024 * 1024;

/**
 * Keeps the pool's codes and cards up to date.
 *
 * wanted: whether this reader's settings want a pool of this size kept; nothing else decides. What is requested depends
 * on the release, the settings and what was pulled before. The ETag is computed here, from the listing's bytes, so that
 * the backend can't use it to mark this device.
 */
export class PoolSync {
  constructor(
    private readonly client: HttpClient,
    private readonly pool: PoolStore,
    private readonly releases: InstalledReleases,
    private readonly clock: Clock,
    private readonly wanted: (news: number) => boolean,
  ) {}

  /**
   * Pulls what is new; returns the number of blobs. An interrupted pull resumes later, and the old pool stays until
   * then. Throws NoRelease, HttpClient's network errors, AnswerMalformed, ReleaseRefused for a blob with another hash.
   */
  async refresh(): Promise<number> {
    const manifest = manifestInUse(this.releases);
    if (!(manifest.recall.pool_codes && this.wanted(0))) return this.dropped();
    const kept = this.pool.current();
    const etag = kept?.listing.encoder === manifest.encoder ? etagOfBytes(kept.text) : null;
    const look = { words: REQUESTS.say("code_list"), purpose: "sync", etag, limitBytes: LISTING_LIMIT_BYTES };
    let body: Bytes;
    try {
      const answer = await this.client.get(`/v1/releases/${shortened(manifest.release)}/codes`, look);
      if (answer.status === 304) return 0;
      body = answer.body;
    } catch (refused) {
      // they are being made: the next poll finds them
      if (refused instanceof BackendRefused && refused.problem.status === 503) return 0;
      throw refused;
    }
    const listing = parsed(poolCodes, body, "pool codes");
    if (listing.release !== manifest.release || listing.encoder !== manifest.encoder) {
      const why = `they are for ${listing.release} and encoder ${listing.encoder.slice(0, 12)}`;
      throw new AnswerMalformed("pool codes", why);
    }
    if (!this.wanted(newsInPool(listing))) return this.dropped();
    let pulled = await this.parts(listing, manifest);
    const weighed = listing.shards.map((shard) => ({ shard, size_bytes: shard.codes.size_bytes + shard.cards.size_bytes }));
    for (const group of groupsOf(weighed)) pulled += await this.shards(listing, group.map(({ shard }) => shard));
    this.pool.use(listing, body, this.clock());
    return pulled;
  }

  private dropped(): number {
    if (this.pool.current()) this.pool.drop();
    return 0;
  }

  /**
   * Also checks parts already here against this listing's declaration. If that failed only later, during a search with
   * the reader's vector, another pull would follow and so reveal something about that vector.
   */
  private async parts(listing: PoolCodes, manifest: ReleaseManifest): Promise<number> {
    let pulled = 0;
    const checks: readonly (readonly [BlobRef, (content: Bytes) => unknown])[] = [
      [listing.book, (content) => unpackBook(content, listing.subspaces, manifest.dimensions)],
      [listing.priors, (content) => unpackPriors(content, newsInPool(listing))],
    ];
    for (const [ref, check] of checks) {
      const kept = this.pool.part(ref.sha256);
      const content = kept ?? ((await this.blobs([ref], listing.release)).get(ref.sha256) as Bytes);
      await declared(() => check(content));
      if (kept) continue;
      this.pool.putPart(ref.sha256, content);
      pulled += 1;
    }
    return pulled;
  }

  /** Pulls the missing parts of some days, all at once. With another encoder the same articles have other codes. */
  private async shards(listing: PoolCodes, days: readonly CodeShard[]): Promise<number> {
    const states = days.map((shard) => {
      const hasCards = this.pool.hasCards(shard);
      return { shard, hasCards, kept: hasCards ? this.pool.part(shard.codes.sha256) : null };
    });
    const wanted = states.flatMap(({ shard, hasCards, kept }) =>
      kept ? [] : hasCards ? [shard.codes] : [shard.codes, shard.cards],
    );
    const pulled = wanted.length ? await this.blobs(wanted, listing.release) : new Map<string, Bytes>();
    for (const { shard, hasCards, kept } of states) {
      const codes = kept ?? (pulled.get(shard.codes.sha256) as Bytes);
      await declared(() => unpackCodes(codes, shard.count, listing.subspaces));
      if (kept) continue;
      if (hasCards) this.pool.putPart(shard.codes.sha256, codes);
      else {
        const packed = pulled.get(shard.cards.sha256) as Bytes;
        this.pool.putShard(shard, codes, await declared(() => unpackCards(packed, shard.count)));
      }
    }
    return wanted.length;
  }

  private async blobs(group: readonly BlobRef[], release: string): Promise<Map<string, Bytes>> {
    const contents = await askedBlobs(this.client, group, REQUESTS.say("codes"), release);
    return new Map(group.map((ref, at) => [ref.sha256, contents[at] as Bytes]));
  }
}

/** Runs `read`; throws AnswerMalformed for blobs that don't match the listing. */
async function declared<R>(read: () => R | Promise<R>): Promise<R> {
  try {
    return await read();
  } catch (broken) {
    if (broken instanceof TensorError) throw new AnswerMalformed("pool codes", broken.message);
    throw broken;
  }
}
