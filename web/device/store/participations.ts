// A device's parts in training rounds, stored so that a kill never loses or repeats a message: rounds and the single
// upload of each, and secure sums under way.
//
// Contributions to private counts are logged, so that nothing is contributed twice.
import { fromUs, toUs, type Database } from "./database";
import { RoundTakenOver } from "../errors";
import type { Bytes } from "../protocol/forms";

/** Stored in place of a round id for a window that was skipped without contributing. */
export const PASSED_OVER = "passed over until ";

/** A count that this device paid for: its reader's displays and clicks after `since` until `until`, and how many. */
export interface PaidCount {
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
 * Time windows that are spent; times in milliseconds since 1970. Each display or click is in one window, regardless of
 * the round's outcome.
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
  take(taken: PaidCount): void {
    this.database.transaction(() => {
      const [since, spent] = [toUs(taken.since), this.spent()];
      if (since < spent) throw new RangeError(`since: ${since} is before ${spent}, a day that was already counted`);
      this.database.run("INSERT INTO count_taken (round, since, until, displayed, clicked) VALUES (?, ?, ?, ?, ?)", [
        taken.round,
        since,
        toUs(taken.until),
        taken.displayed,
        taken.clicked,
      ]);
    });
  }

  /** Skips everything until `until`: it is never contributed, since a lost database may have recorded it as
   * contributed. */
  passOver(until: number): void {
    this.database.transaction(() => {
      const spent = this.spent();
      if (spent >= toUs(until)) return;
      const round = `${PASSED_OVER}${new Date(until).toISOString()}`;
      this.take({ round, since: fromUs(spent), until, displayed: 0, clicked: 0 });
    });
  }

  /** Counts paid for, newest first. */
  list(limit = 20): PaidCount[] {
    return this.database.rows<PaidCount>(
      `SELECT round, since / 1000.0 AS since, until / 1000.0 AS until, displayed, clicked
       FROM count_taken WHERE round NOT LIKE ? ORDER BY until DESC, round DESC LIMIT ?`,
      [`${PASSED_OVER}%`, limit],
    );
  }

  private spent(): number {
    return this.database.number("SELECT coalesce(max(until), 0) FROM count_taken");
  }
}

/** One round; times in milliseconds since 1970. state: the participant's latest; detail: the reason. */
export interface Participation {
  readonly round: string;
  readonly system: string;
  readonly task: string;
  readonly release: string;
  readonly state: string;
  readonly joinedAt: number;
  readonly changedAt: number;
  readonly detail: string | null;
  readonly sentBytes: number;
  readonly epsilon: number;
}

/** A change to a round; null leaves bytes and epsilon unchanged. */
export interface ParticipationChange {
  readonly state: string;
  readonly at: number;
  readonly detail?: string | null;
  readonly sentBytes?: number | null;
  readonly epsilon?: number | null;
}

/** Rounds by id. */
export class Participations {
  constructor(private readonly database: Database) {}

  /** Stores a just joined round. Throws RoundTakenOver if it is known: a device has one part per round. */
  record(mine: Participation): void {
    const kept = this.database.transaction(() =>
      this.database.run(
        `INSERT INTO participation
         (round, system, task, release, state, detail, sent_bytes, epsilon, joined_at, changed_at)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (round) DO NOTHING`,
        [
          mine.round,
          mine.system,
          mine.task,
          mine.release,
          mine.state,
          mine.detail,
          mine.sentBytes,
          mine.epsilon,
          toUs(mine.joinedAt),
          toUs(mine.changedAt),
        ],
      ),
    );
    if (kept !== 1) throw new RoundTakenOver(mine.round);
  }

  /** Changes a round's state; false if the round isn't known. */
  update(round: string, { state, at, detail = null, sentBytes = null, epsilon = null }: ParticipationChange): boolean {
    const changed = this.database.transaction(() =>
      this.database.run(
        `UPDATE participation SET state = ?, detail = ?, changed_at = ?,
         sent_bytes = coalesce(?, sent_bytes), epsilon = coalesce(?, epsilon) WHERE round = ?`,
        [state, detail, toUs(at), sentBytes, epsilon, round],
      ),
    );
    return changed > 0;
  }

  /** One round, or undefined. */
  get(round: string): Participation | undefined {
    return this.list().find((one) => one.round === round);
  }

  /**
   * Whether this device may have taken part in a round. After restoring a copy, it can't know about rounds opened
   * before the restore, so the answer for those is yes.
   */
  mayHave(round: string, openedAt: number): boolean {
    const putBack = this.database.number("SELECT coalesce(max(until), 0) FROM count_taken WHERE round LIKE ?", [
      `${PASSED_OVER}%`,
    ]);
    return toUs(openedAt) <= putBack || this.get(round) !== undefined;
  }

  /** All rounds, newest first. */
  list(): Participation[] {
    return this.database.rows<Participation>(
      `SELECT round, system, task, release, state, joined_at / 1000.0 AS joinedAt, changed_at / 1000.0 AS changedAt,
              detail, sent_bytes AS sentBytes, epsilon
       FROM participation ORDER BY joined_at DESC, round DESC`,
    );
  }
}

/**
 * Hashes of updates and masked vectors by round.
 *
 * Over all restarts at most one upload per round is ever bound. A sender that sends only what it has bound, or what is
 * kept from the transaction that bound it, never sends two different uploads for one round.
 */
export class RoundUploads {
  constructor(private readonly database: Database) {}

  /** Binds the round to these bytes, in the transaction that pays for them. Throws RoundTakenOver if it is bound. */
  bind(round: string, payloadSha256: string, at: number): void {
    const bound = this.database.transaction(() =>
      this.database.run(
        `INSERT INTO round_upload (round, payload_sha256, bound_at) VALUES (?, ?, ?) ON CONFLICT (round) DO NOTHING`,
        [round, payloadSha256, toUs(at)],
      ),
    );
    if (bound !== 1) throw new RoundTakenOver(round);
  }
}

/**
 * One sum. offer and state are JSON; state holds the round's secrets. sent: whether the current message has arrived.
 * payload: the masked vector until it has arrived; a different second one must never be made.
 */
export interface SumPart {
  readonly round: string;
  readonly offer: string;
  readonly state: string;
  readonly payload: Bytes | null;
  readonly sent: boolean;
}

/**
 * Sums by round; several are under way if rounds run in parallel.
 *
 * Every change names the state that it starts from: a caller with an older state changes nothing, and sends nothing.
 */
export class SumParts {
  constructor(private readonly database: Database) {}

  /** Stores the first state of a part. Throws RoundTakenOver if the round has one. */
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

  /** Replaces `before` by `after`, if `before` is still the stored state. Throws RoundTakenOver if not. */
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

  /** The unfinished parts, oldest first. */
  underWay(): SumPart[] {
    const found = "SELECT round, offer, state, payload, sent FROM sum_part ORDER BY changed_at, round";
    return this.database.rows<SumPart>(found).map((row) => ({ ...row, sent: Boolean(row.sent) }));
  }

  /** Deletes a part, its keys and its vector. Throws RoundTakenOver if its state has changed. */
  drop(part: SumPart): void {
    const deletedRows = this.database.transaction(() =>
      this.database.run("DELETE FROM sum_part WHERE round = ? AND state = ?", [part.round, part.state]),
    );
    if (deletedRows !== 1) throw new RoundTakenOver(part.round);
  }
}
