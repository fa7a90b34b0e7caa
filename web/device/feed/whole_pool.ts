// All articles on this device, for topic pages, search and related stories: those of its lists, and the copy of the
// pool if kept. Sends no request, so nobody learns which topic was opened or what was searched for.
import { ErasedMeanwhile } from "../errors";
import { breath, type Clock } from "../protocol/moments";
import type { DeviceStores, Parts } from "../parts";
import { newsInPool } from "../protocol/broadcast";
import type { NewsCard } from "../protocol/news";
import type { Moment } from "../protocol/forms";
import { reportOf, type Naming } from "../store/news";
import { toUs } from "../store/database";
import type { WordHit, WordMatch } from "../store/searches";
import { bestFirst, noVectors, products, rowOf, taken, unit, vectors as rowsOf } from "../vectors";
import { PoolBroken } from "./broadcast";
import { Candidates } from "./candidates";
import { allowed, oneOfEach } from "./exclusions";
import { tally } from "./exploration";
import type { HeldLists } from "./held_lists";
import { SimilarityRule, floorOf, type SimilarStory } from "./similarity";
import { byKind, namesIn, type Named } from "./preference_reader";
import { termsOf } from "./related_words";
import type { Serving } from "./serving";

export const SEARCH_PAGE = 50;
/** Boost of an article published now, as a fraction of its word score, and the boost's half-life in days. */
const FRESH_GAIN = 0.5;
const FRESH_DAYS = 7;
const DAY_US = 86_400_000_000;
/** Number of similar stories shown, how many of the best results they may be similar to, and how many are examined. */
const [NEAR, NEAR_LEADS, NEAR_LOOKED_AT] = [10, 5, 60];
/** Weight of a related word; the word itself has 1. */
const RELATED_WEIGHT = 0.9;
/**
 * Parameters of a topic's weight. A topic counts like two words if all its stories have the word, and half as much if
 * 0.3 of them do. TOPIC_PRIOR stories without the word are added, so that a small topic proves little.
 */
const [TOPIC_WEIGHT, TOPIC_HALF, TOPIC_PRIOR] = [2, 0.3, 3];
/** Articles fetched per story shown, since an event may have several and the reader may hide some. */
const EACH_STORY = 4;
/** Minimum score of a story that lacks some of the words. 25 queries without an answer scored at most 0.27. */
const MEANING_FLOOR = 0.275;
/** Scores are rounded to 1 / ROUNDED, so that Python and browser devices find the same ties. */
const ROUNDED = 1e6;

/**
 * A page of results, best first. total: stories found. upto: number of results on this and previous pages. near:
 * stories without all of the words that have related ones or are similar to one of the best results, on the first page
 * only. made_at, new: as for a held list. hidden: how many more a
 * mute rule hides.
 */
export interface SearchResults {
  readonly cards: readonly NewsCard[];
  readonly total: number;
  readonly upto: number;
  readonly near: readonly NewsCard[];
  readonly made_at: Moment;
  readonly new: number;
  readonly hidden: number;
}

/** Lists articles by topic, section, publisher or words. */
export class WholePool {
  constructor(
    private readonly stores: DeviceStores,
    private readonly serving: Serving,
    private readonly lists: HeldLists,
    private readonly clock: Clock,
    private readonly pause: () => Promise<void> = breath,
  ) {}

  /** Number of articles in the copy of the pool; null if none is kept that the current release can read. */
  size(): number | null {
    const [release, kept] = [this.serving.manifest(), this.stores.pool.current()];
    return release && kept && this.broadcast.ready(release.encoder) ? newsInPool(kept.listing) : null;
  }

  /**
   * Whether a copy is kept that the current release can't read; it is being replaced, and no list made without it may
   * be kept.
   */
  isUnread(): boolean {
    return this.size() === null && this.stores.pool.current() !== null;
  }

  /**
   * Ids of all articles of a topic, section or publisher, newest first, without what the reader hides in other ways.
   * Of the reports of one event only the newest is listed; a publisher's list has all.
   */
  named(kind: Naming, name: string): string[] {
    const { articles, stances } = this.stores;
    return this.readable(articles.byName([{ kind, name }], stances.blocked().filter((one) => one.kind !== kind), { events: kind !== "publisher" }));
  }

  /** Ids of all articles that the reader follows by a name, newest first, without what is hidden. */
  following(): string[] {
    const { articles, stances } = this.stores;
    return this.readable(articles.byName(stances.followed(), stances.blocked(), { events: true }));
  }

  /** Number of articles that lists have brought to this device, with or without text. */
  texts(): number {
    return this.stores.news.count();
  }

  /**
   * All articles with every word of `text`, most relevant and recent first, each once. Days of the pool not yet indexed
   * are indexed first, serving other requests between steps.
   */
  async hits(text: string): Promise<WordHit[]> {
    const found = new Map<string, WordHit>();
    while (this.size() !== null && this.stores.poolIndex.step()) await this.pause();
    const pooled = this.size() === null ? [] : this.stores.poolIndex.hits(text);
    for (const hit of [...this.stores.searchIndex.hits(text), ...pooled])
      if (hit.relevance > (found.get(hit.id)?.relevance ?? -Infinity)) found.set(hit.id, hit);
    const now = toUs(this.clock());
    const scored = [...found.values()].map((hit) => [score(hit, now), hit] as const);
    scored.sort(
      ([mine, one], [theirs, other]) => theirs - mine || other.publishedUs - one.publishedUs || (one.id < other.id ? -1 : 1),
    );
    return scored.map(([, hit]) => hit);
  }

  /**
   * How well articles answer a search, by words, related words and topics: 0 to 1, best first. Only articles with one of
   * the words, or of their related words, are in it. Call it after `hits`. A topic's stories share what is said of any
   * of them: cluster-based smoothing (Liu and Croft, SIGIR 2004), with the publisher's topics as clusters.
   */
  byMeaning(text: string): Map<string, number> {
    const sizes = this.stores.articles.topicSizes();
    const stories = [...sizes.values()].reduce((sum, size) => sum + size, 0);
    const found = new Map<string, WordMatch>();
    const parts = termsOf(text).map((term) => {
      const own = this.matching(term.own);
      const related = this.matching(term.related);
      for (const id of own.keys()) related.delete(id);
      for (const match of [...own.values(), ...related.values()]) found.set(match.id, match);
      const weight = Math.log(1 + stories / (own.size + RELATED_WEIGHT * related.size + 0.5));
      const [have, haveRelated] = [own, related].map((each) => tally([...each.values()].map(({ topic }) => topic))) as [Map<string, number>, Map<string, number>];
      const topics = new Map<string, number>();
      for (const topic of [...have.keys(), ...haveRelated.keys()])
        if (topic) topics.set(topic, ((have.get(topic) ?? 0) + RELATED_WEIGHT * (haveRelated.get(topic) ?? 0)) / ((sizes.get(topic) ?? 0) + TOPIC_PRIOR));
      return { weight, own, related, topics };
    });
    const whole = (1 + TOPIC_WEIGHT) * parts.reduce((sum, { weight }) => sum + weight, 0);
    const scored = [...found.values()].map((match) => {
      let sum = 0;
      for (const { weight, own, related, topics } of parts) {
        const share = topics.get(match.topic) ?? 0;
        const word = own.has(match.id) ? 1 : related.has(match.id) ? RELATED_WEIGHT : 0;
        sum += weight * (word + (TOPIC_WEIGHT * share) / (share + TOPIC_HALF));
      }
      return [Math.floor((sum / whole) * ROUNDED + 0.5) / ROUNDED, match] as const;
    });
    scored.sort(
      ([mine, one], [theirs, other]) => theirs - mine || other.publishedUs - one.publishedUs || (one.id < other.id ? -1 : 1),
    );
    return new Map(scored.map(([sum, { id }]) => [id, sum]));
  }

  private matching(expression: string): Map<string, WordMatch> {
    if (!expression) return new Map();
    const pooled = this.size() === null ? [] : this.stores.poolIndex.matching(expression);
    return new Map([...this.stores.searchIndex.matching(expression), ...pooled].map((match) => [match.id, match]));
  }

  /**
   * Returns one page of the articles with every word of `text`, best answers first, from the held results; `show`
   * stores their cards. Throws ErasedMeanwhile if the reader erases everything during the search.
   */
  async search(text: string, page: number, { hidden: withHidden = false } = {}): Promise<SearchResults> {
    const { erasures } = this.serving;
    this.stores.searches.viewed(text, this.clock());
    const hits = (await this.hits(text)).map((hit) => hit.id);
    if (this.serving.erasures !== erasures) throw new ErasedMeanwhile(); // no await from here on
    const meaning = this.byMeaning(text);
    // results with equal scores keep the order of `hits`
    hits.sort((one, other) => (meaning.get(other) ?? 0) - (meaning.get(one) ?? 0));
    const held = this.lists.holdFound(text, hits, "found", !this.isUnread());
    const hidden = withHidden ? new Set<string>() : this.stores.muteRules.hiddenAmong(held.ids);
    const { made_at, new: more } = held;
    const ids = held.ids.filter((id) => !hidden.has(id));
    const upto = page * SEARCH_PAGE;
    const cards = this.cardsOf(ids.slice(upto - SEARCH_PAGE, upto));
    this.show(cards);
    let near = page === 1 ? this.close(meaning, cards.slice(0, NEAR_LEADS), new Set(held.ids)) : [];
    if (near.length) near = this.wanted(this.cardsOf(this.lists.holdFound(text, near.map((card) => card.id), "near").ids));
    this.show(near);
    return { cards, total: ids.length, upto: Math.min(upto, ids.length), near, made_at, new: more, hidden: hidden.size };
  }

  /** Stores cards that only the pool's copy has, with decoded vectors, so that they can be opened and reacted to. */
  show(cards: readonly NewsCard[]): void {
    const release = this.serving.manifest();
    const missing = new Set(this.stores.news.missing(cards.map((card) => card.id)));
    if (!release || !missing.size || this.isUnread()) return;
    const shown = cards.filter((card) => missing.has(card.id));
    const leads = this.stores.articles.leads(shown.map((card) => card.id));
    // a report has the vector of the article that lists it
    const coded = this.intact(() => this.broadcast.coded(shown.map(({ id }) => leads.get(id) ?? id), release.encoder, release.dimensions));
    if (coded) this.stores.news.put(shown, coded, release.encoder, this.clock());
  }

  private get broadcast() {
    return this.serving.context.recall.broadcast;
  }

  /** Those of these articles that can be opened: not those of a copy that can't be read. */
  private readable(ids: string[]): string[] {
    if (this.size() !== null) return ids;
    const missing = new Set(this.stores.news.missing(ids));
    return ids.filter((id) => !missing.has(id));
  }

  /** The cards of these articles that are here, in order. */
  cardsOf(ids: readonly string[]): NewsCard[] {
    const { news, pool } = this.stores;
    const cards = new Map(news.cards(ids).map((card) => [card.id, card]));
    const places = pool.places(ids.filter((id) => !cards.has(id)));
    for (const card of pool.cards(places.values())) cards.set(card.id, card);
    const leads = this.stores.articles.leads(ids.filter((id) => !cards.has(id)));
    const listing = new Map((leads.size ? this.cardsOf([...new Set(leads.values())].sort()) : []).map((card) => [card.id, card]));
    for (const [id, lead] of leads) {
      const card = listing.get(lead);
      const report = card && reportOf(card, id);
      if (report) cards.set(id, report);
    }
    return ids.flatMap((id) => cards.get(id) ?? []);
  }

  /** The articles before and after one in a list, which `show` copies; null where there is none. */
  beside(newsId: string, ids: readonly string[]): { before: NewsCard | null; after: NewsCard | null } {
    const at = ids.indexOf(newsId);
    const [before = null, after = null] = at < 0 ? [] : [at - 1, at + 1].map((place) => this.cardsOf(ids.slice(Math.max(0, place), place + 1))[0] ?? null);
    this.show([before, after].filter((card) => card !== null));
    return { before, after };
  }

  /** Articles not in `found` that answer the search by related words, then some close to its results. */
  private close(meaning: ReadonlyMap<string, number>, leads: readonly NewsCard[], found: ReadonlySet<string>): NewsCard[] {
    const answers = [...meaning].filter(([id, sum]) => sum >= MEANING_FLOOR && !found.has(id)).map(([id]) => id);
    const near = this.wanted(this.cardsOf(this.readable(answers.slice(0, NEAR * EACH_STORY))));
    if (near.length >= NEAR) return near;
    return this.wanted([...near, ...this.near(leads, new Set([...found, ...near.map((card) => card.id)]))]);
  }

  /** Articles of the pool's copy that are close to one of `leads` by topic or similarity, most similar first. */
  private near(leads: readonly NewsCard[], found: ReadonlySet<string>): NewsCard[] {
    const release = this.serving.manifest();
    if (!release || !leads.length || this.size() === null) return [];
    const defaultList = this.serving.context.defaultList.candidates(release.encoder, release.dimensions);
    const floor = floorOf(release, defaultList);
    const similarity = new SimilarityRule(defaultList, floor);
    const here = this.stores.news.vectors(leads.map((card) => card.id), release.encoder);
    const near = new Map<string, readonly [cosine: number, card: NewsCard]>();
    for (const [row, lead] of leads.entries()) {
      if (!here.present[row]) continue;
      const vector = rowOf(here.vectors, row);
      const query = rowOf(unit(rowsOf(vector, vector.length)), 0);
      const around = this.intact(() => this.broadcast.find(query, NEAR_LOOKED_AT, release.encoder, false));
      if (!around) return [];
      for (const similar of similarity.of(lead, vector, around.cards, around.vectors)) {
        const card = around.cards[similar.row] as NewsCard;
        if (isByMeaning(similar, floor) && !found.has(card.id) && similar.cosine > (near.get(card.id)?.[0] ?? -1))
          near.set(card.id, [similar.cosine, card]);
      }
    }
    const best = [...near.values()].sort(([mine, one], [theirs, other]) => theirs - mine || (one.id < other.id ? -1 : 1));
    return this.wanted(best.map(([, card]) => card));
  }

  /** The first of these that the reader neither hides nor has dismissed, one per story. */
  private wanted(cards: readonly NewsCard[]): NewsCard[] {
    const blocked = namesIn(this.stores.stances.blocked());
    const less = new Set(this.stores.feedback.reactions("less").map((one) => one.newsId));
    for (const hidden of this.stores.muteRules.hiddenAmong(cards.map((card) => card.id))) less.add(hidden);
    const left = cards.filter((card) => !less.has(card.id) && !isHidden(card, blocked));
    const places = left.map((_, place) => -place);
    const single = oneOfEach(new Candidates(left, taken(noVectors(1), []), ""), places);
    return left.filter((_, place) => single[place]).slice(0, NEAR);
  }

  /** The result of `work`; null if the copy of the pool is damaged (it is then deleted). */
  private intact<R>(work: () => R): R | null {
    try {
      return work();
    } catch (broken) {
      if (!(broken instanceof PoolBroken)) throw broken;
      this.broadcast.discard();
      return null;
    }
  }
}

/** Whether a story is close by more than a name: two people may share one, and a town has all kinds of news. */
function isByMeaning(similar: SimilarStory, floor: number | null): boolean {
  return similar.tie !== "name" || (floor !== null && similar.cosine > floor);
}

/** Whether the reader hides the article's topic, section or publisher. */
function isHidden(card: NewsCard, { topics, sections, publishers }: Named): boolean {
  return topics.has(card.topic) || sections.has(card.section) || publishers.has(card.publisher);
}

function score(hit: WordHit, nowUs: number): number {
  const days = Math.max(0, (nowUs - hit.publishedUs) / DAY_US);
  return hit.relevance * (1 + FRESH_GAIN * 0.5 ** (days / FRESH_DAYS));
}

const RELATED = 4;
/** Number of nearest articles considered. */
const LOOKED_AT = 60;

/**
 * The articles nearest to a story, from the default list and last answer: one per story, nothing excluded. Only those
 * close enough by more than a name; perhaps none, and none before the first release.
 */
export function related({ serving, stores }: Parts, newsId: string): NewsCard[] {
  const manifest = serving.manifest();
  if (!manifest) return [];
  const { present, vectors } = stores.news.vectors([newsId], manifest.encoder);
  if (!present[0]) return [];
  const { defaultList: held, recall } = serving.context;
  const defaultList = held.candidates(manifest.encoder, manifest.dimensions);
  const known = recall.known(defaultList);
  const floor = floorOf(manifest, defaultList);
  const similarity = new SimilarityRule(known, floor);
  const none = noVectors(manifest.dimensions);
  const near = known.where(
    allowed(known, {
      clicks: [],
      clickVectors: none,
      clickInterests: [],
      likedCards: [],
      liked: none,
      disliked: none,
      read: new Set([newsId]),
      readEvents: new Set(),
      dislikedIds: new Set(stores.feedback.reactions("less").map((one) => one.newsId)),
      unwanted: [],
      hiddenIds: stores.muteRules.hiddenAmong(known.ids),
      followed: byKind([]),
      blocked: namesIn(stores.stances.blocked()),
      chosenSections: new Set(),
      muted: [],
    }),
  );
  const scores = products(unit(near.vectors), rowOf(unit(vectors), 0));
  const best = bestFirst(scores).slice(0, LOOKED_AT);
  const nearest = near.only(best);
  const single = nearest.where(oneOfEach(nearest, best.map((row) => scores[row] ?? 0)));
  const similar = similarity.of(stores.news.card(newsId), rowOf(vectors, 0), single.cards, single.vectors);
  return similar.filter((one) => isByMeaning(one, floor)).slice(0, RELATED).flatMap(({ row }) => single.cards[row] ?? []);
}
