// Training rounds this device took part in, and the one upload of each.
import { RoundTakenOver } from "../errors";
import { PASSED_OVER } from "./count_log";
import type { Database, Row } from "./database";
import { fromUs, toUs } from "./rows";

/** One round; times in milliseconds since 1970. state is the participant's last word; detail says why. */
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

/** What changes of a round; null leaves bytes and epsilon as they are. */
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

  /** Keep a round that was just joined. Throws RoundTakenOver if it is known: a device has one part in a round. */
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

  /** Change a round's state. False if the round isn't known. */
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
   * Whether this device has had to do with a round. One that goes on from a copy can't know of those that were opened
   * before the copy was put back, and may have.
   */
  mayHave(round: string, openedAt: number): boolean {
    const putBack = this.database.number("SELECT coalesce(max(until), 0) FROM count_taken WHERE round LIKE ?", [
      `${PASSED_OVER}%`,
    ]);
    return toUs(openedAt) <= putBack || this.get(round) !== undefined;
  }

  /** All rounds, newest first. */
  list(): Participation[] {
    const found = `SELECT round, system, task, release, state, joined_at, changed_at, detail, sent_bytes, epsilon
                   FROM participation ORDER BY joined_at DESC, round DESC`;
    return this.database.rows(found).map(participation);
  }
}

function participation(row: Row): Participation {
  return {
    round: String(row["round"]),
    system: String(row["system"]),
    task: String(row["task"]),
    release: String(row["release"]),
    state: String(row["state"]),
    joinedAt: fromUs(Number(row["joined_at"])),
    changedAt: fromUs(Number(row["changed_at"])),
    detail: row["detail"] as string | null,
    sentBytes: Number(row["sent_bytes"]),
    epsilon: Number(row["epsilon"]),
  };
}

/**
 * Hashes of updates and masked vectors by round.
 *
 * Over all restarts at most one upload a round is ever bound. Whoever sends only what it has bound, or what is kept
 * from the transaction that bound it, sends no two uploads of one round that differ.
 */
export class RoundUploads {
  constructor(private readonly database: Database) {}

  /** Bind the round to these bytes, in the transaction that pays for them. Throws RoundTakenOver if it's bound. */
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
