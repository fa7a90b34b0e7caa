// Places in the feed that the reader's profile does not decide: fresh for everyone, and sections rarely read.
import type { FeedSettings } from "../feed_settings";
import { bestFirst } from "../vectors";
import type { NewsCard } from "../wire/news";
import { type Candidates, placesOf } from "./candidates";
import { type Chance, lots } from "./chance";
import type { UserPreferences } from "./preferences";
import { ageHours, recency } from "./scores";
import { tally } from "./shares";

/** Fresh news is drawn from so many of the newest. */
const FRESH_POOL = 40;

/**
 * Rows of the last hours, drawn at random from the newest, each from another section while there are some. free is [n],
 * the rows that may be taken. The draw knows nothing of the reader beyond `free`.
 */
export function freshRows(
  candidates: Candidates,
  free: readonly boolean[],
  now: number,
  settings: FeedSettings,
  chance: Chance,
): number[] {
  const age = ageHours(candidates, now);
  const recent = placesOf(free.map((here, row) => here && (age[row] as number) <= settings.fresh_hours));
  const newest = bestFirst(age.map((hours) => -hours), recent).slice(0, FRESH_POOL);
  const lot = lots(chance, newest.map((row) => candidates.ids[row] as string));
  const of = (row: number) => lot.get(candidates.ids[row] as string) as number;
  newest.sort((one, other) => of(one) - of(other));
  const sections = new Map<string, number>();
  const ranked = newest.map((row) => {
    const { section } = candidates.cards[row] as NewsCard;
    const before = sections.get(section) ?? 0;
    sections.set(section, before + 1);
    return [before, row] as const;
  });
  ranked.sort(([one], [other]) => one - other);
  return ranked.slice(0, settings.fresh_slots).map(([, row]) => row);
}

/**
 * The best news, by its editors and its age, of sections the reader rarely opens. Sections are drawn without repeats
 * with weight 1 / (1 + clicks in the section) squared (Efraimidis and Spirakis 2006), so that the least read come most
 * often and none is shut out.
 */
export function exploreRows(
  candidates: Candidates,
  free: readonly boolean[],
  preferences: UserPreferences,
  now: number,
  settings: FeedSettings,
  chance: Chance,
): number[] {
  const fresh = recency(candidates, now, settings.half_life_hours);
  const worth = candidates.cards.map((card, row) => card.weight + (fresh[row] as number));
  const best = new Map<string, number>();
  for (const row of bestFirst(worth, placesOf(free))) {
    const { section } = candidates.cards[row] as NewsCard;
    if (!best.has(section)) best.set(section, row);
  }
  const read = tally(preferences.clicks.map((card) => card.section));
  const lot = lots(chance, best.keys());
  const key = (name: string) => Math.log(Math.max(lot.get(name) as number, 1e-300)) * (1 + (read.get(name) ?? 0)) ** 2;
  return [...best.keys()]
    .sort((one, other) => key(other) - key(one))
    .slice(0, settings.explore_slots)
    .map((name) => best.get(name) as number);
}
