// A new encoder takes over: the news of the store get their vectors by it, always by whole shards, so that no request
// tells of a click.
import { AnswerMalformed } from "../errors";
import type { Clock } from "../moments";
import type { PulledShards } from "../store/default_list";
import type { NewsStore } from "../store/news";
import type { InstalledReleases } from "../store/releases";
import { parsed, readCodes } from "../uplink/answers";
import type { HttpClient } from "../uplink/http";
import { REQUESTS } from "../uplink/requests";
import type { Vectors } from "../vectors";
import { type ValueOf, list } from "../wire/forms";
import { newsId, shortened } from "../wire/ids";
import { BLOB_LIMIT_BYTES, type ShardList, shardList, shardRef } from "../wire/releases";
import { manifestInUse } from "./lists";
import { checkedBlob } from "./release_blobs";
import type { ReleaseSync } from "./release_sync";

const IDS_LIMIT_BYTES = 64 * 1024 * 1024;
const IDS = list(newsId);
type ShardRef = ValueOf<typeof shardRef>;

/** All shards of a release. Throws network errors as in HttpClient, and AnswerMalformed. */
async function listedShards(client: HttpClient, release: string, encoder: string): Promise<ShardList> {
  const look = { words: REQUESTS.say("shards"), purpose: "sync" };
  const answer = await client.get(`/v1/releases/${shortened(release)}/vectors`, look);
  const listed = parsed(shardList, answer.body, "shard list");
  if (listed.encoder !== encoder || listed.release !== release)
    throw new AnswerMalformed("shard list", `it is for ${listed.release} and encoder ${listed.encoder.slice(0, 12)}`);
  return listed;
}

/** One shard's news ids and their vectors [n, D], checked. Throws as HttpClient, AnswerMalformed, ReleaseRefused. */
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
 * Gives the news of the store their vectors by the encoder of the release in use. Needed only when the encoder changes.
 * Which shards are asked for depends on the release and on which of them were pulled before, never on what is in the
 * store: every device that meets a new encoder pulls all shards, and throws away what it has no use for.
 */
export class VectorSync {
  constructor(
    private readonly client: HttpClient,
    private readonly news: NewsStore,
    private readonly pulled: PulledShards,
    private readonly releases: InstalledReleases,
    private readonly clock: Clock,
  ) {}

  /** Pull every shard that is missing under the encoder in use; returns how many. A cut-off pull goes on later. */
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

/** From the release in use to a newer one; with another encoder, from one space of news vectors to another. */
export class EncoderTakeover {
  /** swap: puts the newest installed release in use: from then on feeds and reports are made by its encoder. */
  constructor(
    private readonly releases: ReleaseSync,
    private readonly vectors: VectorSync,
    private readonly swap: () => Promise<void>,
  ) {}

  /** Take over the newest release, if it is another; true if so. Throws as `ReleaseSync` and `VectorSync` do. */
  async step(): Promise<boolean> {
    const installed = await this.releases.refresh();
    try {
      // First the vectors: the feed would else have none of the reader's clicks. Where the pull is cut off, the release is
      // used all the same, with the vectors that are here, and the next step goes on with the rest.
      await this.vectors.refresh();
    } finally {
      if (installed) await this.swap();
    }
    return installed;
  }

  /** As `ReleaseSync.complete`. */
  rest(): Promise<void> {
    return this.releases.complete();
  }
}
