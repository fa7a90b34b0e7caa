// The filters of the pages' templates, by the names and rules of device_app/pages/renderer.py and of Jinja.
import { age, brief, fixed, grouped, milliseconds, number, plural, size, typed } from "../figures";
import { type Clock, momentOf, msOf } from "../moments";
import { stageWords } from "../view_models/latency";
import type { Moment } from "../wire/values";
import { sectionHue } from "./art/colours";

const LEEWAY = 5;
const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"] as const;
const MONTHS = [
  "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
  "December",
] as const; // prettier-ignore

/** A moment of the wire, or milliseconds since 1970. */
export type At = Moment | number;
type Filter = (...given: never[]) => unknown;

export function at(moment: At): Date {
  return new Date(typeof moment === "number" ? moment : msOf(moment));
}

const twoDigits = (value: number) => String(value).padStart(2, "0");
const hourAndMinute = (local: Date) => `${twoDigits(local.getHours())}:${twoDigits(local.getMinutes())}`;
const dayAndMonth = (local: Date) => `${local.getDate()} ${MONTHS[local.getMonth()]?.slice(0, 3)}`;

/** '14:05', with the day where it isn't today, in this machine's time. */
export function clock(moment: At, now: number): string {
  const local = at(moment);
  const time = hourAndMinute(local);
  return local.toDateString() === new Date(now).toDateString() ? time : `${dayAndMonth(local)} ${time}`;
}

/** A section or topic as a reader wants to see it: 'food-and-drink' -> 'Food and drink'. */
export function sectionName(section: string): string {
  const words = section.replace(/[-_]+/g, " ").trim() || "Other";
  const [first = ""] = words;
  return first.toUpperCase() + words.slice(first.length);
}

/** As Python's urllib.parse.quote writes it, '/' as it is. */
export function quoted(text: unknown, safe = "/"): string {
  return encodeURIComponent(String(text))
    .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll("%2F", safe.includes("/") ? "/" : "%2F");
}

/** Of a query, as Python's urlencode writes it. */
export function query(values: Readonly<Record<string, string>>): string {
  const part = (text: string) => quoted(text, "").replaceAll("%20", "+");
  return Object.entries(values).map(([name, value]) => `${part(name)}=${part(value)}`).join("&");
}

/** The address of a card's drawn picture. */
export function artPath(card: { id: string; section: string; topic: string }): string {
  return `/art/${quoted(card.id)}.svg?${query({ section: card.section, topic: card.topic })}`;
}

/** The address of a publisher's picture by its mark; '' without one. */
export function picturePath(newsId: string, mark: string | null): string {
  return mark === null ? "" : `/pictures/${quoted(newsId)}.webp?of=${mark}`;
}

/** Jinja's: the last word goes whole, and what is but five characters too long stays. */
export function truncated(text: string, length: number): string {
  const characters = [...text];
  if (characters.length <= length + LEEWAY) return text;
  const cut = characters.slice(0, length - 3).join("");
  const space = cut.lastIndexOf(" ");
  return `${space < 0 ? cut : cut.slice(0, space)}...`;
}

/** Python's % for one number: '%.2f', '%+.2f', '%g', '%.1g'. */
export function printed(form: string, value: number): string {
  const found = /^%(\+)?(?:\.(\d+))?([fg])$/.exec(form);
  if (!found) throw new RangeError(`format: no form ${form}`);
  const digits = found[2] === undefined ? 6 : Number(found[2]);
  const text = found[3] === "g" ? brief(value, digits || 1) : fixed(value, digits);
  return found[1] && !text.startsWith("-") ? `+${text}` : text;
}

function slug(text: string): string {
  return `s-${text.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "") || "other"}`;
}

function pathOf(url: string): string {
  const { pathname, search } = new URL(url, "http://device.invalid");
  return pathname + search;
}

/** All of them, with what they need of the device. */
export function filters(now: Clock): Readonly<Record<string, Filter>> {
  const span = (first: At, last: At) => {
    const [start, end] = [clock(first, now()), clock(last, now())];
    return start === end ? `at ${end}` : `${start} to ${hourAndMinute(at(last))}`;
  };
  return {
    ms: milliseconds,
    size,
    number,
    typed,
    slug,
    span,
    grouped: (value: number) => grouped(value),
    plural: (count: number, one: string, many?: string) => plural(count, one, many),
    path_of: pathOf,
    host_of: (url: string) => new URL(url).host,
    age: (then: At) => age(at(then).getTime(), now()),
    clock: (moment: At) => clock(moment, now()),
    exact_clock: (moment: At) => `${hourAndMinute(at(moment))}:${twoDigits(at(moment).getSeconds())}`,
    day_and_clock: (moment: At) => {
      const local = at(moment);
      const day = `${WEEKDAYS[local.getDay()]} ${local.getDate()} ${MONTHS[local.getMonth()]} ${local.getFullYear()}`;
      return `${day}, ${hourAndMinute(local)}`;
    },
    day_month: (moment: At) => dayAndMonth(at(moment)),
    iso: (moment: At) => (typeof moment === "number" ? momentOf(moment) : moment).replace(/Z$/, "+00:00"),
    section_name: sectionName,
    of_stage: stageWords,
    hue: (section: string) => `hue-${sectionHue(section)}`,
    art_path: artPath,
    urlencode: (text: unknown) => quoted(text),
    truncate: (text: string, length: number) => truncated(text, length),
    format: printed,
  };
}
