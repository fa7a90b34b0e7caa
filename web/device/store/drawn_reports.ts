// Reports drawn once and sent for good: the second time a reader is at a value, nothing is drawn nor charged.
import type { Database } from "./database";
import { toUs } from "./rows";

/**
 * The noisy report (JSON) of every true value that was ever reported, by mechanism and meaning of the value (the column
 * `book`); when one first had a report drawn is kept here too, also by `erase`.
 */
export class DrawnReports {
  constructor(private readonly database: Database) {}

  /** What was drawn for this value, or undefined. */
  get(mechanism: string, meaning: string, value: number): string | undefined {
    const found = "SELECT report FROM drawn_report WHERE mechanism = ? AND book = ? AND value = ?";
    const row = this.database.one(found, [mechanism, meaning, value]);
    return row && String(row["report"]);
  }

  /** Keep a first drawing, inside the transaction of its charge. Throws for a second. */
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

  /** How many values were reported by a mechanism, under all meanings. */
  distinct(mechanism: string): number {
    return this.database.number("SELECT count(*) FROM drawn_report WHERE mechanism = ?", [mechanism]);
  }

  /** A report is drawn under this meaning, perhaps for the first time; inside the transaction of its charge. */
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

  /** Under how many meanings the first report was drawn at or after this time. */
  begunSince(at: number): number {
    return this.database.number("SELECT count(*) FROM report_meaning WHERE first_at >= ?", [toUs(at)]);
  }
}
