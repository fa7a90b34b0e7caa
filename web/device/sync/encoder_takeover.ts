// Takes over a new encoder: the stored articles get its vectors, always by whole shards, so that no request reveals a
// click.
import { AnswerMalformed } from "../errors";
import type { Clock } from "../protocol/moments";
import type { PulledShards } from "../store/default_list";
import type { NewsStore } from "../store/news";
import type { InstalledReleases } from "../store/releases";
import { parsed, readCodes } from "../uplink/backend_client";
import { REQUESTS, type HttpClient } from "../uplink/http";
import type { Vectors } from "../vectors";
import { type ValueOf, list } from "../protocol/forms";
import { newsId, shortened } from "../protocol/ids";
import { BLOB_LIMIT_BYTES, type ShardList, shardList, shardRef } from "../protocol/releases";
import { manifestInUse } from "./lists";
import { checkedBlob } from "./release_blobs";
import type { ReleaseSync } from "./release_sync";

const IDS_LIMIT_BYTES = 64 * 1024 * 1024;
const IDS = list(newsId);
type ShardRef = ValueOf<typeof shardRef>;

/** All shards of a release. Throws HttpClient's network errors, and AnswerMalformed. */
async function listedShards(client: HttpClient, release: string, encoder: string): Promise<ShardList> {
  const look = { words: REQUESTS.say("shards"), purpose: "sync" };
  const answer = await client.get(`/v1/releases/${shortened(release)}/vectors`, look);
  const listed = parsed(shardList, answer.body, "shard list");
  if (listed.encoder !== encoder || listed.release !== release)
    throw new AnswerMalformed("shard list", `it is for ${listed.release} and encoder ${listed.encoder.slice(0, 12)}`);
  return listed;
}

/**
 * One shard's article ids and their vectors [n, D], checked. Throws HttpClient's errors, AnswerMalformed,
 * ReleaseRefused.
 */
async function pullShard(
  client: HttpClient,
  listed: ShardList,
  shard: ShardRef,
  dimensions: number,
): Promise<{ ids: readonly string[]; vectors: Vectors }> {
  const path = `/v1/releases/${shortened(listed.release)}/vectors/${shard.name}`;
  const what = `shard ${shard.name}`;
  const blob = await client.get(path, {
    words: REQUESTS.say("shard", { shard: shard.name }),
    purpose: "sync",
    accept: "application/octet-stream",
    limitBytes: Math.max(1, Math.min(shard.blob.size_bytes, BLOB_LIMIT_BYTES)),
  });
  const content = await checkedBlob(blob.body, shard.blob, listed.release);
  const vectors = readCodes(content, shard.count, dimensions, what, BLOB_LIMIT_BYTES);
  const answer = await client.get(`${path}/ids`, {
    words: REQUESTS.say("shard_ids", { shard: shard.name }),
    purpose: "sync",
    limitBytes: IDS_LIMIT_BYTES,
  });
  const ids = parsed(IDS, answer.body, what);
  if (ids.length !== shard.count) throw new AnswerMalformed(what, `${ids.length} ids for ${shard.count} vectors`);
  return { ids, vectors };
}

/**
 * Gives the stored articles their vectors by the current release's encoder; needed only when the encoder changes. Which
 * shards are requested depends on the release and on those already pulled, never on what is in the store: every device
 * that gets a new encoder pulls all shards and discards what it doesn't need.
 */
export class VectorSync {
  constructor(
    private readonly client: HttpClient,
    private readonly news: NewsStore,
    private readonly pulled: PulledShards,
    private readonly releases: InstalledReleases,
    private readonly clock: Clock,
  ) {}

  /** Pulls every missing shard of the current encoder; returns how many. An interrupted pull resumes later. */
  async refresh(): Promise<number> {
    const { release, encoder, dimensions } = manifestInUse(this.releases);
    const complete = this.pulled.encoder();
    if (complete === encoder) return 0;
    if (complete === null) {
      this.pulled.setComplete(encoder, this.clock());
      return 0;
    }
    const listed = await listedShards(this.client, release, encoder);
    const here = this.pulled.pulled(encoder);
    const wanted = listed.shards.filter((shard) => here.get(shard.name) !== shard.blob.sha256);
    for (const shard of wanted) {
      const { ids, vectors } = await pullShard(this.client, listed, shard, dimensions);
      this.news.putVectors(ids, vectors, encoder, { ofClicked: true });
      this.pulled.add(encoder, shard.name, shard.blob.sha256);
    }
    this.pulled.setComplete(encoder, this.clock());
    this.news.pruneVectors([encoder]);
    return wanted.length;
  }
}

/** Moves from the current release to a newer one; with another encoder, from one vector space to another. */
export class EncoderTakeover {
  /** swap: makes the newest installed release current; feeds and reports then use its encoder. */
  constructor(
    private readonly releases: ReleaseSync,
    private readonly vectors: VectorSync,
    private readonly swap: () => Promise<void>,
  ) {}

  /** Takes over the newest release if it is another; true if so. Throws like `ReleaseSync` and `VectorSync`. */
  async step(): Promise<boolean> {
    const installed = await this.releases.refresh();
    try {
      // Vectors come first: otherwise the feed would lack all of the reader's clicks. If the pull is interrupted, the
      // release is used anyway, with the vectors here, and the next step pulls the rest.
      await this.vectors.refresh();
    } finally {
      if (installed) await this.swap();
    }
    return installed;
  }

  /** Like `ReleaseSync.complete`. */
  rest(): Promise<void> {
    return this.releases.complete();
  }
}
