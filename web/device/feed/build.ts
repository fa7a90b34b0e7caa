// Builds a feed: the complete path from the reader's clicks to the page.
import type { FeedSettings, PerformanceSettings } from "../feed_settings";
import { type Profile, namedProfile } from "../reading/interest_profile";
import { type Clock, DAY_MS, momentOf } from "../protocol/moments";
import { systemNoise } from "../privacy/exact_samplers";
import type { Fit } from "../ranking/ranker";
import { usable } from "../ranking/session";
import type { ImpressionStore } from "../store/impressions";
import type { PrivateParameters } from "../store/preferences";
import { type Vectors, finite } from "../vectors";
import { Stopwatch } from "../protocol/server_timing";
import { toBase64 } from "../protocol/forms";
import type { Candidates } from "./candidates";
import { type Chance, PythonRandom } from "./chance";
import type { DefaultList, Popular } from "./lists";
import { allowed } from "./exclusions";
import { featureContextAt, type PreferenceReader, type UserPreferences } from "./preference_reader";
import type { Feed, FeedItem, PageSlot, Reason } from "./item";
import type { RecentFeeds } from "./recent_feeds";
import { SimilarityRule, floorOf } from "./similarity";
import type { ServingModels } from "./model_cache";
import { placed } from "./page_order";
import type { RareFeeds } from "./rare";
import { reasons } from "./reasons";
import { type Found, NOTICES, type Recall } from "./candidate_search";
import { type ScoreTerms, adjusted, ageHours } from "./scores";

const ID_BYTES = 9;

/** What building a feed needs. */
export interface FeedContext {
  readonly userPreferences: PreferenceReader;
  readonly impressions: ImpressionStore;
  readonly defaultList: DefaultList;
  readonly recall: Recall;
  readonly own: PrivateParameters;
  /** The mean vector [1, D] of searches and followed names; no rows if there are none. */
  readonly searched: (encoder: string) => Vectors;
  readonly popular: Popular;
  readonly rare: RareFeeds;
  readonly kept: RecentFeeds;
  readonly performance: PerformanceSettings;
  readonly weights: FeedSettings;
  readonly chance: Chance;
  readonly clock: Clock;
}

/** The new stories that a draft of the next page shows, as the page before offers them. */
export interface Promised {
  /** Ids of all stories that were new then. */
  readonly known: ReadonlySet<string>;
  /** Those that the next page will show, with their slots. */
  readonly placed: ReadonlyMap<string, PageSlot>;
}

/** Returns which of the stories `known` the next page will show. Its random draws don't affect those of the pages. */
export async function promisedOf(context: FeedContext, models: ServingModels, known: ReadonlySet<string>): Promise<Promised> {
  const aside = { ...context, chance: new PythonRandom(0n) };
  const { page } = await drafted(aside, models, null, context.clock(), new Stopwatch());
  const shown = page.items.filter(({ card }) => known.has(card.id));
  return { known, placed: new Map(shown.map(({ card, slot }) => [card.id, slot])) };
}

/**
 * Builds, saves and returns a feed; nothing is shown that wasn't recorded as served.
 *
 * clicks -> interest clusters -> last answer to a report -> filters -> local ranking -> diversity -> slots. Sends no
 * request, so network traffic doesn't reveal when a page is made. promise: the page shows these new stories and no
 * others that were known when they were offered, except what the reader has opened or hidden since.
 */
export async function buildFeed(context: FeedContext, models: ServingModels, promise: Promised | null): Promise<Feed> {
  const [now, watch] = [context.clock(), new Stopwatch()];
  const { page, found, leftOut } = await drafted(context, models, promise, now, watch);
  const { fresh_hours } = context.weights;
  const feed: Feed = {
    feed_id: toBase64(systemNoise.uniformBits(ID_BYTES)),
    made_at: momentOf(now),
    release: models.release,
    items: page.items,
    mode: found.mode,
    notice: found.notice ?? ofThePage(page, leftOut),
    device_ms: Object.fromEntries(watch.stagesMs),
    server_ms: {},
    recalled: found.candidates.length,
    fresh: ageHours(page.shown, now).filter((age) => age <= fresh_hours).length,
    fresh_hours,
    complete: false,
    left_out: leftOut,
  };
  return context.kept.save(feed, page.shown, page.popularity, watch);
}

/** A page that isn't saved, what it was chosen from, and how many stories filters left out. */
interface Drafted {
  readonly page: RankedPage;
  readonly found: Found;
  readonly leftOut: number;
}

/** The next page from all candidates and the default list; sends and stores nothing. */
async function drafted(
  context: FeedContext,
  models: ServingModels,
  promise: Promised | null,
  now: number,
  watch: Stopwatch,
): Promise<Drafted> {
  // the reader's data is used only in these variables
  const [reader, defaultList] = watch.stage("store", () => [
    withContexts(models, readerOf(context, models)),
    context.defaultList.candidates(models.encoder, models.dimensions),
  ]);

  const found = context.recall.find(models, reader.preferences.clickVectors, watch);
  const [candidates, leftOut] = watch.stage("rank", () => {
    const offered = context.recall.joined(found.candidates, defaultList);
    const left = offered.where(allowed(offered, reader.preferences));
    const may = promise && left.where(left.ids.map((id) => !promise.known.has(id) || promise.placed.has(id)));
    return [may ?? left, offered.length - left.length] as const;
  });
  const size = context.performance.feed_size;
  const page = await rankedPage(context, models, candidates, defaultList, reader, now, watch, size, promise);
  return { page, found, leftOut };
}

/** The reader's preferences and recent clicks. */
export interface Reader {
  readonly reading: ReturnType<PreferenceReader["reading"]>;
  readonly preferences: UserPreferences;
}

/** contexts of the clicks, still being computed. */
export interface ReaderWithContexts extends Reader {
  readonly contexts: Promise<Vectors>;
}

/** Reads the reader's preferences from the store. */
export function readerOf({ userPreferences }: Pick<FeedContext, "userPreferences">, models: ServingModels): Reader {
  const reading = userPreferences.reading(models.encoder);
  return { reading, preferences: userPreferences.userPreferences(reading, models.encoder, models.dimensions) };
}

/**
 * Starts computing the click contexts on the runtime's thread, while this one finds and scores candidates. Only a
 * page's reasons name interests, so nothing else waits for them.
 */
export function withContexts(models: ServingModels, reader: Reader): ReaderWithContexts {
  return { ...reader, contexts: models.recall.contexts(reader.preferences.clickVectors) };
}

/** The clusters of the clicks, and the preferences with named interests (Uni-FedRec, "Interest Modeling"). */
export async function clustered(
  models: ServingModels,
  { reading, preferences, contexts }: ReaderWithContexts,
): Promise<{ profile: Profile; preferences: UserPreferences }> {
  const labels = models.recall.clusters(await contexts);
  const profile = namedProfile(reading.active, reading.muted, labels, reading.kept);
  return { profile, preferences: { ...preferences, clickInterests: profile.clickNames } };
}

/** The page's notice; null if everything was left out, which the page says itself. */
function ofThePage(page: RankedPage, leftOut: number): string | null {
  if (page.items.length) return page.allSeen ? NOTICES.say("all_seen") : null;
  return leftOut ? null : NOTICES.say("empty");
}

/** Items in their slots. shown: their cards and vectors in that order; popularity [n]: the known popularity of each. */
export interface RankedPage {
  readonly items: readonly FeedItem[];
  readonly shown: Candidates;
  readonly popularity: Float64Array;
  /** Whether all of them were seen before. */
  readonly allSeen: boolean;
}

/** Returns the best page of at most `size` of these candidates, which must all be allowed. Sends and stores nothing. */
export async function rankedPage(
  context: FeedContext,
  models: ServingModels,
  candidates: Candidates,
  defaultList: Candidates,
  reader: ReaderWithContexts,
  now: number,
  watch: Stopwatch,
  size: number,
  promise: Promised | null = null,
): Promise<RankedPage> {
  const { weights, chance } = context;
  const [timesSeen, popular, rare] = watch.stage("rank", () => [
    timesSeenOf(context, candidates, now),
    context.popular.of(candidates),
    context.rare.of(candidates, now),
  ]);
  models.ranker.takeOwn((model) => context.own.get(model, models.encoder));
  models.ranker.takeViews(() => context.searched(models.encoder));
  const score = await watch.during("rank", () =>
    scored(models, candidates, reader.preferences, now, weights, popular, timesSeen, rare),
  );
  const { preferences } = await watch.during("cluster", () => clustered(models, reader));
  return watch.stage("build", () => {
    const similarity = new SimilarityRule(candidates, floorOf(models.manifest, defaultList));
    const steady = score.total.map((total, row) => total - (score.terms.reactions[row] as number));
    const seen = Array.from(timesSeen, (times) => times > 0);
    const promised = rowsPromised(candidates, promise);
    const page = placed(candidates, score.total, preferences, now, weights, { size, chance, similarity, seen, steady, promised });
    const recent = Array.from(ageHours(candidates, now), (age) => age <= weights.fresh_hours);
    const whys = reasons(candidates, page, preferences, score, similarity, recent);
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

function rowsPromised({ ids }: Candidates, promise: Promised | null): Map<number, PageSlot> {
  const found = ids.map((id, row) => [row, promise?.placed.get(id)] as const);
  return new Map(found.flatMap(([row, slot]) => (slot ? [[row, slot] as const] : [])));
}

/**
 * The candidates' score terms under one reader's ranker. If the release's ranker returns no usable scores, all
 * candidates score the same.
 */
async function scored(
  { ranker }: ServingModels,
  candidates: Candidates,
  preferences: UserPreferences,
  now: number,
  settings: FeedSettings,
  popularity: Float64Array,
  timesSeen: Float64Array,
  rare: Float64Array,
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
  return adjusted(fit, candidates, preferences, now, settings, weighed, popularity, timesSeen, rare);
}

/** [n]: in how many recent feeds each article was seen. */
function timesSeenOf(context: FeedContext, candidates: Candidates, now: number): Float64Array {
  const since = now - context.performance.seen_days * DAY_MS;
  const found = context.impressions.timesSeen(candidates.ids, since);
  return Float64Array.from(candidates.ids, (id) => found.get(id) ?? 0);
}
