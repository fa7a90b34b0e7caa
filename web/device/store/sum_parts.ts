// Where this device stands in secure sums, so that a kill at any point neither loses nor repeats a message.
import { RoundTakenOver } from "../errors";
import type { Bytes } from "../wire/values";
import type { Database } from "./database";
import { toUs } from "./rows";

/**
 * One sum. offer and state are JSON; state holds the round's secrets. sent: its present message has arrived. payload:
 * the masked vector, until it has arrived; a second, other one must never be made.
 */
export interface SumPart {
  readonly round: string;
  readonly offer: string;
  readonly state: string;
  readonly payload: Bytes | null;
  readonly sent: boolean;
}

/**
 * Sums by round; several are under way where rounds are side by side.
 *
 * Every change names the state it comes from: whoever holds an older one changes nothing, and sends nothing.
 */
export class SumParts {
  constructor(private readonly database: Database) {}

  /** Keep the first state of a part. Throws RoundTakenOver if the round has one. */
  begin(part: SumPart, at: number): void {
    const kept = this.database.transaction(() =>
      this.database.run(
        `INSERT INTO sum_part (round, offer, state, payload, sent, changed_at) VALUES (?, ?, ?, ?, ?, ?)
         ON CONFLICT (round) DO NOTHING`,
        [part.round, part.offer, part.state, part.payload, Number(part.sent), toUs(at)],
      ),
    );
    if (kept !== 1) throw new RoundTakenOver(part.round);
  }

  /** Keep `after` in the place of `before`, if that is what still stands there. Throws RoundTakenOver if not. */
  goOn(before: SumPart, after: SumPart, at: number): void {
    const kept = this.database.transaction(() =>
      this.database.run(
        `UPDATE sum_part SET offer = ?, state = ?, payload = ?, sent = ?, changed_at = ?
         WHERE round = ? AND state = ?`,
        [after.offer, after.state, after.payload, Number(after.sent), toUs(at), before.round, before.state],
      ),
    );
    if (kept !== 1) throw new RoundTakenOver(before.round);
  }

  /** The parts that wait to be gone on with, the oldest first. */
  underWay(): SumPart[] {
    const found = "SELECT round, offer, state, payload, sent FROM sum_part ORDER BY changed_at, round";
    return this.database.rows(found).map((row) => ({
      round: String(row["round"]),
      offer: String(row["offer"]),
      state: String(row["state"]),
      payload: row["payload"] === null ? null : new Uint8Array(row["payload"] as Uint8Array),
      sent: Boolean(row["sent"]),
    }));
  }

  /** Forget a part, its keys and its vector. Throws RoundTakenOver if it stands elsewhere by now. */
  drop(part: SumPart): void {
    const gone = this.database.transaction(() =>
      this.database.run("DELETE FROM sum_part WHERE round = ? AND state = ?", [part.round, part.state]),
    );
    if (gone !== 1) throw new RoundTakenOver(part.round);
  }
}
