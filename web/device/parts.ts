// Store, uplink, feed and sync of one device, put together; `device.ts` adds pages, rounds and what the browser gives.
import type { FeedSettings, PerformanceSettings } from "./feed_settings";
import { Bodies } from "./feed/bodies";
import { Broadcast } from "./feed/broadcast";
import type { Chance } from "./feed/chance";
import { DefaultList } from "./feed/default_list";
import { KeptFeeds } from "./feed/kept";
import { Popular } from "./feed/popular";
import { PreferenceReader } from "./feed/preference_reader";
import { Recall } from "./feed/recall";
import { ReportChoice } from "./feed/report_choice";
import { Serving } from "./feed/serving";
import { InterestNames } from "./interests/names";
import { SearchedInterests } from "./interests/searched";
import type { Clock, Pause } from "./moments";
import { Ledger } from "./privacy/ledger";
import { MODES, choiceOf, inForce, keepsPool } from "./privacy/modes";
import type { NoiseSource } from "./privacy/noise_sources";
import type { PrivacySettings } from "./privacy/settings";
import type { Graphs } from "./ranking/session";
import type { ListChoice } from "./recall_frontier";
import type { Blobs } from "./store/blobs";
import { ByteLog } from "./store/byte_log";
import { Clicks } from "./store/clicks";
import { CountLog } from "./store/count_log";
import type { Database } from "./store/database";
import { DefaultListStore, PulledShards } from "./store/default_list";
import { DrawnReports } from "./store/drawn_reports";
import { FeedStore } from "./store/feeds";
import { ImpressionStore } from "./store/impressions";
import { LedgerRepository } from "./store/ledger_entries";
import { MovedSearches } from "./store/moved_searches";
import { NewsStore } from "./store/news";
import { Feedback, Stances } from "./store/opinions";
import { PrivateParameters } from "./store/parameters";
import { Participations } from "./store/participations";
import { PictureStore } from "./store/pictures";
import { PoolStore } from "./store/pool_codes";
import { PoolIndex } from "./store/pool_index";
import { PopularityStore } from "./store/popularity";
import { Preferences } from "./store/preferences";
import type { LateDatabase } from "./store/late_database";
import { InstalledReleases } from "./store/releases";
import { ReportMemo } from "./store/report_memo";
import { SearchIndex } from "./store/search_index";
import { Searches } from "./store/searches";
import { TimingStore } from "./store/timings";
import { DefaultListSync, PopularitySync } from "./sync/lists";
import { PictureSync } from "./sync/pictures";
import { PoolSync } from "./sync/pool_codes";
import { ReleaseSync } from "./sync/release_sync";
import { EncoderTakeover, VectorSync } from "./sync/vectors";
import { rowsOf } from "./vectors";
import { Syncing } from "./syncing";
import { trainerOf } from "./training/composition";
import { Uplink } from "./uplink/backend_client";
import { HttpClient } from "./uplink/http";
import type { Transport } from "./uplink/transport";
import type { Primitives } from "./wire/primitives";
import type { Bytes } from "./wire/values";

/** The preference that holds a reader's pause of training. */
export const TRAINING_PAUSED = "training_paused";

/** What the browser gives, or a test in its place. */
export interface Surroundings {
  readonly stores: DeviceStores;
  readonly transport: Transport;
  readonly graphs: Graphs;
  readonly primitives: Primitives;
  readonly clock: Clock;
  readonly noise: NoiseSource;
  readonly chance: Chance;
  /** The backend as the log names it. */
  readonly backendUrl: string;
  /** The backend's key, where the reader names it. */
  readonly pinnedKey: Bytes | null;
  /** What no page needs waits so long; not at all by default. */
  readonly pause?: Pause;
}

/** The reader's own settings, asked anew each time. */
export interface Settings {
  readonly privacy: () => PrivacySettings;
  readonly performance: PerformanceSettings;
  readonly feed: FeedSettings;
}

/**
 * All that one device keeps, by the names of device_app/stores.py: the reading view's database, and beside it the store of
 * the other view, of what is saved, followed or blocked.
 */
export function storesOf(database: Database, searches: LateDatabase, blobs: Blobs) {
  const pool = new PoolStore(database);
  const preferences = new Preferences(database);
  const stances = new Stances(searches);
  stances.takeOver(database);
  const movedSearches = new MovedSearches(database, searches);
  movedSearches.finish();
  return {
    database,
    searchDatabase: searches,
    searches: new Searches(searches),
    clicks: new Clicks(database),
    impressions: new ImpressionStore(database),
    news: new NewsStore(database),
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
    pictures: new PictureStore(database, preferences),
    parameters: new PrivateParameters(database),
    counted: new CountLog(database),
    participations: new Participations(database),
  };
}
export type DeviceStores = ReturnType<typeof storesOf>;

/** A device's parts; nothing is asked of anybody until `syncing.step` or `serving.feed` is called. */
export function partsOf(around: Surroundings, settings: Settings) {
  const { stores, clock, graphs, noise, chance } = around;
  const { performance, feed: weights } = settings;
  const { database, clicks, news, releases, impressions, defaultList, pulledShards, pool } = stores;
  const choice = (): ListChoice | null => {
    const manifest = releases.current()?.manifest;
    return manifest ? choiceOf(settings.privacy(), manifest.news, manifest.recall) : null;
  };
  const ledger = new Ledger(stores.ledgerEntries, () => inForce(settings.privacy(), choice()), clock);
  const client = new HttpClient(around.backendUrl, stores.byteLog, clock, around.transport, performance.request_timeout_sec);
  const uplink = new Uplink(client);
  const bodies = new Bodies(uplink, news, clock, around.pause);
  const names = new InterestNames(stores.preferences);
  const searched = new SearchedInterests(stores.searches, stores.stances, stores.searchIndex, news, clock);
  const reports = new ReportChoice(
    { ledger, noise, memo: stores.reportMemo, drawn: stores.drawnReports },
    {
      clicks,
      releases,
      clock,
      limit: performance.recall_limit,
      choice,
      generation: (encoder) => pulledShards.generation(encoder),
      searched: (encoder) => searched.vector(encoder),
    },
  );
  const userPreferences = new PreferenceReader(clicks, news, stores.feedback, stores.stances, names, stores.preferences);
  const serving = new Serving(
    {
      userPreferences,
      impressions,
      defaultList: new DefaultList(defaultList, news),
      recall: new Recall(uplink, bodies, reports, new Broadcast(pool, news), performance, clock),
      own: stores.parameters,
      searched: (encoder) => rowsOf(searched.vector(encoder)),
      popular: new Popular(stores.popularity),
      kept: new KeptFeeds(stores, clock),
      performance,
      weights,
      chance,
      clock,
    },
    releases,
    graphs,
  );
  /** As its mode chooses where nothing else is looked for, else as the reader set it. */
  const listLength = (): number => {
    const chosen = choice();
    const alone = chosen && MODES[chosen.mode as PrivacySettings["mode"]].finds === "nobody";
    return alone ? chosen.places : performance.default_list_limit;
  };
  const takeover = new EncoderTakeover(
    new ReleaseSync(client, releases, graphs, around.primitives, clock, around.pinnedKey),
    new VectorSync(client, news, pulledShards, releases, clock),
    () => serving.swap(),
  );
  const pulls = {
    takeover,
    defaultList: new DefaultListSync(client, defaultList, news, releases, clock, listLength),
    pool: new PoolSync(client, pool, releases, clock, (count) => keepsPool(ledger.settings, performance.pool_limit, count)),
    popularity: new PopularitySync(client, stores.popularity, releases, clock),
    pictures: new PictureSync(client, stores.pictures, clock),
  };
  const syncing = new Syncing(pulls, stores, bodies, serving, performance, clock, around.pause);
  const trainer = trainerOf({
    database,
    impressions,
    news,
    client,
    releases,
    ledger,
    graphs,
    primitives: around.primitives,
    noise,
    clock,
    halfLifeHours: weights.half_life_hours,
    idleSec: performance.training_idle_sec,
    paused: () => Boolean(stores.preferences.get(TRAINING_PAUSED)),
    muted: () => names.muted(),
    trustedKey: () => releases.trustedKey(around.pinnedKey)?.publicKey ?? null,
  });
  return { stores, ledger, client, uplink, bodies, names, searched, serving, syncing, trainer, choice };
}
export type Parts = ReturnType<typeof partsOf>;
