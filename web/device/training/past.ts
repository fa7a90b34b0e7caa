// What a ranker with features could know at past feeds, by the code that serves.
import { Candidates } from "../feed/candidates";
import { recency } from "../feed/scores";
import { NewsNotHere } from "../errors";
import { featureColumns } from "../ranking/features";
import type { ImpressionStore } from "../store/impressions";
import type { NewsStore } from "../store/news";
import { noVectors } from "../vectors";
import type { NewsCard } from "../wire/news";
import type { FeaturesAt } from "./samples";

/**
 * halfLifeHours is the feed's own, so that a ranker learns from the recency it is served with; popularity is as it was
 * when a feed was shown: today's would let a ranker see the clicks that came later. Throws NewsNotHere if a card has left
 * the store meanwhile.
 */
export function pastFeatures(news: NewsStore, impressions: ImpressionStore, halfLifeHours: number): FeaturesAt {
  const cardsOf = (ids: readonly string[]): NewsCard[] => {
    const found = new Map(news.cards([...new Set(ids)]).map((card) => [card.id, card]));
    return ids.map((newsId) => {
      const card = found.get(newsId);
      if (!card) throw new NewsNotHere(newsId);
      return card;
    });
  };
  return (features, candidates, clicks, at) => {
    const [asked, clicked] = [cardsOf(candidates), cardsOf(clicks)];
    const then = impressions.popularityAt(candidates, at);
    return featureColumns(features, {
      sections: asked.map((card) => card.section),
      topics: asked.map((card) => card.topic),
      clickedSections: clicked.map((card) => card.section),
      clickedTopics: clicked.map((card) => card.topic),
      recency: recency(new Candidates(asked, noVectors(0), ""), at, halfLifeHours),
      popularity: Float64Array.from(candidates, (newsId) => then.get(newsId) ?? 0),
    }).data;
  };
}
