// Training samples from what the reader was shown and clicked, gathered from the device's store. They exist in memory,
// for one round, on this device. Features of past feeds are computed by the same code as in serving.
import { NewsNotHere } from "../errors";
import { Candidates } from "../feed/candidates";
import { recency } from "../feed/scores";
import { type NoiseSource, uniformBelow } from "../privacy/exact_samplers";
import type { UpdateTensor } from "../privacy/private_parameters";
import type { NewsCard } from "../protocol/news";
import { CLICKS_LIMIT } from "../protocol/recall";
import { featureColumns } from "../ranking/ranker";
import type { Click } from "../store/clicks";
import type { CountLog, PaidCount, CountWindow } from "../store/participations";
import type { ImpressionStore, Shown } from "../store/impressions";
import type { NewsStore } from "../store/news";
import { noVectors, stacked, type Vectors } from "../vectors";
import { sha256 } from "@noble/hashes/sha2.js";

/**
 * Features as a ranker had them at past feeds. halfLifeHours is the feed's own, so that a ranker learns from the
 * recency it is served with; popularity is as of the feed: today's would reveal later clicks to the ranker. Throws
 * NewsNotHere if a card has been pruned.
 */
export function pastFeatures(news: NewsStore, impressions: ImpressionStore, halfLifeHours: number): FeaturesAt {
  const cardsOf = (ids: readonly string[]): NewsCard[] => {
    const found = new Map(news.cards([...new Set(ids)]).map((card) => [card.id, card]));
    return ids.map((newsId) => {
      const card = found.get(newsId);
      if (!card) throw new NewsNotHere(newsId);
      return card;
    });
  };
  return (features, candidates, clicks, at) => {
    const [candidateCards, clicked] = [cardsOf(candidates), cardsOf(clicks)];
    const then = impressions.popularityAt(candidates, at);
    return featureColumns(features, {
      sections: candidateCards.map((card) => card.section),
      topics: candidateCards.map((card) => card.topic),
      clickedSections: clicked.map((card) => card.section),
      clickedTopics: clicked.map((card) => card.topic),
      recency: recency(new Candidates(candidateCards, noVectors(0), ""), at, halfLifeHours),
      popularity: Float64Array.from(candidates, (newsId) => then.get(newsId) ?? 0),
    }).data;
  };
}

/** Uniform choices: random on a device, from a given stream in a test. */
export interface Draws {
  /** `size` integers, uniform in 0 .. limit - 1. */
  below(limit: number, size: number): number[];
}

/** Draws from a noise source: nobody else may know which negatives a device draws. */
export function drawsFrom(source: NoiseSource): Draws {
  return { below: (limit, size) => uniformBelow(source, limit, size) };
}

/** A random permutation of 0 .. size - 1 (Fisher-Yates). */
export function permutation(draws: Draws, size: number): number[] {
  const order = Array.from({ length: size }, (_, place) => place);
  for (let last = size - 1; last > 0; last--) {
    const [chosen = 0] = draws.below(last + 1, 1);
    [order[last], order[chosen]] = [order[chosen] ?? 0, order[last] ?? 0];
  }
  return order;
}

/** (features, candidates, earlier clicks, oldest first, time of the feed) -> [candidates, features] */
export type FeaturesAt = (
  features: readonly string[],
  candidates: readonly string[],
  clicks: readonly string[],
  at: number,
) => Float32Array;

/** The state of the reader's clicks that a computation read: how many up to the newest id, and what was muted. */
export interface ReadingMark {
  readonly newest: number;
  readonly clicks: number;
  readonly muted: ReadonlySet<string>;
}

/**
 * n samples as a graph's inputs by name: clicks [n, 50, D] left-padded, click_mask [n, 50], candidates [n, 1 + K, D],
 * the clicked article first; features [n, 1 + K, F] if requested.
 */
export class Samples {
  constructor(
    readonly count: number,
    private readonly inputs: ReadonlyMap<string, UpdateTensor>,
  ) {}

  /** Samples from `start` up to, but not including, `end`. */
  batch(start: number, end: number): ReadonlyMap<string, UpdateTensor> {
    const cut = [...this.inputs].map(([name, { shape, values }]): [string, UpdateTensor] => {
      const width = values.length / this.count;
      return [name, { shape: [end - start, ...shape.slice(1)], values: values.slice(start * width, end * width) }];
    });
    return new Map(cut);
  }
}

/** What to draw: at most `limit` samples, K negatives each, features of these names. */
export interface Wanted {
  readonly negatives: number;
  readonly limit: number;
  readonly features?: readonly string[];
}

/** A source of a task's samples. */
export interface SampleSource {
  /** Throws RangeError if there is nothing to draw from. */
  draw(wanted: Wanted, draws: Draws): Samples;
}

export const NO_SAMPLES: SampleSource = {
  draw: () => {
    throw new RangeError("samples: this task has no samples");
  },
};

/** Whether a click is held out for evaluation: by its hash, so that the choice is stable and nothing is stored. */
export function isHeldOut(feedId: string, newsId: string, share: number): boolean {
  const drawn = sha256(new TextEncoder().encode(`${feedId} ${newsId}`));
  return Number(new DataView(drawn.buffer, drawn.byteOffset).getBigUint64(0)) < share * 2 ** 64;
}

/** A positive click: its feed, and the clicks made before that feed was shown, oldest first. */
interface Positive {
  readonly newsId: string;
  readonly feed: Shown;
  readonly history: readonly string[];
}

/** What samples are drawn from. Sensitive: only a clipped and noisy gradient of it may leave the device. */
export interface ReaderData {
  /** Feeds with at least one click. */
  readonly feeds: readonly Shown[];
  /** The reader's clicks, oldest first. */
  readonly clicks: readonly Click[];
  /** Vectors of all articles in the other fields that this device has; articles without one are left out. */
  readonly vectors: ReadonlyMap<string, Float32Array>;
  /** Articles to draw negatives from if a feed has none. */
  readonly others: readonly string[];
  /** Computes the features that a ranker saw. */
  readonly featuresAt: FeaturesAt;
  readonly mark: ReadingMark;
}

/** A reader's feeds and clicks as a source of samples. */
export class ReaderSamples implements SampleSource {
  private readonly positives: readonly Positive[];

  constructor(
    readonly data: ReaderData,
    wanted: (positive: Positive) => boolean = () => true,
  ) {
    this.positives = this.found((newsId) => data.vectors.has(newsId)).filter(wanted);
  }

  /** Number of clicks that can become samples. */
  get available(): number {
    return this.positives.length;
  }

  /** For gradients: without held-out clicks, which remain in the histories of later ones. */
  withoutHeldOut(share: number): ReaderSamples {
    return new ReaderSamples(this.data, ({ feed, newsId }) => !isHeldOut(feed.feedId, newsId, share));
  }

  /** For evaluation: only the held-out clicks. */
  heldOut(share: number): ReaderSamples {
    return new ReaderSamples(this.data, ({ feed, newsId }) => isHeldOut(feed.feedId, newsId, share));
  }

  /**
   * Draws new samples. The history is what was clicked before the feed was shown: neither the click itself nor later
   * ones. K negatives are drawn with replacement from the same feed's viewed, unclicked articles; if there are none,
   * from `others`. If there are more than `limit` clicks, a random subset is used.
   */
  draw({ negatives, limit, features = [] }: Wanted, draws: Draws): Samples {
    if (!this.positives.length) throw new RangeError("samples: the reader has no click with an earlier click as its history");
    const chosen = permutation(draws, this.positives.length)
      .slice(0, limit)
      .map((place) => this.positives[place] as Positive);
    const offered = chosen.map((positive) => this.offered(positive, negatives, draws));
    const [n, width] = [chosen.length, this.widthOf(chosen)];
    const clicks = new Float32Array(n * CLICKS_LIMIT * width);
    const mask = new Float32Array(n * CLICKS_LIMIT);
    const candidates = new Float32Array(n * (1 + negatives) * width);
    const seen = new Float32Array(n * (1 + negatives) * features.length);
    chosen.forEach(({ history, feed }, line) => {
      const first = (line + 1) * CLICKS_LIMIT - history.length;
      history.forEach((newsId, place) => clicks.set(this.vector(newsId), (first + place) * width));
      mask.fill(1, first, (line + 1) * CLICKS_LIMIT);
      const ids = offered[line] ?? [];
      ids.forEach((newsId, place) => candidates.set(this.vector(newsId), (line * (1 + negatives) + place) * width));
      if (features.length)
        seen.set(this.data.featuresAt(features, ids, history, feed.at), line * (1 + negatives) * features.length);
    });
    const inputs = new Map<string, UpdateTensor>([
      ["clicks", { shape: [n, CLICKS_LIMIT, width], values: clicks }],
      ["click_mask", { shape: [n, CLICKS_LIMIT], values: mask }],
      ["candidates", { shape: [n, 1 + negatives, width], values: candidates }],
    ]);
    if (features.length) inputs.set("features", { shape: [n, 1 + negatives, features.length], values: seen });
    return new Samples(n, inputs);
  }

  /** The clicked article and K negatives. */
  private offered({ newsId, feed }: Positive, negatives: number, draws: Draws): readonly string[] {
    const pool = this.negativesOf(feed, (each) => this.data.vectors.has(each));
    return [newsId, ...draws.below(pool.length, negatives).map((place) => pool[place] ?? "")];
  }

  private vector(newsId: string): Float32Array {
    const found = this.data.vectors.get(newsId);
    if (!found) throw new RangeError(`samples: no vector for ${newsId}`);
    return found;
  }

  private widthOf([first]: readonly Positive[]): number {
    return first ? this.vector(first.newsId).length : 0;
  }

  private found(held: (newsId: string) => boolean): Positive[] {
    return this.data.feeds.flatMap((feed) => {
      const before = this.data.clicks
        .filter((click) => click.at < feed.at && click.feedId !== feed.feedId && held(click.newsId))
        .map((click) => click.newsId);
      if (!before.length || !this.negativesOf(feed, held).length) return [];
      const history = before.slice(-CLICKS_LIMIT);
      return feed.clicked.filter(held).map((newsId) => ({ newsId, feed, history }));
    });
  }

  private negativesOf(feed: Shown, held: (newsId: string) => boolean): string[] {
    const clicked = new Set(feed.clicked);
    const same = feed.shown.filter((newsId) => !clicked.has(newsId) && held(newsId));
    if (same.length) return same;
    const ever = new Set([...clicked, ...this.data.clicks.map((click) => click.newsId)]);
    return this.data.others.filter((newsId) => !ever.has(newsId) && held(newsId));
  }
}

const FEEDS_LIMIT = 50;
const CLICKS_READ = 500;
const OTHERS_LIMIT = 200;

/** What is read of the reader's clicks. */
export interface ClicksRead {
  count(): number;
  latestId(): number;
  countUpTo(clickId: number): number;
  recent(limit: number): Click[];
}

/** What is read of the displayed feeds. */
export interface ImpressionsRead {
  forTraining(limit: number): Shown[];
  seen(since: number): Set<string>;
}

/** What a task may read about its reader when it is made. */
export type TaskReading = Pick<StoredSamples, "clicked" | "uncounted" | "takeCount">;

/** Data of a reader without history. Used to build a task when only the shape of its update is needed. */
export const NOBODYS_READING: TaskReading = {
  clicked: () => stacked([], 0),
  uncounted: (now) => ({ since: now, until: now, displayed: new Set(), clicked: new Set() }),
  takeCount: () => undefined,
};

/** The reader's feeds, clicks and article vectors, read during a round. */
export class StoredSamples {
  /**
   * vectors: returns vectors by id, for an encoder, as far as this device has them. counted: what was contributed to
   * private counts. muted: clicked articles of muted interests, which are excluded from training.
   */
  constructor(
    private readonly clicks: ClicksRead,
    private readonly impressions: ImpressionsRead,
    private readonly vectors: (ids: readonly string[], encoder: string) => ReadonlyMap<string, Float32Array>,
    private readonly featuresAt: FeaturesAt,
    private readonly counted: CountLog,
    private readonly muted: () => ReadonlySet<string> = () => new Set(),
  ) {}

  /** Number of clicks on the device. */
  count(): number {
    return this.clicks.count();
  }

  /** Marks the state that a computation reads from now on. */
  mark(): ReadingMark {
    const newest = this.clicks.latestId();
    return { newest, clicks: this.clicks.countUpTo(newest), muted: this.muted() };
  }

  /** Whether everything present at that mark still exists, and nothing was muted or erased since. */
  holds(mark: ReadingMark): boolean {
    const kept = this.clicks.countUpTo(mark.newest) === mark.clicks && this.clicks.latestId() >= mark.newest;
    return kept && [...this.muted()].every((newsId) => mark.muted.has(newsId));
  }

  /** Displays and clicks that may be contributed to a private count now. */
  uncounted(now: number, longestMs: number): CountWindow {
    return this.counted.window(now, longestMs);
  }

  /** Spends a window; call it in the transaction that pays. */
  takeCount(taken: PaidCount): void {
    this.counted.take(taken);
  }

  /** What samples are drawn from, with vectors by `encoder`; spare negatives are articles of other feeds. */
  samples(encoder: string): ReaderSamples {
    const [mark, muted] = [this.mark(), this.muted()];
    const feeds = this.impressions.forTraining(FEEDS_LIMIT);
    const clicks = this.active(muted);
    const others = [...this.impressions.seen(0)].sort().slice(0, OTHERS_LIMIT);
    const named = feeds.flatMap((feed) => [...feed.shown, ...feed.clicked]);
    const ids = [...new Set([...named, ...clicks.map((click) => click.newsId), ...others])].sort();
    const held = [...this.vectors(ids, encoder)].filter(([newsId]) => !muted.has(newsId));
    const vectors = new Map(held);
    return new ReaderSamples({ feeds, clicks, vectors, others, featuresAt: this.featuresAt, mark });
  }

  /** Vectors [H, D] of the newest clicks, oldest first, as used in reports; [0, 0] if there are none. */
  clicked(encoder: string): Vectors {
    const clicks = this.active(this.muted()).slice(-CLICKS_LIMIT);
    const vectors = this.vectors([...new Set(clicks.map((click) => click.newsId))], encoder);
    const rows = clicks.flatMap((click) => vectors.get(click.newsId) ?? []);
    return stacked(rows, rows[0]?.length ?? 0);
  }

  private active(muted: ReadonlySet<string>): Click[] {
    return this.clicks.recent(CLICKS_READ).filter((click) => !muted.has(click.newsId));
  }
}
