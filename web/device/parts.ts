// Assembles one device's store, uplink, feed and sync; `device.ts` adds pages, rounds and the browser's services.
import type { FeedSettings, PerformanceSettings } from "./feed_settings";
import { Bodies } from "./feed/bodies";
import { Broadcast } from "./feed/broadcast";
import { uniform, type Chance } from "./feed/chance";
import { DefaultList, Popular } from "./feed/lists";
import { RecentFeeds } from "./feed/recent_feeds";
import { PreferenceReader } from "./feed/preference_reader";
import { RareFeeds } from "./feed/rare";
import { Recall } from "./feed/candidate_search";
import { RecallAnswers } from "./feed/recall_answers";
import { RecallStep } from "./feed/recall_step";
import { Serving } from "./feed/serving";
import { InterestNames } from "./reading/interest_profile";
import { SearchedInterests } from "./reading/searched_interests";
import type { Clock, Pause } from "./protocol/moments";
import { Ledger } from "./privacy/accounting/ledger";
import type { NoiseSource } from "./privacy/exact_samplers";
import type { PrivacySettings } from "./privacy/settings";
import type { Graphs } from "./ranking/session";
import { ReportChoice } from "./reports/choice";
import { ReportPolicy } from "./reports/policy";
import { Articles } from "./store/articles";
import type { Blobs } from "./store/blobs";
import { ByteLog, TimingStore } from "./store/byte_log";
import { Clicks } from "./store/clicks";
import { CountLog, Participations } from "./store/participations";
import type { Database, LazyDatabase } from "./store/database";
import { DefaultListStore, PopularityStore, PulledShards } from "./store/default_list";
import { DrawnReports, ReportMemo } from "./store/report_memo";
import { FeedStore } from "./store/feeds";
import { FirstUse } from "./store/first_use";
import { ImpressionStore } from "./store/impressions";
import { LedgerRepository } from "./store/ledger_entries";
import { MovedSearches } from "./store/exported";
import { NewsStore } from "./store/news";
import { Feedback, Stances } from "./store/opinions";
import { Preferences, PrivateParameters } from "./store/preferences";
import { PictureStore } from "./store/picture_store";
import { PoolIndex, PoolStore } from "./store/pool_codes";
import { MuteRules } from "./store/mute_rules";
import { ReadMarks } from "./store/read_marks";
import { InstalledReleases } from "./store/releases";
import { Searches, SearchIndex } from "./store/searches";
import { DefaultListSync, PopularitySync } from "./sync/lists";
import { PictureSync } from "./sync/picture_sync";
import { PoolSync } from "./sync/pool_codes";
import { ReleaseSync } from "./sync/release_sync";
import { EncoderTakeover, VectorSync } from "./sync/encoder_takeover";
import { rowsOf } from "./vectors";
import { Syncing } from "./syncing";
import { trainerOf } from "./training/composition";
import { Uplink } from "./uplink/backend_client";
import { HttpClient } from "./uplink/http";
import type { Transport } from "./uplink/transport";
import type { Primitives } from "./protocol/primitives";
import type { Bytes } from "./protocol/forms";

/** Preference key of the reader's training pause. */
export const TRAINING_PAUSED = "training_paused";

/** The browser's services, or a test's replacements. */
export interface Surroundings {
  readonly stores: DeviceStores;
  readonly transport: Transport;
  readonly graphs: Graphs;
  readonly primitives: Primitives;
  readonly clock: Clock;
  readonly noise: NoiseSource;
  readonly chance: Chance;
  /** The backend, the origin of the app's page. */
  readonly backendUrl: string;
  /** The backend's key, if the reader has entered it. */
  readonly pinnedKey: Bytes | null;
  /** How long to pause before work that no page needs; by default not at all. */
  readonly pause?: Pause;
  /** Resolves when no page waits for an answer; a round's computation comes after. */
  readonly pagesFirst?: () => Promise<void>;
}

/** The reader's settings, read each time. */
export interface Settings {
  readonly privacy: () => PrivacySettings;
  readonly performance: PerformanceSettings;
  readonly feed: FeedSettings;
}

/**
 * A device's stores, named as in device_app/stores.py: the reading view's database, and beside it the other view's
 * store of what is saved, followed or blocked.
 */
export function storesOf(database: Database, searches: LazyDatabase, blobs: Blobs) {
  const pool = new PoolStore(database);
  const preferences = new Preferences(database);
  const stances = new Stances(searches);
  const movedSearches = new MovedSearches(database, searches);
  movedSearches.finish();
  return {
    database,
    searchDatabase: searches,
    searches: new Searches(searches),
    clicks: new Clicks(database),
    impressions: new ImpressionStore(database),
    news: new NewsStore(database),
    articles: new Articles(database),
    readMarks: new ReadMarks(database),
    muteRules: new MuteRules(database),
    feedback: new Feedback(database),
    stances,
    movedSearches,
    searchIndex: new SearchIndex(database),
    ledgerEntries: new LedgerRepository(database),
    reportMemo: new ReportMemo(database),
    drawnReports: new DrawnReports(database),
    pool,
    poolIndex: new PoolIndex(database, pool),
    popularity: new PopularityStore(database),
    byteLog: new ByteLog(database),
    timings: new TimingStore(database),
    releases: new InstalledReleases(database, blobs),
    defaultList: new DefaultListStore(database),
    pulledShards: new PulledShards(database),
    feeds: new FeedStore(database),
    preferences,
    firstUse: new FirstUse(preferences),
    pictures: new PictureStore(database, preferences),
    parameters: new PrivateParameters(database),
    counted: new CountLog(database),
    participations: new Participations(database),
  };
}
export type DeviceStores = ReturnType<typeof storesOf>;

/** A device's parts. Sends no request until a step of `syncing` or `recallStep` is called. */
export function partsOf(around: Surroundings, settings: Settings) {
  const { stores, clock, graphs, noise, chance } = around;
  const { performance, feed: weights } = settings;
  const { database, news, releases, impressions, defaultList, pulledShards, pool } = stores;
  const policy = new ReportPolicy(settings.privacy, () => releases.current()?.manifest ?? null);
  const ledger = new Ledger(stores.ledgerEntries, () => policy.ceilings(), clock, () => stores.firstUse.isOpen);
  const client = new HttpClient(around.backendUrl, stores.byteLog, clock, around.transport, performance.request_timeout_sec);
  const uplink = new Uplink(client);
  const bodies = new Bodies(uplink, news, clock, around.pause);
  const names = new InterestNames(stores.preferences);
  const searched = new SearchedInterests(stores.searches, stores.stances, stores.searchIndex, news, clock);
  const reports = new ReportChoice(
    policy,
    { settings: () => policy.settings, ledger, noise, memo: stores.reportMemo, drawn: stores.drawnReports },
    { stores, clock, limit: performance.recall_limit, searched: (encoder) => searched.vector(encoder) },
  );
  const answers = new RecallAnswers(stores.preferences, news);
  const serving = new Serving(
    {
      userPreferences: new PreferenceReader(stores, names),
      impressions,
      defaultList: new DefaultList(defaultList, news),
      recall: new Recall(answers, reports, new Broadcast(pool, news)),
      own: stores.parameters,
      searched: (encoder) => rowsOf(searched.vector(encoder)),
      popular: new Popular(stores.popularity),
      rare: new RareFeeds(stores.articles, pool, stores.preferences),
      kept: new RecentFeeds(stores, clock),
      performance,
      weights,
      chance,
      clock,
    },
    releases,
    graphs,
  );
  const takeover = new EncoderTakeover(
    new ReleaseSync(client, releases, graphs, around.primitives, clock, around.pinnedKey),
    new VectorSync(client, news, pulledShards, releases, clock),
    () => serving.swap(),
  );
  const pulls = {
    takeover,
    defaultList: new DefaultListSync(client, defaultList, news, releases, clock, () => policy.listLength(performance.default_list_limit)),
    pool: new PoolSync(client, pool, releases, clock, (count) => policy.keepsPool(performance.pool_limit, count)),
    popularity: new PopularitySync(client, stores.popularity, releases, clock),
    pictures: new PictureSync(client, stores.pictures, clock),
  };
  const syncing = new Syncing(pulls, stores, bodies, serving, performance, clock, around.pause);
  const recallStep = new RecallStep(serving, uplink, bodies, reports, answers, stores.timings, clock);
  const trainer = trainerOf({
    database,
    impressions,
    news,
    client,
    releases,
    ledger,
    privacy: policy.own,
    graphs,
    primitives: around.primitives,
    noise,
    clock,
    halfLifeHours: weights.half_life_hours,
    sendSec: performance.training_send_sec,
    chance: () => uniform(chance),
    pagesFirst: around.pagesFirst,
    paused: () => Boolean(stores.preferences.get(TRAINING_PAUSED)),
    muted: () => names.muted(),
    trustedKey: () => releases.trustedKey(around.pinnedKey)?.publicKey ?? null,
  });
  return { backendUrl: around.backendUrl, stores, policy, ledger, client, uplink, bodies, names, searched, serving, syncing, recallStep, trainer };
}
export type Parts = ReturnType<typeof partsOf>;
