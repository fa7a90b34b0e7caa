// Candidates as columns: cards in rows, with their vectors.
import { type Vectors, concatenated, noVectors, taken, unit } from "../vectors";
import { similarityFloor } from "../protocol/similarity";
import { type NewsCard, countedMs } from "../protocol/news";
import type { RecallAnswer } from "../protocol/recall";
import { readVectors } from "../uplink/backend_client";

/** What is computed once per card: its normalised headline, and its publication time in seconds since 1970. */
interface Facts {
  readonly headline: string;
  readonly publishedSec: number;
}

const FACTS = new WeakMap<NewsCard, Facts>();

function factsOf(card: NewsCard): Facts {
  let found = FACTS.get(card);
  if (!found) {
    // Upper case first, so that letters with several lower-case forms match, as in Python's `casefold`.
    const headline = card.title.trim().toUpperCase().toLowerCase();
    found = { headline, publishedSec: countedMs(card) / 1_000 };
    FACTS.set(card, found);
  }
  return found;
}

/** Code for articles outside any developing story. */
export const NO_STORY = "";

/** n cards with their vectors [n, D], all by one encoder. Ids are unique. */
export class Candidates {
  readonly ids: readonly string[];
  private readonly made: { unit?: Vectors; floor?: number | null; publishedSec?: number[] } = {};
  /** The candidates that these were selected from: unit vectors are computed there once and reused by every page. */
  private whole: readonly [Candidates, readonly number[]] | null = null;

  constructor(
    readonly cards: readonly NewsCard[],
    readonly vectors: Vectors,
    readonly encoder: string,
  ) {
    this.ids = cards.map((card) => card.id);
  }

  get length(): number {
    return this.cards.length;
  }

  get topics(): string[] {
    return this.cards.map((card) => card.topic);
  }

  get sections(): string[] {
    return this.cards.map((card) => card.section);
  }

  get publishers(): string[] {
    return this.cards.map((card) => card.publisher);
  }

  /** Developing stories; NO_STORY for articles outside any. */
  get stories(): string[] {
    return this.cards.map((card) => card.story ?? NO_STORY);
  }

  /** Headlines, ignoring case and surrounding white space. */
  get headlines(): string[] {
    return this.cards.map((card) => factsOf(card).headline);
  }

  /** Publication times in seconds since 1970. */
  get publishedSec(): readonly number[] {
    return (this.made.publishedSec ??= this.cards.map((card) => factsOf(card).publishedSec));
  }

  /** Vectors of length 1 (or 0), [n, D]. */
  get unitVectors(): Vectors {
    return (this.made.unit ??= this.whole ? taken(this.whole[0].unitVectors, this.whole[1]) : unit(this.vectors));
  }

  /** The unit (or zero) vectors of these rows, as rows of the candidates that these were selected from. */
  units(rows: readonly number[]): { readonly units: Vectors; readonly rows: readonly number[] } {
    if (!this.whole || this.made.unit) return { units: this.unitVectors, rows };
    const [whole, places] = this.whole;
    return whole.units(rows.map((row) => places[row] as number));
  }

  /** A cosine that random pairs of these rarely exceed (protocol/similarity.ts). */
  get similarityFloor(): number | null {
    if (this.made.floor === undefined) this.made.floor = similarityFloor(this.vectors);
    return this.made.floor;
  }

  /** Selects these rows, in this order. */
  only(rows: readonly number[]): Candidates {
    if (rows.length === this.length && rows.every((row, at) => row === at)) return this;
    const cards = rows.map((row) => this.cards[row] as NewsCard);
    const found = new Candidates(cards, taken(this.vectors, rows), this.encoder);
    found.whole = [this, rows];
    return found;
  }

  /** The rows where `mask` is true. */
  where(mask: readonly boolean[]): Candidates {
    return this.only(placesOf(mask));
  }
}

/** The positions at which a mask is true. */
export function placesOf(mask: readonly boolean[]): number[] {
  const places: number[] = [];
  mask.forEach((here, at) => here && places.push(at));
  return places;
}

/** [n]: whether each entry of a column is in `names`. */
export function named(column: readonly string[], names: ReadonlySet<string>): boolean[] {
  return column.map((name) => names.has(name));
}

/** The answer's cards with their vectors, without repeated ids. Throws AnswerMalformed. */
export function candidatesOf(answer: RecallAnswer, dimensions: number): Candidates {
  const found = readVectors(answer, dimensions);
  const first = new Map<string, number>();
  answer.candidates.forEach((card, row) => first.has(card.id) || first.set(card.id, row));
  const whole = new Candidates(answer.candidates, found, answer.encoder);
  return first.size < whole.length ? whole.only([...first.values()]) : whole;
}

/** Both without repeats, the rows of `first` first. `second` is left out if it is by another encoder. */
export function together(first: Candidates, second: Candidates): Candidates {
  if (!second.length || second.encoder !== first.encoder) return first;
  if (!first.length) return second;
  const here = new Set(first.ids);
  const fresh = second.where(second.ids.map((id) => !here.has(id)));
  return new Candidates([...first.cards, ...fresh.cards], concatenated(first.vectors, fresh.vectors), first.encoder);
}

/** An empty set of candidates. */
export function nothing(encoder: string, dimensions: number): Candidates {
  return new Candidates([], noVectors(dimensions), encoder);
}

