// The device's only HTTP client: every request is written to the byte log before its first byte leaves.
import { AnswerMalformed, BackendRefused, BackendUnreachable } from "../errors";
import type { Clock } from "../moments";
import { type Charge, Sealed } from "../privacy/sealed";
import type { ByteLog, Departure } from "../store/byte_log";
import { WireError, readMessage } from "../wire/forms";
import { PROTOCOL_HEADER, PROTOCOL_VERSION } from "../wire/ids";
import { PROBLEM_MEDIA_TYPE, type Problem, problem } from "../wire/problem";
import { Stopwatch } from "../wire/server_timing";
import type { Bytes } from "../wire/values";
import { type Arrived, NoAnswer, TooLong, type Transport } from "./transport";

export const ANSWER_LIMIT_BYTES = 16 * 1024 * 1024;
const RETRY_AFTER_LIMIT_SEC = 3_600;
const ETAG_LIMIT = 80;
const EXPECTED: readonly number[] = [200, 201, 202, 204, 304];
const encoded = (text: string): Bytes => new TextEncoder().encode(text);

/** A whole answer: body decoded, ms from the first byte out to the last byte in. */
export interface Answer {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Bytes;
  readonly ms: number;
}

interface Asked {
  readonly words: string;
  readonly purpose: string;
  readonly limitBytes?: number;
}

/** One request that is to be logged and sent; charge: what it cost, where it did. */
interface Sending {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Bytes;
  readonly asked: Asked;
  readonly charge?: Pick<Charge, "mechanism" | "epsilon">;
}

/** ms from the first byte out to the last byte in, or until it was given up. */
interface Ending {
  readonly came: Arrived | NoAnswer | TooLong;
  readonly ms: number;
}

/** A look at what is the same for everybody. */
export interface Look extends Asked {
  readonly etag?: string | null;
  readonly accept?: string;
}

/** How a sealed message goes. waitSec: the longest that is waited for, where that is shorter than the client's limit. */
export interface Delivery {
  readonly purpose: string;
  readonly method?: string;
  readonly limitBytes?: number;
  readonly watch?: Stopwatch;
  readonly waitSec?: number;
}

/**
 * HTTP to one backend.
 *
 * What this device sets is what the Python one sets: method, path, Accept, the protocol's version, Content-Type of a
 * body, If-None-Match; the browser adds its own headers, which the log can't see and the page that shows it says so. A
 * body goes out only sealed. Errors: BackendUnreachable, BackendRefused (also for an answer in another version of the
 * protocol), AnswerMalformed; whatever the store throws if the log can't be written, and then nothing was sent.
 */
export class HttpClient {
  constructor(
    readonly baseUrl: string,
    private readonly log: ByteLog,
    private readonly clock: Clock,
    private readonly transport: Transport,
    private readonly timeoutSec = 10,
  ) {}

  /** Fetch what is the same for everybody. `path` may hold nothing that comes from the reader's behaviour. */
  async get(path: string, look: Look): Promise<Answer> {
    return (await this.getAll([path], look))[0] as Answer;
  }

  /** The same of several paths at once. All of them are in the log before the first leaves. */
  getAll(paths: readonly string[], { words, purpose, etag, accept = "application/json", limitBytes }: Look): Promise<Answer[]> {
    const headers = { accept, ...(etag && { "if-none-match": `"${etag}"` }) };
    const asked = { words, purpose, ...(limitBytes && { limitBytes }) };
    return this.send(paths.map((path) => ({ method: "GET", path, headers, body: new Uint8Array(0), asked })));
  }

  /** Send sealed bytes, exactly. Throws TypeError for anything that isn't sealed. */
  async deliver<M>(sealed: Sealed<M>, path: string, { purpose, method = "POST", limitBytes, watch, waitSec }: Delivery): Promise<Answer> {
    if (!(sealed instanceof Sealed)) throw new TypeError("only what privacy/ has sealed may leave the device");
    const headers = { accept: "application/json", "content-type": sealed.contentType };
    const asked = { words: sealed.words, purpose, ...(limitBytes && { limitBytes }) };
    const sending = { method, path, headers, body: sealed.payload, asked, charge: sealed.charge };
    return (await this.send([sending], watch, waitSec))[0] as Answer;
  }

  private async send(all: readonly Sending[], watch = new Stopwatch(), waitSec = this.timeoutSec): Promise<Answer[]> {
    const departing = all.map((each) => ({ ...each, headers: { ...each.headers, [PROTOCOL_HEADER]: String(PROTOCOL_VERSION) } }));
    const entries = watch.stage("store", () =>
      this.log.together(() => departing.map((each) => this.log.record(this.departure(each)))),
    );
    const waitMs = 1_000 * Math.min(waitSec, this.timeoutSec);
    const ended = await watch.during("network", () => Promise.all(departing.map((each) => this.ending(each, waitMs))));
    watch.stage("store", () => this.log.together(() => ended.forEach((each, at) => this.note(entries[at] as number, each))));
    return ended.map((each, at) => this.accepted(departing[at] as Sending, each));
  }

  private departure({ method, path, headers, body, asked: { purpose, words }, charge }: Sending): Departure {
    const head = headOf(`${method} ${path} HTTP/1.1`, Object.entries(headers));
    const { mechanism, epsilon } = charge ?? { mechanism: "nothing", epsilon: 0 };
    return { at: this.clock(), purpose, words, method, url: this.baseUrl + path, head, body, mechanism, epsilon };
  }

  /** What became of one request. */
  private async ending({ method, path, headers, body, asked }: Sending, waitMs: number): Promise<Ending> {
    const { limitBytes = ANSWER_LIMIT_BYTES } = asked;
    const started = performance.now();
    try {
      const request = { method, path, headers, waitMs, limitBytes, ...(body.length && { body }) };
      return { came: await this.transport.send(request), ms: performance.now() - started };
    } catch (failed) {
      if (!(failed instanceof NoAnswer || failed instanceof TooLong)) throw failed;
      return { came: failed, ms: performance.now() - started };
    }
  }

  private note(entry: number, { came, ms }: Ending): void {
    if (came instanceof Error) this.log.failed(entry, came.message, ms);
    else this.log.answered(entry, came.status, headOf(`HTTP ${came.status}`, came.headers), came.body.length, ms);
  }

  private accepted({ method, path }: Sending, { came, ms }: Ending): Answer {
    if (came instanceof TooLong) throw new AnswerMalformed(`${method} ${path}`, came.message);
    if (came instanceof NoAnswer) throw new BackendUnreachable(this.baseUrl, came.message);
    const { status } = came;
    const version = came.headers.get(PROTOCOL_HEADER) ?? String(PROTOCOL_VERSION);
    if (version !== String(PROTOCOL_VERSION)) throw new BackendRefused(anotherVersion(status));
    if (EXPECTED.includes(status)) return { ...came, ms };
    if (status >= 400) throw new BackendRefused(problemOf(came), retryAfterSec(came.headers.get("retry-after")));
    throw new AnswerMalformed(`${method} ${path}`, `status ${status} is not expected`);
  }
}

/** The answer's ETag without quotes; null if it has none, or one so long that it could mark this device. */
export function etagOf(answer: Answer): string | null {
  const etag = (answer.headers.get("etag") ?? "").replace(/^W\//, "").replace(/^"+|"+$/g, "");
  return etag.length > 0 && etag.length <= ETAG_LIMIT && /^[\x20-\x7e]+$/.test(etag) && !etag.includes('"') ? etag : null;
}

/** Seconds of a Retry-After, at most an hour; null for none, or for one that names a date. */
export function retryAfterSec(header: string | undefined): number | null {
  const digits = /^\s*([0-9]+)\s*$/.exec(header ?? "")?.[1];
  return digits === undefined ? null : Math.min(Number(digits.slice(0, 9)), RETRY_AFTER_LIMIT_SEC);
}

/** First line and headers, as HTTP/1.1 would put them on the wire. */
function headOf(first: string, headers: Iterable<readonly [string, string]>): Bytes {
  return encoded(`${[first, ...Array.from(headers, ([name, value]) => `${name}: ${value}`)].join("\r\n")}\r\n\r\n`);
}

function problemOf({ status, headers, body }: Arrived): Problem {
  if ((headers.get("content-type") ?? "").split(";")[0]?.trim() === PROBLEM_MEDIA_TYPE) {
    try {
      return readMessage(problem, body);
    } catch (broken) {
      // an answer that only claims to be a problem is told by its status, like any other
      if (!(broken instanceof WireError)) throw broken;
    }
  }
  const detail = `the backend refused without saying why (${body.length} bytes of another type)`;
  return { type: "about:blank", title: `HTTP ${status}`, status, detail, field: null, limit: null, more: new Map() };
}

/** Said by this device itself: its backend can't know what this version of the program understands. */
function anotherVersion(status: number): Problem {
  return {
    type: "urn:ownfeed:problem:protocol-differs",
    title: "The backend speaks another version of the protocol",
    status,
    detail: `This device speaks version ${PROTOCOL_VERSION}; bring both to the same version of Ownfeed.`,
    field: PROTOCOL_HEADER,
    limit: String(PROTOCOL_VERSION),
    more: new Map(),
  };
}
