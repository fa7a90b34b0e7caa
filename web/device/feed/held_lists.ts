// Lists that hold still: Fresh, Popular, Explore, Following and Saved stay as they were shown until another is asked for.
import { type Clock, HOUR_MS, momentOf, msOf } from "../moments";
import type { NewsStore } from "../store/news";
import type { Preferences } from "../store/preferences";
import type { NewsCard } from "../wire/news";
import type { Moment } from "../wire/values";

const PREFERENCE = "list/";

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

interface StoredList {
  readonly made_at: Moment;
  readonly ids: readonly string[];
  readonly before: Moment | null;
}

/** Keeps the ids of each list for so many hours. An erase takes them. */
export class HeldLists {
  constructor(
    private readonly preferences: Preferences,
    private readonly news: NewsStore,
    private readonly hours: number,
    private readonly clock: Clock,
  ) {}

  /** The list in use; `listed`, which is what it would be now, where there is none, an empty or an old one. */
  hold(name: string, listed: readonly NewsCard[]): HeldList {
    const kept = this.kept(name);
    const now = this.clock();
    if (!kept?.ids.length || Math.abs(now - msOf(kept.made_at)) >= this.hours * HOUR_MS) {
      const madeAt = momentOf(now);
      const before = kept?.made_at ?? null;
      if (listed.length) this.keep(name, { made_at: madeAt, ids: listed.map((card) => card.id), before });
      return { made_at: madeAt, cards: listed, new: 0, came: this.came(listed, before) };
    }
    const here = new Map(listed.map((card) => [card.id, card]));
    for (const card of this.news.cards(kept.ids.filter((id) => !here.has(id)))) here.set(card.id, card);
    const shown = kept.ids.map((id) => here.get(id)).filter((card) => card !== undefined);
    const known = new Set(kept.ids);
    const more = new Set(listed.map((card) => card.id).filter((id) => !known.has(id))).size;
    return { made_at: kept.made_at, cards: shown, new: more, came: this.came(shown, kept.before) };
  }

  /** The reader asks for another: the next visit makes it. */
  renew(name: string): void {
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

  private kept(name: string): StoredList | null {
    return this.preferences.get(PREFERENCE + name) as StoredList | null;
  }

  private keep(name: string, list: StoredList): void {
    this.preferences.set(PREFERENCE + name, list);
  }
}
