// Expands a search into words with a related meaning, from a list of English words made for news: the Python device's.
// Words that it doesn't have are searched as written.
import lists from "../../../device_app/feed/related_words.toml";
import { QUERY_WORDS_LIMIT, folded, wordsOf } from "../store/searches";

/** Longest phrase of the list, in words, and shortest base form of a word, in letters. */
const [PHRASE_WORDS, BASE_LENGTH] = [4, 3];
const VOWELS = "aeiou";

/** A word or phrase of a search as FTS5 expressions: itself in all its forms, and related words ('' if none). */
export interface SearchTerm {
  readonly own: string;
  readonly related: string;
}

interface Lists {
  readonly skipped: ReadonlySet<string>;
  readonly related: ReadonlyMap<string, readonly string[]>;
}

let read: Lists | null = null;

/** Returns the search's terms: the longest known phrases, then single words, without words like "the". */
export function termsOf(text: string): SearchTerm[] {
  const { skipped } = listsRead();
  const words = folded(text).split(/\s+/u).filter(Boolean).slice(0, QUERY_WORDS_LIMIT).flatMap(plain);
  const terms: SearchTerm[] = [];
  for (let at = 0; at < words.length; ) {
    for (let size = Math.min(PHRASE_WORDS, words.length - at); size > 0; size--) {
      const phrase = words.slice(at, at + size);
      const related = relatedTo(phrase);
      if (size > 1 && !related.length) continue;
      if (size > 1 || !skipped.has(phrase[0] as string)) terms.push(termOf(phrase, related, skipped));
      at += size;
      break;
    }
  }
  return terms;
}

/** The phrases that the list relates to this one, in any form of its first and last word. */
function relatedTo(phrase: readonly string[]): readonly string[] {
  const { related } = listsRead();
  for (const first of phrase.length > 1 ? baseForms(phrase[0] as string) : [""])
    for (const last of baseForms(phrase[phrase.length - 1] as string)) {
      const found = related.get(phrase.length > 1 ? [first, ...phrase.slice(1, -1), last].join(" ") : last);
      if (found?.length) return found;
    }
  return [];
}

/** The word and the words that it may be a plural, a past or an -ing form of. */
export function baseForms(word: string): string[] {
  const forms = [word];
  if (word.endsWith("s") && !word.endsWith("ss")) {
    if (word.endsWith("ies")) forms.push(`${word.slice(0, -3)}y`);
    forms.push(word.slice(0, -1));
    if (word.endsWith("es")) forms.push(word.slice(0, -2));
  }
  for (const ending of ["ed", "ing"]) {
    if (!word.endsWith(ending)) continue;
    const rest = word.slice(0, -ending.length);
    if ([...rest].length < BASE_LENGTH) continue;
    if (ending === "ed" && rest.endsWith("i")) forms.push(`${rest.slice(0, -1)}y`);
    if (rest.at(-1) === rest.at(-2)) forms.push(rest.slice(0, -1));
    forms.push(rest, `${rest}e`);
  }
  return [...new Set(forms.filter((form) => form === word || [...form].length >= BASE_LENGTH))];
}

/** Every form in which a word may stand in a text, in alphabetical order; only the word itself if not ASCII. */
export function allForms(word: string): string[] {
  if (!/^[a-zA-Z]+$/.test(word)) return [word];
  const forms = new Set<string>();
  for (const base of baseForms(word)) {
    for (const ending of ["", "s", "ed", "ing"]) forms.add(base + ending);
    const [before, last] = [base.at(-2) ?? "", base.at(-1) ?? ""];
    const stem = base.slice(0, -1);
    if (last === "e") forms.add(`${base}d`).add(`${stem}ing`);
    else if (last === "y") forms.add(`${stem}ies`).add(`${stem}ied`);
    else forms.add(`${base}es`);
    if (base.length > 2 && !`${VOWELS}wxy`.includes(last) && VOWELS.includes(before)) forms.add(`${base}${last}ed`).add(`${base}${last}ing`);
  }
  return [...forms].sort();
}

function termOf(phrase: readonly string[], related: readonly string[], skipped: ReadonlySet<string>): SearchTerm {
  const alternatives = related.map((other) => expression(other.split(" ")));
  const meaningful = phrase.filter((word) => !skipped.has(word));
  // a story with all words of a phrase, though not in sequence, counts like one with a related word
  if (phrase.length > 1 && meaningful.length) alternatives.push(`(${meaningful.map((word) => `(${expression([word])})`).join(" AND ")})`);
  return { own: expression(phrase), related: alternatives.join(" OR ") };
}

function expression(phrase: readonly string[]): string {
  return allForms(phrase[phrase.length - 1] as string)
    .map((last) => `"${[...phrase.slice(0, -1), last].join(" ")}"`)
    .join(" OR ");
}

function plain(word: string): string[] {
  const parts = wordsOf(word).replaceAll("_", " ").match(/[\p{L}\p{N}_]+/gu) ?? [];
  // unspaced scripts stay one phrase
  return !parts.length || /^[\x00-\x7f]*$/.test(parts.join("")) ? parts : [parts.join(" ")];
}

/** Returns the words that are ignored on their own, and the related phrases of each phrase. */
function listsRead(): Lists {
  if (read) return read;
  const table = lists as unknown as { readonly skipped: string; readonly related: Readonly<Record<string, string>> };
  const keys = new Map(Object.entries(table.related).map(([key, others]) => [key, others.split(", ")]));
  const related = new Map<string, string[]>();
  for (const [key, others] of keys)
    for (const other of others) {
      if (keys.has(other)) continue;
      const held = related.get(other) ?? [];
      for (const one of [key, ...others]) if (one !== other && !held.includes(one)) held.push(one);
      related.set(other, held);
    }
  for (const [key, others] of keys) related.set(key, others);
  read = { skipped: new Set(table.skipped.split(" ")), related };
  return read;
}
