// Holds the current feed and models, and replaces each as a whole while the reader keeps reading.
import type { BackendUnreachable, DeviceError } from "../errors";
import type { Profile } from "../reading/interest_profile";
import { HOUR_MS, msOf } from "../protocol/moments";
import type { Graphs } from "../ranking/session";
import type { InstalledReleases } from "../store/releases";
import { currentRelease } from "../sync/installed_release";
import type { ReleaseManifest } from "../protocol/releases";
import { type FeedContext, type Promised, buildFeed, clustered, promisedOf, readerOf, withContexts } from "./build";
import type { Candidates } from "./candidates";
import type { Feed, FeedItem } from "./item";
import { type ServingModels, loadModels } from "./model_cache";
import { grown } from "./offer";
import type { UserPreferences } from "./preference_reader";

/**
 * Serves one reader a stable page: the newest feed stays unchanged, across reloads, until the reader asks for another
 * or it is `page_hours` old. One feed is built at a time; other requests wait for it.
 */
export class Serving {
  private turn: Promise<unknown> = Promise.resolve();
  private loading: Promise<ServingModels> | null = null;
  private inUse: ServingModels | null = null;
  private newest: Feed | null = null;
  private away: BackendUnreachable | null = null; // until the backend answers again
  private notMade: Feed | null = null; // shown in place of a page requested meanwhile
  private promise: { readonly feedId: string; readonly made: Promised } | null = null; // what that page offers
  private state = 0; // version of the reader's preferences; incremented by each change
  private builtIn: number | null = null;
  private erased = 0;

  constructor(
    readonly context: FeedContext,
    private readonly releases: InstalledReleases,
    private readonly graphs: Graphs,
  ) {}

  /** The models of the current release. Throws NoRelease or ReleaseRefused. */
  async models(): Promise<ServingModels> {
    if (this.inUse) return this.inUse;
    this.loading ??= this.load();
    try {
      return await this.loading;
    } finally {
      this.loading = null;
    }
  }

  /** The current models if they are loaded. */
  loaded(): ServingModels | null {
    return this.inUse;
  }

  /** The current release's manifest, even while its models are loading; null before the first. */
  manifest(): ReleaseManifest | null {
    return this.inUse?.manifest ?? this.releases.current()?.manifest ?? null;
  }

  /** Loads a newly installed release before unloading the previous one. */
  async swap(): Promise<void> {
    const before = await this.alone(async () => {
      const models = this.inUse; // as left by the previous swap
      await this.load();
      return models;
    });
    await before?.dispose();
  }

  /**
   * Returns the current page, or a new one if requested or due. While the background can't reach the backend, returns
   * the last one marked 'offline' instead of a new one. Throws NoRelease, ReleaseRefused.
   */
  feed({ refresh }: { refresh: boolean }): Promise<Feed> {
    return this.alone(async () => {
      const last = this.last();
      if (!refresh && last && this.holds(last)) return this.notMade ?? last;
      if (this.away && last?.items.length) return (this.notMade = this.offline(this.away));
      const { state } = this;
      const promise = this.promise && this.promise.feedId === last?.feed_id ? this.promise.made : null;
      const feed = await buildFeed(this.context, await this.models(), promise);
      this.newest = feed;
      this.notMade = null;
      this.builtIn = state;
      return feed;
    });
  }

  /**
   * Drafts the page after a feed, so that `promised` knows how many of these new stories it will show; the next page
   * keeps to that. Does nothing while no models are loaded, or if the same stories were new at the last call.
   */
  async draft(feedId: string, known: ReadonlySet<string>): Promise<void> {
    await this.alone(async () => {
      const models = this.inUse;
      if (!models || !known.size || this.promised(feedId, known) !== null) return;
      this.promise = { feedId, made: await promisedOf(this.context, models, known) };
    });
  }

  /** How many of these new stories the page after a feed will show; null if that isn't known. */
  promised(feedId: string, known: ReadonlySet<string>): number | null {
    if (!known.size) return 0;
    if (this.promise?.feedId !== feedId) return null;
    const { made } = this.promise;
    const same = made.known.size === known.size && [...known].every((id) => made.known.has(id));
    return same ? made.placed.size : null;
  }

  /** Returns a kept feed with more stories at its end; null if it isn't kept. Throws NoRelease, ReleaseRefused. */
  more(feedId: string): Promise<Feed | null> {
    return this.alone(async () => {
      const feed = this.page(feedId);
      if (!feed?.items.length) return feed;
      const longer = await grown(this.context, await this.models(), feed);
      if (this.newest?.feed_id === feedId) this.newest = longer;
      return longer;
    });
  }

  /** Notes that the reader changed something that affects pages, so that a new one is offered. */
  changed(): void {
    this.state += 1;
  }

  /** How often the reader has erased everything: work started before an erase is stale. */
  get erasures(): number {
    return this.erased;
  }

  /** Runs `erase` while no feed is being built, and drops all feeds from memory. */
  erasing(erase: () => void): Promise<void> {
    return this.alone(async () => {
      this.erased += 1;
      erase();
      this.changed();
      this.newest = this.notMade = this.promise = null;
      this.context.recall.forget();
      this.context.userPreferences.forget();
    });
  }

  /** The backend answered, or is reachable again. */
  reached(): void {
    this.away = this.notMade = null;
  }

  /** A background loop found that the backend can't be reached. */
  unreachable(trouble: BackendUnreachable): void {
    this.away = trouble;
  }

  /** Whether the background loops reached the backend at their last attempt. */
  online(): boolean {
    return !this.away;
  }

  /** Removes deleted clicks from the reasons of kept feeds. */
  forgetClicks(newsIds: Iterable<string>): void {
    this.context.kept.forgetClicks(newsIds);
    this.newest = this.notMade = null;
    this.changed();
  }

  /** Returns a kept feed by id. */
  page(feedId: string): Feed | null {
    return this.newest?.feed_id === feedId ? this.newest : this.context.kept.feed(feedId);
  }

  /** An item of a feed, for its reason. */
  item(feedId: string | null, newsId: string): FeedItem | null {
    const feed = feedId ? this.page(feedId) : null;
    return feed?.items.find((item) => item.card.id === newsId) ?? null;
  }

  /** The newest feed, even from an earlier visit. */
  last(): Feed | null {
    return (this.newest ??= this.context.kept.last());
  }

  /** The feed that `feed` would return without building; null if it would build one, or serves a fallback. */
  held(): Feed | null {
    const last = this.notMade ? null : this.last();
    return last && this.holds(last) ? last : null;
  }

  /** Whether the reader changed preferences since the newest feed was made, in this visit. */
  changedSince(): boolean {
    return this.builtIn !== null && this.builtIn !== this.state;
  }

  /** The last feed, marked as offline. */
  offline(trouble: DeviceError): Feed {
    return this.context.kept.offline(trouble);
  }

  /** The last answer and default list combined, and the reader's preferences. Throws NoRelease, ReleaseRefused. */
  async knownNews(): Promise<{ known: Candidates; preferences: UserPreferences }> {
    const models = await this.models();
    const defaultList = this.context.defaultList.candidates(models.encoder, models.dimensions);
    const { preferences } = readerOf(this.context, models);
    return { known: this.context.recall.known(defaultList), preferences };
  }

  /** The reader's current interests. Throws NoRelease or ReleaseRefused. */
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

  /** Whether a feed may still be served: it isn't empty, and was made within `page_hours` of the current time. */
  private holds(feed: Feed): boolean {
    const age = Math.abs(this.context.clock() - msOf(feed.made_at));
    return feed.items.length > 0 && age < this.context.weights.page_hours * HOUR_MS;
  }

  /** Runs the work after all work that was queued before it. */
  private alone<R>(work: () => Promise<R>): Promise<R> {
    const mine = this.turn.then(work, work);
    this.turn = mine.catch(() => undefined);
    return mine;
  }
}

