// The feed in use and the models in use, swapped whole while the reader goes on reading.
import type { DeviceError } from "../errors";
import type { Profile } from "../interests/profile";
import { HOUR_MS, msOf } from "../moments";
import type { Graphs } from "../ranking/session";
import type { InstalledReleases } from "../store/releases";
import { currentRelease } from "../sync/installed_release";
import type { ReleaseManifest } from "../wire/releases";
import { type FeedContext, buildFeed, clustered, readerOf, withContexts } from "./build";
import type { Candidates } from "./candidates";
import type { Feed, FeedItem } from "./item";
import { type ServingModels, loadModels } from "./model_cache";
import { grown } from "./more";
import type { UserPreferences } from "./preferences";

/** An offline feed is served so long before the backend is tried again. */
const OFFLINE_RETRY_MS = 10_000;

/**
 * Serves one reader a page that holds still: the newest feed stays as it is, over reloads too, until the reader asks for
 * another or it is `page_hours` old. One feed is built at a time, and the others wait for it.
 */
export class Serving {
  private turn: Promise<unknown> = Promise.resolve();
  private loading: Promise<ServingModels> | null = null;
  private inUse: ServingModels | null = null;
  private newest: Feed | null = null;
  private unanswered: { feed: Feed; until: number } | null = null;
  private failedAt = -Infinity; // when the last page was begun that failed
  private reachedAt = -Infinity;
  private state = 0; // of what the reader said: another one after each change
  private builtIn: number | null = null;
  private erased = 0;

  constructor(
    readonly context: FeedContext,
    private readonly releases: InstalledReleases,
    private readonly graphs: Graphs,
  ) {}

  /** The models of the release in use. Throws NoRelease or ReleaseRefused. */
  async models(): Promise<ServingModels> {
    if (this.inUse) return this.inUse;
    this.loading ??= this.load();
    try {
      return await this.loading;
    } finally {
      this.loading = null;
    }
  }

  /** The models in use if they are loaded. */
  loaded(): ServingModels | null {
    return this.inUse;
  }

  /** Of the release in use, also while its models are still being loaded; null before the first. */
  manifest(): ReleaseManifest | null {
    return this.inUse?.manifest ?? this.releases.current()?.manifest ?? null;
  }

  /** A release was installed: load it before letting go of the one before. */
  async swap(): Promise<void> {
    const before = await this.alone(async () => {
      const models = this.inUse; // as the swap before this one has left them
      await this.load();
      return models;
    });
    await before?.dispose();
  }

  /**
   * The page in use, or a new one when asked for or due. Throws NoRelease, ReleaseRefused. When a new one can't be made the
   * last feed comes back, marked 'offline', and is served for some seconds.
   */
  feed({ refresh }: { refresh: boolean }): Promise<Feed> {
    return this.alone(async () => {
      if (!refresh) {
        if (this.unanswered && this.online() === false) return this.unanswered.feed;
        const held = this.held();
        if (held) return held;
      }
      const [state, began] = [this.state, performance.now()];
      const feed = await buildFeed(this.context, await this.models());
      if (feed.mode === "offline") {
        this.failedAt = began;
        this.unanswered = { feed, until: performance.now() + OFFLINE_RETRY_MS };
        return feed;
      }
      this.reached();
      this.newest = feed;
      this.unanswered = null;
      this.builtIn = state;
      return feed;
    });
  }

  /** A kept feed with more stories at its end, null if it isn't kept. Throws NoRelease, ReleaseRefused. */
  more(feedId: string): Promise<Feed | null> {
    return this.alone(async () => {
      const feed = this.page(feedId);
      if (!feed?.items.length) return feed;
      const longer = await grown(this.context, await this.models(), feed);
      if (this.newest?.feed_id === feedId) this.newest = longer;
      return longer;
    });
  }

  /** The reader said something that another page would follow: it is offered. */
  changed(): void {
    this.state += 1;
  }

  /** How often the reader has erased everything: what was begun before the last time tells of what there was. */
  get erasures(): number {
    return this.erased;
  }

  /** Have `erase` done while no feed is built; none stays in memory. */
  erasing(erase: () => void): Promise<void> {
    return this.alone(async () => {
      this.erased += 1;
      erase();
      this.changed();
      this.newest = this.unanswered = null;
      this.context.recall.forget();
      this.context.userPreferences.forget();
    });
  }

  /** The backend answered, or can be reached again: that a page begun before failed tells nothing any more. */
  reached(): void {
    this.reachedAt = performance.now();
  }

  /** False where the last page could not be made just now, null where that was a while ago and nothing was heard since. */
  online(): boolean | null {
    if (!this.unanswered || this.failedAt < this.reachedAt) return true;
    return performance.now() < this.unanswered.until ? false : null;
  }

  /** The reader deleted clicks: no reason of a kept feed may name them. */
  forgetClicks(newsIds: Iterable<string>): void {
    this.context.kept.forgetClicks(newsIds);
    this.newest = this.unanswered = null;
    this.changed();
  }

  /** A feed by its id, as long as it is kept. */
  page(feedId: string): Feed | null {
    return this.newest?.feed_id === feedId ? this.newest : this.context.kept.feed(feedId);
  }

  /** The item of a feed, for its reason. */
  item(feedId: string | null, newsId: string): FeedItem | null {
    const feed = feedId ? this.page(feedId) : null;
    return feed?.items.find((item) => item.card.id === newsId) ?? null;
  }

  /** The newest feed, also one of an earlier visit. */
  last(): Feed | null {
    return (this.newest ??= this.context.kept.last());
  }

  /** The feed that `feed` gives without building one; null where it would build one, or serves one for want of another. */
  held(): Feed | null {
    const last = this.unanswered && this.online() === false ? null : this.last();
    return last && this.holds(last) ? last : null;
  }

  /** Whether the reader said something since the newest feed was made, in this visit. */
  toldSince(): boolean {
    return this.builtIn !== null && this.builtIn !== this.state;
  }

  /** The last feed, marked as such. */
  offline(trouble: DeviceError): Feed {
    return this.context.kept.offline(trouble);
  }

  /** The last answer and the default list together, and what the reader told. Throws NoRelease, ReleaseRefused. */
  async knownNews(): Promise<{ known: Candidates; preferences: UserPreferences }> {
    const models = await this.models();
    const defaultList = this.context.defaultList.candidates(models.encoder, models.dimensions);
    const { preferences } = readerOf(this.context, models);
    return { known: this.context.recall.known(defaultList), preferences };
  }

  /** The reader's interests as they are now. Throws NoRelease or ReleaseRefused. */
  async profile(): Promise<Profile> {
    const models = await this.models();
    const reader = withContexts(models, readerOf(this.context, models));
    return (await clustered(models, reader)).profile;
  }

  private async load(): Promise<ServingModels> {
    const release = currentRelease(this.releases);
    this.inUse = await loadModels(release, this.graphs, this.context.weights.ranker);
    return this.inUse;
  }

  /** An empty feed is no page, nor is one from far ahead of the clock. */
  private holds(feed: Feed): boolean {
    const age = Math.abs(this.context.clock() - msOf(feed.made_at));
    return feed.items.length > 0 && age < this.context.weights.page_hours * HOUR_MS;
  }

  /** After what was begun before. */
  private alone<R>(work: () => Promise<R>): Promise<R> {
    const mine = this.turn.then(work, work);
    this.turn = mine.catch(() => undefined);
    return mine;
  }
}

