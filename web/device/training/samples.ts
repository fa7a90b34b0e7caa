// Training samples from what the reader was shown and clicked. They exist in memory, for one round, on this device.
import { sha256 } from "@noble/hashes/sha2.js";
import { uniformBelow } from "../privacy/exact_samplers";
import type { NoiseSource } from "../privacy/noise_sources";
import type { UpdateTensor } from "../privacy/private_parameters";
import type { Click } from "../store/clicks";
import type { Shown } from "../store/impressions";
import { CLICKS_LIMIT } from "../wire/recall";

/** Uniform choices: fresh on a device, from a given stream in a test. */
export interface Draws {
  /** Each of 0 .. limit - 1 equally likely. */
  below(limit: number, size: number): number[];
}

/** Which negatives a device draws is nobody else's knowledge. */
export function drawsFrom(source: NoiseSource): Draws {
  return { below: (limit, size) => uniformBelow(source, limit, size) };
}

/** 0 .. size - 1 in random order (Fisher and Yates). */
export function permutation(draws: Draws, size: number): number[] {
  const order = Array.from({ length: size }, (_, place) => place);
  for (let last = size - 1; last > 0; last--) {
    const [chosen = 0] = draws.below(last + 1, 1);
    [order[last], order[chosen]] = [order[chosen] ?? 0, order[last] ?? 0];
  }
  return order;
}

/** (features, candidates, clicks made before, oldest first, when the feed was shown) -> [candidates, features] */
export type FeaturesAt = (
  features: readonly string[],
  candidates: readonly string[],
  clicks: readonly string[],
  at: number,
) => Float32Array;

/** What a computation read of the reader's clicks: how many there were up to the newest id, and what was muted. */
export interface ReadingMark {
  readonly newest: number;
  readonly clicks: number;
  readonly muted: ReadonlySet<string>;
}

/**
 * n samples as inputs of a graph by name: clicks [n, 50, D] left-padded, click_mask [n, 50], candidates [n, 1 + K, D],
 * clicked news first; features [n, 1 + K, F] if they were asked for.
 */
export class Samples {
  constructor(
    readonly count: number,
    private readonly inputs: ReadonlyMap<string, UpdateTensor>,
  ) {}

  /** Those from `start` to before `end`. */
  batch(start: number, end: number): ReadonlyMap<string, UpdateTensor> {
    const cut = [...this.inputs].map(([name, { shape, values }]): [string, UpdateTensor] => {
      const width = values.length / this.count;
      return [name, { shape: [end - start, ...shape.slice(1)], values: values.slice(start * width, end * width) }];
    });
    return new Map(cut);
  }
}

/** What a draw is asked for: at most `limit` samples, K negatives each, the features of these names. */
export interface Wanted {
  readonly negatives: number;
  readonly limit: number;
  readonly features?: readonly string[];
}

/** Something a task draws its samples from. */
export interface SampleSource {
  /** Throws RangeError if there is nothing to draw from. */
  draw(wanted: Wanted, draws: Draws): Samples;
}

export const NO_SAMPLES: SampleSource = {
  draw: () => {
    throw new RangeError("samples: this task has none");
  },
};

/** Whether a click is kept for evaluation: by its hash, so that it's always the same ones and nothing is stored. */
export function isHeldOut(feedId: string, newsId: string, share: number): boolean {
  const drawn = sha256(new TextEncoder().encode(`${feedId} ${newsId}`));
  return Number(new DataView(drawn.buffer, drawn.byteOffset).getBigUint64(0)) < share * 2 ** 64;
}

/** A click that can be learnt from: its feed, and what had been clicked before that feed was shown, oldest first. */
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
  /** Of all news named by the others that this device has vectors of; the rest is left out. */
  readonly vectors: ReadonlyMap<string, Float32Array>;
  /** News to draw negatives from where a feed shows none. */
  readonly others: readonly string[];
  /** What a ranker with features saw. */
  readonly featuresAt: FeaturesAt;
  /** News that nothing is learnt from. */
  readonly muted: ReadonlySet<string>;
  readonly mark: ReadingMark;
}

/** A reader's feeds and clicks as a source of samples. */
export class ReaderSamples implements SampleSource {
  private readonly positives: readonly Positive[];
  /**
   * Clicks that samples could be made of if the server had given vectors of all news. Whether a device takes part hangs
   * on this number: which news have vectors is the server's choice, and may not show by who has samples of them.
   */
  readonly learnable: number;

  constructor(
    readonly data: ReaderData,
    wanted: (positive: Positive) => boolean = () => true,
  ) {
    this.positives = this.found((newsId) => data.vectors.has(newsId)).filter(wanted);
    this.learnable = this.found((newsId) => !data.muted.has(newsId)).filter(wanted).length;
  }

  /** Clicks that samples can be made of. */
  get available(): number {
    return this.positives.length;
  }

  /** For gradients: without the clicks that are held out. They still stand in the histories of later ones. */
  withoutHeldOut(share: number): ReaderSamples {
    return new ReaderSamples(this.data, ({ feed, newsId }) => !isHeldOut(feed.feedId, newsId, share));
  }

  /** For evaluation: the clicks that gradients leave out. */
  heldOut(share: number): ReaderSamples {
    return new ReaderSamples(this.data, ({ feed, newsId }) => isHeldOut(feed.feedId, newsId, share));
  }

  /**
   * Samples drawn afresh. The history is what was clicked before the feed was shown: neither the click itself nor later
   * ones. K negatives come from the same feed, looked at and not clicked, with replacement; a feed of which nothing else
   * was looked at draws them from `others`. If there are more clicks than `limit`, a random choice of them is used.
   */
  draw({ negatives, limit, features = [] }: Wanted, draws: Draws): Samples {
    if (!this.positives.length) throw new RangeError("samples: the reader has no click with a history before it");
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

  /** The clicked news and K others. */
  private offered({ newsId, feed }: Positive, negatives: number, draws: Draws): readonly string[] {
    const pool = this.negativesOf(feed, (each) => this.data.vectors.has(each));
    return [newsId, ...draws.below(pool.length, negatives).map((place) => pool[place] ?? "")];
  }

  private vector(newsId: string): Float32Array {
    const found = this.data.vectors.get(newsId);
    if (!found) throw new RangeError(`samples: no vector of ${newsId}`);
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
