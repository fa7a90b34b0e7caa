// The Explore page: every section of the default list.
import type { Candidates } from "../feed/candidates";
import { recency } from "../feed/scores";
import type { NamedStance, Stance } from "../store/opinions";
import { bestFirst } from "../vectors";
import type { NewsCard } from "../wire/news";

/** One section with its best news, newest and weightiest first. stance is the reader's, or null. */
export interface ExploreSection {
  readonly section: string;
  readonly cards: readonly NewsCard[];
  readonly stance: Stance | null;
}

/**
 * The default list by section, the fullest first; inside one by editorial weight plus recency. Blocked topics and
 * publishers are left out; a blocked section stays, marked, to be let in again. now: milliseconds since 1970.
 */
export function exploreSections(
  list: Candidates,
  stances: readonly NamedStance[],
  now: number,
  halfLifeHours: number,
): ExploreSection[] {
  const blocked = new Set(stances.filter(({ stance }) => stance === "block").map(({ kind, name }) => `${kind}/${name}`));
  const hidden = (card: NewsCard) => blocked.has(`topic/${card.topic}`) || blocked.has(`publisher/${card.publisher}`);
  const shown = list.where(list.cards.map((card) => !hidden(card)));
  const scores = recency(shown, now, halfLifeHours).map((value, row) => value + (shown.cards[row]?.weight ?? 0));
  const best = bestFirst(scores).map((row) => shown.cards[row] as NewsCard);
  return regrouped(best, stances).sort(
    (one, other) => other.cards.length - one.cards.length || (one.section < other.section ? -1 : 1),
  );
}

/** Cards of a list that is held, by section again, in the order in which they stand there. */
export function regrouped(cards: readonly NewsCard[], stances: readonly NamedStance[]): ExploreSection[] {
  const said = new Map(stances.filter(({ kind }) => kind === "section").map(({ name, stance }) => [name, stance]));
  const found = new Map<string, NewsCard[]>();
  for (const card of cards) found.set(card.section, [...(found.get(card.section) ?? []), card]);
  return [...found].map(([section, all]) => ({ section, cards: all, stance: said.get(section) ?? null }));
}
