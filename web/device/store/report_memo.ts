// Stores the report in use, and every report ever drawn. Sending one again costs nothing: when a reader returns to an
// earlier value, the report drawn for it is sent again.
import type { Bytes } from "../protocol/forms";
import { toUs, type Database } from "./database";

/**
 * The noisy request that was paid for, and the clear scores it was made from (which never leave).
 *
 * payload: the exact JSON of the recall request; clear: C x B; clicks: the highest click id then, -1 for a cover.
 * meaning, mechanism, encoder, directions and gram ([n, n] float32): the meaning under which the report was made.
 */
export interface Memo {
  readonly release: string;
  readonly payload: Bytes;
  readonly clear: readonly (readonly number[])[];
  readonly clicks: number;
  readonly madeAt: number;
  readonly meaning: string;
  readonly mechanism: string;
  readonly encoder: string;
  readonly directions: string;
  readonly gram: Bytes;
}

/** At most one report is in use. */
export class ReportMemo {
  constructor(private readonly database: Database) {}

  /** The report in use, if it was made under `release`. */
  current(release: string): Memo | undefined {
    const found = this.latest();
    return found?.release === release ? found : undefined;
  }

  /** The report in use, under any release. */
  latest(): Memo | undefined {
    const row = this.database.one<Omit<Memo, "clear"> & { readonly clear: string }>(
      `SELECT release, payload, clear, clicks, made_at / 1000.0 AS madeAt, meaning, law AS mechanism, encoder, directions,
              gram
       FROM report_memo`,
    );
    return row && { ...row, clear: JSON.parse(row.clear) as number[][] };
  }

  /** Stores a new report as the current one. */
  keep(memo: Memo): void {
    this.database.transaction(() =>
      this.database.run(
        `INSERT OR REPLACE INTO report_memo
         (only, release, payload, clear, clicks, made_at, meaning, law, encoder, directions, gram)
         VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
        [
          memo.release,
          memo.payload,
          JSON.stringify(memo.clear),
          memo.clicks,
          toUs(memo.madeAt),
          memo.meaning,
          memo.mechanism,
          memo.encoder,
          memo.directions,
          memo.gram,
        ],
      ),
    );
  }

  /** Drops the current report: the next one is drawn and charged. */
  clear(): void {
    this.database.transaction(() => this.database.run("DELETE FROM report_memo"));
  }
}

/**
 * The noisy report (JSON) of every true value ever reported, by mechanism and meaning (the column `book`), and when a
 * report was first drawn under each meaning. `erase` keeps both.
 */
export class DrawnReports {
  constructor(private readonly database: Database) {}

  /** The report drawn for this value, or undefined. */
  get(mechanism: string, meaning: string, value: number): string | undefined {
    const found = "SELECT report FROM drawn_report WHERE mechanism = ? AND book = ? AND value = ?";
    return this.database.one<{ report: string }>(found, [mechanism, meaning, value])?.report;
  }

  /** Stores a first drawing, inside the transaction of its charge. Throws for a second one. */
  keep(mechanism: string, meaning: string, value: number, report: string, at: number): void {
    this.database.transaction(() =>
      this.database.run("INSERT INTO drawn_report (mechanism, book, value, report, drawn_at) VALUES (?, ?, ?, ?, ?)", [
        mechanism,
        meaning,
        value,
        report,
        toUs(at),
      ]),
    );
  }

  /** Number of values reported by a mechanism, under all meanings. */
  distinct(mechanism: string): number {
    return this.database.number("SELECT count(*) FROM drawn_report WHERE mechanism = ?", [mechanism]);
  }

  /** Records that a report is drawn under this meaning, perhaps for the first time; inside its charge's transaction. */
  begin(meaning: string, at: number): void {
    this.database.transaction(() =>
      this.database.run("INSERT INTO report_meaning (meaning, first_at) VALUES (?, ?) ON CONFLICT DO NOTHING", [
        meaning,
        toUs(at),
      ]),
    );
  }

  /** Whether a report was ever drawn under this meaning. */
  begun(meaning: string): boolean {
    return this.database.one("SELECT 1 FROM report_meaning WHERE meaning = ?", [meaning]) !== undefined;
  }

  /** Number of meanings whose first report was drawn at or after this time. */
  begunSince(at: number): number {
    return this.database.number("SELECT count(*) FROM report_meaning WHERE first_at >= ?", [toUs(at)]);
  }
}
