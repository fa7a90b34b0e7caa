// Values of the pages Explore, History and Saved searches.
import type { Candidates } from "../feed/candidates";
import { recency } from "../feed/scores";
import { momentOf } from "../protocol/moments";
import type { DeviceStores } from "../parts";
import { MODES } from "../reports/modes";
import type { PrivacySettings } from "../privacy/settings";
import type { NewsCard } from "../protocol/news";
import type { NamedStance, Stance } from "../store/opinions";
import { toUs } from "../store/database";
import { plainOf, type SavedSearch, type WordHit } from "../store/searches";
import { bestFirst } from "../vectors";

/** One section with its articles, best first. stance: the reader's, or null. */
export interface ExploreSection {
  readonly section: string;
  readonly cards: readonly NewsCard[];
  readonly stance: Stance | null;
}

/**
 * The default list by section, sections with the most stories first, each ordered by editorial weight plus recency.
 *
 * Leaves out blocked topics and publishers and what a mute rule hides. A blocked section stays, marked, so that it can
 * be unblocked. now: milliseconds since 1970.
 */
export function exploreSections(
  list: Candidates,
  stances: readonly NamedStance[],
  muted: ReadonlySet<string>,
  now: number,
  halfLifeHours: number,
): ExploreSection[] {
  const blocked = new Set(stances.filter(({ stance }) => stance === "block").map(({ kind, name }) => `${kind}/${name}`));
  const hidden = (card: NewsCard) => blocked.has(`topic/${card.topic}`) || blocked.has(`publisher/${card.publisher}`);
  const shown = list.where(list.cards.map((card) => !hidden(card) && !muted.has(card.id)));
  const scores = recency(shown, now, halfLifeHours).map((value, row) => value + (shown.cards[row]?.weight ?? 0));
  const best = bestFirst(scores).map((row) => shown.cards[row] as NewsCard);
  return regrouped(best, stances).sort(
    (one, other) => other.cards.length - one.cards.length || (one.section < other.section ? -1 : 1),
  );
}

/** Groups a held list's cards by section, keeping their order. */
export function regrouped(cards: readonly NewsCard[], stances: readonly NamedStance[]): ExploreSection[] {
  const stanceOf = new Map(stances.filter(({ kind }) => kind === "section").map(({ name, stance }) => [name, stance]));
  const found = new Map<string, NewsCard[]>();
  for (const card of cards) found.set(card.section, [...(found.get(card.section) ?? []), card]);
  return [...found].map(([section, all]) => ({ section, cards: all, stance: stanceOf.get(section) ?? null }));
}

/**
 * One page of clicks, newest first, whose card has every word of `query`, or of all clicks. card is null if the article
 * is no longer on the device.
 */
export function historyPage(stores: DeviceStores, query: string, page: number) {
  const found = stores.clicks.search(query, page);
  const cards = new Map(stores.news.cards(found.rows.map((click) => click.newsId)).map((card) => [card.id, card]));
  const entries = found.rows.map((click) => ({
    click_id: click.id,
    at: momentOf(click.at),
    news_id: click.newsId,
    card: cards.get(click.newsId) ?? null,
  }));
  return { query, page: found.number, pages: found.pages, total: found.total, entries };
}

export type SearchesView = Awaited<ReturnType<typeof searchesView>>;

/**
 * Saved searches and followed topics, and how they are used. hits: what a search finds now. For a topic at most two
 * hundred stories are counted.
 */
export async function searchesView(
  stores: DeviceStores,
  settings: PrivacySettings,
  hits: (words: string) => Promise<readonly WordHit[]>,
) {
  const searches = [];
  for (const one of stores.searches.saved().reverse()) searches.push(lineOf(one, await hits(one.words)));
  return {
    searches,
    topics: stores.stances.followedTopics().map(({ name, at }) => ({
      name,
      since: momentOf(at),
      stories: stores.articles.countByName("topic", name),
    })),
    use: useOf(settings),
  };
}

/** The saved search with these words. */
export function savedIn(view: SearchesView, words: string) {
  return view.searches.find(({ search }) => search.words === plainOf(words))?.search ?? null;
}

/**
 * How saved searches and followed topics are used under these switches: 'report', 'here' (recall on this device), or why
 * neither: 'off' by the reader's switch, 'mode'.
 */
export function useOf(settings: PrivacySettings): "off" | "report" | "here" | "mode" {
  if (!settings.searches_in_reports) return "off";
  const { finds, reporter } = MODES[settings.mode];
  return finds === "here" ? "here" : reporter ? "report" : "mode";
}

/** A saved search: the number of stories that match now, and how many came since the reader last viewed it. */
function lineOf({ id, words, looked_at }: SavedSearch, hits: readonly WordHit[]) {
  const since = toUs(looked_at);
  return { search: { id, words }, stories: hits.length, new: hits.filter((hit) => hit.publishedUs > since).length };
}
