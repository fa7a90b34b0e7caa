// The whole serve flow, from the reader's clicks to the page, in one function.
import { BackendRefused, BackendUnreachable } from "../errors";
import type { FeedSettings, PerformanceSettings } from "../feed_settings";
import { type Profile, namedProfile } from "../interests/profile";
import { type Clock, DAY_MS, momentOf } from "../moments";
import { systemNoise } from "../privacy/noise_sources";
import type { Fit } from "../ranking/ranker";
import { usable } from "../ranking/session";
import type { ImpressionStore } from "../store/impressions";
import type { PrivateParameters } from "../store/parameters";
import { type Vectors, finite } from "../vectors";
import { Stopwatch } from "../wire/server_timing";
import { toBase64 } from "../wire/values";
import { type Candidates, nothing } from "./candidates";
import type { Chance } from "./chance";
import type { DefaultList } from "./default_list";
import { allowed } from "./exclusions";
import { featureContextAt } from "./feature_context";
import type { Feed, FeedItem, Reason } from "./item";
import type { KeptFeeds } from "./kept";
import { Kinship, floorOf } from "./kinship";
import type { ServingModels } from "./model_cache";
import { placed } from "./page_order";
import type { Popular } from "./popular";
import type { PreferenceReader } from "./preference_reader";
import type { UserPreferences } from "./preferences";
import { reasons } from "./reasons";
import { type Found, NOTICES, type Recall } from "./recall";
import { type ScoreTerms, adjusted, ageHours } from "./scores";

const ID_BYTES = 9;

/** What a feed is built with. */
export interface FeedContext {
  readonly userPreferences: PreferenceReader;
  readonly impressions: ImpressionStore;
  readonly defaultList: DefaultList;
  readonly recall: Recall;
  readonly own: PrivateParameters;
  /** The vector [1, D] of what is searched for and followed; no row where nothing is. */
  readonly searched: (encoder: string) => Vectors;
  readonly popular: Popular;
  readonly kept: KeptFeeds;
  readonly performance: PerformanceSettings;
  readonly weights: FeedSettings;
  readonly chance: Chance;
  readonly clock: Clock;
}

/**
 * Build, save and return a feed: nothing is shown that was not recorded as served.
 *
 * clicks -> interest clusters -> report (the one in use, or a fresh one) -> recall -> filters -> local ranking -> variety
 * -> slots. When the backend does not answer or has too much to do, the last feed comes back, mode 'offline'.
 */
export async function buildFeed(context: FeedContext, models: ServingModels): Promise<Feed> {
  const [now, watch] = [context.clock(), new Stopwatch()];
  // what the reader did; all of it stays in these variables
  const [reader, defaultList] = watch.stage("store", () => [
    withContexts(models, readerOf(context, models)),
    context.defaultList.candidates(models.encoder, models.dimensions),
  ]);

  let found: Found;
  try {
    // the report and its request: the only lines that may cause anything to be sent
    found = await context.recall.find(models, reader.preferences.clickVectors, watch);
  } catch (trouble) {
    if (trouble instanceof BackendUnreachable) return context.kept.offline(trouble);
    if (!(trouble instanceof BackendRefused)) throw trouble;
    if (context.kept.last()) return context.kept.offline(trouble);
    const notice = NOTICES.say("default_list", { trouble: trouble.message });
    found = { candidates: nothing(models.encoder, models.dimensions), mode: "front", notice, serverMs: new Map() };
  }
  try {
    return await ranked(context, models, found, defaultList, reader, now, watch);
  } finally {
    // whatever became of the feed: the texts of what was returned are asked for by everybody alike
    context.recall.fetchTexts();
  }
}

/** What a reader told. */
export interface Reader {
  readonly reading: ReturnType<PreferenceReader["reading"]>;
  readonly preferences: UserPreferences;
}

/** contexts of the clicks, which are being computed. */
export interface ReaderWithContexts extends Reader {
  readonly contexts: Promise<Vectors>;
}

/** What a reader told, as the store has it now. */
export function readerOf({ userPreferences }: Pick<FeedContext, "userPreferences">, models: ServingModels): Reader {
  const reading = userPreferences.reading(models.encoder);
  return { reading, preferences: userPreferences.userPreferences(reading, models.encoder, models.dimensions) };
}

/**
 * The same, with the contexts begun: the runtime's thread computes them while this one finds and scores candidates. Only
 * the reasons of a page name interests, so that nothing else waits for them.
 */
export function withContexts(models: ServingModels, reader: Reader): ReaderWithContexts {
  return { ...reader, contexts: models.recall.contexts(reader.preferences.clickVectors) };
}

/** The interests of clicks, and the reader's preferences with their names (Uni-FedRec, "Interest Modeling"). */
export async function clustered(
  models: ServingModels,
  { reading, preferences, contexts }: ReaderWithContexts,
): Promise<{ profile: Profile; preferences: UserPreferences }> {
  const labels = models.recall.clusters(await contexts);
  const profile = namedProfile(reading.active, reading.muted, labels, reading.kept);
  return { profile, preferences: { ...preferences, clickInterests: profile.clickNames } };
}

/** Rank what was found beside the default list, choose a page and keep it; sends nothing. */
async function ranked(
  context: FeedContext,
  models: ServingModels,
  found: Found,
  defaultList: Candidates,
  reader: ReaderWithContexts,
  now: number,
  watch: Stopwatch,
): Promise<Feed> {
  const [candidates, leftOut] = watch.stage("rank", () => {
    const offered = context.recall.joined(found.candidates, defaultList);
    const left = offered.where(allowed(offered, reader.preferences));
    return [left, offered.length - left.length] as const;
  });
  const size = context.performance.feed_size;
  const page = await rankedPage(context, models, candidates, defaultList, reader, now, watch, size);
  const { fresh_hours } = context.weights;
  const feed: Feed = {
    feed_id: toBase64(systemNoise.uniformBits(ID_BYTES)),
    made_at: momentOf(now),
    release: models.release,
    items: page.items,
    mode: found.mode,
    notice: found.notice ?? ofThePage(page, leftOut),
    device_ms: Object.fromEntries(watch.stagesMs),
    server_ms: Object.fromEntries(found.serverMs),
    recalled: found.candidates.length,
    fresh: ageHours(page.shown, now).filter((age) => age <= fresh_hours).length,
    fresh_hours,
    complete: false,
    left_out: leftOut,
  };
  return context.kept.save(feed, page.shown, page.popularity, watch);
}

/** What there is to say of it; where all was left out the page says so itself. */
function ofThePage(page: RankedPage, leftOut: number): string | null {
  if (page.items.length) return page.allSeen ? NOTICES.say("all_seen") : null;
  return leftOut ? null : NOTICES.say("empty");
}

/** Items in their places; shown are their cards and vectors in that order, popularity [n] what was known of them. */
export interface RankedPage {
  readonly items: readonly FeedItem[];
  readonly shown: Candidates;
  readonly popularity: Float64Array;
  /** Whether each of them was looked at before. */
  readonly allSeen: boolean;
}

/** The best page of at most `size` of these candidates, all of which may be shown; sends nothing, keeps nothing. */
export async function rankedPage(
  context: FeedContext,
  models: ServingModels,
  candidates: Candidates,
  defaultList: Candidates,
  reader: ReaderWithContexts,
  now: number,
  watch: Stopwatch,
  size: number,
): Promise<RankedPage> {
  const { weights, chance } = context;
  const [timesSeen, popular] = watch.stage("rank", () => [
    timesSeenOf(context, candidates, now),
    context.popular.of(candidates),
  ]);
  models.ranker.takeOwn((model) => context.own.get(model, models.encoder));
  models.ranker.takeViews(() => context.searched(models.encoder));
  const score = await watch.during("rank", () =>
    scored(models, candidates, reader.preferences, now, weights, popular, timesSeen),
  );
  const { preferences } = await watch.during("cluster", () => clustered(models, reader));
  return watch.stage("build", () => {
    const kinship = new Kinship(candidates, floorOf(models.manifest, defaultList));
    const steady = score.total.map((total, row) => total - (score.terms.reactions[row] as number));
    const seen = Array.from(timesSeen, (times) => times > 0);
    const page = placed(candidates, score.total, preferences, now, weights, { size, chance, kinship, seen, steady });
    const whys = reasons(candidates, page, preferences, score, kinship);
    const rows = page.map((place) => place.row);
    const shown = candidates.only(rows);
    const items = page.map(({ row, slot }, position) => {
      const reason = whys[position] as Reason;
      return { card: shown.cards[position] as FeedItem["card"], position, slot, reason, score: score.total[row] as number };
    });
    const allSeen = rows.length > 0 && rows.every((row) => seen[row]);
    return { items, shown, popularity: Float64Array.from(rows, (row) => popular[row] as number), allSeen };
  });
}

/**
 * The candidates' scores, term by term, under one reader's ranker. Where the release's ranker gives none that can be used,
 * every candidate fits alike.
 */
async function scored(
  { ranker }: ServingModels,
  candidates: Candidates,
  preferences: UserPreferences,
  now: number,
  settings: FeedSettings,
  popularity: Float64Array,
  timesSeen: Float64Array,
): Promise<ScoreTerms> {
  const beside = featureContextAt(candidates, preferences.clicks, now, settings.half_life_hours, popularity);
  const [clicks, { vectors }] = [preferences.clickVectors, candidates];
  const none = new Float32Array(candidates.length);
  let weighed: Fit["contributions"] = new Map();
  const scores = async (): Promise<Float32Array> => {
    const found = await ranker.fit(clicks, vectors, beside);
    if ([...found.contributions.values()].every(finite)) weighed = found.contributions;
    return found.scores;
  };
  const fit = await usable(scores, none, "scores of candidates");
  return adjusted(fit, candidates, preferences, now, settings, weighed, popularity, timesSeen);
}

/** [n]: in how many feeds each was looked at, of what was looked at lately. */
function timesSeenOf(context: FeedContext, candidates: Candidates, now: number): Float64Array {
  const since = now - context.performance.seen_days * DAY_MS;
  const found = context.impressions.timesSeen(candidates.ids, since);
  return Float64Array.from(candidates.ids, (id) => found.get(id) ?? 0);
}
