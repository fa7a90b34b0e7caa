// The one place that asks the network for anything: the browser's `fetch`, without cookies, referrer or cache.
import type { Bytes } from "../protocol/forms";

/** An outgoing request. path: of the backend, with its query. */
export interface Departing {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Bytes;
  /** Longest wait for a complete answer. */
  readonly waitMs: number;
  /** Longest body that is read; for a refusal, PROBLEM_LIMIT_BYTES. */
  readonly limitBytes: number;
}

/** An answer. Header names are lower case; the body is decoded. */
export interface Arrived {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Bytes;
}

/** How requests are sent: `fetch` in the product; an in-process backend or a recording in tests. */
export interface Transport {
  /** Throws NoAnswer if none comes, and TooLong. */
  send(request: Departing): Promise<Arrived>;
}

/** Nothing answered; the message gives the reason. */
export class NoAnswer extends Error {}

/** The body exceeded its limit and was aborted. */
export class TooLong extends Error {}

export const PROBLEM_LIMIT_BYTES = 64 * 1024;

/** Requests to one origin by `fetch`, with nothing from this browser that the page doesn't set. */
export class FetchTransport implements Transport {
  /** base: the origin without trailing slash; empty for the page's own. */
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

/** The decoded body, aborted once it exceeds the limit, so that neither a flood nor a gzip bomb fills memory. */
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

/**
 * Returns the bytes of one of this build's files, by its address relative to `base`. Throws Error if it isn't available.
 *
 * These files have content-hash names, are the same for every reader and are cached by the browser, so they aren't in
 * the byte log.
 */
export async function ownFile(address: string, base: string): Promise<ArrayBuffer> {
  const answer = await fetch(new URL(address, base), { credentials: "omit", redirect: "error" });
  if (!answer.ok) throw new Error(`a file of this app can't be loaded (status ${answer.status})`);
  return answer.arrayBuffer();
}
