// Assigns places: lead, for you, developing stories (several reports on one event), fresh, explore.
import type { FeedSettings } from "../feed_settings";
import { bestFirst } from "../vectors";
import { type Candidates, NO_STORY, placesOf } from "./candidates";
import type { Chance } from "./chance";
import { Cap, Cosines, diversified } from "./diversity";
import { oneOfEach } from "./exclusions";
import { PageShares, exploreRows, freshRows } from "./exploration";
import type { PageSlot } from "./item";
import type { SimilarityRule } from "./similarity";
import type { UserPreferences } from "./preference_reader";
import { ageHours } from "./scores";

const LEAST_REPORTS = 2;
const REPORTS_PER_STORY = 3;
/** From this many unseen articles on, seen ones appear only in shares with too few unseen ones. */
const UNSEEN_ENOUGH = 100;

/** A row of the candidates and its slot. */
export interface SlottedRow {
  readonly row: number;
  readonly slot: PageSlot;
}

/**
 * Rows of the best stories with two or more reports, newest first, at most three per story. A story scores the mean of
 * its two best reports; ties go by name. A report linked to the best one only by the story's name isn't part of the
 * group.
 */
function developingGroups(
  candidates: Candidates,
  free: readonly boolean[],
  scores: Float64Array,
  stories: number,
  similarity: SimilarityRule,
): number[][] {
  const reports = new Map<string, number[]>();
  candidates.stories.forEach((story, row) => {
    if (story !== NO_STORY && free[row]) reports.set(story, [...(reports.get(story) ?? []), row]);
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
    .map(({ best }) => similarity.among(best[0] as number, best))
    .filter((rows) => rows.length > 1)
    .map((rows) => newest(candidates, rows));
}

function newest(candidates: Candidates, rows: readonly number[]): number[] {
  const at = candidates.publishedSec;
  return [...rows]
    .sort((one, other) => (at[other] as number) - (at[one] as number) || one - other)
    .slice(0, REPORTS_PER_STORY);
}

/** What lays out a page, besides candidates and scores. */
export interface PageTerms {
  readonly size: number;
  readonly chance: Chance;
  readonly similarity: SimilarityRule;
  /**
   * [n]: whether each was seen before. Its score is reduced for that, fresh, explore and developing stories don't draw
   * it, and it doesn't lead. It returns only where a share lacks unseen articles, or fewer than UNSEEN_ENOUGH are left.
   */
  readonly seen: readonly boolean[];
  /**
   * [n]: scores without reactions, which choose the developing stories, so that one reaction doesn't replace groups.
   */
  readonly steady: Float64Array;
  /** Rows that must be on the page, with the slots they had when they were offered. */
  readonly promised: ReadonlyMap<number, PageSlot>;
}

/**
 * Returns at most `size` rows in page order, without repeats; no story or headline twice outside its group.
 *
 * candidates must all be allowed; scores is [n]. Personal slots get the places left by fresh, explore and developing,
 * and are filled first, so that those never take the reader's best. Places that those can't fill become personal. What
 * the reader picked and reads gets its share of the page, for which developing stories make room; other sections get at
 * most their limit, unless a place would stay empty. A further report of an event that was read doesn't lead. Developing
 * stories have a report of the last `fresh_hours`.
 */
export function placed(
  candidates: Candidates,
  scores: Float64Array,
  preferences: UserPreferences,
  now: number,
  settings: FeedSettings,
  { size, chance, similarity, seen, steady, promised }: PageTerms,
): SlottedRow[] {
  const shares = PageShares.of(candidates, preferences, settings, size);
  const others = settings.fresh_slots + settings.explore_slots;
  const kept = size - others - shares.outermost.reduce((sum, share) => sum + share.least, 0);
  const unseen = seen.map((was) => !was);
  const ages = ageHours(candidates, now);
  const recent = new Set(candidates.stories.filter((_, row) => (ages[row] as number) <= settings.fresh_hours));
  const goingOn = candidates.stories.map((story, row) => (unseen[row] as boolean) && recent.has(story));
  const groups = shortened(developingGroups(candidates, goingOn, steady, settings.developing_stories, similarity), kept);
  const grouped = groups.flat();
  const { stories } = candidates;
  const groupedStories = new Set(grouped.map((row) => stories[row] as string));
  let free = stories.map((story) => !groupedStories.has(story));
  const single = oneOfEach(candidates, scores.map((score, row) => (free[row] ? score : -Infinity)));
  free = free.map((here, row) => here && (single[row] as boolean));
  const anyShare = [...free];
  const both = (room: readonly boolean[]) => free.map((here, row) => here && (room[row] as boolean));
  free = both(shares.room(grouped));
  const again = wantedAgain(both(unseen), shares);
  free = both(unseen.map((is, row) => is || (again[row] as boolean)));
  const rows = placesOf(free);
  const places = Math.max(1, size - grouped.length - others);
  const caps = [new Cap(candidates.publishers, settings.publisher_cap), ...shares.caps(settings.topic_cap, grouped, places)];
  const cut = caps.map((cap) => cap.only(rows));
  const least = shares.least.map((share) => share.beside(grouped).only(rows));
  const of = Float64Array.from(rows, (row) => scores[row] as number);
  const cosines = new Cosines(candidates.units(rows));
  const pageOf = (count: number) =>
    diversified(of, cosines, cut, least, count, settings.variety).map((at) => rows[at] as number);
  const picked = pageOf(places);
  const take = (these: readonly number[]) => these.forEach((row) => (free[row] = false));
  take(picked);
  free = both(unseen);
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
    // narrow pool: shares and caps give way before a place stays empty
    for (const row of [...taken, ...explore]) anyShare[row] = false;
    picked.push(...bestFirst(scores, placesOf(anyShare)).slice(0, left));
  }
  const { readEvents } = preferences;
  const wasRead = candidates.ids.map((id, row) => readEvents.has(id) || readEvents.has(stories[row] as string));
  const mayLead = unseen.map((is, row) => is && !wasRead[row]);
  const led = ledBy(picked, mayLead, scores, anyShare, [...taken, ...explore]);
  const inSlot = (these: readonly number[], slot: PageSlot): SlottedRow[] => these.map((row) => ({ row, slot }));
  const page = [
    ...inSlot(led.slice(0, 1), "lead"),
    ...inSlot(led.slice(1), "for_you"),
    ...inSlot(grouped, "developing"),
    ...inSlot(fresh, "fresh"),
    ...inSlot(explore, "explore"),
  ];
  return withPromised(page.slice(0, size), promised, stories);
}

/**
 * The page with all promised rows. One that is missing takes the place of another report of its event, else the last
 * one of its slot outside groups.
 */
function withPromised(given: readonly SlottedRow[], promised: ReadonlyMap<number, PageSlot>, stories: readonly string[]): SlottedRow[] {
  const page = [...given];
  const here = new Set(page.map(({ row }) => row));
  for (const [row, slot] of promised) {
    if (here.has(row)) continue;
    const free = placesOf(page.map((place) => !promised.has(place.row)));
    const event = stories[row] as string;
    const same = free.filter((at) => event !== NO_STORY && stories[(page[at] as SlottedRow).row] === event);
    const slots: readonly PageSlot[] = [slot, "for_you", "explore", "fresh"];
    const others = slots.map((one) => free.filter((at) => page[at]?.slot === one).at(-1));
    const at = same.at(-1) ?? others.find((last) => last !== undefined && !["lead", "developing"].includes(page[last]!.slot));
    if (at !== undefined) page[at] = { row, slot: (page[at] as SlottedRow).slot };
  }
  return page;
}

/** [n]: which seen rows may be shown again; unseen [n]: the free rows that the reader hasn't seen. */
function wantedAgain(unseen: readonly boolean[], shares: PageShares): boolean[] {
  if (unseen.filter(Boolean).length < UNSEEN_ENOUGH) return unseen.map(() => true);
  const lacking = shares.least.filter((share) => unseen.filter((is, row) => is && share.rows[row]).length < share.least);
  return unseen.map((_, row) => lacking.some((share) => share.rows[row]));
}

/** Returns the personal rows with one that may lead in front: one of these rows if possible, else the best free one. */
function ledBy(
  picked: readonly number[],
  mayLead: readonly boolean[],
  scores: Float64Array,
  free: readonly boolean[],
  taken: readonly number[],
): number[] {
  const lead = picked.find((row) => mayLead[row]);
  if (lead !== undefined) return [lead, ...picked.filter((row) => row !== lead)];
  const others = placesOf(free.map((here, row) => here && (mayLead[row] as boolean) && !taken.includes(row)));
  const [best] = bestFirst(scores, others);
  return best === undefined || !picked.length ? [...picked] : [best, ...picked.slice(0, -1)];
}

/** Shortens the groups to this many places: the last ones lose their third report first, then are dropped. */
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

