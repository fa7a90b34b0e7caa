// What this device has contributed to private counts, so that nothing is ever contributed twice.
import type { Database } from "./database";
import { fromUs, toUs } from "./rows";

/** In the place of a round, where a window was spent and nothing contributed. */
export const PASSED_OVER = "passed over until ";

/** One count this device paid for: of its reader's displays and clicks after `since` until `until`, how many. */
export interface CountTaken {
  readonly round: string;
  readonly since: number;
  readonly until: number;
  readonly displayed: number;
  readonly clicked: number;
}

/** Displays and clicks after `since`, until `until`: news ids, each once. */
export interface CountWindow {
  readonly since: number;
  readonly until: number;
  readonly displayed: ReadonlySet<string>;
  readonly clicked: ReadonlySet<string>;
}

/**
 * Windows of time that are spent; times in milliseconds since 1970. A display or click lies in one window, whatever
 * becomes of the round.
 */
export class CountLog {
  constructor(private readonly database: Database) {}

  /**
   * What may be contributed now: everything in feeds since the last window, but nothing older than `longestMs`.
   *
   * A story is displayed when it is first looked at in a feed: what never came into sight is no display. Clicks outside
   * feeds (from a search, say) are left out: nobody counts such displays, so they'd make a rate of clicks look higher
   * than it is.
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

  /** Spend a window; call it in the transaction that pays. Throws RangeError if part of it is spent already. */
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

  /** Spend everything until `until` without contributing it: a lost database may have known that it was. */
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
