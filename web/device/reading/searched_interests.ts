// The second view as one vector: what the reader searches for and follows, in the space of article vectors. The device
// has no text encoder, so a search is represented by the unit mean of its best matches here.
import { HOUR_MS, type Clock } from "../protocol/moments";
import type { NewsStore } from "../store/news";
import type { Stances } from "../store/opinions";
import type { MeaningKind, Searches, SearchIndex, SearchVector } from "../store/searches";
import { meanOf, scaled, stacked, taken } from "../vectors";

/** Number of best matches that form a search's vector, or of newest articles for a topic's. */
const MATCHES = 20;
const MADE_ANEW_AFTER_MS = 24 * HOUR_MS;
type Wanted = readonly [kind: MeaningKind, name: string];

/**
 * Vectors of saved searches and followed topics, computed from articles on this device and kept in the view's store.
 */
export class SearchedInterests {
  constructor(
    private readonly searches: Searches,
    private readonly stances: Stances,
    private readonly index: SearchIndex,
    private readonly news: NewsStore,
    private readonly clock: Clock,
  ) {}

  /** Returns the unit mean [D] over saved searches and followed topics; null if none has a vector. */
  vector(encoder: string): Float32Array | null {
    const wanted = this.wanted();
    if (!wanted.length) return null;
    const width = this.news.width(encoder);
    // a vector kept under a release with another width can't be used under this one
    const rows = this.fresh(encoder, wanted).filter((row) => width === null || row.length === width);
    return rows.length ? unitMean(rows) : null;
  }

  /** Stores the vector of an article opened from results, if it is here. */
  keepOpened(newsId: string, encoder: string): void {
    const vector = this.meanOfNews([newsId], encoder);
    if (vector) this.searches.keepMeaning({ kind: "news", name: newsId, encoder, vector, madeAt: this.clock() });
  }

  private wanted(): Wanted[] {
    const searches = this.searches.saved().map((one): Wanted => ["search", one.words]);
    return [...searches, ...this.stances.followedTopics().map((one): Wanted => ["topic", one.name])];
  }

  /** The vectors of saved searches and followed topics, in that order, where available; recomputed when a day old. */
  private fresh(encoder: string, wanted: readonly Wanted[]): Float32Array[] {
    const held = this.searches.meanings(encoder);
    const now = this.clock();
    return wanted.flatMap(([kind, name]) => {
      const known = held.find((one) => one.kind === kind && one.name === name);
      if (known && now - known.madeAt < MADE_ANEW_AFTER_MS) return [known.vector];
      // without matches today, the previous vector stays valid
      const vector = this.meanOfNews(this.matches(kind, name), encoder) ?? known?.vector;
      if (!vector) return [];
      const made: SearchVector = { kind, name, encoder, vector, madeAt: now };
      this.searches.keepMeaning(made);
      return [vector];
    });
  }

  private matches(kind: MeaningKind, name: string): string[] {
    const found = kind === "topic" ? this.news.named("topic", name, MATCHES) : this.index.find(name, 2 * MATCHES);
    const blocked = this.stances.blocked();
    if (!blocked.length) return found.slice(0, MATCHES);
    const cards = this.news.cards(found).filter((card) => !blocked.some((one) => card[one.kind] === one.name));
    return cards.slice(0, MATCHES).map((card) => card.id);
  }

  private meanOfNews(newsIds: readonly string[], encoder: string): Float32Array | null {
    if (!newsIds.length) return null;
    const { present, vectors } = this.news.vectors(newsIds, encoder);
    const here = present.flatMap((is, at) => (is ? [at] : []));
    return here.length ? nonzero(meanOf(taken(vectors, here))) : null;
  }
}

function unitMean(rows: readonly Float32Array[]): Float32Array | null {
  return nonzero(meanOf(stacked(rows, rows[0]?.length ?? 0)));
}

/** Scales to length 1; null for zeros, which have no direction. */
function nonzero(mean: Float64Array | null): Float32Array | null {
  return mean?.some((each) => each !== 0) ? scaled(mean) : null;
}
