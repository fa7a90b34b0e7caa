// Decides whether two articles are similar enough to say so: they share a topic or a rare name, or random pairs rarely
// reach their cosine. A wrong "close to" costs more trust than saying nothing.
import { properNames } from "../reading/interest_labels";
import type { NewsCard } from "../protocol/news";
import type { ReleaseManifest } from "../protocol/releases";
import { bestFirst, products, rowOf, taken, type Vectors, unit, vectors as rowsOf } from "../vectors";
import type { Candidates } from "./candidates";

/** A name in more than this share of the articles doesn't make two of them similar. */
const RARE_NAME_SHARE = 0.01;
/** A name in articles of more sections than this is incidental: a country, a capital, a weekday. */
const SECTIONS_OF_A_NAME = 2;

export type Tie = "topic" | "name" | "likeness";

/** An article that is similar to a story: its row, what they share, and the shared name if any. */
export interface SimilarStory {
  readonly row: number;
  readonly tie: Tie;
  readonly cosine: number;
  readonly name: string;
}

/** Decides which of these articles count as similar. */
export class SimilarityRule {
  private readonly floor: number;
  private readonly rare = new Map<string, boolean>();
  private texts: readonly (readonly [string, string])[] | null = null;
  private others: readonly [Vectors, Vectors] | null = null; // the last argument, as given and scaled

  /**
   * news: the available articles; a name is rare if few of them contain it. floor: the cosine that random pairs rarely
   * reach (protocol/similarity.ts); null: cosines don't count.
   */
  constructor(
    private readonly news: Candidates,
    floor: number | null,
  ) {
    this.floor = floor ?? Infinity;
  }

  /**
   * Those of `others` that are similar to a story: those with a shared topic or name first, then by similarity.
   * vector [D], vectors [m, D], any length.
   */
  of(card: NewsCard, vector: Float32Array, others: readonly NewsCard[], vectors: Vectors): SimilarStory[] {
    if (!others.length) return [];
    if (this.others?.[0] !== vectors) this.others = [vectors, unit(vectors)];
    const cosines = products(this.others[1], rowOf(unit(rowsOf(vector, vector.length)), 0));
    const names = properNames(card);
    const found: SimilarStory[] = [];
    for (const row of bestFirst(cosines)) {
      const cosine = cosines[row] as number;
      const tie = this.tie(card, names, others[row] as NewsCard, cosine);
      if (tie) found.push({ row, cosine, ...tie });
    }
    return [...found.filter((similar) => similar.tie !== "likeness"), ...found.filter((similar) => similar.tie === "likeness")];
  }

  /** Those of `rows` that are similar to row `lead`, in their order, including itself. */
  among(lead: number, rows: readonly number[]): number[] {
    const cards = rows.map((row) => this.news.cards[row] as NewsCard);
    const similar = this.of(
      this.news.cards[lead] as NewsCard,
      rowOf(this.news.vectors, lead),
      cards,
      taken(this.news.vectors, rows),
    );
    const close = new Set(similar.map((one) => rows[one.row]));
    return rows.filter((row) => row === lead || close.has(row));
  }

  private tie(
    card: NewsCard,
    names: ReadonlySet<string>,
    other: NewsCard,
    cosine: number,
  ): { tie: Tie; name: string } | null {
    if (card.topic && card.section === other.section && card.topic === other.topic) return { tie: "topic", name: "" };
    const theirs = names.size ? properNames(other) : names;
    const shared = [...names].filter((name) => theirs.has(name) && this.isRare(name)).sort();
    if (shared.length)
      return { tie: "name", name: shared.reduce((longest, name) => (name.length > longest.length ? name : longest)) };
    return cosine > this.floor ? { tie: "likeness", name: "" } : null;
  }

  private isRare(name: string): boolean {
    let known = this.rare.get(name);
    if (known === undefined) {
      this.texts ??= this.news.cards.map((card) => [`${card.title} ${card.abstract}`, card.section] as const);
      const held = this.texts.filter(([text]) => text.includes(name)).map(([, section]) => section);
      const few = held.length <= Math.max(3, RARE_NAME_SHARE * this.texts.length);
      known = few && new Set(held).size <= SECTIONS_OF_A_NAME;
      this.rare.set(name, known);
    }
    return known;
  }
}

/** The release's floor, or the default list's for releases published without one. */
export function floorOf(manifest: ReleaseManifest, defaultList: Candidates): number | null {
  return manifest.kinship_floor ?? defaultList.similarityFloor;
}
