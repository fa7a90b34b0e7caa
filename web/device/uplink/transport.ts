// The one place that asks the network for anything: the browser's `fetch`, without cookies, referrer or cache.
import type { Bytes } from "../wire/values";

/** What goes out. path: of the backend, with its query. */
export interface Departing {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Bytes;
  /** The longest that a whole answer is waited for. */
  readonly waitMs: number;
  /** The longest body that is read; of a refusal, PROBLEM_LIMIT_BYTES. */
  readonly limitBytes: number;
}

/** What came back. Names of headers are in small letters; the body is decoded. */
export interface Arrived {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Bytes;
}

/** How requests leave: `fetch` in the product, a backend in the same process or a recording in tests. */
export interface Transport {
  /** Throws NoAnswer where none comes, and TooLong. */
  send(request: Departing): Promise<Arrived>;
}

/** Nothing answered; the message says why, plainly. */
export class NoAnswer extends Error {}

/** The body passed its limit and was given up. */
export class TooLong extends Error {}

export const PROBLEM_LIMIT_BYTES = 64 * 1024;

/** Requests to one origin, by `fetch`: nothing of this browser's goes along that the page doesn't set. */
export class FetchTransport implements Transport {
  /** base: the origin, with no slash at its end; empty for the page's own. */
  constructor(private readonly base = "") {}

  async send(request: Departing): Promise<Arrived> {
    const timeout = AbortSignal.timeout(request.waitMs);
    try {
      const answer = await fetch(this.base + request.path, {
        method: request.method,
        headers: request.headers,
        ...(request.body && { body: request.body }),
        cache: "no-store",
        credentials: "omit",
        redirect: "error",
        referrerPolicy: "no-referrer",
        signal: timeout,
      });
      const limit = answer.status < 400 ? request.limitBytes : PROBLEM_LIMIT_BYTES;
      return { status: answer.status, headers: new Map(answer.headers), body: await whole(answer, limit) };
    } catch (failed) {
      if (failed instanceof TooLong) throw failed;
      if (timeout.aborted) throw new NoAnswer("no answer in time");
      throw new NoAnswer(failed instanceof Error ? failed.message : String(failed));
    }
  }
}

/** The decoded body, given up as soon as it passes the limit: neither a flood nor a gzip bomb fills memory. */
async function whole(answer: Response, limitBytes: number): Promise<Bytes> {
  const parts: Uint8Array[] = [];
  let size = 0;
  const reader = answer.body?.getReader();
  for (let next = await reader?.read(); next && !next.done; next = await reader?.read()) {
    size += next.value.length;
    if (size > limitBytes) {
      await reader?.cancel();
      throw new TooLong(`it is longer than ${limitBytes} bytes`);
    }
    parts.push(next.value);
  }
  const body = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    body.set(part, at);
    at += part.length;
  }
  return body;
}
