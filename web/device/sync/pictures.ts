// Pulling publishers' pictures: every shard of the list, in its order, so that no request tells of a story.
import { AnswerMalformed, BackendRefused } from "../errors";
import type { Clock } from "../moments";
import type { PictureStore } from "../store/pictures";
import { parsed } from "../uplink/answers";
import type { HttpClient } from "../uplink/http";
import { REQUESTS } from "../uplink/requests";
import { PictureError, type PictureShard, pictureList, unpackPictures } from "../wire/pictures";
import { contentHash } from "../wire/primitives";
import { etagOfBytes } from "./lists";

const LIST_LIMIT_BYTES = 1024 * 1024;
/** A backend of before pictures, or one whose list has just changed: the next look goes on. */
const NOT_NOW: readonly number[] = [404, 410, 503];

/**
 * Keeps all pictures of the list.
 *
 * Formal guarantees: what is asked for is a function of the server's list, of what was pulled before, and of the reader's
 * one switch; neither clicks nor what a page shows enter it. Without the switch nothing is asked for. The ETag is computed
 * here, from the list's bytes, so that it can't be made a mark of this device by the backend; the list itself can, like
 * any that a device repeats (threat model, *What remains*).
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
      this.store.makeRoom(listing);
      let pulled = 0;
      for (const shard of listing.shards) {
        if (!this.store.shown()) break; // the reader may say otherwise meanwhile
        if (this.store.has(shard)) continue;
        await this.pull(shard);
        pulled += 1;
      }
      this.store.use(listing, answer.body, this.clock());
      return pulled;
    } catch (refused) {
      if (refused instanceof BackendRefused && NOT_NOW.includes(refused.problem.status)) return 0;
      throw refused;
    }
  }

  /** One at a time, so that a slow line has its time for each, and what came stays. */
  private async pull(shard: PictureShard): Promise<void> {
    const { sha256, size_bytes } = shard.pictures;
    const words = REQUESTS.say("pictures");
    const look = { words, purpose: "sync", accept: "application/octet-stream", limitBytes: Math.max(1, size_bytes) };
    const { body } = await this.client.get(`/v1/blobs/${sha256}`, look);
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
