// What this device has contributed to private counts, so that nothing is contributed twice.
import { fromUs, toUs, type Database } from "./database";

/** Stored in place of a round id if a window was spent without contributing. */
export const PASSED_OVER = "passed over until ";

/** A count that this device paid for: its reader's displays and clicks after `since` until `until`, and how many. */
export interface CountTaken {
  readonly round: string;
  readonly since: number;
  readonly until: number;
  readonly displayed: number;
  readonly clicked: number;
}

/** Displays and clicks after `since`, until `until`: article ids, each once. */
export interface CountWindow {
  readonly since: number;
  readonly until: number;
  readonly displayed: ReadonlySet<string>;
  readonly clicked: ReadonlySet<string>;
}

/**
 * Time windows that are spent; times in milliseconds since 1970. Each display or click is in one window, whatever the
 * round's outcome.
 */
export class CountLog {
  constructor(private readonly database: Database) {}

  /**
   * What may be contributed now: everything in feeds since the last window, but nothing older than `longestMs`.
   *
   * A story counts as displayed when it is first seen in a feed; a card that never came into sight doesn't count.
   * Clicks outside feeds (from a search, for example) are left out: their displays aren't counted, so they would
   * inflate the click rate.
   */
  window(now: number, longestMs: number): CountWindow {
    const since = Math.max(this.spent(), toUs(now - longestMs));
    const until = toUs(now);
    const ids = (sql: string): ReadonlySet<string> =>
      new Set(this.database.rows(sql, [since, until]).map((row) => String(row["news_id"])));
    return {
      since: fromUs(since),
      until: fromUs(until),
      displayed: ids("SELECT DISTINCT news_id FROM impression WHERE viewed_at > ? AND viewed_at <= ?"),
      clicked: ids(
        `SELECT DISTINCT click.news_id AS news_id FROM click JOIN impression USING (feed_id, news_id)
         WHERE click.at > ? AND click.at <= ?`,
      ),
    };
  }

  /** Spends a window; call it in the transaction that pays. Throws RangeError if part of it is already spent. */
  take(taken: CountTaken): void {
    this.database.transaction(() => {
      const [since, spent] = [toUs(taken.since), this.spent()];
      if (since < spent) throw new RangeError(`since: ${since} is before ${spent}, spent already`);
      this.database.run("INSERT INTO count_taken (round, since, until, displayed, clicked) VALUES (?, ?, ?, ?, ?)", [
        taken.round,
        since,
        toUs(taken.until),
        taken.displayed,
        taken.clicked,
      ]);
    });
  }

  /** Spends everything until `until` without contributing it: a lost database may have recorded it as contributed. */
  passOver(until: number): void {
    this.database.transaction(() => {
      const spent = this.spent();
      if (spent >= toUs(until)) return;
      const round = `${PASSED_OVER}${new Date(until).toISOString()}`;
      this.take({ round, since: fromUs(spent), until, displayed: 0, clicked: 0 });
    });
  }

  /** Counts paid for, newest first. */
  list(limit = 20): CountTaken[] {
    return this.database
      .rows(
        `SELECT round, since, until, displayed, clicked FROM count_taken WHERE round NOT LIKE ?
         ORDER BY until DESC, round DESC LIMIT ?`,
        [`${PASSED_OVER}%`, limit],
      )
      .map((row) => ({
        round: String(row["round"]),
        since: fromUs(Number(row["since"])),
        until: fromUs(Number(row["until"])),
        displayed: Number(row["displayed"]),
        clicked: Number(row["clicked"]),
      }));
  }

  private spent(): number {
    return this.database.number("SELECT coalesce(max(until), 0) FROM count_taken");
  }
}
