// Gathers a reader's samples from the device's store.
import type { Click } from "../store/clicks";
import type { CountLog, CountTaken, CountWindow } from "../store/count_log";
import type { Shown } from "../store/impressions";
import { type Vectors, stacked } from "../vectors";
import { CLICKS_LIMIT } from "../wire/recall";
import { type FeaturesAt, ReaderSamples, type ReadingMark } from "./samples";

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

/** What is read of the feeds that were shown. */
export interface ImpressionsRead {
  forTraining(limit: number): Shown[];
  seen(since: number): Set<string>;
  activeSince(moment: number): boolean;
}

/** The reader's feeds, clicks and news vectors, read when a round is under way. */
export class StoredSamples {
  /**
   * vectors: by id, of those that this device has by an encoder. counted: what was contributed to private counts. muted:
   * clicked news of muted interests, which nothing is learnt from.
   */
  constructor(
    private readonly clicks: ClicksRead,
    private readonly impressions: ImpressionsRead,
    private readonly vectors: (ids: readonly string[], encoder: string) => ReadonlyMap<string, Float32Array>,
    private readonly featuresAt: FeaturesAt,
    private readonly counted: CountLog,
    private readonly muted: () => ReadonlySet<string> = () => new Set(),
  ) {}

  /** How many clicks the device holds. */
  count(): number {
    return this.clicks.count();
  }

  /** Of what a computation reads from now on. */
  mark(): ReadingMark {
    const newest = this.clicks.latestId();
    return { newest, clicks: this.clicks.countUpTo(newest), muted: this.muted() };
  }

  /** Whether all that was there at that mark is there still, and nothing was muted or erased since. */
  holds(mark: ReadingMark): boolean {
    const kept = this.clicks.countUpTo(mark.newest) === mark.clicks && this.clicks.latestId() >= mark.newest;
    return kept && [...this.muted()].every((newsId) => mark.muted.has(newsId));
  }

  /** Whether the reader was served nothing, looked at nothing and opened nothing at or after that moment. */
  quietSince(moment: number): boolean {
    const [newest] = this.clicks.recent(1);
    return !this.impressions.activeSince(moment) && !(newest !== undefined && newest.at >= moment);
  }

  /** Displays and clicks that may be contributed to a private count now. */
  uncounted(now: number, longestMs: number): CountWindow {
    return this.counted.window(now, longestMs);
  }

  /** Spend a window; call it in the transaction that pays. */
  takeCount(taken: CountTaken): void {
    this.counted.take(taken);
  }

  /** What samples are drawn from, with vectors by `encoder`; spare negatives are news of other feeds. */
  samples(encoder: string): ReaderSamples {
    const [mark, muted] = [this.mark(), this.muted()];
    const feeds = this.impressions.forTraining(FEEDS_LIMIT);
    const clicks = this.active(muted);
    const others = [...this.impressions.seen(0)].sort().slice(0, OTHERS_LIMIT);
    const named = feeds.flatMap((feed) => [...feed.shown, ...feed.clicked]);
    const ids = [...new Set([...named, ...clicks.map((click) => click.newsId), ...others])].sort();
    const held = [...this.vectors(ids, encoder)].filter(([newsId]) => !muted.has(newsId));
    const vectors = new Map(held);
    return new ReaderSamples({ feeds, clicks, vectors, others, featuresAt: this.featuresAt, muted, mark });
  }

  /** Vectors [H, D] of the newest clicks, oldest first, as a report is made of them; [0, 0] if there are none. */
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
