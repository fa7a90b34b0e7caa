// Lists that stay as shown until the reader asks for new ones: Fresh, Popular, Explore, Following, Saved, and search
// results.
import { type Clock, HOUR_MS, momentOf, msOf } from "../protocol/moments";
import type { NewsStore } from "../store/news";
import type { PoolStore } from "../store/pool_codes";
import type { Preferences } from "../store/preferences";
import type { NewsCard } from "../protocol/news";
import type { Moment } from "../protocol/forms";

const PREFERENCE = "list/";
export const FOUND = "search/";
/** Number of searches whose results are held at once. */
const FOUND_KEPT = 16;
/** A search's results: articles with its words, and articles close in meaning. */
const FOUND_PARTS = ["found", "near"] as const;
type FoundPart = (typeof FOUND_PARTS)[number];

/**
 * A list in its original order. new: how many stories a list made now would add. came: ids of its stories that reached
 * this device since the previous list was made; empty for a first list.
 */
export interface HeldList {
  readonly made_at: Moment;
  readonly cards: readonly NewsCard[];
  readonly new: number;
  readonly came: readonly string[];
}

/**
 * The ids of a list in its original order. new: how many stories a list made now would add. before: when the previous
 * list was made.
 */
export interface HeldIds {
  readonly made_at: Moment;
  readonly ids: readonly string[];
  readonly new: number;
  readonly before: Moment | null;
}

/** The ids of all results of a search, in order. new: how many more a search made now would find. */
export interface HeldResults {
  readonly made_at: Moment;
  readonly ids: readonly string[];
  readonly new: number;
}

interface StoredList {
  readonly made_at: Moment;
  readonly ids: readonly string[];
  readonly before: Moment | null;
}

/**
 * Keeps the ids of each list for a number of hours; an erase deletes them. Search results are kept only in memory: no
 * search is written to disk.
 */
export class HeldLists {
  private readonly found = new Map<string, HeldResults>();

  constructor(
    private readonly preferences: Preferences,
    private readonly news: NewsStore,
    private readonly pool: PoolStore,
    private readonly hours: number,
    private readonly clock: Clock,
  ) {}

  /**
   * Returns the current list, or `ids` (the list as of now) if there is none or it is empty or old. whole: false if
   * `ids` lacks stories that will be back shortly, so that it isn't kept; it isn't kept after an erase either.
   */
  holdIds(name: string, ids: readonly string[], whole = true): HeldIds {
    const kept = this.kept(name);
    const now = this.clock();
    if (!kept?.ids.length || Math.abs(now - msOf(kept.made_at)) >= this.hours * HOUR_MS) {
      const madeAt = momentOf(now);
      const before = kept?.made_at ?? null;
      if (whole && this.areHere(ids)) this.keep(name, { made_at: madeAt, ids, before });
      return { made_at: madeAt, ids, new: 0, before };
    }
    const known = new Set(kept.ids);
    const more = new Set(ids.filter((id) => !known.has(id))).size;
    return { made_at: kept.made_at, ids: kept.ids, new: more, before: kept.before };
  }

  /**
   * Returns the current list with its cards, as `holdIds`; for lists that are short. listed: the list as of now.
   */
  hold(name: string, listed: readonly NewsCard[], whole = true): HeldList {
    const held = this.holdIds(name, listed.map((card) => card.id), whole);
    const here = new Map(listed.map((card) => [card.id, card]));
    for (const card of this.news.cards(held.ids.filter((id) => !here.has(id)))) here.set(card.id, card);
    const places = this.pool.places(held.ids.filter((id) => !here.has(id)));
    for (const card of this.pool.cards(places.values())) here.set(card.id, card);
    const shown = held.ids.map((id) => here.get(id)).filter((card) => card !== undefined);
    return { made_at: held.made_at, cards: shown, new: held.new, came: this.came(held, shown) };
  }

  /** Ids of these cards that reached this device since the previous list, and were published not long before it. */
  came({ before }: HeldIds, cards: readonly NewsCard[]): string[] {
    if (before === null) return [];
    const oldest = msOf(before) - this.hours * HOUR_MS;
    const recent = cards.filter((card) => msOf(card.published_at) > oldest).map((card) => card.id);
    return [...this.news.arrivedSince(msOf(before), recent)];
  }

  /**
   * Returns the current results, or `found` (the results as of now) if there are none or they are old. whole: see
   * `hold`.
   */
  holdFound(words: string, found: readonly string[], part: FoundPart = "found", whole = true): HeldResults {
    const now = this.clock();
    const key = `${part} ${words}`;
    const kept = this.found.get(key);
    const holds = kept?.ids.length && Math.abs(now - msOf(kept.made_at)) < this.hours * HOUR_MS;
    const held = holds ? kept : { made_at: momentOf(now), ids: found, new: 0 };
    if (!holds && !whole) return held;
    this.found.delete(key); // the most recently requested one is evicted last
    for (const oldest of [...this.found.keys()].slice(0, Math.max(0, this.found.size - FOUND_KEPT + 1))) this.found.delete(oldest);
    this.found.set(key, held);
    const known = new Set(held.ids);
    return { ...held, new: found.filter((id) => !known.has(id)).length };
  }

  /** The ids of a stored list as they are, or of a search's results; none if it isn't stored. */
  shown(name: string): readonly string[] {
    if (!name.startsWith(FOUND)) return this.kept(name)?.ids ?? [];
    return FOUND_PARTS.flatMap((part) => this.found.get(`${part} ${name.slice(FOUND.length)}`)?.ids ?? []);
  }

  /** Drops search results, when the reader erases everything. */
  forget(): void {
    this.found.clear();
  }

  /** Discards a list at the reader's request; the next visit makes a new one. */
  renew(name: string): void {
    if (name.startsWith(FOUND)) {
      for (const part of FOUND_PARTS) this.found.delete(`${part} ${name.slice(FOUND.length)}`);
      return;
    }
    const kept = this.kept(name);
    if (kept) this.keep(name, { made_at: kept.made_at, ids: [], before: null });
  }

  private areHere(ids: readonly string[]): boolean {
    const first = ids.slice(0, 1);
    return this.news.cards(first).length > 0 || this.pool.places(first).size > 0;
  }

  private kept(name: string): StoredList | null {
    return this.preferences.get(PREFERENCE + name) as StoredList | null;
  }

  private keep(name: string, list: StoredList): void {
    this.preferences.set(PREFERENCE + name, list);
  }
}
