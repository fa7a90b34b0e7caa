// Uploads that must arrive: kept before the first try, sent again byte for byte, dropped when too late.
import { digest } from "../privacy/sealed";
import type { Bytes } from "../wire/values";
import type { Database, Row } from "./database";
import { fromUs, toUs } from "./rows";

const COLUMNS = "id, subject, method, path, content_type, payload, sha256, words, expires_at, attempts, trouble";

/** One upload on its way. subject is unique ('round-3'); trouble says why the last try failed. */
export interface OutboxItem {
  readonly id: number;
  readonly subject: string;
  readonly method: string;
  readonly path: string;
  readonly contentType: string;
  readonly payload: Bytes;
  readonly sha256: string;
  readonly words: string;
  readonly expiresAt: number;
  readonly attempts: number;
  readonly trouble: string | null;
}

/** Durable uploads, oldest first; times in milliseconds since 1970. */
export class Outbox {
  constructor(private readonly database: Database) {}

  /** Keep an upload and return its id once it's on the disk; a waiting subject keeps its first bytes. */
  put(
    item: Pick<OutboxItem, "subject" | "method" | "path" | "contentType" | "payload" | "words" | "expiresAt">,
    at: number,
  ): number {
    return this.database.transaction(() => {
      this.database.run(
        `INSERT INTO parcel (subject, method, path, content_type, payload, sha256, words, put_at, due_at,
                             expires_at, attempts)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0) ON CONFLICT (subject) DO NOTHING`,
        [
          item.subject,
          item.method,
          item.path,
          item.contentType,
          item.payload,
          digest(item.payload),
          item.words,
          toUs(at),
          toUs(at),
          toUs(item.expiresAt),
        ],
      );
      return this.database.number("SELECT id FROM parcel WHERE subject = ?", [item.subject]);
    });
  }

  /** What should be sent now, oldest first; what came too late is dropped first. */
  due(now: number): OutboxItem[] {
    return this.database.transaction(() => {
      this.database.run("DELETE FROM parcel WHERE expires_at <= ?", [toUs(now)]);
      const due = `SELECT ${COLUMNS} FROM parcel WHERE due_at <= ? ORDER BY put_at, id`;
      return this.database.rows(due, [toUs(now)]).map(item);
    });
  }

  /** All that hasn't arrived, oldest first. */
  waiting(): OutboxItem[] {
    return this.database.rows(`SELECT ${COLUMNS} FROM parcel ORDER BY put_at, id`).map(item);
  }

  /** The upload arrived or is no longer wanted. */
  done(id: number): void {
    this.database.transaction(() => this.database.run("DELETE FROM parcel WHERE id = ?", [id]));
  }

  /** The try failed; the same bytes are due again at `againAt`. */
  fail(id: number, why: string, againAt: number): void {
    this.database.transaction(() =>
      this.database.run("UPDATE parcel SET attempts = attempts + 1, trouble = ?, due_at = ? WHERE id = ?", [
        why,
        toUs(againAt),
        id,
      ]),
    );
  }
}

function item(row: Row): OutboxItem {
  return {
    id: Number(row["id"]),
    subject: String(row["subject"]),
    method: String(row["method"]),
    path: String(row["path"]),
    contentType: String(row["content_type"]),
    payload: new Uint8Array(row["payload"] as Uint8Array),
    sha256: String(row["sha256"]),
    words: String(row["words"]),
    expiresAt: fromUs(Number(row["expires_at"])),
    attempts: Number(row["attempts"]),
    trouble: row["trouble"] as string | null,
  };
}
