// One reader's device in the browser: what its pages and background loops do with it, by part; built on `parts.ts`.
import { LoopAlerts } from "./alerts";
import { DeviceError, ReleaseForked, ReleaseRefused, onceReleased } from "./errors";
import { HeldLists } from "./feed/held_lists";
import type { Article, Feed } from "./feed/item";
import { type Offer, newStories, offered } from "./feed/offer";
import { CHOSEN_SECTIONS } from "./feed/preference_reader";
import { Stories, Viewing, type Opening } from "./feed/stories";
import { WholePool } from "./feed/whole_pool";
import { Muting } from "./reading/muting";
import { type ClickedNews, type InterestCluster, clicksOf, interestCards } from "./reading/interest_profile";
import { type Clock, breath, momentOf } from "./protocol/moments";
import { Moving } from "./moving";
import { type DeviceStores, type Parts, TRAINING_PAUSED } from "./parts";
import { affordable } from "./privacy/mechanisms/code";
import { type PrivacySettings, privacySettings } from "./privacy/settings";
import { PICTURES_HIDDEN, PRIVACY_CHANGES, TAKEN_OVER } from "./store/preferences";
import type { NamedStance, ReactionKind, Stance, StanceKind } from "./store/opinions";
import { ROWS_A_STEP } from "./store/pool_codes";
import type { Outcome } from "./training/participant";
import { exploreSections, searchesView, type ExploreSection, type SearchesView } from "./view_models/explore";
import { type StatusView, shieldOf } from "./view_models/status";
import { LEFT_BEFORE_ERASE, leftSoFar } from "./view_models/traffic";
import type { NewsCard } from "./protocol/news";

/** Most articles indexed for search after a poll: in total, and per step. */
const [INDEXED_PER_POLL, INDEXED_AT_ONCE] = [1_000, 50];
const POOL_INDEXED_PER_POLL = 10_000;
/** Most articles that the mute rules are applied to after a poll: in total, and per step. */
const [JUDGED_PER_POLL, JUDGED_AT_ONCE] = [10_000, 200];

/** The reader's switches: the defaults with the changes made on this device. */
export function chosenSettings(stores: DeviceStores): PrivacySettings {
  return privacySettings.make({ ...(stores.preferences.get(PRIVACY_CHANGES) as object | null) });
}

/** Overwrites deleted data in the stores' write-ahead logs. */
function leaveNothingInLogs({ database, searchDatabase }: DeviceStores): void {
  database.fold();
  searchDatabase.fold();
}

/** Pages and stories. */
class Reading {
  private readonly stories: Stories;

  constructor(
    private readonly parts: Parts,
    private readonly viewing: Viewing,
    fetchReturned: () => Promise<void>,
    private readonly clock: Clock,
  ) {
    this.stories = new Stories(parts, viewing, fetchReturned, clock);
  }

  /**
   * Returns the current page or a new one. Sends no request, unless this device has no list yet. Never throws because
   * the backend is unreachable or refuses.
   */
  async feed(refresh = false): Promise<Feed> {
    const { serving, syncing } = this.parts;
    try {
      if (!syncing.hasList()) await syncing.first();
      return await serving.feed({ refresh });
    } catch (trouble) {
      if (trouble instanceof DeviceError) return serving.offline(trouble);
      throw trouble;
    }
  }

  /** Returns the page with more stories added; null if it isn't kept. */
  more(feedId: string): Promise<Feed | null> {
    return this.parts.serving.more(feedId);
  }

  /** Path of a feed's page: the front page for the newest feed and for one that isn't kept. */
  pagePath(feedId: string | null): string {
    return feedId && this.parts.stores.feeds.beside(feedId).after !== null ? `/page/${feedId}` : "/";
  }

  /**
   * Returns what a new page would offer in place of this one. ofThisVisit: also counts changes that the reader made
   * since this worker started, and the number of new stories that the next page will show, if `prepareOffer` has
   * determined it.
   */
  offer(feed: Feed, { ofThisVisit = true } = {}): Offer {
    const { stores, serving } = this.parts;
    const release = serving.manifest()?.release ?? null;
    const listed = stores.defaultList.current()?.newsIds ?? [];
    const { fresh_hours } = serving.context.weights;
    const promised = (known: ReadonlySet<string>) => (ofThisVisit || !known.size ? serving.promised(feed.feed_id, known) : null);
    return offered(feed, stores, listed, release, fresh_hours, ofThisVisit && serving.changedSince(), promised);
  }

  /** Drafts the next page if new stories arrived since this one, the newest, was made; sends nothing. */
  async prepareOffer(feed: Feed): Promise<void> {
    const { stores, serving } = this.parts;
    if (!feed.feed_id || stores.feeds.beside(feed.feed_id).after !== null) return;
    const listed = stores.defaultList.current()?.newsIds ?? [];
    await serving.draft(feed.feed_id, newStories(feed, stores, listed, serving.context.weights.fresh_hours));
  }

  /** Records that these articles were seen on the page. */
  view(feedId: string, newsIds: readonly string[]): void {
    this.viewing.report(feedId, newsIds);
  }

  /** Records the click, then returns the story as stored on this device; see `Stories.open`. */
  open(newsId: string, feed: string | null, how: Opening = {}): Promise<Article> {
    return this.stories.open(newsId, feed, how);
  }

  /** The articles of the default list by section; empty before the first sync. */
  explore(): ExploreSection[] {
    const { stores, serving } = this.parts;
    const { defaultList, weights } = serving.context;
    const encoder = stores.defaultList.current()?.encoder;
    if (encoder === undefined) return [];
    return exploreSections(defaultList.candidates(encoder, 0), stores.stances.all(), stores.muteRules.hidden(), this.clock(), weights.half_life_hours);
  }

  /** The articles here that are popular now, most popular first; empty before the first release. */
  popular(): Promise<NewsCard[]> {
    const { serving } = this.parts;
    return onceReleased(async () => {
      const { known, preferences } = await serving.knownNews();
      return serving.context.popular.now(known, preferences);
    });
  }
}

/** What the reader has read, saved, reacted to and searched for. */
class ReaderLibrary {
  constructor(
    private readonly parts: Parts,
    private readonly wholePool: WholePool,
    private readonly clock: Clock,
  ) {}

  /** Ids of all articles that were opened or marked as read. */
  readNews(): ReadonlySet<string> {
    return this.parts.stores.readMarks.ids();
  }

  /**
   * Marks stories as read or unread; the ranking learns nothing from it. Returns the number of the mark, for
   * `undoMark`; 0 if nothing was marked as read.
   */
  mark(newsIds: readonly string[], { read = true } = {}): number {
    const { readMarks } = this.parts.stores;
    if (read) return readMarks.mark(newsIds, this.clock());
    readMarks.unmark(newsIds);
    return 0;
  }

  /** Number of stories that still count as read because of this mark. */
  marked(batch: number): number {
    return this.parts.stores.readMarks.size(batch);
  }

  /** Marks the stories of a mark as unread again; returns their number. */
  undoMark(batch: number): number {
    return this.parts.stores.readMarks.undo(batch);
  }

  /** Likes, dislikes or saves a story; repeating the reaction undoes it. Throws NewsNotHere. */
  react(newsId: string, kind: ReactionKind): void {
    const { stores, serving } = this.parts;
    stores.news.card(newsId);
    stores.database.transaction(() => {
      if (!stores.feedback.retract(newsId, kind)) stores.feedback.react(newsId, kind, this.clock());
    });
    leaveNothingInLogs(stores);
    serving.changed();
  }

  reactions(): ReadonlyMap<string, ReactionKind[]> {
    return this.parts.stores.feedback.kinds();
  }

  /** Saved articles, last saved first, without those that are no longer on the device. */
  saved(): NewsCard[] {
    return this.reactedTo("save");
  }

  /** Articles of which the reader wants less, most recent reaction first. */
  unwanted(): NewsCard[] {
    return this.reactedTo("less");
  }

  private reactedTo(kind: ReactionKind): NewsCard[] {
    const { feedback, news } = this.parts.stores;
    return news.cards(feedback.reactions(kind).map((one) => one.newsId));
  }

  /** Permanently deletes one click; false if there was none. A report already made from it is used until it is due. */
  deleteClick(clickId: number): boolean {
    const { stores, serving, trainer } = this.parts;
    const newsId = stores.clicks.newsOf(clickId);
    const deleted = stores.database.transaction(() => {
      if (newsId !== null) {
        stores.searches.forgetOpened([newsId]);
        serving.forgetClicks([newsId]);
      }
      trainer.forgetUnsent();
      return stores.clicks.delete(clickId);
    });
    leaveNothingInLogs(stores);
    serving.changed();
    return deleted;
  }

  /** Saves a search. Throws SearchRefused. */
  saveSearch(words: string): void {
    this.parts.stores.searches.save(words, this.clock());
    this.parts.serving.changed();
  }

  /**
   * Permanently deletes a saved search; false if there was none. A report already made with it is used until it is due.
   */
  deleteSearch(searchId: number): boolean {
    const { stores, serving, trainer } = this.parts;
    const deleted = stores.searches.delete(searchId);
    trainer.forgetUnsent();
    leaveNothingInLogs(stores);
    serving.changed();
    return deleted;
  }

  /** Returns saved searches and followed topics, how many stories match each, and what they are used for. */
  searches(): Promise<SearchesView> {
    return searchesView(this.parts.stores, this.parts.policy.settings, (words) => this.wholePool.hits(words));
  }
}

/** The reader's interests, and the names that the reader follows, blocks or picks. */
class ReaderInterests {
  constructor(
    private readonly parts: Parts,
    private readonly clock: Clock,
  ) {}

  /** The reader's interests, heaviest first; empty before the first release. */
  clusters(): Promise<InterestCluster[]> {
    const { serving, names } = this.parts;
    return onceReleased(async () => interestCards(await serving.profile(), names.kept()));
  }

  /**
   * Names the interest that contains click `key`; blank restores its label. Throws RangeError if the name is too long.
   */
  async rename(key: number, name: string): Promise<void> {
    const { serving, names } = this.parts;
    names.name((await this.interest(key)).map(({ card }) => card.id), name);
    serving.changed();
  }

  /** Leaves an interest out of feed and reports, or includes it again. The next report is drawn again. */
  async mute(key: number, muted: boolean): Promise<void> {
    const { stores, serving, names } = this.parts;
    const clicks = await this.interest(key);
    stores.database.transaction(() => {
      names.mute(clicks.map(({ card }) => card.id), muted);
      stores.reportMemo.clear();
    });
    serving.changed();
  }

  /** Permanently deletes the clicks of an interest. The next report is drawn again. */
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
    leaveNothingInLogs(stores);
  }

  stance(kind: StanceKind, name: string, stance: Stance | null): void {
    const { stores, serving } = this.parts;
    stores.stances.set(kind, name, stance, this.clock());
    leaveNothingInLogs(stores);
    serving.changed();
  }

  stances(): NamedStance[] {
    return this.parts.stores.stances.all();
  }

  /** Sets the sections that lead the first pages, until the reader's clicks take over. */
  chooseSections(sections: readonly string[]): void {
    this.parts.stores.preferences.set(CHOSEN_SECTIONS, sections);
    this.parts.serving.changed();
  }

  private async interest(key: number): Promise<readonly ClickedNews[]> {
    return clicksOf(await this.parts.serving.profile(), key);
  }
}

/** The switches that decide what may leave, and the reader's data as a whole. */
class ReaderPrivacy {
  constructor(
    private readonly parts: Parts,
    private readonly viewing: Viewing,
    private readonly lists: HeldLists,
  ) {}

  /** The reader's current switches. */
  get settings(): PrivacySettings {
    return chosenSettings(this.parts.stores);
  }

  /** Changes and stores switches. Throws WireError naming the field and its limit. */
  change(changes: Partial<PrivacySettings>): void {
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

  /** Deletes all data about the reader except the switches for privacy and pictures, and the spent budget. */
  async erase(): Promise<void> {
    const { stores, serving, ledger, uplink } = this.parts;
    const switches = stores.preferences.get(PRIVACY_CHANGES);
    const left = leftSoFar(stores, ledger);
    const firstUse = stores.firstUse.question;
    const [movedAt, hidden] = [stores.preferences.get(TAKEN_OVER), stores.preferences.get(PICTURES_HIDDEN)];
    await serving.erasing(() => {
      stores.searchDatabase.erase();
      stores.database.erase(() => {
        stores.preferences.set(PRIVACY_CHANGES, switches);
        stores.preferences.set(TAKEN_OVER, movedAt);
        stores.preferences.set(PICTURES_HIDDEN, hidden);
        if (firstUse !== null) stores.firstUse.ask(firstUse);
        stores.preferences.set(LEFT_BEFORE_ERASE, { ...left, at: momentOf(left.at) });
      });
      this.viewing.forget();
      this.lists.forget();
      uplink.forget();
    });
  }

  /** Records the reader's answer that they had no data here before. */
  beginFirstUse(): void {
    this.parts.stores.firstUse.settle();
    this.parts.serving.changed();
  }
}

/** One reader's device. Throws DeviceErrors; each message is one plain sentence. */
export class Device {
  readonly lists: HeldLists;
  readonly wholePool: WholePool;
  readonly muting: Muting;
  readonly reading: Reading;
  readonly library: ReaderLibrary;
  readonly interests: ReaderInterests;
  readonly privacy: ReaderPrivacy;
  readonly moving: Moving;
  private readonly alerts: LoopAlerts;

  constructor(
    readonly parts: Parts,
    clock: Clock,
  ) {
    const { stores, serving } = parts;
    this.alerts = new LoopAlerts(clock);
    this.lists = new HeldLists(stores.preferences, stores.news, stores.pool, serving.context.weights.page_hours, clock);
    this.muting = new Muting(stores.muteRules, clock);
    this.wholePool = new WholePool(stores, serving, this.lists, clock);
    const viewing = new Viewing(stores.impressions, (feedId) => serving.page(feedId), clock);
    this.reading = new Reading(parts, viewing, () => this.fetchReturned(), clock);
    this.library = new ReaderLibrary(parts, this.wholePool, clock);
    this.interests = new ReaderInterests(parts, clock);
    this.privacy = new ReaderPrivacy(parts, viewing, this.lists);
    this.moving = new Moving(parts, (changes) => this.privacy.change(changes));
  }

  /** Fetches the release and default list for a first feed if there is none. The pages show errors. */
  async syncForFeed(): Promise<void> {
    await this.alerts.of("sync", () => this.parts.syncing.first());
  }

  /** The first poll for changes since the start, unless a page has already made it. */
  async firstSync(): Promise<void> {
    await this.alerts.of("sync", () => this.parts.syncing.firstWhole());
  }

  /**
   * Makes one request for candidates and one for the answer's texts. Returns how many seconds the backend asks to wait,
   * or null.
   */
  async recallStep(): Promise<number | null> {
    try {
      return await this.parts.recallStep.step();
    } catch (none) {
      if (!(none instanceof DeviceError)) throw none;
      return null; // no usable release, which the alerts of the sync loop report
    } finally {
      await this.fetchReturned();
    }
  }

  /** Polls the backend for changes once. The pages show errors. */
  async sync(): Promise<void> {
    await this.alerts.of("sync", async () => void (await this.parts.syncing.step()));
  }

  /** Fetches the publishers' pictures after a successful poll. */
  async takePictures(): Promise<void> {
    if (!this.alerts.error("sync")) await this.parts.syncing.takePictures();
  }

  /** Fetches the texts of the waiting lists. */
  async fetchTexts(): Promise<void> {
    await this.alerts.of("texts", () => this.parts.bodies.fetchAll());
  }

  /** Fetches the texts of an answer or of a block of the pool. Only `Syncing` fetches those of the default list. */
  private async fetchReturned(): Promise<void> {
    await this.alerts.of("texts", () => this.parts.bodies.fetchReturned());
  }

  /**
   * Indexes new articles for search a few at a time, serving other requests in between; a search indexes the rest
   * itself.
   */
  async catchUpIndex(): Promise<void> {
    const { searchIndex, poolIndex } = this.parts.stores;
    for (let left = INDEXED_PER_POLL; left > 0 && searchIndex.catchUp(INDEXED_AT_ONCE); left -= INDEXED_AT_ONCE) await breath();
    for (let left = POOL_INDEXED_PER_POLL; left > 0 && poolIndex.step(); left -= ROWS_A_STEP) await breath();
    for (let left = JUDGED_PER_POLL; left > 0 && this.muting.catchUp(JUDGED_AT_ONCE); left -= JUDGED_AT_ONCE) await breath();
  }

  /**
   * Continues a running secure sum and tries to join a round. Returns null if both fail; the pages then explain why.
   */
  async trainStep(): Promise<Outcome | null> {
    let outcome: Outcome | null = null;
    await this.alerts.of("training", async () => {
      const { syncing, trainer } = this.parts;
      outcome = await trainer.goOn(); // it has deadlines and needs no model
      if (outcome && !trainer.looksBeside(outcome)) return;
      await syncing.forRounds();
      outcome = await trainer.takePart(outcome);
    });
    return outcome;
  }

  /** Pauses training, so that nothing is sent, or resumes it. */
  pauseTraining(paused: boolean): void {
    this.parts.stores.preferences.set(TRAINING_PAUSED, paused);
  }

  get trainingPaused(): boolean {
    return Boolean(this.parts.stores.preferences.get(TRAINING_PAUSED));
  }

  /** The numbers in every page's header. */
  status(): StatusView {
    const { stores, serving, policy, ledger, syncing } = this.parts;
    const last = serving.last();
    const settings = this.privacy.settings;
    const silent = syncing.online === false || serving.online() === false;
    return {
      profile: "reader",
      mode: settings.mode,
      ...shieldOf(policy, ledger, this.priceOfReport(), this.refused()),
      feed_made_at: last?.made_at ?? null,
      online: silent ? false : serving.online() && syncing.online,
      clicks: stores.clicks.count(),
      chosen_sections: stores.preferences.get(CHOSEN_SECTIONS) as string[] | null,
      training: settings.training,
      own_feeds: false,
      as_published: null,
      alerts: this.alerts.now(),
    };
  }

  /** Epsilon of a new report; null if none can be made, undefined before the first release. */
  private priceOfReport(): number | null | undefined {
    const manifest = this.parts.serving.manifest();
    return manifest ? (affordable(manifest.recall, this.privacy.settings.epsilon_per_report)?.epsilon ?? null) : undefined;
  }

  private refused(): "forked" | "refused" | null {
    const error = this.alerts.error("sync");
    return error instanceof ReleaseForked ? "forked" : error instanceof ReleaseRefused ? "refused" : null;
  }
}
