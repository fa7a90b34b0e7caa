// Logs of requests: every request that left this device, byte for byte, for its reader; and the stage times of the
// latest.
import { DAY_MS } from "../protocol/moments";
import { digest } from "../privacy/sealed";
import { PAGE_SIZE, fromUs, offset, pageOf, toUs, type Database, type Page } from "./database";

/** Most bytes kept of one body; of a longer one the beginning, its length and its hash are kept. */
export const BODY_KEPT_BYTES = 2 * 1024 * 1024;
/** Above this total, the oldest bodies are dropped; their entries stay, with length and hash. */
export const BODIES_KEPT_BYTES = 64 * 1024 * 1024;
export const ENTRIES_KEPT = 20_000;
export const ENTRIES_KEPT_DAYS = 90;
const PRUNE_EVERY = 256;
const BRIEF =
  "id, at / 1000.0 AS at, purpose, words, method, url, head, x'' AS body, body_bytes, body_sha256, mechanism, epsilon, status, " +
  "response_head, response_bytes, ms, trouble";

/** A request about to be sent. head: request line and headers; words: plain description. */
export interface Departure {
  readonly at: number;
  readonly purpose: string;
  readonly words: string;
  readonly method: string;
  readonly url: string;
  readonly head: Uint8Array;
  readonly body: Uint8Array;
  readonly mechanism: string;
  readonly epsilon: number;
}

/**
 * A logged request, with names as its columns. In lists `body` is omitted; status is null while unanswered, and trouble
 * says why. epsilon: what this sending was charged.
 */
export interface LoggedRequest {
  readonly id: number;
  readonly at: number;
  readonly purpose: string;
  readonly words: string;
  readonly method: string;
  readonly url: string;
  readonly head: Uint8Array;
  readonly body: Uint8Array;
  readonly body_bytes: number;
  readonly body_sha256: string;
  readonly mechanism: string;
  readonly epsilon: number;
  readonly status: number | null;
  readonly response_head: Uint8Array | null;
  readonly response_bytes: number | null;
  readonly ms: number | null;
  readonly trouble: string | null;
}

/** Requests, newest first. A request is logged before its first byte leaves; nothing is sent without an entry. */
export class ByteLog {
  private sincePrune = 0;

  constructor(private readonly database: Database) {}

  /** Logs a request about to be sent; returns its id. */
  record(departure: Departure): number {
    return this.database.quickTransaction(() => {
      const kept = this.database.one<{ id: number }>(
        `INSERT INTO traffic (at, purpose, words, method, url, head, body, body_bytes, body_sha256, mechanism, epsilon)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id`,
        [
          toUs(departure.at),
          departure.purpose,
          departure.words,
          departure.method,
          departure.url,
          departure.head,
          departure.body.subarray(0, BODY_KEPT_BYTES),
          departure.body.length,
          digest(departure.body),
          departure.mechanism,
          departure.epsilon,
        ],
      );
      if (!kept) throw new Error("the byte log returned no line");
      if (++this.sincePrune >= PRUNE_EVERY) this.prune(departure.at);
      return kept.id;
    });
  }

  /** Adds the response: status, status line and headers, bytes of the body as received. */
  answered(entry: number, status: number, head: Uint8Array, responseBytes: number, ms: number): void {
    this.database.run("UPDATE traffic SET status = ?, response_head = ?, response_bytes = ?, ms = ? WHERE id = ?", [
      status,
      head,
      responseBytes,
      ms,
      entry,
    ]);
  }

  /** Runs `work`, which adds to several entries, in one transaction. */
  together<R>(work: () => R): R {
    return this.database.quickTransaction(work);
  }

  /** Records that no complete answer arrived. */
  failed(entry: number, why: string, ms: number): void {
    this.database.run("UPDATE traffic SET trouble = ?, ms = ? WHERE id = ?", [why, ms, entry]);
  }

  /** Requests newest first, without their bodies. */
  entries(page = 1): Page<LoggedRequest> {
    const sql = `SELECT ${BRIEF} FROM traffic ORDER BY id DESC LIMIT ? OFFSET ?`;
    const rows = this.database.rows<LoggedRequest>(sql, [PAGE_SIZE, offset(page)]);
    return pageOf(rows, page, this.database.number("SELECT count(*) FROM traffic"));
  }

  /** One request with its body. */
  entry(id: number): LoggedRequest | null {
    const row = this.database.one<LoggedRequest>("SELECT * FROM traffic WHERE id = ?", [id]);
    return row ? { ...row, at: fromUs(row.at) } : null;
  }

  /** Number of requests of this purpose sent at or after `since`. */
  sentSince(purpose: string, since: number): number {
    return this.database.number("SELECT count(*) FROM traffic WHERE purpose = ? AND at >= ?", [purpose, toUs(since)]);
  }

  /** Keeps 90 days, 20,000 entries and 64 MiB of bodies; runs automatically every 256 requests. */
  prune(now: number): void {
    this.sincePrune = 0;
    this.database.quickTransaction(() => {
      this.database.run("DELETE FROM traffic WHERE at < ? OR id <= (SELECT max(id) FROM traffic) - ?", [
        toUs(now - ENTRIES_KEPT_DAYS * DAY_MS),
        ENTRIES_KEPT,
      ]);
      this.database.run(
        `UPDATE traffic SET body = x'' WHERE id IN (
           SELECT id FROM (SELECT id, sum(length(body)) OVER (ORDER BY id DESC) AS upto FROM traffic
                           WHERE length(body) > 0)
           WHERE upto > ?)`,
        [BODIES_KEPT_BYTES],
      );
    });
  }
}

export const TIMINGS_KEPT = 1_000;

/** Milliseconds by stage of one request. */
export interface Timing {
  readonly at: number;
  readonly kind: string;
  readonly device_ms: Readonly<Record<string, number>>;
  readonly server_ms: Readonly<Record<string, number>>;
}

type Stages = ReadonlyMap<string, number>;
const json = (stages: Stages): string => JSON.stringify(Object.fromEntries(stages));

/** The last thousand requests. */
export class TimingStore {
  constructor(private readonly database: Database) {}

  /** Stores one request's times; only the last thousand are kept. */
  record(kind: string, deviceMs: Stages, serverMs: Stages, at: number): void {
    this.database.quickTransaction(() => {
      const kept = this.database.one<{ id: number }>(
        "INSERT INTO timing (at, kind, device_ms, server_ms) VALUES (?, ?, ?, ?) RETURNING id",
        [toUs(at), kind, json(deviceMs), json(serverMs)],
      );
      this.database.run("DELETE FROM timing WHERE id <= ?", [(kept?.id ?? 0) - TIMINGS_KEPT]);
    });
  }

  /** The newest n, newest first. */
  last(n = 200): Timing[] {
    return this.database
      .rows<{ at: number; kind: string; device_ms: string; server_ms: string }>(
        "SELECT at, kind, device_ms, server_ms FROM timing ORDER BY id DESC LIMIT ?",
        [n],
      )
      .map((row) => ({
        at: fromUs(row.at),
        kind: row.kind,
        device_ms: JSON.parse(row.device_ms) as Record<string, number>,
        server_ms: JSON.parse(row.server_ms) as Record<string, number>,
      }));
  }
}
