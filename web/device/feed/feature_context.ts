// What a ranker is given of a reader besides clicks and candidates: the features' context.
import type { FeatureContext } from "../ranking/features";
import type { NewsCard } from "../wire/news";
import type { Candidates } from "./candidates";
import { recency } from "./scores";

/**
 * Sections, topics, recency at a time, beside the clicks made until then: training asks for past times. popularity [n] is
 * what was known at that time; null: nothing was counted.
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
