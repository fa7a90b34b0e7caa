// Searches the news on this device: what its lists brought. Nothing is asked of anybody for it, so that nobody learns what
// was searched for. Of a copy of the pool only what was laid out is looked through: it has no index of words here.
import type { Clock } from "../moments";
import type { DeviceStores } from "../parts";
import { toUs } from "../store/rows";
import type { WordHit } from "../store/search_index";
import type { NewsCard } from "../wire/news";
import type { Moment } from "../wire/values";
import type { HeldLists } from "./held_lists";

export const SEARCH_PAGE = 50;
/** What was published now counts half as much again as its words alone, and half of that is gone after so many days. */
const FRESH_GAIN = 0.5;
const FRESH_DAYS = 7;
const DAY_US = 86_400_000_000;

/**
 * A page of results, best first. total: stories found. upto: how many results this page and those before it show. near:
 * stories close in meaning, which want the pool's index. made_at, new: as of a list that is held.
 */
export interface SearchResults {
  readonly cards: readonly NewsCard[];
  readonly total: number;
  readonly upto: number;
  readonly near: readonly NewsCard[];
  readonly made_at: Moment;
  readonly new: number;
}

export class WholePool {
  constructor(
    private readonly stores: DeviceStores,
    private readonly lists: HeldLists,
    private readonly clock: Clock,
  ) {}

  /** How many news its lists have brought to this device, with their texts or without. */
  texts(): number {
    return this.stores.news.count();
  }

  /** All news that has every word of `text`, the most relevant and most recent first. */
  hits(text: string): WordHit[] {
    const now = toUs(this.clock());
    const scored = this.stores.searchIndex.hits(text).map((hit) => [score(hit, now), hit] as const);
    scored.sort(
      ([mine, one], [theirs, other]) => theirs - mine || other.publishedUs - one.publishedUs || (one.id < other.id ? -1 : 1),
    );
    return scored.map(([, hit]) => hit);
  }

  /** A page of the news that has every word of `text`, out of the results that are held. */
  search(text: string, page: number): SearchResults {
    this.stores.searches.looked(text, this.clock());
    const { made_at, ids, new: more } = this.lists.holdFound(text, this.hits(text).map((hit) => hit.id));
    const upto = page * SEARCH_PAGE;
    const cards = this.stores.news.cards(ids.slice(upto - SEARCH_PAGE, upto));
    return { cards, total: ids.length, upto: Math.min(upto, ids.length), near: [], made_at, new: more };
  }
}

function score(hit: WordHit, nowUs: number): number {
  const days = Math.max(0, (nowUs - hit.publishedUs) / DAY_US);
  return hit.relevance * (1 + FRESH_GAIN * 0.5 ** (days / FRESH_DAYS));
}
