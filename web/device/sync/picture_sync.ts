// Pulls publishers' pictures: every shard of the list, in order, so that no request reveals a story.
import { AnswerMalformed, BackendRefused } from "../errors";
import type { Clock } from "../protocol/moments";
import type { PictureStore } from "../store/picture_store";
import { parsed } from "../uplink/backend_client";
import { REQUESTS, type HttpClient } from "../uplink/http";
import { PictureError, type PictureShard, pictureList, unpackPictures } from "../protocol/pictures";
import { contentHash } from "../protocol/primitives";
import { etagOfBytes } from "./lists";

const LIST_LIMIT_BYTES = 1024 * 1024;
/** Statuses of a backend that is busy or whose list has just changed: the next poll continues. */
const NOT_NOW: readonly number[] = [404, 410, 503];

/**
 * Keeps all pictures of the list up to date.
 *
 * Formal guarantees: what is requested is a function of the server's list, of what was pulled before, and of the
 * reader's switch for pictures; it doesn't depend on clicks or on what a page shows. Without the switch nothing is
 * requested. The ETag is computed here, from the list's bytes, so that the backend can't use it to mark this device;
 * the list itself can mark it, like everything that a device repeats (threat model, *What remains*).
 */
export class PictureSync {
  constructor(
    private readonly client: HttpClient,
    private readonly store: PictureStore,
    private readonly clock: Clock,
  ) {}

  /**
   * Pulls what is new; returns the number of shards. An interrupted pull resumes later, and the old pictures stay until
   * then. Throws AnswerMalformed for a list or shard that doesn't match its limits, size or hash, and HttpClient's
   * network errors.
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
        if (!this.store.shown()) break; // the reader may change the switch in the meantime
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

  /** One at a time, so that a slow connection has the full time for each, and finished ones are kept. */
  private async pull(shard: PictureShard): Promise<void> {
    const { sha256, size_bytes } = shard.pictures;
    const words = REQUESTS.say("pictures");
    const look = { words, purpose: "sync", accept: "application/octet-stream", limitBytes: Math.max(1, size_bytes) };
    const { body } = await this.client.get(`/v1/blobs/${sha256}`, look);
    const refuse = (why: string) => new AnswerMalformed("pictures", `shard ${sha256.slice(0, 12)}: ${why}`);
    if (body.length !== size_bytes) throw refuse(`${body.length} bytes instead of the declared ${size_bytes}`);
    if ((await contentHash(body)) !== sha256) throw refuse("its hash differs from the declared one");
    try {
      this.store.put(shard, unpackPictures(body, shard.count));
    } catch (broken) {
      throw broken instanceof PictureError ? refuse(broken.message) : broken;
    }
  }
}
