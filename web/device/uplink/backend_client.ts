// The device's client for everything about its reader and its rounds: sealed messages out, checked answers back. Also
// reads the vectors that come with candidates.
import { AnswerMalformed } from "../errors";
import type { Sealed } from "../privacy/sealed";
import type { Reply } from "../privacy/secagg/messages";
import { WireError, readMessage, type Bytes, type Form } from "../protocol/forms";
import { SHORT_RELEASES, shortened } from "../protocol/ids";
import { bodiesAnswer, type BodiesAnswer, type BodiesRequest } from "../protocol/news";
import { recallAnswer, type RecallAnswer, type RecallRequest } from "../protocol/recall";
import { sameBytes } from "../protocol/releases";
import { openRounds, roundStatus, signedOffer, type CheckIn, type RoundOffer, type RoundStatus, type SignedOffer, type UploadReceipt, uploadReceipt } from "../protocol/rounds";
import { agreements, roster, sharers, shares, survivors } from "../protocol/secagg";
import { Stopwatch, parseServerTiming } from "../protocol/server_timing";
import { TensorError, dequantise, unpack } from "../protocol/tensors";
import type { Vectors } from "../vectors";
import { REQUESTS, type HttpClient } from "./http";

const VECTORS_LIMIT_BYTES = 8 * 1024 * 1024;
/** Article vectors have a length of about 1; squares and products of numbers this large still fit a float32. */
const SCALE_LIMIT = 1e6;

/** Parses an answer's body as a wire message; throws AnswerMalformed naming the invalid field. */
export function parsed<T>(form: Form<T>, body: Bytes, what: string): T {
  try {
    return readMessage(form, body);
  } catch (broken) {
    if (broken instanceof WireError) throw new AnswerMalformed(what, broken.message);
    throw broken;
  }
}

/** [R, D], one row per candidate, in the answer's order. Throws AnswerMalformed. */
export function readVectors(answer: RecallAnswer, dimensions: number): Vectors {
  return readCodes(answer.vectors, answer.candidates.length, dimensions, "recall", VECTORS_LIMIT_BYTES);
}

/** [rows, dimensions] from a blob of `codes` and `scales`. Throws AnswerMalformed. */
export function readCodes(blob: Bytes, rows: number, dimensions: number, what: string, limitBytes: number): Vectors {
  try {
    const { codes, scales } = unpack(
      blob,
      { codes: { dtype: "int8", shape: [rows, dimensions] }, scales: { dtype: "float32", shape: [rows] } },
      limitBytes,
    );
    const lengths = scales.data as Float32Array;
    const largest = lengths.reduce((most, each) => Math.max(most, Math.abs(each)), 0);
    if (largest > SCALE_LIMIT) throw new TensorError(`tensor scales: at most ${SCALE_LIMIT}, got ${largest}`);
    return { data: dequantise(codes.data as Int8Array, lengths), rows, width: dimensions };
  } catch (broken) {
    if (broken instanceof TensorError) throw new AnswerMalformed(what, broken.message);
    throw broken;
  }
}

const ANSWERS: Readonly<Record<string, Form<unknown>>> = {
  keys: roster,
  shares,
  complaints: sharers,
  masked: survivors,
  agree: agreements,
};

/** Each call throws BackendUnreachable, BackendRefused or AnswerMalformed. */
export class RoundsUplink {
  constructor(private readonly client: HttpClient) {}

  /** The current rounds, oldest first. */
  async openRounds(): Promise<readonly RoundStatus[]> {
    const words = REQUESTS.say("current_round");
    const answer = await this.client.get("/v1/rounds/current", { words, purpose: "progress" });
    return answer.status === 204 ? [] : parsed(openRounds, answer.body, "open rounds").rounds;
  }

  /** A round's status; the same for every device. */
  async roundStatus(round: string): Promise<RoundStatus> {
    const words = REQUESTS.say("round_status", { round });
    const answer = await this.client.get(`/v1/rounds/${round}`, { words, purpose: "progress" });
    return parsed(roundStatus, answer.body, "round status");
  }

  /** A round to take part in, not yet verified; null if there is none now. */
  async checkIn(sealed: Sealed<CheckIn>): Promise<SignedOffer | null> {
    const answer = await this.client.deliver(sealed, "/v1/rounds/check-in", { purpose: "training" });
    return answer.status === 204 ? null : parsed(signedOffer, answer.body, "check-in");
  }

  /** Sends a message of a secure sum; the same bytes again get the same receipt. Checks the receipt's hash. */
  async sumMessage(offer: RoundOffer, stage: string, sealed: Sealed<unknown>): Promise<UploadReceipt> {
    const answer = await this.client.deliver(sealed, stagePath(offer, stage), { purpose: "training", method: "PUT" });
    const receipt = parsed(uploadReceipt, answer.body, "upload");
    if (receipt.sha256 !== sealed.sha256 || receipt.round !== offer.manifest.round)
      throw new AnswerMalformed("upload", "its receipt is for other bytes or another round");
    return receipt;
  }

  /** A stage's result for this device; null while the stage isn't closed. */
  async sumAnswer(sealed: Sealed<RoundOffer>, stage: string): Promise<Reply | null> {
    const path = stagePath(sealed.message, stage);
    const answer = await this.client.deliver(sealed, path, { purpose: "training", method: "GET" });
    const form = ANSWERS[stage];
    if (answer.status === 204) return null;
    if (!form) throw new RangeError(`stage ${stage} of a sum has no answer`);
    return { stage, answer: parsed(form, answer.body, `stage ${stage}`) } as Reply;
  }
}

/** The path for a secure sum's messages and answers. */
function stagePath(offer: RoundOffer, stage: string): string {
  return `/v1/rounds/${offer.manifest.round}/${stage}/${offer.pseudonym}`;
}

const BODIES_ANSWER_LIMIT_BYTES = 64 * 1024 * 1024;

/** Each call throws BackendUnreachable, BackendRefused or AnswerMalformed. */
export class Uplink {
  private last: readonly [Bytes, RecallAnswer] | null = null;

  constructor(readonly client: HttpClient) {}

  /** Drops the answer cached to speed up reading when it comes again. */
  forget(): void {
    this.last = null;
  }

  /**
   * Candidates for a report, and the server's milliseconds by stage. If the bytes are unchanged, returns the same
   * object.
   */
  async recall(
    sealed: Sealed<RecallRequest>,
    watch = new Stopwatch(),
  ): Promise<readonly [RecallAnswer, ReadonlyMap<string, number>]> {
    const answer = await this.client.deliver(sealed, "/v1/recall", { purpose: "recall", watch });
    const found = watch.stage("decode", () => this.read(answer.body));
    const { release, limit } = sealed.message;
    if (shortened(found.release) !== release) {
      const why = `it is for release ${found.release}, asked was one of number ${release} modulo ${SHORT_RELEASES}`;
      throw new AnswerMalformed("recall", why);
    }
    if (found.candidates.length > limit)
      throw new AnswerMalformed("recall", `${found.candidates.length} candidates, at most ${limit} were requested`);
    return [found, parseServerTiming(answer.headers.get("server-timing") ?? "")];
  }

  /** Texts of a whole returned list; rejects texts that weren't requested. */
  async bodies(sealed: Sealed<BodiesRequest>): Promise<BodiesAnswer> {
    const how = { purpose: "bodies", limitBytes: BODIES_ANSWER_LIMIT_BYTES };
    const answer = await this.client.deliver(sealed, "/v1/news/bodies", how);
    const found = parsed(bodiesAnswer, answer.body, "bodies");
    const requested = new Set(sealed.message.ids);
    const unrequested = found.bodies.map((body) => body.id).filter((id) => !requested.has(id)).sort()[0];
    if (unrequested !== undefined) throw new AnswerMalformed("bodies", `${unrequested} was not requested`);
    return found;
  }

  private read(body: Bytes): RecallAnswer {
    if (!this.last || !sameBytes(this.last[0], body)) this.last = [body, parsed(recallAnswer, body, "recall")];
    return this.last[1];
  }
}
