// The reader's interests with names: which clicks form one, what it is called, whether it is muted.
import { mostCommon } from "../feed/shares";
import { type Vectors, bestFirst, meanOf, products, stacked } from "../vectors";
import type { NewsCard } from "../wire/news";
import { distinctLabels } from "./labels";

export const HEADLINES = 4;
export const TOPICS = 3;

/** A recent click whose card and vector are on the device; at: milliseconds since 1970. */
export interface ClickedNews {
  readonly clickId: number;
  readonly at: number;
  readonly card: NewsCard;
  readonly vector: Float32Array;
}

/** What the reader said of an interest: a name or null, muted or not, and the clicked news it was said of. */
export interface KeptInterest {
  readonly interestId: number;
  readonly name: string | null;
  readonly muted: boolean;
  readonly newsIds: ReadonlySet<string>;
}

export type MutedClicks = readonly (readonly [KeptInterest, readonly ClickedNews[]])[];

/**
 * Recent clicks, oldest first, as the feed uses them; muted clicks are kept apart and never reported or ranked by. labels
 * is [H], the channel of each active click; names has one entry a channel, clickNames one a click.
 */
export interface Profile {
  readonly active: readonly ClickedNews[];
  readonly muted: MutedClicks;
  readonly labels: readonly number[];
  readonly names: readonly string[];
  readonly clickNames: readonly string[];
}

/** One interest of the reader, with the names that pages know it by; weight is its share of the recent clicks. */
export interface InterestCluster {
  readonly key: number;
  readonly label: string;
  readonly named_by_reader: boolean;
  readonly muted: boolean;
  readonly weight: number;
  readonly clicks: number;
  readonly topics: readonly string[];
  readonly headlines: readonly NewsCard[];
  readonly last_click_at: number;
}

/** Clicks that count, and those of muted interests. */
export function withoutMuted(
  clicks: readonly ClickedNews[],
  kept: readonly KeptInterest[],
): { active: ClickedNews[]; muted: MutedClicks } {
  const silent = kept.filter((interest) => interest.muted);
  return {
    active: clicks.filter((click) => !silent.some((interest) => interest.newsIds.has(click.card.id))),
    muted: silent.map((one) => [one, clicks.filter((click) => one.newsIds.has(click.card.id))] as const),
  };
}

/** Name every channel: by the reader if it holds most of a named interest's news, else by what it is about. */
export function namedProfile(
  active: readonly ClickedNews[],
  muted: MutedClicks,
  labels: readonly number[],
  kept: readonly KeptInterest[],
): Profile {
  const groups = groupsOf(active, labels);
  const given = new Map([...matched(groups, kept)].map(([channel, interest]) => [channel, interest.name ?? ""]));
  const names = distinctLabels(groups.map(cardsOf), given);
  return { active, muted, labels, names, clickNames: labels.map((label) => names[label] as string) };
}

/** Which channel each named interest is now: greatest number of shared news, one to one, ties to the larger. */
export function matched(
  groups: readonly (readonly ClickedNews[])[],
  kept: readonly KeptInterest[],
): Map<number, KeptInterest> {
  const shared = groups.flatMap((group, channel) => {
    const held = new Set(group.map((click) => click.card.id));
    return kept
      .filter((interest) => !interest.muted && interest.name !== null)
      .map((interest) => ({ channel, interest, overlap: [...interest.newsIds].filter((id) => held.has(id)).length }));
  });
  shared.sort((one, other) => other.overlap - one.overlap || one.channel - other.channel);
  const found = new Map<number, KeptInterest>();
  const taken = new Set<number>();
  for (const { channel, interest, overlap } of shared)
    if (overlap && !found.has(channel) && !taken.has(interest.interestId)) {
      found.set(channel, interest);
      taken.add(interest.interestId);
    }
  return found;
}

/** Every interest for the Interests page, heaviest first, muted ones last. */
export function interestCards(profile: Profile, kept: readonly KeptInterest[]): InterestCluster[] {
  const groups = groupsOf(profile.active, profile.labels);
  const given = matched(groups, kept);
  const total = Math.max(1, profile.active.length);
  const shown = groups.map((group, channel) =>
    clusterOf(group, profile.names[channel] as string, given.has(channel), false, group.length / total),
  );
  const muted = profile.muted.filter(([, clicks]) => clicks.length);
  const names = new Map(profile.names.map((name, at) => [at, name]));
  muted.forEach(([{ name }], at) => name && names.set(groups.length + at, name));
  const labels = distinctLabels([...groups.map(cardsOf), ...muted.map(([, clicks]) => cardsOf(clicks))], names);
  return [
    ...shown,
    ...muted.map(([{ name }, clicks], at) =>
      clusterOf(clicks, labels[groups.length + at] as string, name !== null, true, 0),
    ),
  ];
}

/** The clicks of the interest that `key` (a click's id) belongs to; none if that click is not a recent one. */
export function clicksOf(profile: Profile, key: number): readonly ClickedNews[] {
  const groups = [...groupsOf(profile.active, profile.labels), ...profile.muted.map(([, clicks]) => clicks)];
  return groups.find((group) => group.some((click) => click.clickId === key)) ?? [];
}

function groupsOf(clicks: readonly ClickedNews[], labels: readonly number[]): ClickedNews[][] {
  const groups: ClickedNews[][] = Array.from({ length: Math.max(-1, ...labels) + 1 }, () => []);
  clicks.forEach((click, at) => (groups[labels[at] as number] as ClickedNews[]).push(click));
  return groups;
}

function cardsOf(clicks: readonly ClickedNews[]): NewsCard[] {
  return clicks.map((click) => click.card);
}

/** The vectors of clicks, [H, D]. */
export function vectorsOf(clicks: readonly ClickedNews[], width: number): Vectors {
  return stacked(clicks.map((click) => click.vector), width);
}

function clusterOf(
  clicks: readonly ClickedNews[],
  label: string,
  namedByReader: boolean,
  muted: boolean,
  weight: number,
): InterestCluster {
  const all = vectorsOf(clicks, clicks[0]?.vector.length ?? 0);
  const central = bestFirst(products(all, Float32Array.from(meanOf(all) ?? [])));
  const headlines = new Map(central.map((row) => (clicks[row] as ClickedNews).card).map((card) => [card.id, card]));
  return {
    key: Math.min(...clicks.map((click) => click.clickId)),
    label,
    named_by_reader: namedByReader,
    muted,
    weight,
    clicks: clicks.length,
    topics: mostCommon(clicks.map((click) => click.card.topic)).slice(0, TOPICS).map(([topic]) => topic),
    headlines: [...headlines.values()].slice(0, HEADLINES),
    last_click_at: Math.max(...clicks.map((click) => click.at)),
  };
}
