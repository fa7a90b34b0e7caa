// All news that is on this device: what its lists brought, and the copy of the pool where one is kept. Nothing is asked of
// anybody for it, so that nobody learns which topic was opened or what was searched for.
import { ErasedMeanwhile } from "../errors";
import { type Clock, breath, msOf } from "../moments";
import type { DeviceStores } from "../parts";
import type { Naming } from "../store/news";
import { toUs } from "../store/rows";
import type { WordHit } from "../store/search_index";
import { noVectors, rowOf, taken, unit, vectors as rowsOf } from "../vectors";
import { newsInPool } from "../wire/broadcast";
import type { NewsCard } from "../wire/news";
import type { Moment } from "../wire/values";
import { PoolBroken } from "./broadcast";
import { Candidates } from "./candidates";
import { oneOfEach } from "./exclusions";
import type { HeldLists } from "./held_lists";
import { type Kin, Kinship, floorOf } from "./kinship";
import { namesIn } from "./preference_reader";
import type { Named } from "./preferences";
import type { Serving } from "./serving";

export const SEARCH_PAGE = 50;
/** Most stories of one topic, section or publisher, the newest. */
export const LISTED = 300;
/** What was published now counts half as much again as its words alone, and half of that is gone after so many days. */
const FRESH_GAIN = 0.5;
const FRESH_DAYS = 7;
const DAY_US = 86_400_000_000;
/** Stories close in meaning, how many of the best results they may be close to, and how many are looked at for them. */
const [NEAR, NEAR_LEADS, NEAR_LOOKED_AT] = [6, 5, 60];

/**
 * A page of results, best first. total: stories found. upto: how many results this page and those before it show. near:
 * stories without the words that are close in meaning to one of the best results; on the first page alone. made_at, new:
 * as of a list that is held.
 */
export interface SearchResults {
  readonly cards: readonly NewsCard[];
  readonly total: number;
  readonly upto: number;
  readonly near: readonly NewsCard[];
  readonly made_at: Moment;
  readonly new: number;
}

/** Lists news by what names it. */
export class WholePool {
  constructor(
    private readonly stores: DeviceStores,
    private readonly serving: Serving,
    private readonly lists: HeldLists,
    private readonly clock: Clock,
    private readonly pause: () => Promise<void> = breath,
  ) {}

  /** How many news the copy of the pool holds; null where none is kept that the release in use can read. */
  size(): number | null {
    const [release, kept] = [this.serving.manifest(), this.stores.pool.current()];
    return release && kept && this.broadcast.ready(release.encoder) ? newsInPool(kept.listing) : null;
  }

  /** Whether a copy is kept that the release in use can't read: it is being replaced, and no list without it is to stay. */
  isUnread(): boolean {
    return this.size() === null && this.stores.pool.current() !== null;
  }

  /** The newest news of a topic, section or publisher, newest first, without what the reader hides otherwise. */
  named(kind: Naming, name: string): NewsCard[] {
    const { news, pool, stances } = this.stores;
    const pooled = this.size() === null ? [] : pool.named(kind, name, LISTED);
    const found = new Map([...pooled, ...news.cards(news.named(kind, name, LISTED))].map((card) => [card.id, card]));
    const shown = [...found.values()].filter((card) => !isHidden(card, namesIn(stances.blocked()), kind));
    shown.sort((one, other) => msOf(other.published_at) - msOf(one.published_at) || (one.id < other.id ? 1 : -1));
    return shown.slice(0, LISTED);
  }

  /** How many news its lists have brought to this device, with their texts or without. */
  texts(): number {
    return this.stores.news.count();
  }

  /**
   * All news that has every word of `text`, the most relevant and most recent first, each once. Days of the pool that no
   * search has looked through yet are taken in first, with other pages answered between the steps.
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
   * A page of the news that has every word of `text`, laid out (see `show`), out of the results that are held. Throws
   * ErasedMeanwhile where the reader erases everything before they are found.
   */
  async search(text: string, page: number): Promise<SearchResults> {
    const { erasures } = this.serving;
    this.stores.searches.looked(text, this.clock());
    const hits = (await this.hits(text)).map((hit) => hit.id);
    if (this.serving.erasures !== erasures) throw new ErasedMeanwhile(); // from here on nothing waits
    const { made_at, ids, new: more } = this.lists.holdFound(text, hits, "found", !this.isUnread());
    const upto = page * SEARCH_PAGE;
    const cards = this.cards(ids.slice(upto - SEARCH_PAGE, upto));
    this.show(cards);
    let near = page === 1 ? this.near(cards.slice(0, NEAR_LEADS), new Set(ids)) : [];
    if (near.length) near = this.wanted(this.cards(this.lists.holdFound(text, near.map((card) => card.id), "near").ids));
    this.show(near);
    return { cards, total: ids.length, upto: Math.min(upto, ids.length), near, made_at, new: more };
  }

  /**
   * These are laid out: what of them only the pool's copy has goes to the other news, with its vector as coded, so that it
   * can be opened and reacted to as any.
   */
  show(cards: readonly NewsCard[]): void {
    const release = this.serving.manifest();
    const missing = new Set(this.stores.news.missing(cards.map((card) => card.id)));
    if (!release || !missing.size || this.isUnread()) return;
    const shown = cards.filter((card) => missing.has(card.id));
    const coded = this.intact(() => this.broadcast.coded(shown.map((card) => card.id), release.encoder, release.dimensions));
    if (coded) this.stores.news.put(shown, coded, release.encoder, this.clock());
  }

  private get broadcast() {
    return this.serving.context.recall.broadcast;
  }

  private cards(ids: readonly string[]): NewsCard[] {
    const { news, pool } = this.stores;
    const cards = new Map(news.cards(ids).map((card) => [card.id, card]));
    const places = pool.places(ids.filter((id) => !cards.has(id)));
    for (const card of pool.cards(places.values())) cards.set(card.id, card);
    return ids.flatMap((id) => cards.get(id) ?? []);
  }

  /** News of the pool's copy that one of `leads` is close to by topic or likeness (feed/kinship), the most alike first. */
  private near(leads: readonly NewsCard[], found: ReadonlySet<string>): NewsCard[] {
    const release = this.serving.manifest();
    if (!release || !leads.length || this.size() === null) return [];
    const defaultList = this.serving.context.defaultList.candidates(release.encoder, release.dimensions);
    const floor = floorOf(release, defaultList);
    const kinship = new Kinship(defaultList, floor);
    const here = this.stores.news.vectors(leads.map((card) => card.id), release.encoder);
    const near = new Map<string, readonly [cosine: number, card: NewsCard]>();
    for (const [row, lead] of leads.entries()) {
      if (!here.present[row]) continue;
      const vector = rowOf(here.vectors, row);
      const asked = rowOf(unit(rowsOf(vector, vector.length)), 0);
      const around = this.intact(() => this.broadcast.find(asked, NEAR_LOOKED_AT, release.encoder, false));
      if (!around) return [];
      for (const kin of kinship.of(lead, vector, around.cards, around.vectors)) {
        const card = around.cards[kin.row] as NewsCard;
        if (isByMeaning(kin, floor) && !found.has(card.id) && kin.cosine > (near.get(card.id)?.[0] ?? -1))
          near.set(card.id, [kin.cosine, card]);
      }
    }
    const best = [...near.values()].sort(([mine, one], [theirs, other]) => theirs - mine || (one.id < other.id ? -1 : 1));
    return this.wanted(best.map(([, card]) => card));
  }

  /** The first of these that the reader hides by no name and has not waved away, one a story. */
  private wanted(cards: readonly NewsCard[]): NewsCard[] {
    const blocked = namesIn(this.stores.stances.blocked());
    const less = new Set(this.stores.feedback.reactions("less").map((one) => one.newsId));
    const left = cards.filter((card) => !less.has(card.id) && !isHidden(card, blocked));
    const places = left.map((_, place) => -place);
    const single = oneOfEach(new Candidates(left, taken(noVectors(1), []), ""), places);
    return left.filter((_, place) => single[place]).slice(0, NEAR);
  }

  /** What `work` gives; null where the copy of the pool is damaged, which is let go of then. */
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

/** Two people may share a name: by itself it says nothing of what a story means. */
function isByMeaning(kin: Kin, floor: number | null): boolean {
  return kin.tie !== "name" || (floor !== null && kin.cosine > floor);
}

/** Whether the reader hides what a story is on, but for what it is listed by. */
function isHidden(card: NewsCard, { topics, sections, publishers }: Named, listedBy?: Naming): boolean {
  return (
    (listedBy !== "topic" && topics.has(card.topic)) ||
    (listedBy !== "section" && sections.has(card.section)) ||
    (listedBy !== "publisher" && publishers.has(card.publisher))
  );
}

function score(hit: WordHit, nowUs: number): number {
  const days = Math.max(0, (nowUs - hit.publishedUs) / DAY_US);
  return hit.relevance * (1 + FRESH_GAIN * 0.5 ** (days / FRESH_DAYS));
}
