// One background sync step: release, default list, popularity, texts, pool; then pruning and the models of rounds.
import { AnswerMalformed, BackendRefused, BackendUnreachable, DeviceError, ReleaseRefused } from "./errors";
import type { Bodies } from "./feed/bodies";
import type { Serving } from "./feed/serving";
import type { PerformanceSettings } from "./feed_settings";
import { type Clock, DAY_MS, HOUR_MS, type Pause } from "./protocol/moments";
import type { DeviceStores } from "./parts";
import type { DefaultListSync, PopularitySync } from "./sync/lists";
import type { PictureSync } from "./sync/picture_sync";
import type { PoolSync } from "./sync/pool_codes";
import type { EncoderTakeover } from "./sync/encoder_takeover";
import { readVectors } from "./uplink/backend_client";
import type { DefaultListAnswer, RecallAnswer } from "./protocol/recall";

const PRUNE_EVERY_MS = 6 * HOUR_MS;
const IMPRESSIONS_KEPT_MS = 60 * DAY_MS;
/** How long a story that left this device still counts as read, should it come back. */
const READ_MARKS_KEPT_MS = 400 * DAY_MS;

/** After a start, texts are requested this long after the first page, and what no page needs this much later still. */
const [TEXTS_AFTER_MS, REST_AFTER_MS] = [1_000, 2_000];

/** How often, and for how long, a device without a list retries early. */
const [SILENT_SEC, SILENT_FOR_MS] = [10, 300_000];

const TROUBLE_OF_PICTURES = [AnswerMalformed, BackendRefused, BackendUnreachable] as const;

/** What is pulled, in the order of a step; pictures come afterwards. */
export interface Pulls {
  readonly takeover: EncoderTakeover;
  readonly defaultList: DefaultListSync;
  readonly popularity: PopularitySync;
  readonly pool: PoolSync;
  readonly pictures: PictureSync;
}

/** forFeed: the step's first part. If it fails, both fail with the same error. */
interface Step {
  readonly whole: Promise<boolean>;
  readonly forFeed: Promise<void>;
}

/** Neither what it requests nor the order depends on what the reader does. */
export class Syncing {
  online: boolean | null = null;
  lastAt: number | null = null;
  /** When the current run of unanswered steps began. */
  silentSince: number | null = null;
  private failed: DeviceError | null = null;
  private underWay: Step | null = null;
  private picturing: Promise<void> | null = null;
  private prunedAt: number | null = null;
  private textsChecked = false;

  constructor(
    private readonly pulls: Pulls,
    private readonly stores: DeviceStores,
    private readonly bodies: Bodies,
    private readonly serving: Serving,
    private readonly settings: PerformanceSettings,
    private readonly clock: Clock,
    private readonly pause: Pause = async () => undefined,
  ) {}

  /**
   * Polls everything once; true if another release is now current. If a step is under way, returns that one. Throws
   * BackendUnreachable, BackendRefused, AnswerMalformed, ReleaseRefused; existing data then stays.
   */
  step(): Promise<boolean> {
    return this.begin().whole;
  }

  /**
   * Waits for the first step since the start, or runs it, until everything that a feed needs is here. Does nothing if a
   * step has ended, except after an erase, when there is no list. Throws like `step`. A failed step isn't retried here
   * but in the background, at its own pace, so that a waiting reader causes no requests.
   */
  async first(): Promise<void> {
    if (this.underWay) return this.underWay.forFeed;
    if (this.failed) throw this.failed;
    if (this.lastAt === null || !this.hasList()) await this.begin().forFeed;
  }

  /** Waits until the whole first step has ended. */
  async firstWhole(): Promise<void> {
    if (this.underWay) await this.underWay.whole;
    else if (this.failed) throw this.failed;
    else if (this.lastAt === null) await this.begin().whole;
  }

  /** Whether the default list is here. */
  hasList(): boolean {
    return this.serving.context.defaultList.known();
  }

  /**
   * Mean seconds until the next step. Depends on the outcome of earlier steps, never on what the reader does. A device
   * without a list can show nothing, and retries early for a while.
   */
  get pauseSec(): number {
    const usual = this.settings.sync_poll_sec;
    const isNew = this.lastAt === null && !this.hasList() && this.silentSince !== null;
    return isNew && this.clock() - (this.silentSince ?? 0) < SILENT_FOR_MS ? Math.min(usual, SILENT_SEC) : usual;
  }

  /**
   * Resolves when the current release's parts for rounds are here. Waits for a step under way, so that looking for a
   * round doesn't change the order of its requests. Throws like `step`.
   */
  async forRounds(): Promise<void> {
    await this.underWay?.whole.catch(() => undefined); // the step's own caller gets the error
    await this.pulls.takeover.rest();
  }

  private begin(): Step {
    if (this.underWay) return this.underWay;
    let enough = (): void => undefined;
    const reached = new Promise<void>((resolve) => (enough = resolve));
    const whole = this.look(enough).finally(() => (this.underWay = null));
    const forFeed = Promise.race([reached, whole.then(() => undefined)]);
    forFeed.catch(() => undefined); // the whole step's caller gets the error
    return (this.underWay = { whole, forFeed });
  }

  private async look(enough: () => void): Promise<boolean> {
    const swapped = await this.recorded(() => this.forPages(enough));
    this.failed = null;
    this.serving.reached();
    this.online = true;
    this.silentSince = null;
    this.lastAt = this.clock();
    this.prune(this.lastAt);
    // the next attempt to join a round reports it
    await this.recorded(() => apart(this.pulls.takeover.rest(), BackendRefused, AnswerMalformed, ReleaseRefused));
    return swapped;
  }

  /**
   * Pulls the publishers' pictures after a successful step.
   *
   * Runs separately: bad or missing pictures delay nothing else and cause no alert on the pages, which have drawn ones.
   * Errors are logged; the old pictures stay, and the next poll continues.
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

  /** Everything except the models of rounds; true if another release is now current. */
  private async forPages(enough: () => void): Promise<boolean> {
    const swapped = await this.pulls.takeover.step();
    await this.takeDefaultList(await this.pulls.defaultList.refresh());
    await this.pulls.popularity.refresh();
    enough();
    // pauses of fixed length: when the rest is requested must not reveal what the reader does meanwhile
    const starts = this.lastAt === null;
    // the poll for texts after a step reports it
    await apart(this.bodies.fetchAll(starts ? TEXTS_AFTER_MS : 0), DeviceError);
    if (starts) await this.pause(REST_AFTER_MS);
    await this.pulls.pool.refresh();
    return swapped;
  }

  private async recorded<R>(work: () => Promise<R>): Promise<R> {
    try {
      return await work();
    } catch (failed) {
      if (failed instanceof DeviceError) this.failed = failed;
      if (failed instanceof BackendUnreachable) {
        this.online = false;
        this.silentSince ??= this.clock();
        this.serving.unreachable(failed);
      }
      throw failed;
    }
  }

  /**
   * Queues the texts of new articles on the list, or of all: once per start, and after some could not be fetched. In
   * the second case it requests all, whichever are stored, since those depend on what was read.
   */
  private async takeDefaultList(answer: DefaultListAnswer | null): Promise<void> {
    const { manifest, release, encoder, dimensions } = await this.serving.models();
    if (answer && (!answer.order || (this.textsChecked && !this.bodies.lostSome()))) this.bodies.want(answer, readVectors(answer, manifest.dimensions), { common: true });
    else if (answer || !this.textsChecked) {
      const { cards, ids, vectors } = this.serving.context.defaultList.candidates(encoder, dimensions);
      if (answer || this.stores.news.withoutBody(ids).length) {
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
    this.stores.readMarks.prune(now - READ_MARKS_KEPT_MS);
  }
}

/** Runs one part so that an error of these classes doesn't stop the others. */
async function apart(part: Promise<void>, ...ways: readonly (abstract new (...given: never) => DeviceError)[]): Promise<void> {
  try {
    await part;
  } catch (failed) {
    if (!ways.some((way) => failed instanceof way)) throw failed;
  }
}
