// News that a feed leaves out: what the reader has ruled out (blocked names, muted interests, 'not interested'), and
// what tells the same again.
import { type Vectors, bestFirst, products, rowOf, unit } from "../vectors";
import { type Candidates, NO_STORY } from "./candidates";
import type { UserPreferences } from "./preferences";

/** A candidate this near to a click of a muted interest, and nearer to it than to every other click, is muted too. */
const MUTED_COSINE = 0.6;

/** [n]: true where nothing the reader said rules the news out. Already opened news is ruled out too. */
export function allowed(candidates: Candidates, preferences: UserPreferences): boolean[] {
  const { opened, dislikedIds } = preferences;
  return notHidden(candidates, preferences).map((shown, row) => {
    const id = candidates.ids[row] as string;
    return shown && !opened.has(id) && !dislikedIds.has(id);
  });
}

/**
 * [n]: true where the reader blocked neither topic, section nor publisher, and muted no interest it belongs to: what a
 * list shows whose stories stay when they are opened or waved away.
 */
export function notHidden(candidates: Candidates, preferences: UserPreferences): boolean[] {
  const { topics, sections, publishers } = preferences.blocked;
  const silent = muted(candidates, preferences);
  return candidates.cards.map(
    (card, row) => !silent[row] && !topics.has(card.topic) && !sections.has(card.section) && !publishers.has(card.publisher),
  );
}

/** [n]: true where the nearest click belongs to a muted interest and is near. */
function muted(candidates: Candidates, preferences: UserPreferences): boolean[] {
  if (!preferences.muted.length || !candidates.length) return candidates.cards.map(() => false);
  const nearMuted = nearest(candidates, preferences.muted.map((interest) => interest.vectors));
  const nearRest = nearest(candidates, [preferences.clickVectors]);
  return nearMuted.map((near, row) => near >= MUTED_COSINE && near > (nearRest[row] as number));
}

/** [n]: greatest cosine to any click, -1 without clicks. */
function nearest(candidates: Candidates, clicks: readonly Vectors[]): number[] {
  const most = candidates.cards.map(() => -1);
  for (const each of clicks.map(unit))
    for (let click = 0; click < each.rows; click++)
      products(candidates.unitVectors, rowOf(each, click)).forEach((cosine, row) => {
        if (cosine > (most[row] as number)) most[row] = cosine;
      });
  return most;
}

/** [n]: true for the best-scored news of every headline, and of those, of every developing story. */
export function oneOfEach(candidates: Candidates, scores: ArrayLike<number>): boolean[] {
  const { headlines, stories } = candidates;
  const [said, told] = [new Set<string>(), new Set<string>()];
  const found = candidates.cards.map(() => false);
  for (const row of bestFirst(scores)) {
    const [headline, story] = [headlines[row] as string, stories[row] as string];
    if (said.has(headline)) continue;
    said.add(headline);
    if (story !== NO_STORY && told.has(story)) continue;
    told.add(story);
    found[row] = true;
  }
  return found;
}
