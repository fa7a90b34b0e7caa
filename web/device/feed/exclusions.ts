// News that a feed leaves out: what the reader has ruled out (blocked names, muted interests, 'not interested'), and
// what tells the same again.
import { type Vectors, bestFirst, products, rowOf, taken, unit } from "../vectors";
import { type Candidates, NO_STORY, placesOf } from "./candidates";
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
  const silent = candidates.cards.map(() => false);
  if (!preferences.muted.length || !candidates.length) return silent;
  const units = candidates.unitVectors;
  const nearMuted = nearest(units, preferences.muted.map((interest) => interest.vectors));
  const rows = placesOf(Array.from(nearMuted, (near) => near >= MUTED_COSINE)); // few: only these are held against other clicks
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
