// Renders the reader's pages from the Python device's templates, with the same texts, figures and values.
//
// Filters follow device_app/pages/renderer.py and Jinja by name and behaviour.
import basePage from "../../templates/device/base.html";
import explorePage from "../../templates/device/explore.html";
import followingPage from "../../templates/device/following.html";
import forYouPage from "../../templates/device/for_you.html";
import freshPage from "../../templates/device/fresh.html";
import historyPage from "../../templates/device/history.html";
import interestsPage from "../../templates/device/interests.html";
import keptPage from "../../templates/device/kept.html";
import muteRulesPage from "../../templates/device/mute_rules.html";
import latencyPage from "../../templates/device/latency.html";
import namedPage from "../../templates/device/named.html";
import pollsPage from "../../templates/device/polls.html";
import popularPage from "../../templates/device/popular.html";
import privacyPage from "../../templates/device/privacy.html";
import problemPage from "../../templates/device/problem.html";
import requestPage from "../../templates/device/request.html";
import savedPage from "../../templates/device/saved.html";
import searchPage from "../../templates/device/search.html";
import searchesPage from "../../templates/device/searches.html";
import settingsPage from "../../templates/device/settings.html";
import storyPage from "../../templates/device/story.html";
import trainingPage from "../../templates/device/training.html";
import welcomePage from "../../templates/device/welcome.html";
import youPage from "../../templates/device/you.html";
import cardsPart from "../../templates/partials/cards.html";
import deviceTabsPart from "../../templates/partials/device_tabs.html";
import endingsPart from "../../templates/partials/endings.html";
import heldPart from "../../templates/partials/held.html";
import iconsPart from "../../templates/partials/icons.html";
import lookPart from "../../templates/partials/look.html";
import savedSearchesPart from "../../templates/partials/saved_searches.html";
import todayPart from "../../templates/partials/today.html";
import trafficPart from "../../templates/partials/traffic.html";
import words from "../../../device_app/pages/words.toml";
import firstUse from "../first_use.toml";
import kept from "./kept.toml";
import type { Reported } from "../store/articles";
import type { Device } from "../device";
import type { Article } from "../feed/item";
import { leadsHome } from "../protocol/links";
import { pictureSize } from "../protocol/pictures";
import { momentOf, msOf, type Clock } from "../protocol/moments";
import { age, brief, fixed, grouped, milliseconds, number, plural, size, typed } from "../protocol/formatting";
import { TextCatalogue } from "../protocol/text_catalogue";
import type { Moment } from "../protocol/forms";
import { stageWords } from "../view_models/latency";
import type { StatusView } from "../view_models/status";
import { pictureName, sectionHue } from "./art";
import { storyHtml } from "./story_text";
import { Environment, initSync } from "minijinja-js/dist/web/minijinja_js.js";

export const TEMPLATES: Readonly<Record<string, string>> = {
  "device/base.html": basePage,
  "device/explore.html": explorePage,
  "device/following.html": followingPage,
  "device/for_you.html": forYouPage,
  "device/fresh.html": freshPage,
  "device/history.html": historyPage,
  "device/interests.html": interestsPage,
  "device/kept.html": keptPage,
  "device/latency.html": latencyPage,
  "device/mute_rules.html": muteRulesPage,
  "device/named.html": namedPage,
  "device/polls.html": pollsPage,
  "device/popular.html": popularPage,
  "device/privacy.html": privacyPage,
  "device/problem.html": problemPage,
  "device/request.html": requestPage,
  "device/saved.html": savedPage,
  "device/search.html": searchPage,
  "device/searches.html": searchesPage,
  "device/settings.html": settingsPage,
  "device/story.html": storyPage,
  "device/training.html": trainingPage,
  "device/welcome.html": welcomePage,
  "device/you.html": youPage,
  "partials/cards.html": cardsPart,
  "partials/device_tabs.html": deviceTabsPart,
  "partials/endings.html": endingsPart,
  "partials/held.html": heldPart,
  "partials/icons.html": iconsPart,
  "partials/look.html": lookPart,
  "partials/saved_searches.html": savedSearchesPart,
  "partials/today.html": todayPart,
  "partials/traffic.html": trafficPart,
};

const LEEWAY = 5;
const WEEKDAYS = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"] as const;
const MONTHS = [
  "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
  "December",
] as const; // prettier-ignore

/** A moment in the wire format, or milliseconds since 1970. */
export type At = Moment | number;
type Filter = (...given: never[]) => unknown;

export function at(moment: At): Date {
  return new Date(typeof moment === "number" ? moment : msOf(moment));
}

const twoDigits = (value: number) => String(value).padStart(2, "0");
const hourAndMinute = (local: Date) => `${twoDigits(local.getHours())}:${twoDigits(local.getMinutes())}`;
const dayAndMonth = (local: Date) => `${local.getDate()} ${MONTHS[local.getMonth()]?.slice(0, 3)}`;

/** Formats as '14:05' in local time, with the day if it isn't today. */
export function clock(moment: At, now: number): string {
  const local = at(moment);
  const time = hourAndMinute(local);
  return local.toDateString() === new Date(now).toDateString() ? time : `${dayAndMonth(local)} ${time}`;
}

/** A section's or topic's display name: 'food-and-drink' -> 'Food and drink'. */
export function sectionName(section: string): string {
  const words = section.replace(/[-_]+/g, " ").trim() || "Other";
  const [first = ""] = words;
  return first.toUpperCase() + words.slice(first.length);
}

/** Escapes like Python's urllib.parse.quote; '/' stays unescaped. */
export function quoted(text: unknown, safe = "/"): string {
  return encodeURIComponent(String(text))
    .replace(/[!'()*]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll("%2F", safe.includes("/") ? "/" : "%2F");
}

/** Builds a query string like Python's urlencode. */
export function query(values: Readonly<Record<string, string>>): string {
  const part = (text: string) => quoted(text, "").replaceAll("%20", "+");
  return Object.entries(values).map(([name, value]) => `${part(name)}=${part(value)}`).join("&");
}

/** The address of a card's drawn picture. */
export function artPath(card: { id: string; section: string; topic: string }): string {
  return `/static/art/${pictureName(card)}.svg`;
}

/** The address of a story's page, opened from a feed, from search results, from a list at this path, or none of
 * them. */
export function storyLink(newsId: string, feed?: string | null, found?: string | null, list?: string | null): string {
  // an empty search is still a search
  const parameters = query({ ...(feed ? { feed } : {}), ...(typeof found === "string" ? { found } : {}), ...(list ? { list } : {}) });
  return `/story/${quoted(newsId)}${parameters && "?"}${parameters}`;
}

/** The address of a publisher's picture by its mark; '' without one. */
export function picturePath(newsId: string, mark: string | null, ofText = 0): string {
  return mark === null ? "" : `/pictures/${quoted(newsId)}.webp?of=${mark}${ofText ? `&n=${ofText}` : ""}`;
}

/** Truncates like Jinja: drops the last partial word, and keeps text at most five characters over the limit. */
export function truncated(text: string, length: number): string {
  const characters = [...text];
  if (characters.length <= length + LEEWAY) return text;
  const cut = characters.slice(0, length - 3).join("");
  const space = cut.lastIndexOf(" ");
  return `${space < 0 ? cut : cut.slice(0, space)}...`;
}

/** Formats one number like Python's %: '%.2f', '%+.2f', '%g', '%.1g'. */
export function printed(form: string, value: number): string {
  const found = /^%(\+)?(?:\.(\d+))?([fg])$/.exec(form);
  if (!found) throw new RangeError(`unknown format ${form}`);
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

/** Returns all filters, bound to the clock. */
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
    story_link: storyLink,
    urlencode: (text: unknown) => quoted(text),
    truncate: (text: string, length: number) => truncated(text, length),
    format: printed,
  };
}

export const WORDS = new TextCatalogue(words);
export const KEPT = new TextCatalogue(kept);
const SAID: Readonly<Record<string, string>> = { ...WORDS.table("said"), ...new TextCatalogue(firstUse).table("said") };

/** Initialises the template engine from its wasm bytes; call it before creating a PageRenderer. */
export function startTemplates(wasm: BufferSource): void {
  initSync({ module: wasm });
}

/** Addresses of the pages under You. */
const YOUR_PAGES = [
  "/you",
  "/interests",
  "/interests/history",
  "/privacy",
  "/training",
  "/settings",
  "/latency",
  "/searches",
  "/rules",
] as const;
/** Matches the name of another template that one extends, imports or includes. */
const NAMED = /\{%-?\s*(?:extends|import|include|from)\s+"([^"]+)"/g;
const TONES = { green: "", weak: "due", amber: "due", red: "bad" } as const;

/** A page's values for its template, which may call functions among them. */
export type Values = Readonly<Record<string, unknown>>;

/** The requested page: path and query of its address. */
export interface PageRequest {
  readonly path: string;
  readonly query: URLSearchParams;
}

/** The answer to a request: HTML, or a redirect. */
export type PageAnswer =
  | { readonly kind: "page"; readonly status: number; readonly html: string }
  | { readonly kind: "see_other"; readonly path: string; readonly erased?: true }
  | { readonly kind: "done" }
  | { readonly kind: "file"; readonly name: string; readonly type: string; readonly content: Uint8Array };

/** Wraps a map for templates that call `.get(name, default)`. */
export function lookup<T>(found: ReadonlyMap<string, T>): { get(name: string, otherwise?: unknown): unknown } {
  return { get: (name, otherwise = null) => found.get(name) ?? otherwise };
}

/** Renders templates for one device. Every page gets the privacy shield and the status line from `Device.status`. */
export class PageRenderer {
  /** Whether this browser has promised to keep stored data. */
  lasts: "promised" | "refused" | "unsaid" = "unsaid";
  private readonly templates = new Environment();
  private readonly compiled = new Set<string>();

  constructor(
    readonly device: Device,
    readonly now: Clock,
  ) {
    const templates = this.templates;
    templates.trimBlocks = true;
    templates.lstripBlocks = true;
    templates.undefinedBehavior = "strict";
    templates.enablePyCompat();
    for (const [name, filter] of Object.entries(filters(now))) templates.addFilter(name, given(filter));
    const pictured = (card: { id: string }) => picturePath(card.id, device.parts.stores.pictures.mark(card.id));
    templates.addFilter("picture_path", given(pictured));
    const alsoIn = (card: Reported) => device.parts.stores.articles.otherSources(card);
    templates.addFilter("also_in", given(alsoIn));
    templates.addGlobal("your_pages", YOUR_PAGES);
    // the browser's own page links and caches the files; only the body of a rendered template is used
    templates.addGlobal("asset", (name: string) => `/static/${name}`);
  }

  /** A page with story cards, which gets the opened stories, reactions and hidden names as values. */
  cards(request: PageRequest, template: string, values: Values, status = 200): PageAnswer {
    const { device } = this;
    const defaults = {
      reactions: lookup(device.library.reactions()),
      read: [...device.library.readNews()],
      hides: device.interests.stances().filter(({ stance }) => stance === "block").map(({ kind, name }) => [kind, name]),
      came: [],
    };
    return this.page(request, template, { ...defaults, ...values }, status);
  }

  /** Renders a full page from `web/templates/device/<template>.html`. */
  page(request: PageRequest, template: string, values: Values, status = 200): PageAnswer {
    const view = this.device.status();
    const queryString = [...request.query].length ? `?${request.query}` : "";
    const name = `device/${template}.html`;
    this.compile(name);
    const html = this.templates.renderTemplate(name, {
      here: request.path,
      here_path: request.path + queryString,
      said: SAID[request.query.get("said") ?? ""] ?? null,
      marked: this.marked(request),
      kept_where: { ...KEPT.table("kept"), lasts: KEPT.table("lasts")[this.lasts] },
      status: view,
      shield: shield(view),
      newsroom: WORDS.say("server"),
      alerts: view.alerts.map((alert) => ({ ...alert, ...alertWords(alert, this.now()) })),
      ...values,
    });
    return { kind: "page", status, html };
  }

  /** The mark that this page offers to undo; null without one. */
  private marked({ path, query: parameters }: PageRequest): { batch: string; stories: number; back: string } | null {
    const batch = parameters.get("marked") ?? "";
    const stories = /^[0-9]{1,15}$/.test(batch) ? this.device.library.marked(Number(batch)) : 0;
    if (!stories) return null;
    const rest = Object.fromEntries([...parameters].filter(([name]) => name !== "marked" && name !== "said"));
    return { batch, stories, back: path + (Object.keys(rest).length ? `?${query(rest)}` : "") };
  }

  /**
   * Adds a template and those that it references on first use: compiling all of them takes longer than drawing a page.
   */
  private compile(name: string): void {
    const source = TEMPLATES[name];
    if (source === undefined || this.compiled.has(name)) return;
    this.compiled.add(name);
    this.templates.addTemplate(name, source);
    for (const [, other] of source.matchAll(NAMED)) this.compile(other as string);
  }

  /** A story's text as HTML of its page. */
  textOf({ card, pieces }: Article): string {
    const { pictures } = this.device.parts.stores;
    const here = (number: number) => {
      const address = picturePath(card.id, pictures.mark(card.id, number), number);
      const content = address ? pictures.content(card.id, number) : null;
      if (!content) return null;
      const [width, height] = pictureSize(content);
      return { address, width, height };
    };
    return storyHtml(pieces, here, (url) => leadsHome(url, this.device.parts.backendUrl));
  }

  /** A page that reports an error. */
  problem(request: PageRequest, status: number, title: string, words: string): PageAnswer {
    return this.page(request, "problem", { title, words }, status);
  }
}

/** A page's text for a background error, and the text once it is over. */
function alertWords(alert: StatusView["alerts"][number], now: number): { said: string; over: string } {
  const what = WORDS.table("loops")[alert.loop] ?? alert.loop;
  return {
    said: WORDS.say("said_of", { what, at: clock(alert.at, now), words: alert.words }),
    over: WORDS.say("works_again", { what }),
  };
}

/**
 * The status icon and its colour, a two-word summary of reports, and the explanation. A shield appears only while
 * nothing is sent: while reports are sent, the icon is an arrow that leaves a box, without a colour.
 */
export function shield(status: StatusView): { icon: string; tone: string; figure: string; words: string } {
  const nothingLeaves = status.shield === "green" && (status.mode === "none" || status.mode === "broadcast");
  const figures = WORDS.table("shield");
  const figure = status.shield === "red" ? figures["red"] : (figures[status.mode] ?? figures[status.shield]);
  const words = WORDS.say(status.training ? "training_on" : "training_off", { shield: status.shield_words });
  return {
    icon: nothingLeaves || status.shield === "red" ? "shield" : "shared",
    tone: nothingLeaves ? "good" : TONES[status.shield],
    figure: figure ?? "",
    words,
  };
}

/** Adapts a filter: MiniJinja passes objects as Map, and both none and undefined as undefined. */
function given(filter: (...values: never[]) => unknown): (...values: unknown[]) => unknown {
  const plain = (value: unknown): unknown =>
    value instanceof Map ? Object.fromEntries([...value].map(([name, each]) => [name, plain(each)])) : value;
  return (...values) => filter(...(values.map(plain) as never[]));
}
