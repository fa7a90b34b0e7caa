// Lists other than the feed: default list and popular articles.
//
// Popularity among readers comes from private counts; it is a score term and a list of its own.
import { msOf } from "../protocol/moments";
import type { NewsCard } from "../protocol/news";
import type { DefaultListStore, PopularityStore, StoredDefaultList } from "../store/default_list";
import type { NewsStore } from "../store/news";
import { taken } from "../vectors";
import { Candidates, NO_STORY, nothing, placesOf } from "./candidates";
import { notHidden } from "./exclusions";
import type { UserPreferences } from "./preference_reader";

/** The default list as candidates; read from the store once per change, then cached. */
export class DefaultList {
  private read: { kept: StoredDefaultList; encoder: string; width: number | null; found: Candidates } | null = null;

  constructor(
    private readonly page: DefaultListStore,
    private readonly store: NewsStore,
  ) {}

  /** Articles of the list that have a vector by `encoder`, in list order; empty before the first sync. */
  candidates(encoder: string, dimensions: number): Candidates {
    const kept = this.page.current();
    if (!kept) return nothing(encoder, dimensions);
    const width = this.store.width(encoder);
    const held = this.read;
    if (held && held.kept === kept && held.encoder === encoder && held.width === width) return held.found;
    const cards = this.store.cards(kept.newsIds);
    const { present, vectors } = this.store.vectors(cards.map((card) => card.id), encoder);
    const here = placesOf(present);
    if (!here.length) return nothing(encoder, dimensions);
    const found = new Candidates(cards.filter((_, row) => present[row]), taken(vectors, here), encoder);
    this.read = { kept, encoder, width, found };
    return found;
  }

  /** Whether a first sync has happened. */
  known(): boolean {
    return this.page.current() !== null;
  }
}

/** Reads popularity from the store; values are from -1 to 1, 0 if nothing is known. */
export class Popular {
  constructor(private readonly store: PopularityStore) {}

  /** [n]: half the log of how much more often each article is clicked when displayed than an average one. */
  of(candidates: Candidates): Float64Array {
    const values = this.store.current()?.values;
    return Float64Array.from(candidates.ids, (id) => values?.get(id) ?? 0);
  }

  /** When the newest count was opened; null before the first. */
  countedAt(): number | null {
    const at = this.store.current()?.received.counted_at;
    return at ? msOf(at) : null;
  }

  /** Popular articles on this device, most popular first; one per story, without what the reader hides. */
  now(known: Candidates, preferences: UserPreferences): NewsCard[] {
    const may = known.where(notHidden(known, preferences));
    const cards = new Map(may.cards.map((card) => [card.id, card]));
    const storiesUsed = new Set<string>();
    return (this.store.current()?.received.popular ?? []).flatMap((id) => {
      const card = cards.get(id);
      const story = card?.story ?? NO_STORY;
      if (!card || storiesUsed.has(story)) return [];
      if (story !== NO_STORY) storiesUsed.add(story);
      return [card];
    });
  }
}
