// Every request that left this device, byte for byte, for its reader.
import { digest } from "../privacy/sealed";
import { DAY_MS } from "../moments";
import type { Database, Row } from "./database";
import { PAGE_SIZE, type Page, fromUs, offset, pageOf, toUs } from "./rows";

/** Most bytes of one body that are kept; of a longer one the beginning, its length and the hash of all of it. */
export const BODY_KEPT_BYTES = 2 * 1024 * 1024;
/** Beyond this sum the oldest bodies go; their lines stay, with length and hash. */
export const BODIES_KEPT_BYTES = 64 * 1024 * 1024;
export const ENTRIES_KEPT = 20_000;
export const ENTRIES_KEPT_DAYS = 90;
const PRUNE_EVERY = 256;
const BRIEF =
  "id, at, purpose, words, method, url, head, x'' AS body, body_bytes, body_sha256, mechanism, epsilon, status, " +
  "response_head, response_bytes, ms, trouble";

/** A request just before it leaves. head is the request line and headers; words say what it is, plainly. */
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
 * A kept request, named as its columns are. In a list `body` is left out; status is null while unanswered, and trouble
 * says why. epsilon is what this very sending was charged.
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

/** Requests newest first. A request is kept before its first byte leaves; without a line nothing is sent. */
export class ByteLog {
  private sincePrune = 0;

  constructor(private readonly database: Database) {}

  /** Keep a request that is about to leave; returns its id. */
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
      if (!kept) throw new Error("the byte log gave no line");
      if (++this.sincePrune >= PRUNE_EVERY) this.prune(departure.at);
      return kept.id;
    });
  }

  /** Add what came back: status, status line and headers, bytes of the body as received. */
  answered(entry: number, status: number, head: Uint8Array, responseBytes: number, ms: number): void {
    this.database.run("UPDATE traffic SET status = ?, response_head = ?, response_bytes = ?, ms = ? WHERE id = ?", [
      status,
      head,
      responseBytes,
      ms,
      entry,
    ]);
  }

  /** What `work` adds of several requests, all of it or nothing. */
  together<R>(work: () => R): R {
    return this.database.quickTransaction(work);
  }

  /** Add that no whole answer came. */
  failed(entry: number, why: string, ms: number): void {
    this.database.run("UPDATE traffic SET trouble = ?, ms = ? WHERE id = ?", [why, ms, entry]);
  }

  /** Requests newest first, without their bodies. */
  entries(page = 1): Page<LoggedRequest> {
    const rows = this.database.rows(`SELECT ${BRIEF} FROM traffic ORDER BY id DESC LIMIT ? OFFSET ?`, [
      PAGE_SIZE,
      offset(page),
    ]);
    return pageOf(rows.map(logged), page, this.database.number("SELECT count(*) FROM traffic"));
  }

  /** One request with its body. */
  entry(id: number): LoggedRequest | null {
    const row = this.database.one("SELECT * FROM traffic WHERE id = ?", [id]);
    return row ? logged(row) : null;
  }

  /** How many requests of this purpose left at or after `since`. */
  sentSince(purpose: string, since: number): number {
    return this.database.number("SELECT count(*) FROM traffic WHERE purpose = ? AND at >= ?", [purpose, toUs(since)]);
  }

  /** Keep 90 days, 20,000 lines and 64 MiB of bodies; runs by itself every 256 requests. */
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

function logged(row: Row): LoggedRequest {
  return { ...row, at: fromUs(Number(row["at"])) } as unknown as LoggedRequest;
}
