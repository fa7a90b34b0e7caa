// The adjusted local score: fit to the reader plus small terms, all in units of one spread of the fit.
import type { FeedSettings } from "../feed_settings";
import { type Vectors, deviation, mean, products, rowOf, unit } from "../vectors";
import type { Candidates } from "./candidates";
import type { UserPreferences } from "./preference_reader";

export const TERMS = [
  "content",
  "topic_affinity",
  "section_affinity",
  "recency",
  "popularity",
  "editorial",
  "followed",
  "chosen",
  "reactions",
  "rare",
  "seen",
] as const;
export type TermName = (typeof TERMS)[number];
type Terms = Record<TermName, Float64Array>;

/** Median spread, over readers, of the default ranker's fit over a pool. */
const SPREAD_WITHOUT_CLICKS = 0.06;

/** [n]: hours since publication; articles dated in the future count as published now. now: milliseconds since 1970. */
export function ageHours(candidates: Candidates, now: number): Float64Array {
  return Float64Array.from(candidates.publishedSec, (sec) => Math.max(0, (now / 1_000 - sec) / 3_600));
}

/** [n]: 1 for articles published now, 1/2 after one half-life, and so on. */
export function recency(candidates: Candidates, now: number, halfLifeHours: number): Float64Array {
  return ageHours(candidates, now).map((age) => 2 ** (-age / halfLifeHours));
}

/**
 * The score terms of n candidates: each [n], by name, in units of one spread of the fit. Reasons are read from these:
 * they name what raised a story above the mean.
 */
export class ScoreTerms {
  /** [n]: the score, the sum of all terms. */
  readonly total: Float64Array;
  private readonly usual: Record<TermName, number>;

  constructor(readonly terms: Terms) {
    this.total = terms.content.map((_, row) => TERMS.reduce((sum, name) => sum + (terms[name][row] as number), 0));
    this.usual = Object.fromEntries(TERMS.map((name) => [name, mean(terms[name])])) as Record<TermName, number>;
  }

  /** By how much each term exceeds its mean over all rows; what all rows have in common doesn't affect the order. */
  lifts(row: number): Record<TermName, number> {
    const lift = (name: TermName) => [name, (this.terms[name][row] as number) - this.usual[name]];
    return Object.fromEntries(TERMS.map(lift)) as Record<TermName, number>;
  }
}

/**
 * Standardised fit + recency + popularity + editorial weight + followed or chosen names + reactions - seen.
 *
 * fit [n]: the ranker's scores. weighed: what each of the ranker's features adds to them, [n] by name; these terms are
 * part of the fit and aren't counted again. popularity [n]: from -1 to 1. timesSeen [n]: in how many feeds each was
 * seen but not opened; one costs seen_penalty, three cost twice as much. Without clicks the fit consists of the
 * features alone, and dividing by its small spread would inflate them, so a typical spread is used.
 */
export function adjusted(
  fit: Float32Array,
  candidates: Candidates,
  preferences: UserPreferences,
  now: number,
  settings: FeedSettings,
  weighed: ReadonlyMap<string, Float64Array>,
  popularity: Float64Array,
  timesSeen: Float64Array,
  rare: Float64Array,
): ScoreTerms {
  const spread = weighed.size && !preferences.clicks.length ? SPREAD_WITHOUT_CLICKS : deviation(fit);
  const none = new Float64Array(candidates.length);
  const learnt = new Map([...weighed].map(([name, values]) => [name, over(values, spread)]));
  const rest = Float64Array.from(fit, (value, row) => {
    let features = 0;
    for (const values of weighed.values()) features += values[row] as number;
    return value - features;
  });
  let content = over(rest, spread);
  for (const [name, values] of learnt)
    if (!["content", "topic_affinity", "section_affinity", "recency", "popularity"].includes(name))
      content = content.map((value, row) => value + (values[row] as number));
  const chosenBy = chosen(candidates, preferences, settings.blend_reads);
  const reactedTo = reacted(candidates, preferences, settings.reaction_reach);
  const isFollowed = followed(candidates, preferences);
  return new ScoreTerms({
    content,
    topic_affinity: learnt.get("topic_affinity") ?? none,
    section_affinity: learnt.get("section_affinity") ?? none,
    recency:
      learnt.get("recency") ??
      recency(candidates, now, settings.half_life_hours).map((value) => settings.recency_weight * value),
    popularity: learnt.get("popularity") ?? popularity.map((value) => settings.popularity_weight * value),
    editorial: Float64Array.from(candidates.cards, (card) => settings.editorial_weight * card.weight),
    followed: Float64Array.from(isFollowed, (here) => (here ? settings.follow_weight : 0)),
    chosen: chosenBy.map((value) => settings.chosen_section_weight * value),
    reactions: reactedTo.map((value) => settings.reaction_weight * value),
    rare: rare.map((value) => settings.rare_weight * value),
    seen: timesSeen.map((times) => -settings.seen_penalty * Math.log2(1 + times)),
  });
}

/** [n]: deviations from the mean divided by the spread; zeros if all values are equal. */
function over(values: Float64Array, spread: number): Float64Array {
  if (spread < 1e-9) return new Float64Array(values.length);
  const middle = mean(values);
  return values.map((value) => (value - middle) / spread);
}

/** [n]: whether topic, section or publisher is followed. */
export function followed(candidates: Candidates, preferences: UserPreferences): boolean[] {
  const { topics, sections, publishers } = preferences.followed;
  return candidates.cards.map(
    (card) => topics.has(card.topic) || sections.has(card.section) || publishers.has(card.publisher),
  );
}

/** [n]: 1 in the sections picked at the first visit, decreasing linearly to 0 over the first `blendReads` clicks. */
function chosen(candidates: Candidates, preferences: UserPreferences, blendReads: number): Float64Array {
  const weight = Math.max(0, 1 - preferences.clicks.length / blendReads);
  return Float64Array.from(candidates.cards, (card) => (preferences.chosenSections.has(card.section) ? weight : 0));
}

/**
 * [n]: pull of liked articles minus pull of disliked ones, each from 0 to 1. A like affects the `reach` most similar
 * candidates; a dislike affects one, since the disliked card disappears as well.
 */
function reacted(candidates: Candidates, preferences: UserPreferences, reach: number): Float64Array {
  const away = pull(candidates, preferences.disliked, Math.min(reach, 1));
  return pull(candidates, preferences.liked, reach).map((value, row) => value - (away[row] as number));
}

/** [n]: the greatest cosine to a reaction that affects the candidate; 0 if none does. */
function pull(candidates: Candidates, vectors: Vectors, reach: number): Float64Array {
  const found = new Float64Array(candidates.length);
  if (!vectors.rows || !candidates.length || !reach) return found;
  const reactions = unit(vectors);
  for (let at = 0; at < reactions.rows; at++) {
    const cosines = products(candidates.unitVectors, rowOf(reactions, at)).map((cosine) => Math.max(cosine, 0));
    const last = reach < cosines.length ? (cosines.slice().sort()[cosines.length - reach] as number) : 0;
    cosines.forEach((cosine, row) => cosine >= last && (found[row] = Math.max(found[row] as number, cosine)));
  }
  return found;
}

