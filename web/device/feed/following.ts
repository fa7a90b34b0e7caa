// The Following page: news of the topics, sections and publishers the reader follows.
import { bestFirst } from "../vectors";
import type { Candidates } from "./candidates";
import { notHidden } from "./exclusions";
import type { FeedItem } from "./item";
import type { UserPreferences } from "./preferences";
import { followReason } from "./reasons";
import { followed, recency } from "./scores";

export const FOLLOWING_LIMIT = 300;

/** At most 300 items, by recency and editorial weight; what the reader hides is left out. now: milliseconds since 1970. */
export function followingItems(
  candidates: Candidates,
  preferences: UserPreferences,
  now: number,
  halfLifeHours: number,
): FeedItem[] {
  const may = notHidden(candidates, preferences);
  const shown = candidates.where(followed(candidates, preferences).map((wanted, row) => wanted && may[row] === true));
  const scores = recency(shown, now, halfLifeHours).map((value, row) => value + (shown.cards[row]?.weight ?? 0));
  return bestFirst(scores)
    .slice(0, FOLLOWING_LIMIT)
    .flatMap((row, position) => {
      const card = shown.cards[row];
      const reason = card && followReason(card, preferences);
      return card && reason ? [{ card, position, slot: "following" as const, reason, score: scores[row] ?? 0 }] : [];
    });
}
