// Labels for interests that their reader hasn't named: by their topics and the proper names in them, no two the same.
// Proper names of people, places and companies are found by their capitals.
import { mostCommon } from "../feed/exploration";
import type { NewsCard } from "../protocol/news";

/** Share of capitalised words from which a headline is in title case, so that capitals don't indicate names. */
const TITLE_CASE_SHARE = 0.7;

/** Capitalised words that aren't names. */
const CALENDAR: ReadonlySet<string> = new Set(
  (
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August " +
    "September October November December"
  ).split(" "),
);

/** Lower-case words inside names: "University of Leeds", "Maria de la Cruz". */
const SMALL_WORDS: ReadonlySet<string> = new Set(
  "of the de del della di da do dos das du des la le van von der den ter al el bin ibn y e".split(" "),
);

const WORD = /[\p{L}\p{Nl}\p{No}][\p{L}\p{N}_’'-]*/gu;
const CAPITAL = /^\p{Uppercase}/u;
const BEFORE_SENTENCE = /[.!?:…“‘"(—–]$/u;
const KNOWN = new WeakMap<NewsCard, ReadonlySet<string>>();

interface Word {
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/**
 * Proper names in title and abstract, by their capitals; none in scripts without capitals.
 *
 * A name of several words counts, and each two neighbours of it ("Anna Maria Berg": "Anna Maria", "Maria Berg"), with lower-case
 * words between them ("Bank of Torgan" is one name, not two). A word that begins a sentence counts only beside another
 * capital, and none ends in a genitive ("Towns’").
 */
export function properNames(card: NewsCard): ReadonlySet<string> {
  let known = KNOWN.get(card);
  if (!known) {
    known = new Set([...namesIn(card.title), ...namesIn(card.abstract)].filter((name) => !CALENDAR.has(name) && !name.endsWith("’")));
    KNOWN.set(card, known);
  }
  return known;
}

function namesIn(text: string): Set<string> {
  const words = Array.from(text.matchAll(WORD), (found): Word => {
    const [word] = found;
    return { text: word, start: found.index, end: found.index + word.length };
  });
  const capitals = words.map((word) => CAPITAL.test(word.text));
  const found = new Set<string>();
  if (words.length >= 4 && capitals.filter(Boolean).length >= TITLE_CASE_SHARE * words.length) return found;
  let run: Word[] = [];
  let last = 0; // the end of the run's last word, including lower-case words that may lead to another capital
  const end = (): void => {
    for (const name of namedBy(run, text)) found.add(name);
    run = [];
  };
  words.forEach((word, at) => {
    const apart = text.slice(last, word.start) !== " ";
    if (run.length && (apart || !(capitals[at] || SMALL_WORDS.has(word.text)))) end();
    if (capitals[at]) run.push(word);
    last = word.end;
  });
  end();
  return found;
}

function namedBy(run: readonly Word[], text: string): string[] {
  if (run.length > 1) {
    const [first] = beginsSentence(text.slice(0, run[0]!.start)) ? run.slice(1) : run;
    const last = run.at(-1) as Word;
    const pairs = run.slice(1).map((second, at) => text.slice((run[at] as Word).start, second.end));
    return first === last ? pairs : [...pairs, text.slice(first!.start, last.end)];
  }
  return run.filter((word) => !beginsSentence(text.slice(0, word.start))).map((word) => word.text);
}

/** Whether what follows `before` begins a sentence or a quotation. */
function beginsSentence(before: string): boolean {
  const left = before.trimEnd();
  return left === "" || BEFORE_SENTENCE.test(left);
}

/** Most characters of a proper name in a label. */
const NAME_CHARS = 40;
/** Share of an interest's articles that must contain a distinguishing term. */
const LEAST_SHARE = 0.25;

type Group = readonly NewsCard[];

/** The one or two topics of most of the clicked articles: 'elections', 'elections and courts'. */
export function labelOf(cards: Group): string {
  const [first, second] = mostCommon(cards.map((card) => card.topic));
  if (!first) throw new RangeError("cards: an interest without news has no label");
  const [topic, times] = first;
  return second && second[1] * 2 >= times && times < cards.length ? `${topic} and ${second[0]}` : topic;
}

/**
 * A label for each group of clicked articles, larger groups first; labels given by the reader are kept.
 *
 * Groups with the same label are distinguished by what is more frequent in one than in all the others: another topic
 * ('football and rugby'), otherwise a name in the headlines ('football: Leeds'), otherwise a number.
 */
export function distinctLabels(groups: readonly Group[], chosenLabels: ReadonlyMap<number, string>): string[] {
  const found = groups.map((group, at) => chosenLabels.get(at) || labelOf(group));
  const same = found.map(caseless);
  const used = new Set([...chosenLabels.values()].map(caseless));
  groups.forEach((group, at) => {
    if (chosenLabels.has(at)) return;
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

/** Text for caseless comparison, like Python's `casefold`. */
function caseless(text: string): string {
  return text.toUpperCase().toLowerCase();
}

/** Possible labels of a group, most specific first. rivals: the others that would have the same label. */
function* namesFor(label: string, group: Group, rivals: readonly Group[]): Generator<string> {
  if (rivals.length) {
    const named = caseless(label).split(" and ");
    const topics = new Set(group.map((card) => card.topic).filter((topic) => !named.includes(caseless(topic))));
    for (const topic of telling(topics, group, rivals, (one, card) => card.topic === one))
      yield `${label}${named.length > 1 ? ", " : " and "}${topic}`;
    const names = new Set(group.flatMap(namesWithin).filter((name) => !caseless(label).includes(caseless(name))));
    for (const name of telling(names, group, rivals, mentions)) yield `${label}: ${name}`;
  }
  yield label;
  for (let number = 2; ; number++) yield `${label} ${number}`;
}

/** Returns terms that occur in a quarter of the group's articles and in a larger share of them than in any rival's,
 * sorted by the difference. */
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
  const texts = [card.title, card.abstract];
  return [...properNames(card)].filter(
    (name) => [...name].length <= NAME_CHARS && !texts.some((text) => text.startsWith(name)),
  );
}

function mentions(name: string, card: NewsCard): boolean {
  const text = `${card.title} ${card.abstract}`;
  const bare = name.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
  const end = /[\p{L}\p{N}_]$/u.test(name) ? "(?![\\p{L}\\p{N}_])" : "(?=[\\p{L}\\p{N}_])";
  return text.includes(name) && new RegExp(`(?<![\\p{L}\\p{N}_])${bare}${end}`, "u").test(text);
}
