// What noisy sums cost, as the pages show it: with real company and with none.
import type { Ledger } from "../privacy/ledger";
import { RHO } from "../privacy/prices";
import type { LedgerEntry } from "../store/ledger_entries";
import { epsilonOf } from "../wire/concentrated";

const DELTA = 1e-6;

/** The prices of one sum in epsilon at delta; of one click null where the charge is of before they were kept. */
export function sumCost(entry: LedgerEntry) {
  const { parameters: known, delta, epsilon } = entry;
  // So many times the rho of so many shares is no less than the rho of one.
  const rho = (known[RHO] ?? 0) * (known["survivors_at_least"] ?? 1);
  return {
    delta,
    epsilon,
    alone: known["epsilon_alone"] ?? epsilonOf(rho, delta || DELTA),
    one_click: known["epsilon_one_click"] ?? null,
    one_click_alone: known["epsilon_one_click_alone"] ?? null,
  };
}

/** All noisy sums together if nobody else in any was real, in epsilon at delta, under the ceilings. */
export function aloneView(ledger: Ledger) {
  const [{ delta_per_sum: delta, epsilon_per_day_alone, epsilon_lifetime_alone }, alone] = [
    ledger.settings,
    ledger.alone(),
  ];
  return {
    today: alone.today(delta),
    per_day: epsilon_per_day_alone,
    in_all: alone.inAll(delta),
    lifetime_limit: epsilon_lifetime_alone,
    delta,
  };
}
