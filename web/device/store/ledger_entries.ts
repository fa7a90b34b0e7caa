// The ledger's rows: the cost of each data release. Append-only; `privacy/ledger` decides, this stores.
import type { ChargeStore } from "../privacy/accounting/ledger";
import type { Channel } from "../privacy/accounting/limits";
import type { ChargeGroup } from "../privacy/accounting/composition";
import type { Charge } from "../privacy/sealed";
import { PAGE_SIZE, offset, pageOf, toUs, type Database, type Page } from "./database";

const COLUMNS =
  "id, at / 1000.0 AS at, channel, mechanism, parameters, epsilon, delta, payload_sha256 AS payloadSha256, subject";

/** A stored charge; at: milliseconds since 1970. */
export interface LedgerEntry extends Charge {
  readonly id: number;
  readonly at: number;
}

/** A channel's charges on one UTC day, such as 2026-11-24. */
export interface DaySum {
  readonly day: string;
  readonly channel: string;
  readonly epsilon: number;
  readonly charges: number;
}

/** Charges in the order they were made. */
export class LedgerRepository implements ChargeStore {
  constructor(private readonly database: Database) {}

  /** Reading what is left and appending must happen inside one of these. */
  transaction<T>(work: () => T): T {
    return this.database.transaction(work);
  }

  append(at: number, charge: Charge): void {
    const names = Object.keys(charge.parameters).sort();
    const parameters = JSON.stringify(Object.fromEntries(names.map((name) => [name, finite(charge, name)])));
    this.database.transaction(() =>
      this.database.run(
        `INSERT INTO charge (at, channel, mechanism, parameters, epsilon, delta, payload_sha256, subject)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
        [
          toUs(at),
          charge.channel,
          charge.mechanism,
          parameters,
          charge.epsilon,
          charge.delta,
          charge.payloadSha256,
          charge.subject,
        ],
      ),
    );
  }

  /** Pure epsilon of this channel's charges at or after `since`. */
  spent(channel: Channel, since: number): number {
    const found = "SELECT total(epsilon) FROM charge WHERE channel = ? AND at >= ?";
    return this.database.number(found, [channel, from(since)]);
  }

  /** Number of charges of this channel from `since` on. */
  chargesSince(channel: Channel, since: number): number {
    return this.database.number("SELECT count(*) FROM charge WHERE channel = ? AND at >= ?", [channel, from(since)]);
  }

  /** Whether there is a charge of one of these mechanisms from `since` on. */
  chargedBy(mechanisms: readonly string[], since: number): boolean {
    const marks = mechanisms.map(() => "?").join(", ");
    const sql = `SELECT count(*) FROM charge WHERE mechanism IN (${marks}) AND at >= ?`;
    return this.database.number(sql, [...mechanisms, from(since)]) > 0;
  }

  /** Sum of rho of the noisy sums, with one noise share each. */
  rhoAlone(since: number): number {
    const found = "SELECT total(json_extract(parameters, '$.rho_alone')) FROM charge WHERE at >= ?";
    return this.database.number(found, [from(since)]);
  }

  /** The newest charge of each round that was a noisy sum, by its subject. */
  ofSums(): ReadonlyMap<string, LedgerEntry> {
    const rows = this.database.rows<Kept<LedgerEntry>>(
      `SELECT ${COLUMNS} FROM charge WHERE json_extract(parameters, '$.rho') IS NOT NULL ORDER BY id`,
    );
    return new Map(rows.map(read).map((each) => [each.subject, each]));
  }

  /** Sums by UTC day and channel, newest day first. */
  days(limit = 60): DaySum[] {
    return this.database.rows<DaySum>(
      `SELECT date(at / 1000000, 'unixepoch') AS day, channel, total(epsilon) AS epsilon, count(*) AS charges
       FROM charge GROUP BY day, channel ORDER BY day DESC, channel LIMIT ?`,
      [limit],
    );
  }

  /** Charges newest first. */
  entries(page = 1): Page<LedgerEntry> {
    const sql = `SELECT ${COLUMNS} FROM charge ORDER BY id DESC LIMIT ? OFFSET ?`;
    const rows = this.database.rows<Kept<LedgerEntry>>(sql, [PAGE_SIZE, offset(page)]);
    return pageOf(rows.map(read), page, this.database.number("SELECT count(*) FROM charge"));
  }

  /** Charges grouped by mechanism, parameters, epsilon and delta, with their number. */
  grouped(): ChargeGroup[] {
    return this.database
      .rows<Kept<ChargeGroup>>(
        `SELECT mechanism, parameters, epsilon, delta, count(*) AS count FROM charge
         GROUP BY channel, mechanism, parameters, epsilon, delta ORDER BY min(id)`,
      )
      .map(read);
  }

  /** The charge that paid for exactly these bytes, or undefined. */
  charged(payloadSha256: string): LedgerEntry | undefined {
    const sql = `SELECT ${COLUMNS} FROM charge WHERE payload_sha256 = ? LIMIT 1`;
    const row = this.database.one<Kept<LedgerEntry>>(sql, [payloadSha256]);
    return row && read(row);
  }
}

/** Converts a start time to microseconds; -Infinity means all time. */
function from(since: number): number {
  return since === -Infinity ? 0 : toUs(since);
}

function finite(charge: Charge, name: string): number {
  const value = charge.parameters[name];
  if (value === undefined || !Number.isFinite(value)) throw new RangeError(`parameter ${name} of a charge: not finite`);
  return value;
}

/** A row as stored, with its parameters as JSON. */
type Kept<T> = Omit<T, "parameters"> & { readonly parameters: string };

function read<T extends { readonly parameters: string }>(row: T) {
  return { ...row, parameters: JSON.parse(row.parameters) as Record<string, number> };
}
