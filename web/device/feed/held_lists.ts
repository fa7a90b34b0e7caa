// Lists that hold still: Fresh, Popular, Explore, Following and Saved stay as they were shown until another is asked for.
import { type Clock, HOUR_MS, momentOf, msOf } from "../moments";
import type { NewsStore } from "../store/news";
import type { PoolStore } from "../store/pool_codes";
import type { Preferences } from "../store/preferences";
import type { NewsCard } from "../wire/news";
import type { Moment } from "../wire/values";

const PREFERENCE = "list/";
export const FOUND = "search/";
/** Results of searches that are held at once. */
const FOUND_KEPT = 16;
/** Of a search what has its words, and what is close to that in meaning. */
const FOUND_PARTS = ["found", "near"] as const;
type FoundPart = (typeof FOUND_PARTS)[number];

/**
 * A list as it was made, in its order. new: how many stories it would have now that are not in it. came: ids of those in
 * it that came to this device since its reader was shown the list before it; none in a first list.
 */
export interface HeldList {
  readonly made_at: Moment;
  readonly cards: readonly NewsCard[];
  readonly new: number;
  readonly came: readonly string[];
}

/** Ids of all that a search found, in their order. new: how many it would find now besides. */
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
 * Keeps the ids of each list for so many hours. An erase takes them. What a search found is kept in memory alone: a search
 * is on no disk.
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
   * The list in use; `listed`, which is what it would be now, where there is none, an empty or an old one. whole: false
   * where `listed` lacks what will be back in a moment, so that it is not kept; nor is one whose stories everything was
   * erased with meanwhile.
   */
  hold(name: string, listed: readonly NewsCard[], whole = true): HeldList {
    const kept = this.kept(name);
    const now = this.clock();
    if (!kept?.ids.length || Math.abs(now - msOf(kept.made_at)) >= this.hours * HOUR_MS) {
      const madeAt = momentOf(now);
      const before = kept?.made_at ?? null;
      if (whole && this.areHere(listed)) this.keep(name, { made_at: madeAt, ids: listed.map((card) => card.id), before });
      return { made_at: madeAt, cards: listed, new: 0, came: this.came(listed, before) };
    }
    const here = new Map(listed.map((card) => [card.id, card]));
    for (const card of this.news.cards(kept.ids.filter((id) => !here.has(id)))) here.set(card.id, card);
    const places = this.pool.places(kept.ids.filter((id) => !here.has(id)));
    for (const card of this.pool.cards(places.values())) here.set(card.id, card);
    const shown = kept.ids.map((id) => here.get(id)).filter((card) => card !== undefined);
    const known = new Set(kept.ids);
    const more = new Set(listed.map((card) => card.id).filter((id) => !known.has(id))).size;
    return { made_at: kept.made_at, cards: shown, new: more, came: this.came(shown, kept.before) };
  }

  /** The results in use; `found`, which is what these words find now, where there are none or old ones. whole: see `hold`. */
  holdFound(words: string, found: readonly string[], part: FoundPart = "found", whole = true): HeldResults {
    const now = this.clock();
    const key = `${part} ${words}`;
    const kept = this.found.get(key);
    const holds = kept?.ids.length && Math.abs(now - msOf(kept.made_at)) < this.hours * HOUR_MS;
    const held = holds ? kept : { made_at: momentOf(now), ids: found, new: 0 };
    if (!holds && !whole) return held;
    this.found.delete(key); // the one last asked for leaves last
    for (const oldest of [...this.found.keys()].slice(0, Math.max(0, this.found.size - FOUND_KEPT + 1))) this.found.delete(oldest);
    this.found.set(key, held);
    const known = new Set(held.ids);
    return { ...held, new: found.filter((id) => !known.has(id)).length };
  }

  /** Drop what searches found: the reader erases what there is. */
  forget(): void {
    this.found.clear();
  }

  /** The reader asks for another: the next visit makes it. */
  renew(name: string): void {
    if (name.startsWith(FOUND)) {
      for (const part of FOUND_PARTS) this.found.delete(`${part} ${name.slice(FOUND.length)}`);
      return;
    }
    const kept = this.kept(name);
    if (kept) this.keep(name, { made_at: kept.made_at, ids: [], before: null });
  }

  /** Ids of the cards that first came to this device after a moment, and were published at most so long before it. */
  private came(cards: readonly NewsCard[], before: Moment | null): string[] {
    if (before === null) return [];
    const oldest = msOf(before) - this.hours * HOUR_MS;
    const recent = cards.filter((card) => msOf(card.published_at) > oldest).map((card) => card.id);
    return [...this.news.arrivedSince(msOf(before), recent)];
  }

  private areHere(listed: readonly NewsCard[]): boolean {
    const first = listed.slice(0, 1).map((card) => card.id);
    return this.news.cards(first).length > 0 || this.pool.places(first).size > 0;
  }

  private kept(name: string): StoredList | null {
    return this.preferences.get(PREFERENCE + name) as StoredList | null;
  }

  private keep(name: string, list: StoredList): void {
    this.preferences.set(PREFERENCE + name, list);
  }
}
