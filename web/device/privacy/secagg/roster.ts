// What a device asks of the members that the server names: how many, who, and with which keys.
import { chooseNeighbourhood } from "../../wire/neighbourhood";
import { checkDistinct, checkKeys, termsDigest } from "../../wire/pairing";
import { type Primitives, hex } from "../../wire/primitives";
import {
  type AdvertisedKeys,
  type Roster,
  SecaggError,
  type Sharers,
  type SumTerms,
  advertisedKeys,
  requiredThreshold,
} from "../../wire/secagg";
import type { HeldShares } from "./state";

/** What must hold of a sum's members. */
export interface RosterRules {
  /** Verify keys, in hexadecimal digits, of all devices that may be members; null where there is no such list. */
  readonly directory: ReadonlySet<string> | null;
  /** The fewest members, this device among them, that its masks may be shared with and its vector be opened with. */
  readonly smallest: number;
}

/** Throws SecaggError unless the roster is one that the terms allow, with these keys for this device. */
export async function checkRoster(
  rules: RosterRules,
  terms: SumTerms,
  keys: AdvertisedKeys,
  told: Roster,
  primitives: Primitives,
): Promise<void> {
  const holders = told.members.length;
  if (told.round !== terms.round) throw new SecaggError(`the roster is of ${told.round}`);
  if (!(terms.cohort_minimum <= told.cohort && told.cohort <= terms.cohort))
    throw new SecaggError(`${told.cohort} members, the terms say ${terms.cohort_minimum} to ${terms.cohort}`);
  const due = terms.graph === "sparse" ? chooseNeighbourhood(told.cohort) : null;
  const wanted = due === null ? told.cohort : due.degree + 1;
  if (holders !== wanted)
    throw new SecaggError(`the roster names ${holders} members, of a cohort of ${told.cohort} it must be ${wanted}`);
  if (holders < rules.smallest)
    throw new SecaggError(`the roster names ${holders} members, at least ${rules.smallest} are asked for`);
  const least = due === null ? Math.max(2, requiredThreshold(terms, holders)) : due.threshold;
  const most = due === null ? holders : due.threshold;
  if (!(least <= told.threshold && told.threshold <= most))
    throw new SecaggError(`the threshold is ${told.threshold}, this device accepts ${least} to ${most}`);
  checkDistinct(told.members.map((entry) => entry.keys));
  const mine = told.members.find((entry) => entry.member === told.me);
  if (!mine || advertisedKeys.write(mine.keys) !== advertisedKeys.write(keys))
    throw new SecaggError("the roster shows other keys for this device than it sent");
  const context = await termsDigest(terms, primitives);
  for (const entry of told.members) {
    if (rules.directory && !rules.directory.has(hex(entry.keys.verify_key)))
      throw new SecaggError(`member ${entry.member} is not in the directory`);
    if (terms.mode === "active") await checkKeys(context, entry.keys, primitives);
  }
}

/** Throws SecaggError unless this device and enough others are in the sum, and it holds shares of them all. */
export function checkSharers(
  rules: RosterRules,
  terms: SumTerms,
  held: readonly HeldShares[],
  told: Roster,
  sharers: Sharers,
): void {
  if (!sharers.members.includes(told.me))
    throw new SecaggError("the server has left this device out: it has complained of another, or another of it");
  const known = new Set(held.map((one) => one.member));
  const unknown = sharers.members.find((member) => !known.has(member));
  if (unknown !== undefined)
    throw new SecaggError(`member ${unknown} is to be in the sum, and this device holds no share of its keys`);
  const least = fewest(rules, terms, told);
  if (sharers.members.length < least)
    throw new SecaggError(`${sharers.members.length} members are in the sum, at least ${least} are needed`);
}

/**
 * The fewest members of its roster, itself among them, with whom this device goes on. In the sparse form it sees its
 * neighbours only: the whole cohort is the server's to count.
 */
export function fewest(rules: RosterRules, terms: SumTerms, told: Roster): number {
  const whole = told.members.length === told.cohort;
  return Math.max(told.threshold, rules.smallest, whole ? terms.cohort_minimum : 0);
}
