// The second view as one vector: what the reader searches for and follows, in the space of news vectors. The device has no
// text encoder, so a search means what it finds here: the unit mean of its best matches.
import { type Clock, HOUR_MS } from "../moments";
import type { NewsStore } from "../store/news";
import type { Stances } from "../store/opinions";
import type { SearchIndex } from "../store/search_index";
import type { MeaningKind, SearchVector, Searches } from "../store/searches";
import { meanOf, scaled, stacked, taken } from "../vectors";

/** Best matches that make up a search's vector, or newest news a topic's. */
const MATCHES = 20;
const MADE_ANEW_AFTER_MS = 24 * HOUR_MS;
type Wanted = readonly [kind: MeaningKind, name: string];

/** The vectors of saved searches and followed topics, made from news on this device and kept in the view's store. */
export class SearchedInterests {
  constructor(
    private readonly searches: Searches,
    private readonly stances: Stances,
    private readonly index: SearchIndex,
    private readonly news: NewsStore,
    private readonly clock: Clock,
  ) {}

  /** The unit mean [D] over saved searches and followed topics; null if none of them means anything here. */
  vector(encoder: string): Float32Array | null {
    const wanted = this.wanted();
    if (!wanted.length) return null;
    const width = this.news.width(encoder);
    // one kept under a release that gave this encoder another width says nothing under this one
    const rows = this.fresh(encoder, wanted).filter((row) => width === null || row.length === width);
    return rows.length ? unitMean(rows) : null;
  }

  /** Keep the vector of news opened from results, if it's here. */
  keepOpened(newsId: string, encoder: string): void {
    const vector = this.meanOfNews([newsId], encoder);
    if (vector) this.searches.keepMeaning({ kind: "news", name: newsId, encoder, vector, madeAt: this.clock() });
  }

  private wanted(): Wanted[] {
    const searches = this.searches.saved().map((one): Wanted => ["search", one.words]);
    return [...searches, ...this.stances.followedTopics().map((one): Wanted => ["topic", one.name])];
  }

  /** The vectors of what is wanted, in that order, as far as it means anything; made anew where they are a day old. */
  private fresh(encoder: string, wanted: readonly Wanted[]): Float32Array[] {
    const held = this.searches.meanings(encoder);
    const now = this.clock();
    return wanted.flatMap(([kind, name]) => {
      const known = held.find((one) => one.kind === kind && one.name === name);
      if (known && now - known.madeAt < MADE_ANEW_AFTER_MS) return [known.vector];
      // where nothing of it is in the store today, it means what it meant
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

/** Scaled to length 1; null for zeros, which point nowhere. */
function nonzero(mean: Float64Array | null): Float32Array | null {
  return mean?.some((each) => each !== 0) ? scaled(mean) : null;
}
