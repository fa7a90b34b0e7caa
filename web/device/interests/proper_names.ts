// Names of people, places and firms in a card's words, told by their capitals.
import type { NewsCard } from "../wire/news";

/** In a headline with so many of its words capitalised, capitals tell no name. */
const TITLE_CASE_SHARE = 0.7;

/** Capitals that name no one. */
const CALENDAR: ReadonlySet<string> = new Set(
  (
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday January February March April May June July August " +
    "September October November December"
  ).split(" "),
);

/** Small letters that stand within names: "University of Leeds", "Maria de la Cruz". */
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
 * Names of people, places, firms in title and abstract, by their capitals; none in scripts without capitals.
 *
 * Of a name of several words each two neighbours count ("Anna Maria Berg": "Anna Maria", "Maria Berg"), small words
 * between them included ("Bank of Torgan" is one name, not two). A word that begins a sentence counts only beside
 * another capital.
 */
export function properNames(card: NewsCard): ReadonlySet<string> {
  let known = KNOWN.get(card);
  if (!known) {
    known = new Set([...namesIn(card.title), ...namesIn(card.abstract)].filter((name) => !CALENDAR.has(name)));
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
  let last = 0; // where the last word of the run ends, small ones that may lead on to a capital among them
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
  if (run.length > 1) return run.slice(1).map((second, at) => text.slice((run[at] as Word).start, second.end));
  return run.filter((word) => !beginsSentence(text.slice(0, word.start))).map((word) => word.text);
}

/** Whether what comes after `before` begins a sentence, or a quotation. */
function beginsSentence(before: string): boolean {
  const left = before.trimEnd();
  return left === "" || BEFORE_SENTENCE.test(left);
}
