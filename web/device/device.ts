// One reader's device in the browser: the verbs of its pages and of its background, over the parts of `parts.ts`.
import { LoopAlerts } from "./alerts";
import { DeviceError, ReleaseForked, ReleaseRefused, onceReleased } from "./errors";
import { HeldLists } from "./feed/held_lists";
import { followingItems } from "./feed/following";
import type { Article, Feed, FeedItem } from "./feed/item";
import { type Offer, offered } from "./feed/offer";
import { CHOSEN_SECTIONS } from "./feed/preference_reader";
import { type Opening, Stories } from "./feed/stories";
import { Viewing } from "./feed/viewing";
import { WholePool } from "./feed/whole_pool";
import { type ClickedNews, type InterestCluster, clicksOf, interestCards } from "./interests/profile";
import { type Clock, breath, momentOf } from "./moments";
import { Moving } from "./moving";
import { type DeviceStores, type Parts, TRAINING_PAUSED } from "./parts";
import { affordable } from "./privacy/code";
import { type PrivacySettings, privacySettings } from "./privacy/settings";
import { PICTURES_HIDDEN, TAKEN_OVER } from "./store/preferences";
import type { NamedStance, ReactionKind, Stance, StanceKind } from "./store/opinions";
import { ROWS_A_STEP } from "./store/pool_index";
import type { Outcome } from "./training/participant";
import { type SearchesView, searchesView } from "./view_models/searches";
import { type ExploreSection, exploreSections } from "./view_models/explore";
import { type StatusView, shieldOf } from "./view_models/status";
import { LEFT_BEFORE_ERASE, leftSoFar } from "./view_models/today";
import type { NewsCard } from "./wire/news";

/** Most news made searchable after a look at what is new, and at once. */
const [INDEXED_A_LOOK, INDEXED_AT_ONCE] = [1_000, 50];
const POOL_INDEXED_A_LOOK = 10_000;
/** So long the page of a new feed has the processor to itself. */
const DRAWN_WITHIN_MS = 300;
export const PRIVACY_CHANGES = "privacy";

/** The reader's switches: the defaults, and what was changed of them on this device. */
export function chosenSettings(stores: DeviceStores): PrivacySettings {
  return privacySettings.make({ ...(stores.preferences.get(PRIVACY_CHANGES) as object | null) });
}

/** Errors are DeviceErrors, each one plain sentence. */
export class Device {
  readonly lists: HeldLists;
  readonly wholePool: WholePool;
  readonly moving: Moving;
  private readonly viewing: Viewing;
  private readonly stories: Stories;
  private readonly alerts: LoopAlerts;

  constructor(
    readonly parts: Parts,
    private readonly clock: Clock,
  ) {
    const { stores, serving } = parts;
    this.alerts = new LoopAlerts(clock);
    this.lists = new HeldLists(stores.preferences, stores.news, stores.pool, serving.context.weights.page_hours, clock);
    this.wholePool = new WholePool(stores, serving, this.lists, clock);
    this.moving = new Moving(parts, (changes) => this.setPrivacy(changes));
    this.viewing = new Viewing(stores.impressions, (feedId) => serving.page(feedId), clock);
    this.stories = new Stories(parts, this.viewing, () => this.fetchReturned(), clock);
  }

  /** Release and list as a first feed needs them; what fails is told by the pages. */
  async syncForFeed(): Promise<void> {
    await this.alerts.of("sync", () => this.parts.syncing.forFeed());
  }

  /** One look at what is new at the backend; what fails is told by the pages. */
  async sync(): Promise<void> {
    await this.alerts.of("sync", async () => void (await this.parts.syncing.step()));
  }

  /** The publishers' pictures, after a look that went well. */
  async takePictures(): Promise<void> {
    if (!this.alerts.error("sync")) await this.parts.syncing.takePictures();
  }

  /** Fetch the texts of the lists that wait. */
  async fetchTexts(): Promise<void> {
    await this.alerts.of("texts", () => this.parts.bodies.fetchAll());
  }

  /**
   * Fetch the texts of what the reader's own page or story brought, pauseMs from now. Those of the list that everybody gets
   * are fetched by `Syncing` alone, so that their time tells nothing of the reader.
   */
  private async fetchReturned(pauseMs = 0): Promise<void> {
    await this.alerts.of("texts", () => this.parts.bodies.fetchReturned(pauseMs));
  }

  /** Make what came searchable, a few stories at a time, with other pages answered between; a search does the rest itself. */
  async catchUpIndex(): Promise<void> {
    const { searchIndex, poolIndex } = this.parts.stores;
    for (let left = INDEXED_A_LOOK; left > 0 && searchIndex.catchUp(INDEXED_AT_ONCE); left -= INDEXED_AT_ONCE) await breath();
    for (let left = POOL_INDEXED_A_LOOK; left > 0 && poolIndex.step(); left -= ROWS_A_STEP) await breath();
  }

  /** Go on with a sum under way, and try to take part in a round; null where nothing came of either, which the pages tell. */
  async trainStep(): Promise<Outcome | null> {
    let outcome: Outcome | null = null;
    await this.alerts.of("training", async () => {
      const { syncing, trainer } = this.parts;
      outcome = await trainer.goOn(); // which has deadlines, and needs no model
      if (outcome && !trainer.looksBeside(outcome)) return;
      await syncing.forRounds();
      outcome = await trainer.takePart(outcome);
    });
    return outcome;
  }

  /** Keep training on and send nothing, or go on. */
  pauseTraining(paused: boolean): void {
    this.parts.stores.preferences.set(TRAINING_PAUSED, paused);
  }

  get trainingPaused(): boolean {
    return Boolean(this.parts.stores.preferences.get(TRAINING_PAUSED));
  }

  /** The page in use, or a new one. Never throws for a backend that is down or refuses. */
  async feed(refresh = false): Promise<Feed> {
    const { serving } = this.parts;
    try {
      if (!serving.context.defaultList.known()) await this.parts.syncing.forFeed();
      const before = serving.last()?.feed_id;
      const feed = await serving.feed({ refresh });
      // a story of a new feed is opened long before the next look at what is new, but the page is drawn first
      if (feed.feed_id !== before) void this.fetchReturned(DRAWN_WITHIN_MS);
      return feed;
    } catch (trouble) {
      if (trouble instanceof DeviceError) return serving.offline(trouble);
      throw trouble;
    }
  }

  /** A longer page; null if it isn't kept. */
  more(feedId: string): Promise<Feed | null> {
    return this.parts.serving.more(feedId);
  }

  /** Where a feed's page is: the newest one's is the front page, and so is that of one that isn't kept. */
  pagePath(feedId: string | null): string {
    return feedId && this.parts.stores.feeds.beside(feedId).after !== null ? `/page/${feedId}` : "/";
  }

  /** What is offered in the place of a page; ofThisVisit: also for what was said since this worker began. */
  offer(feed: Feed, { ofThisVisit = true } = {}): Offer {
    const { stores, serving } = this.parts;
    const release = serving.manifest()?.release ?? null;
    const listed = stores.defaultList.current()?.newsIds ?? [];
    return offered(feed, stores, listed, release, serving.context.weights.fresh_hours, ofThisVisit && serving.toldSince());
  }

  /** News that everybody gets, by section; empty before the first sync. */
  explore(): ExploreSection[] {
    const { stores, serving } = this.parts;
    const { defaultList, weights } = serving.context;
    const encoder = stores.defaultList.current()?.encoder;
    if (encoder === undefined) return [];
    return exploreSections(defaultList.candidates(encoder, 0), this.stances(), this.clock(), weights.half_life_hours);
  }

  /** What is popular now of the news here, most popular first; nothing before the first release. */
  popular(): Promise<NewsCard[]> {
    const { serving } = this.parts;
    return onceReleased(async () => {
      const { known, preferences } = await serving.knownNews();
      return serving.context.popular.now(known, preferences);
    });
  }

  /** News of what the reader follows, from the default list and the last answer; nothing before the first release. */
  following(): Promise<FeedItem[]> {
    const { serving } = this.parts;
    return onceReleased(async () => {
      const { known, preferences } = await serving.knownNews();
      return followingItems(known, preferences, this.clock(), serving.context.weights.half_life_hours);
    });
  }

  /** The reader's interests, heaviest first; nothing before the first release. */
  interests(): Promise<InterestCluster[]> {
    const { serving, names } = this.parts;
    return onceReleased(async () => interestCards(await serving.profile(), names.kept()));
  }

  /** Name the interest that holds click `key`; blank gives its label back. Throws RangeError if too long. */
  async rename(key: number, name: string): Promise<void> {
    const { serving, names } = this.parts;
    names.name((await this.interest(key)).map(({ card }) => card.id), name);
    serving.changed();
  }

  /** Leave an interest out of feed and reports, or take it in again; the next report is drawn afresh. */
  async mute(key: number, muted: boolean): Promise<void> {
    const { stores, serving, names } = this.parts;
    const clicks = await this.interest(key);
    stores.database.transaction(() => {
      names.mute(clicks.map(({ card }) => card.id), muted);
      stores.reportMemo.clear();
    });
    serving.changed();
  }

  /** Delete the clicks of an interest for good; the next report is drawn afresh. */
  async forget(key: number): Promise<void> {
    const { stores, serving, names, trainer } = this.parts;
    const newsIds = new Set((await this.interest(key)).map(({ card }) => card.id));
    stores.database.transaction(() => {
      stores.clicks.deleteNews(newsIds);
      stores.searches.forgetOpened(newsIds);
      names.forget(newsIds);
      serving.forgetClicks(newsIds);
      stores.reportMemo.clear();
      trainer.forgetUnsent();
    });
    this.leaveNothingInLogs();
  }

  private async interest(key: number): Promise<readonly ClickedNews[]> {
    return clicksOf(await this.parts.serving.profile(), key);
  }

  /** The page has seen that these were looked at. */
  view(feedId: string, newsIds: readonly string[]): void {
    this.viewing.report(feedId, newsIds);
  }

  /** Commit the click, then give the story from this device alone; see `Stories.open`. */
  open(newsId: string, feed: string | null, how: Opening = {}): Promise<Article> {
    return this.stories.open(newsId, feed, how);
  }

  /** Keep a search. Throws SearchRefused. */
  saveSearch(words: string): void {
    this.parts.stores.searches.save(words, this.clock());
    this.parts.serving.changed();
  }

  /** Delete a saved search for good; false if there was none. A report made with it goes on until it is due. */
  deleteSearch(searchId: number): boolean {
    const { stores, serving, trainer } = this.parts;
    const gone = stores.searches.delete(searchId);
    trainer.forgetUnsent();
    this.leaveNothingInLogs();
    serving.changed();
    return gone;
  }

  /** What is saved and followed, with how much of it is here now, and what it is used for. */
  searches(): Promise<SearchesView> {
    return searchesView(this.parts.stores, this.parts.ledger.settings, (words) => this.wholePool.hits(words));
  }

  /** Like, less or save a story; the same again takes it back. Throws NewsNotHere. */
  react(newsId: string, kind: ReactionKind): void {
    const { stores, serving } = this.parts;
    stores.news.card(newsId);
    stores.database.transaction(() => {
      if (!stores.feedback.retract(newsId, kind)) stores.feedback.react(newsId, kind, this.clock());
    });
    this.leaveNothingInLogs();
    serving.changed();
  }

  reactions(): ReadonlyMap<string, ReactionKind[]> {
    return this.parts.stores.feedback.kinds();
  }

  readNews(): ReadonlySet<string> {
    return this.parts.stores.clicks.clicked();
  }

  /** Saved news, last saved first; what is no longer on the device is left out. */
  saved(): NewsCard[] {
    return this.reactedTo("save");
  }

  /** News the reader wants less of, last said first. */
  unwanted(): NewsCard[] {
    return this.reactedTo("less");
  }

  private reactedTo(kind: ReactionKind): NewsCard[] {
    const { feedback, news } = this.parts.stores;
    return news.cards(feedback.reactions(kind).map((one) => one.newsId));
  }

  stance(kind: StanceKind, name: string, stance: Stance | null): void {
    const { stores, serving } = this.parts;
    stores.stances.set(kind, name, stance, this.clock());
    this.leaveNothingInLogs();
    serving.changed();
  }

  stances(): NamedStance[] {
    return this.parts.stores.stances.all();
  }

  /** Sections that lead the first pages, until the reader's reading has taken over. */
  chooseSections(sections: readonly string[]): void {
    this.parts.stores.preferences.set(CHOSEN_SECTIONS, sections);
    this.parts.serving.changed();
  }

  /** Delete one click for good; false if there was none. A report made from it goes on until it is due. */
  deleteClick(clickId: number): boolean {
    const { stores, serving, trainer } = this.parts;
    const newsId = stores.clicks.newsOf(clickId);
    const gone = stores.database.transaction(() => {
      if (newsId !== null) {
        stores.searches.forgetOpened([newsId]);
        serving.forgetClicks([newsId]);
      }
      trainer.forgetUnsent();
      return stores.clicks.delete(clickId);
    });
    this.leaveNothingInLogs();
    serving.changed();
    return gone;
  }

  /** Something was deleted: no byte of it stays in what the stores have written ahead. */
  private leaveNothingInLogs(): void {
    const { database, searchDatabase } = this.parts.stores;
    database.fold();
    searchDatabase.fold();
  }

  /** The reader's switches as they hold. */
  get settings(): PrivacySettings {
    return chosenSettings(this.parts.stores);
  }

  /** Change switches and keep them. Throws WireError naming the field and its limit. */
  setPrivacy(changes: Partial<PrivacySettings>): void {
    const { stores, serving } = this.parts;
    const before = this.settings;
    const after = privacySettings.make({ ...before, ...changes });
    const kept = stores.preferences.get(PRIVACY_CHANGES) as Partial<PrivacySettings> | null;
    stores.database.transaction(() => {
      const made = [after.epsilon_per_report !== before.epsilon_per_report, after.searches_in_reports !== before.searches_in_reports];
      if (made.some(Boolean)) stores.reportMemo.clear();
      stores.preferences.set(PRIVACY_CHANGES, { ...kept, ...changes });
    });
    serving.changed();
  }

  /** Delete everything about the reader but the privacy switches, that of pictures, and what the ledger has spent. */
  async erase(): Promise<void> {
    const { stores, serving, ledger, uplink } = this.parts;
    const switches = stores.preferences.get(PRIVACY_CHANGES);
    const left = leftSoFar(stores, ledger);
    const [movedAt, hidden] = [stores.preferences.get(TAKEN_OVER), stores.preferences.get(PICTURES_HIDDEN)];
    await serving.erasing(() => {
      stores.searchDatabase.erase();
      stores.database.erase(() => {
        stores.preferences.set(PRIVACY_CHANGES, switches);
        stores.preferences.set(TAKEN_OVER, movedAt);
        stores.preferences.set(PICTURES_HIDDEN, hidden);
        stores.preferences.set(LEFT_BEFORE_ERASE, { ...left, at: momentOf(left.at) });
      });
      this.viewing.forget();
      this.lists.forget();
      uplink.forget();
    });
  }

  /** What the head of every page says; a few counts. */
  status(): StatusView {
    const { stores, serving, ledger, syncing } = this.parts;
    const last = serving.last();
    const settings = this.settings;
    const silent = syncing.online === false || serving.online() === false;
    return {
      profile: "reader",
      mode: settings.mode,
      ...shieldOf(ledger, this.priceOfReport(), this.refused()),
      feed_made_at: last?.made_at ?? null,
      feed_ms: last && Object.values(last.device_ms).reduce((sum, ms) => sum + ms, 0),
      online: silent ? false : serving.online() && syncing.online,
      clicks: stores.clicks.count(),
      chosen_sections: stores.preferences.get(CHOSEN_SECTIONS) as string[] | null,
      training: settings.training,
      own_feeds: false,
      as_printed: null,
      alerts: this.alerts.now(),
    };
  }

  /** Epsilon of a fresh report; null where none can be made, undefined before the first release. */
  private priceOfReport(): number | null | undefined {
    const manifest = this.parts.serving.manifest();
    return manifest ? (affordable(manifest.recall, this.settings.epsilon_per_report)?.epsilon ?? null) : undefined;
  }

  private refused(): "forked" | "refused" | null {
    const error = this.alerts.error("sync");
    return error instanceof ReleaseForked ? "forked" : error instanceof ReleaseRefused ? "refused" : null;
  }
}
