// Reads from the store what the ranking needs to know of the reader.
import type { InterestNames } from "../interests/names";
import { type ClickedNews, type KeptInterest, type MutedClicks, vectorsOf, withoutMuted } from "../interests/profile";
import type { Click, Clicks } from "../store/clicks";
import type { NewsStore } from "../store/news";
import type { Feedback, NamedStance, Stances } from "../store/opinions";
import type { Preferences } from "../store/preferences";
import { type Vectors, noVectors, rowOf, taken } from "../vectors";
import type { NewsCard } from "../wire/news";
import { CLICKS_LIMIT } from "../wire/recall";
import { placesOf } from "./candidates";
import { type Named, type UserPreferences, byKind } from "./preferences";

export const CHOSEN_SECTIONS = "chosen_sections";
const MUTED_CLICKS_LIMIT = 1_000;
const REACTIONS_LIMIT = 50;

/** The recent clicks that count, those of muted interests, and what was said of interests. */
export interface PreferenceInputs {
  readonly active: readonly ClickedNews[];
  readonly muted: MutedClicks;
  readonly kept: readonly KeptInterest[];
}

/** One consistent look at clicks, reactions, stances and choices. */
export class PreferenceReader {
  private clicked: { edition: string; found: ReadonlyMap<number, ClickedNews> } = { edition: "", found: new Map() };

  constructor(
    private readonly clicks: Clicks,
    private readonly store: NewsStore,
    private readonly feedback: Feedback,
    private readonly stances: Stances,
    private readonly names: InterestNames,
    private readonly preferences: Preferences,
  ) {}

  /** Drop the clicked news that is kept in memory from one feed to the next. */
  forget(): void {
    this.clicked = { edition: "", found: new Map() };
  }

  /** The newest 50 clicks outside muted interests, oldest first; clicks without card or vector are left out. */
  reading(encoder: string): PreferenceInputs {
    const kept = this.names.kept();
    const anyMuted = kept.some((interest) => interest.muted);
    const clicks = this.clicks.recent(anyMuted ? MUTED_CLICKS_LIMIT : CLICKS_LIMIT);
    const { active, muted } = withoutMuted(this.stored(clicks, encoder), kept);
    return { active: active.slice(-CLICKS_LIMIT), muted, kept };
  }

  /** All that the feed weighs, with the interests of clicks still unnamed. */
  userPreferences(reading: PreferenceInputs, encoder: string, dimensions: number): UserPreferences {
    const reactions = this.feedback.reactions();
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
      opened: this.clicks.clicked(),
      dislikedIds: new Set(disliked),
      unwanted: waved.cards.map((card) => card.topic).filter((topic) => topic !== ""),
      followed: namesIn(this.stances.followed()),
      blocked: namesIn(this.stances.blocked()),
      chosenSections: new Set(this.chosenSections() ?? []),
      muted: reading.muted
        .filter(([, clicks]) => clicks.length)
        .map(([interest, clicks]) => ({ label: interest.name ?? "", vectors: vectorsOf(clicks, dimensions) })),
    };
  }

  /** Sections picked at the first visit; null before it. */
  chosenSections(): readonly string[] | null {
    return (this.preferences.get(CHOSEN_SECTIONS) ?? null) as readonly string[] | null;
  }

  /** The clicked news with card and vector. Only new clicks are read from the store; deleted ones are dropped. */
  private stored(clicks: readonly Click[], encoder: string): ClickedNews[] {
    const edition = JSON.stringify([encoder, this.store.width(encoder), this.store.edition]);
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
    const cards = new Map(this.store.cards([...new Set(ids)]).map((card) => [card.id, card]));
    const { present, vectors } = this.store.vectors(ids, encoder);
    clicks.forEach((click, row) => {
      const card = cards.get(click.newsId);
      if (present[row] && card)
        found.set(click.id, { clickId: click.id, at: click.at, card, vector: rowOf(vectors, row) });
    });
    return found;
  }

  private known(ids: readonly string[], encoder: string, dimensions: number): { cards: NewsCard[]; vectors: Vectors } {
    const cards = this.store.cards(ids);
    const { present, vectors } = this.store.vectors(cards.map((card) => card.id), encoder);
    const here = placesOf(present);
    if (!here.length) return { cards: [], vectors: noVectors(dimensions) };
    return { cards: cards.filter((_, row) => present[row]), vectors: taken(vectors, here) };
  }
}

/** What is followed, or blocked, by kind. */
export function namesIn(stances: readonly NamedStance[]): Named {
  return byKind(stances.map(({ kind, name }) => [kind, name] as const));
}
