// Reads from the store what ranking needs to know about the reader: preferences, and the features' context.
import { type ClickedNews, type InterestNames, type InterestChoice, type MutedClicks, vectorsOf, withoutMuted } from "../reading/interest_profile";
import type { NewsCard } from "../protocol/news";
import { CLICKS_LIMIT } from "../protocol/recall";
import type { FeatureContext } from "../ranking/ranker";
import type { DeviceStores } from "../parts";
import type { Click } from "../store/clicks";
import type { NamedStance } from "../store/opinions";
import { noVectors, rowOf, taken, type Vectors } from "../vectors";
import { placesOf, type Candidates } from "./candidates";
import { recency } from "./scores";

/**
 * Sections, topics and recency at a given time, with the clicks made by then; training needs past times. popularity
 * [n]: as known at that time; null without any count.
 */
export function featureContextAt(
  candidates: Candidates,
  clicks: readonly NewsCard[],
  at: number,
  halfLifeHours: number,
  popularity: Float64Array | null,
): FeatureContext {
  return {
    sections: candidates.sections,
    topics: candidates.topics,
    clickedSections: clicks.map((card) => card.section),
    clickedTopics: clicks.map((card) => card.topic),
    recency: recency(candidates, at, halfLifeHours),
    popularity: popularity ?? new Float64Array(candidates.length),
  };
}

/** Topics, sections and publishers by name. */
export interface Named {
  readonly topics: ReadonlySet<string>;
  readonly sections: ReadonlySet<string>;
  readonly publishers: ReadonlySet<string>;
}

/** Groups (kind, name) pairs by kind. */
export function byKind(names: Iterable<readonly [string, string]>): Named {
  const pairs = [...names];
  const of = (kind: string) => new Set(pairs.filter(([one]) => one === kind).map(([, name]) => name));
  return { topics: of("topic"), sections: of("section"), publishers: of("publisher") };
}

export function anyOf(names: Named): boolean {
  return names.topics.size + names.sections.size + names.publishers.size > 0;
}

/** A muted interest: the vectors of its clicks, [n, D]. */
export interface MutedInterest {
  readonly label: string;
  readonly vectors: Vectors;
}

/**
 * The reader's preferences. Sensitive: only read on the device.
 *
 * clicks: recently clicked articles, oldest first, with clickVectors [H, D] in the same order and clickInterests [H],
 * each click's interest label ('' if none). likedCards with liked [n, D], and disliked [n, D]: articles with reactions.
 * read, dislikedIds and hiddenIds (by mute rules) are in no new page. readEvents: as
 * `ReadMarks.events`. unwanted: the topics of disliked articles, one entry each.
 */
export interface UserPreferences {
  readonly clicks: readonly NewsCard[];
  readonly clickVectors: Vectors;
  readonly clickInterests: readonly string[];
  readonly likedCards: readonly NewsCard[];
  readonly liked: Vectors;
  readonly disliked: Vectors;
  readonly read: ReadonlySet<string>;
  readonly readEvents: ReadonlySet<string>;
  readonly hiddenIds: ReadonlySet<string>;
  readonly dislikedIds: ReadonlySet<string>;
  readonly unwanted: readonly string[];
  readonly followed: Named;
  readonly blocked: Named;
  readonly chosenSections: ReadonlySet<string>;
  readonly muted: readonly MutedInterest[];
}

export const CHOSEN_SECTIONS = "chosen_sections";
const MUTED_CLICKS_LIMIT = 1_000;
const REACTIONS_LIMIT = 50;

/** The recent clicks that count, those of muted interests, and the reader's choices about interests. */
export interface PreferenceInputs {
  readonly active: readonly ClickedNews[];
  readonly muted: MutedClicks;
  readonly kept: readonly InterestChoice[];
}

/** Reads clicks, reactions, stances and choices as one consistent snapshot. */
export class PreferenceReader {
  private clicked: { edition: string; found: ReadonlyMap<number, ClickedNews> } = { edition: "", found: new Map() };

  constructor(
    private readonly stores: DeviceStores,
    private readonly names: InterestNames,
  ) {}

  /** Drops the clicked articles cached between feeds. */
  forget(): void {
    this.clicked = { edition: "", found: new Map() };
  }

  /** The newest 50 clicks outside muted interests, oldest first; clicks without card or vector are left out. */
  reading(encoder: string): PreferenceInputs {
    const kept = this.names.kept();
    const anyMuted = kept.some((interest) => interest.muted);
    const clicks = this.stores.clicks.recent(anyMuted ? MUTED_CLICKS_LIMIT : CLICKS_LIMIT);
    const { active, muted } = withoutMuted(this.stored(clicks, encoder), kept);
    return { active: active.slice(-CLICKS_LIMIT), muted, kept };
  }

  /** All preferences that the feed uses, with the clicks' interests still unnamed. */
  userPreferences(reading: PreferenceInputs, encoder: string, dimensions: number): UserPreferences {
    const reactions = this.stores.feedback.reactions();
    const of = (kind: string): string[] => reactions.filter((one) => one.kind === kind).map((one) => one.newsId);
    const disliked = of("less");
    const waved = this.known(disliked.slice(0, REACTIONS_LIMIT), encoder, dimensions);
    const liked = this.known(of("like").slice(0, REACTIONS_LIMIT), encoder, dimensions);
    return {
      clicks: reading.active.map((click) => click.card),
      clickVectors: vectorsOf(reading.active, dimensions),
      clickInterests: reading.active.map(() => ""),
      likedCards: liked.cards,
      liked: liked.vectors,
      disliked: waved.vectors,
      read: this.stores.readMarks.ids(),
      readEvents: this.stores.readMarks.events(),
      hiddenIds: this.stores.muteRules.hidden(),
      dislikedIds: new Set(disliked),
      unwanted: waved.cards.map((card) => card.topic).filter((topic) => topic !== ""),
      followed: namesIn(this.stores.stances.followed()),
      blocked: namesIn(this.stores.stances.blocked()),
      chosenSections: new Set(this.chosenSections() ?? []),
      muted: reading.muted
        .filter(([, clicks]) => clicks.length)
        .map(([interest, clicks]) => ({ label: interest.name ?? "", vectors: vectorsOf(clicks, dimensions) })),
    };
  }

  /** Sections picked at the first visit; null before it. */
  chosenSections(): readonly string[] | null {
    return (this.stores.preferences.get(CHOSEN_SECTIONS) ?? null) as readonly string[] | null;
  }

  /** The clicked articles with card and vector. Reads only new clicks from the store and drops deleted ones. */
  private stored(clicks: readonly Click[], encoder: string): ClickedNews[] {
    const edition = JSON.stringify([encoder, this.stores.news.width(encoder), this.stores.news.edition]);
    const known = this.clicked.edition === edition ? this.clicked.found : new Map<number, ClickedNews>();
    const fresh = this.read(clicks.filter((click) => !known.has(click.id)), encoder);
    const found = new Map<number, ClickedNews>();
    for (const { id } of clicks) {
      const news = known.get(id) ?? fresh.get(id);
      if (news) found.set(id, news);
    }
    this.clicked = { edition, found };
    return [...found.values()];
  }

  private read(clicks: readonly Click[], encoder: string): Map<number, ClickedNews> {
    const found = new Map<number, ClickedNews>();
    if (!clicks.length) return found;
    const ids = clicks.map((click) => click.newsId);
    const cards = new Map(this.stores.news.cards([...new Set(ids)]).map((card) => [card.id, card]));
    const { present, vectors } = this.stores.news.vectors(ids, encoder);
    clicks.forEach((click, row) => {
      const card = cards.get(click.newsId);
      if (present[row] && card)
        found.set(click.id, { clickId: click.id, at: click.at, card, vector: rowOf(vectors, row) });
    });
    return found;
  }

  private known(ids: readonly string[], encoder: string, dimensions: number): { cards: NewsCard[]; vectors: Vectors } {
    const cards = this.stores.news.cards(ids);
    const { present, vectors } = this.stores.news.vectors(cards.map((card) => card.id), encoder);
    const here = placesOf(present);
    if (!here.length) return { cards: [], vectors: noVectors(dimensions) };
    return { cards: cards.filter((_, row) => present[row]), vectors: taken(vectors, here) };
  }
}

/** Names that are followed, or blocked, by kind. */
export function namesIn(stances: readonly NamedStance[]): Named {
  return byKind(stances.map(({ kind, name }) => [kind, name] as const));
}
