// What an interest is called where its reader gave it no name: by what is read in it, and no two alike.
import { mostCommon } from "../feed/shares";
import type { NewsCard } from "../wire/news";
import { properNames } from "./proper_names";

/** Of a person's or place's name in a label, at most. */
const NAME_CHARS = 40;
/** Of an interest's news must have what tells it apart. */
const LEAST_SHARE = 0.25;

type Group = readonly NewsCard[];

/** The one or two topics most of the clicked news are on: 'elections', 'elections and courts'. */
export function labelOf(cards: Group): string {
  const [first, second] = mostCommon(cards.map((card) => card.topic));
  if (!first) throw new RangeError("cards: an interest without news has no label");
  const [topic, times] = first;
  return second && second[1] * 2 >= times && times < cards.length ? `${topic} and ${second[0]}` : topic;
}

/**
 * A label for each group of clicked news, the larger first; those that are given by the reader stand as they are.
 *
 * Where labels would be the same, whatever is read more in one group than in all the others of that label tells them
 * apart: another topic ('football and rugby'), else a name in the headlines ('football: Leeds'); else a number.
 */
export function distinctLabels(groups: readonly Group[], given: ReadonlyMap<number, string>): string[] {
  const found = groups.map((group, at) => given.get(at) || labelOf(group));
  const same = found.map(caseless);
  const used = new Set([...given.values()].map(caseless));
  groups.forEach((group, at) => {
    if (given.has(at)) return;
    const rivals = groups.filter((_, other) => other !== at && same[other] === same[at]);
    for (const name of namesFor(found[at] as string, group, rivals))
      if (!used.has(caseless(name))) {
        found[at] = name;
        break;
      }
    used.add(caseless(found[at] as string));
  });
  return found;
}

/** Text as it is compared, as Python's `casefold` has it. */
function caseless(text: string): string {
  return text.toUpperCase().toLowerCase();
}

/** What a group may be called, the most telling first. rivals: the others that would have the same label. */
function* namesFor(label: string, group: Group, rivals: readonly Group[]): Generator<string> {
  if (rivals.length) {
    const said = caseless(label).split(" and ");
    const topics = new Set(group.map((card) => card.topic).filter((topic) => !said.includes(caseless(topic))));
    for (const topic of telling(topics, group, rivals, (one, card) => card.topic === one))
      yield `${label}${said.length > 1 ? ", " : " and "}${topic}`;
    const names = new Set(group.flatMap(namesWithin).filter((name) => !caseless(label).includes(caseless(name))));
    for (const name of telling(names, group, rivals, mentions)) yield `${label}: ${name}`;
  }
  yield label;
  for (let number = 2; ; number++) yield `${label} ${number}`;
}

/** Terms that a quarter of the group's news hold, and a greater share than of any rival's, by how much greater. */
function telling(
  terms: Iterable<string>,
  group: Group,
  rivals: readonly Group[],
  holds: (term: string, card: NewsCard) => boolean,
): string[] {
  const share = (term: string, cards: Group): number => cards.filter((card) => holds(term, card)).length / cards.length;
  const ahead: [string, number][] = [];
  for (const term of terms) {
    const own = share(term, group);
    const by = own >= LEAST_SHARE ? own - Math.max(...rivals.map((rival) => share(term, rival))) : 0;
    if (by > 0) ahead.push([term, by]);
  }
  return ahead.sort(([a, one], [b, other]) => other - one || (a < b ? -1 : 1)).map(([term]) => term);
}

/** Names in a card that don't begin its title or abstract, as "How Leeds" may. */
function namesWithin(card: NewsCard): string[] {
  const begun = [card.title, card.abstract];
  return [...properNames(card)].filter(
    (name) => [...name].length <= NAME_CHARS && !begun.some((text) => text.startsWith(name)),
  );
}

function mentions(name: string, card: NewsCard): boolean {
  const text = `${card.title} ${card.abstract}`;
  const bare = name.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");
  const end = /[\p{L}\p{N}_]$/u.test(name) ? "(?![\\p{L}\\p{N}_])" : "(?=[\\p{L}\\p{N}_])";
  return text.includes(name) && new RegExp(`(?<![\\p{L}\\p{N}_])${bare}${end}`, "u").test(text);
}
