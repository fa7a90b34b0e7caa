// The device's only HTTP client: every request is written to the byte log before its first byte leaves. Requests that
// say nothing about the reader have a purpose, which the log on the Privacy page shows.
import requests from "../../../device_app/uplink/requests.toml";
import { AnswerMalformed, BackendRefused, BackendUnreachable } from "../errors";
import type { Clock } from "../protocol/moments";
import { Sealed, type Charge } from "../privacy/sealed";
import { WireError, readMessage, type Bytes } from "../protocol/forms";
import { PROBLEM_MEDIA_TYPE, PROTOCOL_HEADER, PROTOCOL_VERSION, problem, type Problem } from "../protocol/ids";
import { Stopwatch } from "../protocol/server_timing";
import { TextCatalogue } from "../protocol/text_catalogue";
import type { ByteLog, Departure } from "../store/byte_log";
import { NoAnswer, TooLong, type Arrived, type Transport } from "./transport";

export const REQUESTS = new TextCatalogue(requests);

export const ANSWER_LIMIT_BYTES = 16 * 1024 * 1024;
const RETRY_AFTER_LIMIT_SEC = 3_600;
const ETAG_LIMIT = 80;
const EXPECTED: readonly number[] = [200, 201, 202, 204, 304];
const encoded = (text: string): Bytes => new TextEncoder().encode(text);

/** A complete answer: body decoded; ms from the first byte sent to the last byte received. */
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

/** A request to be logged and sent; charge: what it cost, if anything. */
interface Sending {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Bytes;
  readonly details: Asked;
  readonly charge?: Pick<Charge, "mechanism" | "epsilon">;
}

/** ms from the first byte sent to the last byte received, or until the request was given up. */
interface Ending {
  readonly outcome: Arrived | NoAnswer | TooLong;
  readonly ms: number;
}

/** A request for data that is the same for every device. */
export interface Look extends Asked {
  readonly etag?: string | null;
  readonly accept?: string;
}

/** How a sealed message is sent. */
export interface Delivery {
  readonly purpose: string;
  readonly method?: string;
  readonly limitBytes?: number;
  readonly watch?: Stopwatch;
}

/**
 * HTTP to one backend.
 *
 * This device sets what the Python one sets: method, path, Accept, the protocol's version, a body's Content-Type,
 * If-None-Match. The browser adds its own headers, which the log can't see; the page that shows the log says so. A body
 * is sent only if it is sealed. Errors: BackendUnreachable, BackendRefused (also for an answer in another protocol
 * version), AnswerMalformed; and the store's error if the log can't be written, in which case nothing was sent.
 */
export class HttpClient {
  constructor(
    readonly baseUrl: string,
    private readonly log: ByteLog,
    private readonly clock: Clock,
    private readonly transport: Transport,
    private readonly timeoutSec = 10,
  ) {}

  /** Fetches what is the same for every device. `path` must not depend on the reader's behaviour. */
  async get(path: string, look: Look): Promise<Answer> {
    return (await this.getAll([path], look))[0] as Answer;
  }

  /** Fetches several paths at once. All of them are logged before the first leaves. */
  getAll(paths: readonly string[], { words, purpose, etag, accept = "application/json", limitBytes }: Look): Promise<Answer[]> {
    const headers = { accept, ...(etag && { "if-none-match": `"${etag}"` }) };
    const details = { words, purpose, ...(limitBytes && { limitBytes }) };
    return this.send(paths.map((path) => ({ method: "GET", path, headers, body: new Uint8Array(0), details })));
  }

  /** Sends exactly the sealed bytes. Throws TypeError for anything that isn't sealed. */
  async deliver<M>(sealed: Sealed<M>, path: string, { purpose, method = "POST", limitBytes, watch }: Delivery): Promise<Answer> {
    if (!(sealed instanceof Sealed)) throw new TypeError("only what privacy/ has sealed may leave the device");
    const headers = { accept: "application/json", "content-type": sealed.contentType };
    const details = { words: sealed.words, purpose, ...(limitBytes && { limitBytes }) };
    const sending = { method, path, headers, body: sealed.payload, details, charge: sealed.charge };
    return (await this.send([sending], watch))[0] as Answer;
  }

  private async send(all: readonly Sending[], watch = new Stopwatch()): Promise<Answer[]> {
    const departing = all.map((each) => ({ ...each, headers: { ...each.headers, [PROTOCOL_HEADER]: String(PROTOCOL_VERSION) } }));
    const entries = watch.stage("store", () =>
      this.log.together(() => departing.map((each) => this.log.record(this.departure(each)))),
    );
    const waitMs = 1_000 * this.timeoutSec;
    const ended = await watch.during("network", () => Promise.all(departing.map((each) => this.ending(each, waitMs))));
    watch.stage("store", () => this.log.together(() => ended.forEach((each, at) => this.note(entries[at] as number, each))));
    return ended.map((each, at) => this.accepted(departing[at] as Sending, each));
  }

  private departure({ method, path, headers, body, details: { purpose, words }, charge }: Sending): Departure {
    const head = headOf(`${method} ${path} HTTP/1.1`, Object.entries(headers));
    const { mechanism, epsilon } = charge ?? { mechanism: "nothing", epsilon: 0 };
    return { at: this.clock(), purpose, words, method, url: this.baseUrl + path, head, body, mechanism, epsilon };
  }

  /** The outcome of one request. */
  private async ending({ method, path, headers, body, details }: Sending, waitMs: number): Promise<Ending> {
    const { limitBytes = ANSWER_LIMIT_BYTES } = details;
    const started = performance.now();
    try {
      const request = { method, path, headers, waitMs, limitBytes, ...(body.length && { body }) };
      return { outcome: await this.transport.send(request), ms: performance.now() - started };
    } catch (failed) {
      if (!(failed instanceof NoAnswer || failed instanceof TooLong)) throw failed;
      return { outcome: failed, ms: performance.now() - started };
    }
  }

  private note(entry: number, { outcome, ms }: Ending): void {
    if (outcome instanceof Error) this.log.failed(entry, outcome.message, ms);
    else this.log.answered(entry, outcome.status, headOf(`HTTP ${outcome.status}`, outcome.headers), outcome.body.length, ms);
  }

  private accepted({ method, path }: Sending, { outcome, ms }: Ending): Answer {
    if (outcome instanceof TooLong) throw new AnswerMalformed(`${method} ${path}`, outcome.message);
    if (outcome instanceof NoAnswer) throw new BackendUnreachable(this.baseUrl, outcome.message);
    const { status } = outcome;
    const version = outcome.headers.get(PROTOCOL_HEADER) ?? String(PROTOCOL_VERSION);
    if (version !== String(PROTOCOL_VERSION)) throw new BackendRefused(anotherVersion(status));
    if (EXPECTED.includes(status)) return { ...outcome, ms };
    if (status >= 400) throw new BackendRefused(problemOf(outcome), retryAfterSec(outcome.headers.get("retry-after")));
    throw new AnswerMalformed(`${method} ${path}`, `status ${status} is not expected`);
  }
}

/** The answer's ETag without quotes; null if it has none, or one long enough to mark this device. */
export function etagOf(answer: Answer): string | null {
  const etag = (answer.headers.get("etag") ?? "").replace(/^W\//, "").replace(/^"+|"+$/g, "");
  return etag.length > 0 && etag.length <= ETAG_LIMIT && /^[\x20-\x7e]+$/.test(etag) && !etag.includes('"') ? etag : null;
}

/** Seconds of a Retry-After header, at most an hour; null if missing or a date. */
export function retryAfterSec(header: string | undefined): number | null {
  const digits = /^\s*([0-9]+)\s*$/.exec(header ?? "")?.[1];
  return digits === undefined ? null : Math.min(Number(digits.slice(0, 9)), RETRY_AFTER_LIMIT_SEC);
}

/** First line and headers, as in HTTP/1.1. */
function headOf(first: string, headers: Iterable<readonly [string, string]>): Bytes {
  return encoded(`${[first, ...Array.from(headers, ([name, value]) => `${name}: ${value}`)].join("\r\n")}\r\n\r\n`);
}

function problemOf({ status, headers, body }: Arrived): Problem {
  if ((headers.get("content-type") ?? "").split(";")[0]?.trim() === PROBLEM_MEDIA_TYPE) {
    try {
      return readMessage(problem, body);
    } catch (broken) {
      // an answer that only claims to be a problem is handled by its status, like any other
      if (!(broken instanceof WireError)) throw broken;
    }
  }
  const detail = `the backend refused without saying why (${body.length} bytes of another type)`;
  return { type: "about:blank", title: `HTTP ${status}`, status, detail, field: null, limit: null, more: new Map() };
}

/** Returns a problem written by this device, since its server can't know what this version of the program supports. */
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
