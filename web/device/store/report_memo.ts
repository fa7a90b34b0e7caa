// The report in use: sent again and again, so that only the first sending costs.
import type { Bytes } from "../wire/values";
import type { Database } from "./database";
import { fromUs, toUs } from "./rows";

/**
 * The noisy request as it was paid for, and the clear scores it was made from (these never leave).
 *
 * payload is the exact JSON of the request for recall; clear is C x B; clicks is the highest id of a click then.
 * meaning, mechanism, encoder, directions and gram ([n, n] float32) say by which meaning the report was made; empty in
 * one that an older version of Ownfeed kept.
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

  /** The report in use if it was made under `release`. */
  current(release: string): Memo | undefined {
    const found = this.latest();
    return found?.release === release ? found : undefined;
  }

  /** The report in use, whatever its release. */
  latest(): Memo | undefined {
    const row = this.database.one(
      "SELECT release, payload, clear, clicks, made_at, meaning, law, encoder, directions, gram FROM report_memo",
    );
    if (!row) return undefined;
    return {
      release: String(row["release"]),
      payload: new Uint8Array(row["payload"] as Uint8Array),
      clear: JSON.parse(String(row["clear"])) as number[][],
      clicks: Number(row["clicks"]),
      madeAt: fromUs(Number(row["made_at"])),
      meaning: String(row["meaning"]),
      mechanism: String(row["law"]),
      encoder: String(row["encoder"]),
      directions: String(row["directions"]),
      gram: new Uint8Array(row["gram"] as Uint8Array),
    };
  }

  /** Put a new report in use. */
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

  /** Take the report out of use: the next one is drawn and paid for anew. */
  clear(): void {
    this.database.transaction(() => this.database.run("DELETE FROM report_memo"));
  }
}
