// Imports another device's charges into this ledger, so that moving doesn't renew the budget.
//
// Formal guarantees: those of device_app/privacy/accounting/moved_charges.py, whose rules these are.
import { DAY_MS, msOf } from "../../protocol/moments";
import { fromUs, toUs, type Database } from "../../store/database";
import type { ChargeRow } from "../../store/exported";
import { rhoWithin } from "../../protocol/concentrated";
import type { Moment } from "../../protocol/forms";
import { ROUNDING } from "./ledger";
import { CHANNELS, type Ceilings, type Channel } from "./limits";
import { RHO_ALONE } from "./cost_of_sums";

const MECHANISM = "moved";
/** Parameter of such a charge: the export it was made for, by the file's time in microseconds since 1970. */
const EXPORTED_AT = "exported_at";
/**
 * Mechanisms of charges for spending that is only known up to a limit; those of a restored copy come from a Python
 * device.
 */
export const UP_TO_LIMITS: readonly string[] = [MECHANISM, "restored"];
const LONGEST_DAYS = 3_660;

/** A charge to store; at: milliseconds since 1970. */
export interface MovedCharge {
  readonly atUs: number;
  readonly channel: string;
  readonly mechanism: string;
  readonly parameters: Readonly<Record<string, number>>;
  readonly epsilon: number;
  readonly delta: number;
  readonly payloadSha256: string;
  readonly subject: string;
}

/**
 * Adds the charges missing from this ledger; returns their number. A charge that both have (same time, channel,
 * mechanism, parameters and cost) is kept once. Call it in the transaction that imports the rest.
 */
export function takeCharges(database: Database, charges: readonly ChargeRow[]): number {
  const held = new Map<string, number>();
  const mine = "SELECT at, channel, mechanism, parameters, epsilon, delta FROM charge";
  for (const row of database.rows(mine)) {
    const parameters = JSON.parse(String(row["parameters"])) as Record<string, number>;
    const key = keyOf([row["at"], row["channel"], row["mechanism"]], Object.entries(parameters), [row["epsilon"], row["delta"]]);
    held.set(key, (held.get(key) ?? 0) + 1);
  }
  let added = 0;
  for (const one of [...charges].sort((a, b) => a.at - b.at || a.id - b.id)) {
    const key = keyOf([one.at, one.channel, one.mechanism], [...one.parameters], [one.epsilon, one.delta]);
    const left = held.get(key) ?? 0;
    if (left) held.set(key, left - 1);
    else {
      const { at, channel, mechanism, epsilon, delta, payload_sha256, subject } = one;
      const parameters = Object.fromEntries(one.parameters);
      keepCharge(database, { atUs: at, channel, mechanism, parameters, epsilon, delta, payloadSha256: payload_sha256, subject });
      added += 1;
    }
  }
  return added;
}

/** Stores a charge made elsewhere, with microsecond time. */
export function keepCharge(database: Database, charge: MovedCharge): void {
  const names = Object.keys(charge.parameters).sort();
  const parameters = JSON.stringify(Object.fromEntries(names.map((name) => [name, charge.parameters[name]])));
  database.run(
    `INSERT INTO charge (at, channel, mechanism, parameters, epsilon, delta, payload_sha256, subject)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?)`,
    [
      charge.atUs,
      charge.channel,
      charge.mechanism,
      parameters,
      charge.epsilon,
      charge.delta,
      charge.payloadSha256,
      charge.subject,
    ],
  );
}

/** A charge's costs and time. */
export type Spent = Pick<ChargeRow, "at" | "channel" | "epsilon" | "parameters">;

/** All charges in this ledger. */
export function heldCharges(database: Database): Spent[] {
  return spentBy(database, "true", []);
}

/** Returns what was already charged here for a device that was used after it made the export of this time. */
export function paidSince(database: Database, exportedAt: Moment): Spent[] {
  const exported = toUs(msOf(exportedAt));
  return spentBy(database, "mechanism = ?", [MECHANISM]).filter((one) => one.parameters.get(EXPORTED_AT) === exported);
}

function spentBy(database: Database, which: string, params: readonly string[]): Spent[] {
  const rows = database.rows(`SELECT at, channel, parameters, epsilon FROM charge WHERE ${which} ORDER BY id`, params);
  return rows.map((row) => ({
    at: Number(row["at"]),
    channel: String(row["channel"]) as ChargeRow["channel"],
    epsilon: Number(row["epsilon"]),
    parameters: new Map(Object.entries(JSON.parse(String(row["parameters"])) as Record<string, number>)),
  }));
}

/** The ceilings of one cost: per UTC day, and for life if there is one. */

type Bounds = readonly [day: number, life: number | null];

/**
 * Returns charges for what another device may have spent since it exported `charges`: for each day from the export to
 * today, the difference between each cost's ceiling (the higher of both settings') and what that device had spent. paid
 * (`paidSince`) isn't charged again. Throws RangeError if the export is more than ten years old. now: milliseconds
 * since 1970.
 */
export function chargesSince(
  charges: readonly Spent[],
  limits: readonly Ceilings[],
  exportedAt: Moment,
  now: number,
  paid: readonly Spent[] = [],
): MovedCharge[] {
  const last = Math.floor(now / DAY_MS);
  const first = Math.min(last, Math.floor(msOf(exportedAt) / DAY_MS));
  if (last - first > LONGEST_DAYS) throw new RangeError(`exported_at: at most ${LONGEST_DAYS} days ago, got ${last - first}`);
  const names = [...CHANNELS, RHO_ALONE] as const;
  const total = new Map<string, number>();
  const byDay = new Map<string, number>();
  const add = (sums: Map<string, number>, key: string, price: number) => sums.set(key, (sums.get(key) ?? 0) + price);
  for (const one of [...charges, ...paid]) {
    for (const [name, price] of [[one.channel, one.epsilon], [RHO_ALONE, one.parameters.get(RHO_ALONE) ?? 0]] as const) {
      add(total, name, price);
      add(byDay, `${Math.floor(fromUs(one.at) / DAY_MS)}/${name}`, price);
    }
  }
  const ceilings = new Map(names.map((name) => [name, higher(limits.map((each) => boundsOf(each, name)))]));
  const delta = Math.max(...limits.map((each) => each.delta));
  const subject = `export of ${new Date(msOf(exportedAt)).toISOString().slice(0, 10)}`;
  const found: MovedCharge[] = [];
  for (let day = first; day <= last; day++) {
    const atUs = day === last ? toUs(now) : toUs((day + 1) * DAY_MS) - 1;
    const missing = new Map<string, number>();
    for (const [name, [ofDay, ofLife]] of ceilings) {
      const today = ofDay - (byDay.get(`${day}/${name}`) ?? 0);
      const left = ofLife === null ? today : Math.min(today, ofLife - (total.get(name) ?? 0));
      const owed = left > ROUNDING * ofDay ? left : 0;
      missing.set(name, owed);
      add(total, name, owed);
    }
    for (const channel of CHANNELS) {
      // the sums of all channels share one account; every device has the channel `counts`
      const rho = channel === "counts" ? (missing.get(RHO_ALONE) ?? 0) : 0;
      const epsilon = missing.get(channel) ?? 0;
      if (epsilon <= 0 && rho <= 0) continue;
      const parameters = { [EXPORTED_AT]: toUs(msOf(exportedAt)), ...(rho > 0 && { [RHO_ALONE]: rho }) };
      const at = { atUs, channel, mechanism: MECHANISM, payloadSha256: "", subject };
      found.push({ ...at, parameters, epsilon, delta: channel === "reports" ? 0 : delta });
    }
  }
  return found;
}

function boundsOf({ day, life, aloneDay, aloneLife, delta }: Ceilings, name: Channel | typeof RHO_ALONE): Bounds {
  if (name !== RHO_ALONE) return [day[name], life[name]];
  return [rhoWithin(aloneDay, delta), aloneLife === null ? null : rhoWithin(aloneLife, delta)];
}

/** The higher of each ceiling; no ceiling is the highest. */
function higher(all: readonly Bounds[]): Bounds {
  const lives = all.map(([, life]) => life ?? Infinity);
  const life = Math.max(...lives);
  return [Math.max(...all.map(([day]) => day)), life === Infinity ? null : life];
}

function keyOf(named: readonly unknown[], parameters: readonly (readonly [string, number])[], prices: readonly unknown[]): string {
  const sorted = [...parameters].sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0));
  return JSON.stringify([named, sorted, prices]);
}
