// The charges of another device of the same reader, taken into this one's ledger, so that moving buys no new budget.
//
// Formal guarantees: those of device_app/privacy/moved_charges.py, whose rules these are.
import { DAY_MS, msOf } from "../moments";
import type { Database } from "../store/database";
import type { ChargeRow } from "../store/exported";
import { fromUs, toUs } from "../store/rows";
import { rhoWithin } from "../wire/concentrated";
import type { Moment } from "../wire/values";
import { CHANNELS, type Channel, ROUNDING, lifetime, perDay } from "./ledger";
import { RHO_ALONE } from "./prices";
import type { PrivacySettings } from "./settings";

const MECHANISM = "moved";
/** Parameter of such a charge: which file it was made for, by its moment in microseconds since 1970. */
const EXPORTED_AT = "exported_at";
/** Charges for whatever may have been spent up to a limit; those of a restored copy come along from a Python device. */
export const UP_TO_LIMITS: readonly string[] = [MECHANISM, "restored"];
const LONGEST_DAYS = 3_660;

/** A charge to be kept; at in milliseconds since 1970. */
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
 * Append the charges that this ledger has not; returns how many. A charge that both have, by its time, channel, mechanism,
 * parameters and price, is kept once. Call it in the transaction that takes the rest.
 */
export function takeCharges(database: Database, charges: readonly ChargeRow[]): number {
  const held = new Map<string, number>();
  const mine = "SELECT at, channel, mechanism, parameters, epsilon, delta FROM charge";
  for (const row of database.rows(mine)) {
    const parameters = JSON.parse(String(row["parameters"])) as Record<string, number>;
    const key = keyOf([row["at"], row["channel"], row["mechanism"]], Object.entries(parameters), [row["epsilon"], row["delta"]]);
    held.set(key, (held.get(key) ?? 0) + 1);
  }
  let taken = 0;
  for (const one of [...charges].sort((a, b) => a.at - b.at || a.id - b.id)) {
    const key = keyOf([one.at, one.channel, one.mechanism], [...one.parameters], [one.epsilon, one.delta]);
    const left = held.get(key) ?? 0;
    if (left) held.set(key, left - 1);
    else {
      const { at, channel, mechanism, epsilon, delta, payload_sha256, subject } = one;
      const parameters = Object.fromEntries(one.parameters);
      keepCharge(database, { atUs: at, channel, mechanism, parameters, epsilon, delta, payloadSha256: payload_sha256, subject });
      taken += 1;
    }
  }
  return taken;
}

/** Keep a charge as it was made elsewhere, to its microsecond. */
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

/** A charge's prices, and when it was made. */
type Spent = Pick<ChargeRow, "at" | "channel" | "epsilon" | "parameters">;

/** What was charged here before for a device that went on after it had made the file of this moment. */
export function paidSince(database: Database, exportedAt: Moment): Spent[] {
  const made = toUs(msOf(exportedAt));
  const rows = database.rows("SELECT at, channel, parameters, epsilon FROM charge WHERE mechanism = ? ORDER BY id", [MECHANISM]);
  return rows
    .map((row) => ({
      at: Number(row["at"]),
      channel: String(row["channel"]) as ChargeRow["channel"],
      epsilon: Number(row["epsilon"]),
      parameters: new Map(Object.entries(JSON.parse(String(row["parameters"])) as Record<string, number>)),
    }))
    .filter((one) => one.parameters.get(EXPORTED_AT) === made);
}

/** The ceilings of one price: a UTC day's, and a lifetime's where there is one. */
type Ceilings = readonly [day: number, life: number | null];

/**
 * What another device may have spent since it gave `charges` out: for the day of the export, today and every day between,
 * each price from what it had spent up to the higher one of both settings' ceilings. paid (`paidSince`) isn't charged again.
 * Throws RangeError if the export is more than ten years old. now: in ms since 1970.
 */
export function chargesSince(
  charges: readonly ChargeRow[],
  settings: readonly [PrivacySettings, PrivacySettings],
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
    for (const [name, price] of [[one.channel, one.epsilon], [RHO_ALONE, rhoAlone(one)]] as const) {
      add(total, name, price);
      add(byDay, `${Math.floor(fromUs(one.at) / DAY_MS)}/${name}`, price);
    }
  }
  const ceilings = new Map(names.map((name) => [name, higher(settings.map((each) => ceilingsOf(each, name)))]));
  const delta = Math.max(...settings.map((each) => each.delta_per_sum));
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
      // one account for the sums of all channels; every device has counts
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

function ceilingsOf(settings: PrivacySettings, name: Channel | typeof RHO_ALONE): Ceilings {
  if (name !== RHO_ALONE) return [perDay(settings, name), lifetime(settings, name)];
  const { delta_per_sum, epsilon_per_day_alone, epsilon_lifetime_alone } = settings;
  const life = epsilon_lifetime_alone === null ? null : rhoWithin(epsilon_lifetime_alone, delta_per_sum);
  return [rhoWithin(epsilon_per_day_alone, delta_per_sum), life];
}

/** Of each ceiling the higher one; none is the highest. */
function higher(all: readonly Ceilings[]): Ceilings {
  const lives = all.map(([, life]) => life ?? Infinity);
  const life = Math.max(...lives);
  return [Math.max(...all.map(([day]) => day)), life === Infinity ? null : life];
}

/** As the ledger's rows tell it: charges of before 2026-11-22 name the rho of so many shares. */
function rhoAlone({ parameters }: Spent): number {
  return parameters.get(RHO_ALONE) ?? (parameters.get("rho") ?? 0) * (parameters.get("survivors_at_least") ?? 0);
}

function keyOf(named: readonly unknown[], parameters: readonly (readonly [string, number])[], prices: readonly unknown[]): string {
  const sorted = [...parameters].sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0));
  return JSON.stringify([named, sorted, prices]);
}
