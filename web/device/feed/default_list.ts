// The list that every device gets, ready to rank.
import type { DefaultListStore, StoredDefaultList } from "../store/default_list";
import type { NewsStore } from "../store/news";
import { taken } from "../vectors";
import { Candidates, nothing, placesOf } from "./candidates";

/** The default list as candidates; read from the store once a change, then from memory. */
export class DefaultList {
  private read: { kept: StoredDefaultList; encoder: string; width: number | null; found: Candidates } | null = null;

  constructor(
    private readonly page: DefaultListStore,
    private readonly store: NewsStore,
  ) {}

  /** News of the list that have a vector by `encoder`, in the list's order; empty before the first sync. */
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

  /** Whether there was a first sync. */
  known(): boolean {
    return this.page.current() !== null;
  }
}
