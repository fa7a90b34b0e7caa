// One background step of keeping up: release, default list, popularity, texts, pool; then what is old goes, and models of
// rounds come.
import { AnswerMalformed, BackendRefused, BackendUnreachable, DeviceError, ReleaseRefused } from "./errors";
import type { Bodies } from "./feed/bodies";
import type { Serving } from "./feed/serving";
import type { PerformanceSettings } from "./feed_settings";
import { type Clock, DAY_MS, HOUR_MS, type Pause } from "./moments";
import type { DefaultListStore } from "./store/default_list";
import type { ImpressionStore } from "./store/impressions";
import type { NewsStore } from "./store/news";
import type { SearchIndex } from "./store/search_index";
import type { DefaultListSync, PopularitySync } from "./sync/lists";
import type { PictureSync } from "./sync/pictures";
import type { PoolSync } from "./sync/pool_codes";
import type { EncoderTakeover } from "./sync/vectors";
import { readVectors } from "./uplink/answers";
import type { RecallAnswer } from "./wire/recall";

const PRUNE_EVERY_MS = 6 * HOUR_MS;
const IMPRESSIONS_KEPT_MS = 60 * DAY_MS;

/** After a start the first page is drawn before texts are asked for, and so much later what no page needs. */
const [TEXTS_AFTER_MS, REST_AFTER_MS] = [1_000, 2_000];

const TROUBLE_OF_PICTURES = [AnswerMalformed, BackendRefused, BackendUnreachable] as const;

/** What is asked for, in the order of a step; pictures after it. */
export interface Pulls {
  readonly takeover: EncoderTakeover;
  readonly defaultList: DefaultListSync;
  readonly popularity: PopularitySync;
  readonly pool: PoolSync;
  readonly pictures: PictureSync;
}

/** What a step reads and tidies. */
export interface SyncedStores {
  readonly news: NewsStore;
  readonly defaultList: DefaultListStore;
  readonly impressions: ImpressionStore;
  readonly searchIndex: SearchIndex;
}

/** forFeed: its first part. Both fail alike. */
interface Step {
  readonly whole: Promise<boolean>;
  readonly forFeed: Promise<void>;
}

/** Neither what it asks for nor in which order depends on what the reader does. */
export class Syncing {
  online: boolean | null = null;
  lastAt: number | null = null;
  /** When the first of the steps failed that were not answered since. */
  silentSince: number | null = null;
  private underWay: Step | null = null;
  private picturing: Promise<void> | null = null;
  private prunedAt: number | null = null;
  private textsChecked = false;

  constructor(
    private readonly pulls: Pulls,
    private readonly stores: SyncedStores,
    private readonly bodies: Bodies,
    private readonly serving: Serving,
    private readonly settings: PerformanceSettings,
    private readonly clock: Clock,
    private readonly pause: Pause = async () => undefined,
  ) {}

  /**
   * One look at everything; true if another release is in use now. A step that is asked for while one is under way is that
   * one. Throws BackendUnreachable, BackendRefused, AnswerMalformed, ReleaseRefused; what was there before stays.
   */
  step(): Promise<boolean> {
    return this.begun().whole;
  }

  /** As `step`, but only until all is here that a feed is made of. */
  forFeed(): Promise<void> {
    return this.begun().forFeed;
  }

  /**
   * What the release in use has for rounds is here when this ends. A step under way ends first: when a round is looked for
   * must not change the order of what it asks for. Throws as `step`.
   */
  async forRounds(): Promise<void> {
    await this.underWay?.whole.catch(() => undefined); // whoever waits for the step is told
    await this.pulls.takeover.rest();
  }

  private begun(): Step {
    if (this.underWay) return this.underWay;
    let enough = (): void => undefined;
    const reached = new Promise<void>((resolve) => (enough = resolve));
    const whole = this.look(enough).finally(() => (this.underWay = null));
    const forFeed = Promise.race([reached, whole.then(() => undefined)]);
    forFeed.catch(() => undefined); // who waits for the whole step is told
    return (this.underWay = { whole, forFeed });
  }

  private async look(enough: () => void): Promise<boolean> {
    const swapped = await this.heard(() => this.forPages(enough));
    this.serving.reached();
    this.online = true;
    this.silentSince = null;
    this.lastAt = this.clock();
    this.prune(this.lastAt);
    // the try to take part in a round tells it
    await this.heard(() => apart(this.pulls.takeover.rest(), BackendRefused, AnswerMalformed, ReleaseRefused));
    return swapped;
  }

  /**
   * The publishers' pictures, after a step that went well.
   *
   * Apart from it: whatever a server gives as pictures, or if it gives none, keeps nothing else back and is no trouble of
   * the pages, which have drawn ones. It is logged; those of before stay, and the next look goes on.
   */
  takePictures(): Promise<void> {
    return (this.picturing ??= this.pictures().finally(() => (this.picturing = null)));
  }

  private async pictures(): Promise<void> {
    try {
      await this.pulls.pictures.refresh();
    } catch (trouble) {
      if (!TROUBLE_OF_PICTURES.some((kind) => trouble instanceof kind)) throw trouble;
      console.info(`pictures: ${(trouble as DeviceError).message}`);
    }
  }

  /** All but the models of rounds; true if another release is in use now. */
  private async forPages(enough: () => void): Promise<boolean> {
    const swapped = await this.pulls.takeover.step();
    await this.takeDefaultList(await this.pulls.defaultList.refresh());
    await this.pulls.popularity.refresh();
    enough();
    // pauses of a fixed length: when the rest is asked for must not tell what the reader does meanwhile
    const starts = this.lastAt === null;
    await apart(this.bodies.fetchAll(starts ? TEXTS_AFTER_MS : 0), DeviceError); // the look for texts after a step tells it
    if (starts) await this.pause(REST_AFTER_MS);
    await this.pulls.pool.refresh();
    return swapped;
  }

  private async heard<R>(work: () => Promise<R>): Promise<R> {
    try {
      return await work();
    } catch (failed) {
      if (failed instanceof BackendUnreachable) {
        this.online = false;
        this.silentSince ??= this.clock();
      }
      throw failed;
    }
  }

  /** Queue the texts of the whole list when it is new, and once a start when some are missing. */
  private async takeDefaultList(answer: RecallAnswer | null): Promise<void> {
    const { manifest, release, encoder, dimensions } = await this.serving.models();
    if (answer) this.bodies.want(answer, readVectors(answer, manifest.dimensions), { common: true });
    else if (!this.textsChecked) {
      const { cards, ids, vectors } = this.serving.context.defaultList.candidates(encoder, dimensions);
      if (this.stores.news.withoutBody(ids).length) {
        const kept: RecallAnswer = { release, encoder, candidates: cards, vectors: new Uint8Array(0) };
        this.bodies.want(kept, vectors, { common: true });
      }
    }
    this.textsChecked = true;
  }

  private prune(now: number): void {
    if (this.prunedAt !== null && now - this.prunedAt < PRUNE_EVERY_MS) return;
    this.prunedAt = now;
    const listed = this.stores.defaultList.current()?.newsIds ?? [];
    const shown = this.serving.last()?.items.map((item) => item.card.id) ?? [];
    this.stores.news.prune(now - this.settings.news_days * DAY_MS, [...listed, ...shown]);
    this.stores.searchIndex.tidy();
    this.stores.impressions.prune(now - IMPRESSIONS_KEPT_MS);
  }
}

/** A part that fails in one of these ways keeps the others from nothing. */
async function apart(part: Promise<void>, ...ways: readonly (abstract new (...given: never) => DeviceError)[]): Promise<void> {
  try {
    await part;
  } catch (failed) {
    if (!ways.some((way) => failed instanceof way)) throw failed;
  }
}
