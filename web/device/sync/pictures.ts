// Pulling publishers' pictures: every shard of the list, in its order, so that no request tells of a story.
import { AnswerMalformed, BackendRefused } from "../errors";
import type { Clock } from "../moments";
import type { PictureStore } from "../store/pictures";
import { parsed } from "../uplink/answers";
import type { HttpClient } from "../uplink/http";
import { REQUESTS } from "../uplink/requests";
import { PictureError, type PictureShard, pictureList, unpackPictures } from "../wire/pictures";
import { contentHash } from "../wire/primitives";
import type { Bytes } from "../wire/values";
import { etagOfBytes } from "./lists";
import { groupsOf } from "./release_blobs";

const LIST_LIMIT_BYTES = 1024 * 1024;
/** A backend of before pictures, or one whose list has just changed: the next look goes on. */
const NOT_NOW: readonly number[] = [404, 410, 503];

/**
 * Keeps all pictures of the list.
 *
 * Formal guarantees: what is asked for is a function of the server's list, of what was pulled before, and of the reader's
 * one switch; neither clicks nor what a page shows enter it. Without the switch nothing is asked for. The ETag is computed
 * here, from the list's bytes, so that it can't be made a mark of this device by the backend.
 */
export class PictureSync {
  constructor(
    private readonly client: HttpClient,
    private readonly store: PictureStore,
    private readonly clock: Clock,
  ) {}

  /**
   * Pull what is new; returns how many shards. A cut-off pull goes on later, and the old ones stay until then. Throws
   * AnswerMalformed for a list or a shard that isn't what its limits, its size or its hash say, and network errors as in
   * HttpClient.
   */
  async refresh(): Promise<number> {
    if (!this.store.shown()) return 0;
    const kept = this.store.current();
    const etag = kept && etagOfBytes(kept.text);
    const look = { words: REQUESTS.say("picture_list"), purpose: "sync", etag, limitBytes: LIST_LIMIT_BYTES };
    try {
      const answer = await this.client.get("/v1/pictures", look);
      if (answer.status === 304) return 0;
      const listing = parsed(pictureList, answer.body, "pictures");
      const missing = listing.shards.filter((shard) => !this.store.has(shard));
      const weighed = missing.map((shard) => ({ shard, size_bytes: shard.pictures.size_bytes }));
      for (const group of groupsOf(weighed)) await this.pull(group.map(({ shard }) => shard));
      // the reader may have said otherwise meanwhile
      if (this.store.shown()) this.store.use(listing, answer.body, this.clock());
      return missing.length;
    } catch (refused) {
      if (refused instanceof BackendRefused && NOT_NOW.includes(refused.problem.status)) return 0;
      throw refused;
    }
  }

  private async pull(shards: readonly PictureShard[]): Promise<void> {
    const limitBytes = Math.max(1, ...shards.map(({ pictures }) => pictures.size_bytes));
    const words = REQUESTS.say("pictures");
    const look = { words, purpose: "sync", accept: "application/octet-stream", limitBytes };
    const answers = await this.client.getAll(shards.map(({ pictures }) => `/v1/blobs/${pictures.sha256}`), look);
    for (const [at, { body }] of answers.entries()) await this.take(shards[at] as PictureShard, body);
  }

  private async take(shard: PictureShard, body: Bytes): Promise<void> {
    const { sha256, size_bytes } = shard.pictures;
    const refuse = (why: string) => new AnswerMalformed("pictures", `shard ${sha256.slice(0, 12)}: ${why}`);
    if (body.length !== size_bytes) throw refuse(`${body.length} bytes, declared were ${size_bytes}`);
    if ((await contentHash(body)) !== sha256) throw refuse("another hash than declared");
    try {
      this.store.put(shard, unpackPictures(body, shard.count));
    } catch (broken) {
      throw broken instanceof PictureError ? refuse(broken.message) : broken;
    }
  }
}
