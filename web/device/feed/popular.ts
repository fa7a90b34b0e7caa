// What is popular among readers, as private counts tell it: a term of the score, and a list of its own.
import { msOf } from "../moments";
import type { PopularityStore } from "../store/popularity";
import type { NewsCard } from "../wire/news";
import { type Candidates, NO_STORY } from "./candidates";
import { notHidden } from "./exclusions";
import type { UserPreferences } from "./preferences";

/** Reads the store; values are from -1 to 1, and 0 for news of which nothing is known. */
export class Popular {
  constructor(private readonly store: PopularityStore) {}

  /** [n]: half the log of how much more often each is clicked when displayed than news usually is. */
  of(candidates: Candidates): Float64Array {
    const values = this.store.current()?.values;
    return Float64Array.from(candidates.ids, (id) => values?.get(id) ?? 0);
  }

  /** When the newest count behind it was opened; null before the first. */
  countedAt(): number | null {
    const at = this.store.current()?.told.counted_at;
    return at ? msOf(at) : null;
  }

  /** Popular news that are on this device, most popular first; one of each story, nothing the reader hides. */
  now(known: Candidates, preferences: UserPreferences): NewsCard[] {
    const may = known.where(notHidden(known, preferences));
    const cards = new Map(may.cards.map((card) => [card.id, card]));
    const told = new Set<string>();
    return (this.store.current()?.told.popular ?? []).flatMap((id) => {
      const card = cards.get(id);
      const story = card?.story ?? NO_STORY;
      if (!card || told.has(story)) return [];
      if (story !== NO_STORY) told.add(story);
      return [card];
    });
  }
}
