// Who gets which place: lead, for you, developing stories (several reports on one event), fresh, explore.
import type { FeedSettings } from "../feed_settings";
import { bestFirst } from "../vectors";
import { type Candidates, NO_STORY, placesOf } from "./candidates";
import type { Chance } from "./chance";
import { Cap, Cosines, diversified } from "./diversity";
import { oneOfEach } from "./exclusions";
import { exploreRows, freshRows } from "./exploration";
import type { PageSlot } from "./item";
import type { Kinship } from "./kinship";
import type { UserPreferences } from "./preferences";
import { PageShares } from "./shares";

const LEAST_REPORTS = 2;
const REPORTS_PER_STORY = 3;

/** A row of the candidates in its slot. */
export interface Placed {
  readonly row: number;
  readonly slot: PageSlot;
}

/**
 * Rows of the best stories with two or more reports, newest first, at most three a story. A story is as good as the mean
 * score of its two best reports; equal stories go by name. Reports that nothing but the name of their story ties to its
 * best one are no part of the group.
 */
function developingGroups(candidates: Candidates, scores: Float64Array, stories: number, kinship: Kinship): number[][] {
  const reports = new Map<string, number[]>();
  candidates.stories.forEach((story, row) => {
    if (story !== NO_STORY) reports.set(story, [...(reports.get(story) ?? []), row]);
  });
  const ranked = [...reports]
    .filter(([, rows]) => rows.length >= LEAST_REPORTS)
    .map(([story, rows]) => {
      const best = bestFirst(scores, rows);
      return { story, best, worth: ((scores[best[0] as number] as number) + (scores[best[1] as number] as number)) / 2 };
    })
    .sort((one, other) => other.worth - one.worth || (one.story < other.story ? -1 : 1))
    .slice(0, stories);
  return ranked
    .map(({ best }) => kinship.among(best[0] as number, best))
    .filter((rows) => rows.length > 1)
    .map((rows) => newest(candidates, rows));
}

function newest(candidates: Candidates, rows: readonly number[]): number[] {
  const at = candidates.publishedSec;
  return [...rows]
    .sort((one, other) => (at[other] as number) - (at[one] as number) || one - other)
    .slice(0, REPORTS_PER_STORY);
}

/** What a page is laid out by, besides candidates and their scores. */
export interface PageTerms {
  readonly size: number;
  readonly chance: Chance;
  readonly kinship: Kinship;
  /** [n]: what was looked at before: its score has sunk for that, and fresh and explore have others to draw from. */
  readonly seen: readonly boolean[];
  /** [n]: scores without reactions: they choose the developing stories, so that one press doesn't replace groups. */
  readonly steady: Float64Array;
}

/**
 * At most `size` rows, none twice and no story or headline twice outside its group; the page's order.
 *
 * candidates hold only what may be shown; scores is [n]. The personal places are what fresh, explore and developing leave
 * over, and are filled first, so that those never take the reader's best; places those can't fill are personal. What the
 * reader picked and reads has its share of the page, and developing stories make room for it; what is neither has no more
 * than its own, unless a place would stay empty.
 */
export function placed(
  candidates: Candidates,
  scores: Float64Array,
  preferences: UserPreferences,
  now: number,
  settings: FeedSettings,
  { size, chance, kinship, seen, steady }: PageTerms,
): Placed[] {
  const shares = PageShares.of(candidates, preferences, settings, size);
  const others = settings.fresh_slots + settings.explore_slots;
  const kept = size - others - shares.outermost.reduce((sum, share) => sum + share.least, 0);
  const groups = shortened(developingGroups(candidates, steady, settings.developing_stories, kinship), kept);
  const grouped = groups.flat();
  const { stories } = candidates;
  const told = new Set(grouped.map((row) => stories[row] as string));
  let free = stories.map((story) => !told.has(story));
  const single = oneOfEach(candidates, scores.map((score, row) => (free[row] ? score : -Infinity)));
  free = free.map((here, row) => here && (single[row] as boolean));
  const anyShare = [...free];
  const both = (room: readonly boolean[]) => free.map((here, row) => here && (room[row] as boolean));
  free = both(shares.room(grouped));
  const rows = placesOf(free);
  const places = Math.max(1, size - grouped.length - others);
  const caps = [new Cap(candidates.publishers, settings.publisher_cap), ...shares.caps(settings.topic_cap, grouped)];
  const cut = caps.map((cap) => cap.only(rows));
  const least = shares.least.map((share) => share.beside(grouped).only(rows));
  const of = Float64Array.from(rows, (row) => scores[row] as number);
  const cosines = new Cosines(candidates.units(rows));
  const pageOf = (count: number) =>
    diversified(of, cosines, cut, least, count, settings.variety).map((at) => rows[at] as number);
  const picked = pageOf(places);
  const take = (these: readonly number[]) => these.forEach((row) => (free[row] = false));
  take(picked);
  free = free.map((here, row) => here && !seen[row]);
  const fresh = freshRows(candidates, both(shares.room([...grouped, ...picked])), now, settings, chance);
  take(fresh);
  const taken = [...grouped, ...picked, ...fresh];
  const explore = exploreRows(candidates, both(shares.room(taken)), preferences, now, settings, chance);
  let left = size - taken.length - explore.length;
  if (left > 0)
    for (const row of pageOf(places + others))
      if (left && !taken.includes(row) && !explore.includes(row) && shares.room([...taken, ...explore])[row]) {
        picked.push(row);
        taken.push(row);
        left -= 1;
      }
  if (left > 0) {
    // of a narrow pool: shares and caps give way before a place stays empty
    for (const row of [...taken, ...explore]) anyShare[row] = false;
    picked.push(...bestFirst(scores, placesOf(anyShare)).slice(0, left));
  }
  const inSlot = (these: readonly number[], slot: PageSlot): Placed[] => these.map((row) => ({ row, slot }));
  const page = [
    ...inSlot(picked.slice(0, 1), "lead"),
    ...inSlot(picked.slice(1), "for_you"),
    ...inSlot(grouped, "developing"),
    ...inSlot(fresh, "fresh"),
    ...inSlot(explore, "explore"),
  ];
  return page.slice(0, size);
}

/** The groups in so many places: the last ones lose their third report first, then go. */
function shortened(groups: readonly number[][], places: number): number[][] {
  const kept = groups.map((group) => [...group]);
  const held = () => kept.reduce((sum, group) => sum + group.length, 0);
  while (kept.length && held() > places) {
    const long = kept.filter((group) => group.length > LEAST_REPORTS);
    const last = long[long.length - 1];
    if (last) last.pop();
    else kept.pop();
  }
  return kept;
}

