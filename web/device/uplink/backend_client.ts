// The device's client of the backend for whatever is about its reader: sealed messages out, checked answers back.
import { AnswerMalformed } from "../errors";
import type { Sealed } from "../privacy/sealed";
import { SHORT_RELEASES, shortened } from "../wire/ids";
import { type BodiesAnswer, type BodiesRequest, bodiesAnswer } from "../wire/news";
import { type RecallAnswer, type RecallRequest, recallAnswer } from "../wire/recall";
import { Stopwatch, parseServerTiming } from "../wire/server_timing";
import { sameBytes } from "../wire/releases";
import type { Bytes } from "../wire/values";
import { parsed } from "./answers";
import type { HttpClient } from "./http";

const BODIES_ANSWER_LIMIT_BYTES = 64 * 1024 * 1024;
/** A reader waits for a page: a server that is silent for so long counts as unreachable, which is said within 5 s. */
const READER_WAITS_SEC = 4;

/** Each call throws BackendUnreachable, BackendRefused or AnswerMalformed. */
export class Uplink {
  private last: readonly [Bytes, RecallAnswer] | null = null;

  constructor(readonly client: HttpClient) {}

  /** Drop the answer that is kept in memory to be read faster when it comes again. */
  forget(): void {
    this.last = null;
  }

  /** Candidates for a report, and the server's milliseconds by stage. The same bytes as last time are the same object. */
  async recall(
    sealed: Sealed<RecallRequest>,
    watch = new Stopwatch(),
  ): Promise<readonly [RecallAnswer, ReadonlyMap<string, number>]> {
    const answer = await this.client.deliver(sealed, "/v1/recall", { purpose: "recall", watch, waitSec: READER_WAITS_SEC });
    const found = watch.stage("decode", () => this.read(answer.body));
    const { release, limit } = sealed.message;
    if (shortened(found.release) !== release) {
      const why = `it is for release ${found.release}, asked was one of number ${release} modulo ${SHORT_RELEASES}`;
      throw new AnswerMalformed("recall", why);
    }
    if (found.candidates.length > limit)
      throw new AnswerMalformed("recall", `${found.candidates.length} candidates, asked were ${limit}`);
    return [found, parseServerTiming(answer.headers.get("server-timing") ?? "")];
  }

  /** Texts of a whole returned list; texts that were not asked for are refused. */
  async bodies(sealed: Sealed<BodiesRequest>): Promise<BodiesAnswer> {
    const how = { purpose: "bodies", limitBytes: BODIES_ANSWER_LIMIT_BYTES };
    const answer = await this.client.deliver(sealed, "/v1/news/bodies", how);
    const found = parsed(bodiesAnswer, answer.body, "bodies");
    const asked = new Set(sealed.message.ids);
    const unasked = found.bodies.map((body) => body.id).filter((id) => !asked.has(id)).sort()[0];
    if (unasked !== undefined) throw new AnswerMalformed("bodies", `${unasked} was not asked for`);
    return found;
  }

  private read(body: Bytes): RecallAnswer {
    if (!this.last || !sameBytes(this.last[0], body)) this.last = [body, parsed(recallAnswer, body, "recall")];
    return this.last[1];
  }
}
