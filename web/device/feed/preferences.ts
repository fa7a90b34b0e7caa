// What the reader has told this device, as the ranking needs it.
import type { Vectors } from "../vectors";
import type { NewsCard } from "../wire/news";

/** Topics, sections and publishers by name. */
export interface Named {
  readonly topics: ReadonlySet<string>;
  readonly sections: ReadonlySet<string>;
  readonly publishers: ReadonlySet<string>;
}

/** (kind, name) pairs by kind. */
export function byKind(names: Iterable<readonly [string, string]>): Named {
  const pairs = [...names];
  const of = (kind: string) => new Set(pairs.filter(([one]) => one === kind).map(([, name]) => name));
  return { topics: of("topic"), sections: of("section"), publishers: of("publisher") };
}

export function anyOf(names: Named): boolean {
  return names.topics.size + names.sections.size + names.publishers.size > 0;
}

/** An interest the reader has muted: vectors of its clicks, [n, D]. */
export interface MutedInterest {
  readonly label: string;
  readonly vectors: Vectors;
}

/**
 * Sensitive, and only ever read on the device.
 *
 * clicks are the recent clicked news, oldest first, with clickVectors [H, D] in the same order and clickInterests [H],
 * the label of each click's interest ('' if none); likedCards with liked [n, D], and disliked [n, D], are the news
 * reacted to; opened and dislikedIds are never shown again. unwanted are the topics of the disliked, one for each.
 */
export interface UserPreferences {
  readonly clicks: readonly NewsCard[];
  readonly clickVectors: Vectors;
  readonly clickInterests: readonly string[];
  readonly likedCards: readonly NewsCard[];
  readonly liked: Vectors;
  readonly disliked: Vectors;
  readonly opened: ReadonlySet<string>;
  readonly dislikedIds: ReadonlySet<string>;
  readonly unwanted: readonly string[];
  readonly followed: Named;
  readonly blocked: Named;
  readonly chosenSections: ReadonlySet<string>;
  readonly muted: readonly MutedInterest[];
}
