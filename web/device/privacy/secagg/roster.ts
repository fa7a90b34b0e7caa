// A device's checks of the members that the server names: how many, who, and with which keys.
import { SecaggError, advertisedKeys, chooseNeighbourhood, fewestSharers, isWhole, requiredThreshold, type AdvertisedKeys, type Roster, type Sharers, type SumTerms } from "../../protocol/secagg";
import { checkDistinct, checkKeys, termsDigest } from "../../protocol/pairing";
import { type Primitives, hex } from "../../protocol/primitives";
import type { HeldShares } from "./transitions";

/** What must hold for a sum's members. */
export interface RosterRules {
  /** Verification keys, in hex, of all devices that may be members; null without such a list. */
  readonly directory: ReadonlySet<string> | null;
  /** The fewest members, including this device, with whom its masks may be shared and its vector opened. */
  readonly smallest: number;
}

/** Throws SecaggError unless the terms allow the roster and it has this device's keys. */
export async function checkRoster(
  rules: RosterRules,
  terms: SumTerms,
  keys: AdvertisedKeys,
  received: Roster,
  primitives: Primitives,
): Promise<void> {
  const holders = received.members.length;
  if (received.round !== terms.round) throw new SecaggError(`the roster is of ${received.round}`);
  if (!(terms.cohort_minimum <= received.cohort && received.cohort <= terms.cohort))
    throw new SecaggError(`${received.cohort} members, the terms say ${terms.cohort_minimum} to ${terms.cohort}`);
  const due = terms.graph === "sparse" ? chooseNeighbourhood(received.cohort) : null;
  const wanted = due === null ? received.cohort : due.degree + 1;
  if (holders !== wanted)
    throw new SecaggError(`the roster names ${holders} members, of a cohort of ${received.cohort} it must be ${wanted}`);
  const last = received.members.at(-1)?.member ?? 0;
  if (last > received.cohort) throw new SecaggError(`member ${last} is beyond a cohort of ${received.cohort}`);
  if (holders < rules.smallest)
    throw new SecaggError(`the roster names ${holders} members, at least ${rules.smallest} are asked for`);
  const least = due === null ? Math.max(2, requiredThreshold(terms, holders)) : due.threshold;
  const most = due === null ? holders : due.threshold;
  if (!(least <= received.threshold && received.threshold <= most))
    throw new SecaggError(`the threshold is ${received.threshold}, this device accepts ${least} to ${most}`);
  checkDistinct(received.members.map((entry) => entry.keys));
  const mine = received.members.find((entry) => entry.member === received.me);
  if (!mine || advertisedKeys.write(mine.keys) !== advertisedKeys.write(keys))
    throw new SecaggError("the roster shows other keys for this device than it sent");
  const context = await termsDigest(terms, primitives);
  for (const entry of received.members) {
    if (rules.directory && !rules.directory.has(hex(entry.keys.verify_key)))
      throw new SecaggError(`member ${entry.member} is not in the directory`);
    if (terms.mode === "active") await checkKeys(context, entry.keys, primitives);
  }
}

/** Throws SecaggError unless this device and enough others are in the sum, and it holds shares from all of them. */
export function checkSharers(
  rules: RosterRules,
  terms: SumTerms,
  held: readonly HeldShares[],
  received: Roster,
  sharers: Sharers,
): void {
  if (!sharers.members.includes(received.me))
    throw new SecaggError("the server has left this device out: it has complained of another, or another of it");
  const known = new Set(held.map((one) => one.member));
  const unknown = sharers.members.find((member) => !known.has(member));
  if (unknown !== undefined)
    throw new SecaggError(`member ${unknown} is to be in the sum, and this device holds no share of its keys`);
  const due = isWhole(received) ? null : chooseNeighbourhood(received.cohort);
  const least = Math.max(fewest(rules, terms, received), due === null ? 0 : fewestSharers(due));
  if (sharers.members.length < least)
    throw new SecaggError(`${sharers.members.length} members are in the sum, at least ${least} are needed`);
}

/**
 * The fewest members of its roster, including itself, with whom this device continues. In the sparse form it sees only
 * its neighbours; the server counts the whole cohort.
 */
export function fewest(rules: RosterRules, terms: SumTerms, received: Roster): number {
  return Math.max(received.threshold, rules.smallest, isWhole(received) ? terms.cohort_minimum : 0);
}
