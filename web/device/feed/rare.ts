// Ranks stories of publishers that rarely publish higher, so that a news agency doesn't bury a weekly essay.
import type { Articles } from "../store/articles";
import type { PoolStore } from "../store/pool_codes";
import { type Preferences, RARE_FIRST } from "../store/preferences";
import type { Candidates } from "./candidates";
import { recency } from "./scores";

/** Stories a week up to which a publisher gets the full lift, and from which on it gets none. */
const [RARE_A_WEEK, OFTEN_A_WEEK] = [1, 16];
const HALF_LIFE_HOURS = 168;

/** Computes from the pool's copy how often each publisher publishes. */
export class RareFeeds {
  constructor(
    private readonly articles: Articles,
    private readonly pool: PoolStore,
    private readonly preferences: Preferences,
  ) {}

  /** Whether the reader wants rare publishers first. */
  on(): boolean {
    return this.preferences.get(RARE_FIRST) !== false;
  }

  /**
   * [n]: from 0 to 1, higher for rarer publishers, halved for each week of the story's age. All are 0 if the reader
   * switched this off, or without a copy of the pool, since shorter lists don't show how often publishers publish.
   */
  of(candidates: Candidates, now: number): Float64Array {
    if (!this.on() || !this.pool.current()) return new Float64Array(candidates.length);
    const aWeek = this.articles.aWeek(now);
    const rarity = (publisher: string) => (publisher && aWeek.has(publisher) ? rarityOf(aWeek.get(publisher) as number) : 0);
    const fresh = recency(candidates, now, HALF_LIFE_HOURS);
    return Float64Array.from(candidates.cards, (card, row) => rarity(card.publisher) * (fresh[row] as number));
  }
}

function rarityOf(aWeek: number): number {
  const rarity = 1 - Math.log2(Math.max(aWeek, RARE_A_WEEK)) / Math.log2(OFTEN_A_WEEK);
  return Math.min(Math.max(rarity, 0), 1);
}
