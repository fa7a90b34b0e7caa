// Which articles a feed leaves out: those the reader has excluded (blocked names, muted interests, "not interested"),
// and repeats of the same story.
import { type Vectors, bestFirst, products, rowOf, taken, unit } from "../vectors";
import { type Candidates, NO_STORY, placesOf } from "./candidates";
import type { UserPreferences } from "./preference_reader";

/**
 * A candidate is muted if it is at least this similar to a click of a muted interest, and closer to it than to every
 * other click.
 */
const MUTED_COSINE = 0.6;

/** [n]: true unless the reader's choices exclude the article. Read articles are excluded too. */
export function allowed(candidates: Candidates, preferences: UserPreferences): boolean[] {
  const { read, dislikedIds } = preferences;
  return notHidden(candidates, preferences).map((shown, row) => {
    const id = candidates.ids[row] as string;
    return shown && !read.has(id) && !dislikedIds.has(id);
  });
}

/**
 * [n]: true unless the reader blocked the topic, section or publisher, muted an interest it belongs to, or hides it by a rule. For lists
 * whose stories stay after being opened or dismissed.
 */
export function notHidden(candidates: Candidates, preferences: UserPreferences): boolean[] {
  const { topics, sections, publishers } = preferences.blocked;
  const silent = muted(candidates, preferences);
  return candidates.cards.map(
    (card, row) => !silent[row] && !preferences.hiddenIds.has(card.id) && !topics.has(card.topic) && !sections.has(card.section) && !publishers.has(card.publisher),
  );
}

/** [n]: true if the nearest click belongs to a muted interest and is near. */
function muted(candidates: Candidates, preferences: UserPreferences): boolean[] {
  const silent = candidates.cards.map(() => false);
  if (!preferences.muted.length || !candidates.length) return silent;
  const units = candidates.unitVectors;
  const nearMuted = nearest(units, preferences.muted.map((interest) => interest.vectors));
  // few: only these are compared with other clicks
  const rows = placesOf(Array.from(nearMuted, (near) => near >= MUTED_COSINE));
  const nearRest = nearest(taken(units, rows), [preferences.clickVectors]);
  rows.forEach((row, at) => (silent[row] = (nearMuted[row] as number) > (nearRest[at] as number)));
  return silent;
}

/** [rows]: greatest cosine of rows of length 1 to any click, -1 without clicks. */
function nearest(units: Vectors, clicks: readonly Vectors[]): Float32Array {
  const most = new Float32Array(units.rows).fill(-1);
  for (const each of clicks.map(unit))
    for (let click = 0; click < each.rows; click++) {
      const cosines = products(units, rowOf(each, click));
      for (let row = 0; row < most.length; row++)
        if ((cosines[row] as number) > (most[row] as number)) most[row] = cosines[row] as number;
    }
  return most;
}

/** Returns [n]: true for the best-scored article of each headline and, among those, of each developing story. */
export function oneOfEach(candidates: Candidates, scores: ArrayLike<number>): boolean[] {
  const { headlines, stories } = candidates;
  const [headlinesUsed, storiesUsed] = [new Set<string>(), new Set<string>()];
  const found = candidates.cards.map(() => false);
  for (const row of bestFirst(scores)) {
    const [headline, story] = [headlines[row] as string, stories[row] as string];
    if (headlinesUsed.has(headline)) continue;
    headlinesUsed.add(headline);
    if (story !== NO_STORY && storiesUsed.has(story)) continue;
    storiesUsed.add(story);
    found[row] = true;
  }
  return found;
}
