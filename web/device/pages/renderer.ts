// Draws the reader's pages from the templates of the Python device, with the same words, figures and values.
import { Environment, initSync } from "minijinja-js/dist/web/minijinja_js.js";
import words from "../../../device_app/pages/words.toml";
import kept from "./kept.toml";
import type { Device } from "../device";
import type { Clock } from "../moments";
import { Prose } from "../prose";
import type { StatusView } from "../view_models/status";
import { clock, filters, picturePath } from "./filters";
import { TEMPLATES } from "./templates";

export const WORDS = new Prose(words);
export const KEPT = new Prose(kept);

/** Ready the templates' machine by the bytes of its wasm; before the first PageRenderer. */
export function startTemplates(wasm: BufferSource): void {
  initSync({ module: wasm });
}

/** Addresses of the pages that lie under You. */
const YOUR_PAGES = [
  "/you",
  "/interests",
  "/interests/history",
  "/privacy",
  "/training",
  "/settings",
  "/latency",
  "/searches",
] as const;
/** The name of another template, where one extends, imports or includes it. */
const NAMED = /\{%-?\s*(?:extends|import|include|from)\s+"([^"]+)"/g;
const TONES = { green: "good", weak: "due", amber: "due", red: "bad" } as const;

/** A page's values for its template; functions may be called there. */
export type Values = Readonly<Record<string, unknown>>;

/** What a page was asked for: its path and query as an address has them. */
export interface PageRequest {
  readonly path: string;
  readonly query: URLSearchParams;
}

/** What answers a page: HTML, or another address to go to. */
export type PageAnswer =
  | { readonly kind: "page"; readonly status: number; readonly html: string }
  | { readonly kind: "see_other"; readonly path: string; readonly erased?: true }
  | { readonly kind: "done" }
  | { readonly kind: "file"; readonly name: string; readonly type: string; readonly content: Uint8Array };

/** A map that a template asks with `.get(name, otherwise)`. */
export function lookup<T>(found: ReadonlyMap<string, T>): { get(name: string, otherwise?: unknown): unknown } {
  return { get: (name, otherwise = null) => found.get(name) ?? otherwise };
}

/** Renders templates for one device. Every page gets the shield and the thin line from `Device.status`. */
export class PageRenderer {
  /** Whether this browser has promised to keep what is stored. */
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
    templates.addGlobal("your_pages", YOUR_PAGES);
    // the browser's own page names the files once and keeps them; only what stands in its body is taken of a template
    templates.addGlobal("asset", (name: string) => `/static/${name}`);
  }

  /** A page with cards of news: with what the reader opened, said of single stories, and hides. */
  cards(request: PageRequest, template: string, values: Values, status = 200): PageAnswer {
    const { device } = this;
    const said = {
      reactions: lookup(device.reactions()),
      read: [...device.readNews()],
      hides: device.stances().filter(({ stance }) => stance === "block").map(({ kind, name }) => [kind, name]),
      came: [],
    };
    return this.page(request, template, { ...said, ...values }, status);
  }

  /** A whole page from `web/templates/device/<template>.html`. */
  page(request: PageRequest, template: string, values: Values, status = 200): PageAnswer {
    const view = this.device.status();
    const asked = [...request.query].length ? `?${request.query}` : "";
    const name = `device/${template}.html`;
    this.compile(name);
    const html = this.templates.renderTemplate(name, {
      here: request.path,
      here_path: request.path + asked,
      said: WORDS.table("said")[request.query.get("said") ?? ""] ?? null,
      kept_where: { ...KEPT.table("kept"), lasts: KEPT.table("lasts")[this.lasts] },
      status: view,
      shield: shield(view),
      newsroom: WORDS.say("server"),
      alerts: view.alerts.map((alert) => ({ ...alert, ...alertWords(alert, this.now()) })),
      ...values,
    });
    return { kind: "page", status, html };
  }

  /** Add a template, and those that it names, before it is drawn first: all of them together take longer than a page. */
  private compile(name: string): void {
    const source = TEMPLATES[name];
    if (source === undefined || this.compiled.has(name)) return;
    this.compiled.add(name);
    this.templates.addTemplate(name, source);
    for (const [, other] of source.matchAll(NAMED)) this.compile(other as string);
  }

  /** A page that says what happened. */
  problem(request: PageRequest, status: number, title: string, words: string): PageAnswer {
    return this.page(request, "problem", { title, words }, status);
  }
}

/** What a page says of an error in the background, and what once it is over. */
function alertWords(alert: StatusView["alerts"][number], now: number): { said: string; over: string } {
  const what = WORDS.table("loops")[alert.loop] ?? alert.loop;
  return {
    said: WORDS.say("said_of", { what, at: clock(alert.at, now), words: alert.words }),
    over: WORDS.say("works_again", { what }),
  };
}

/** The shield's colour, its two words on how reports stand, and what stands behind them. */
export function shield(status: StatusView): { tone: string; figure: string; words: string } {
  const figures = WORDS.table("shield");
  const figure = status.shield === "red" ? figures["red"] : (figures[status.mode] ?? figures[status.shield]);
  const words = WORDS.say(status.training ? "training_on" : "training_off", { shield: status.shield_words });
  return { tone: TONES[status.shield], figure: figure ?? "", words };
}

/** MiniJinja hands objects over as Map; none and undefined alike as undefined. */
function given(filter: (...values: never[]) => unknown): (...values: unknown[]) => unknown {
  const plain = (value: unknown): unknown =>
    value instanceof Map ? Object.fromEntries([...value].map(([name, each]) => [name, plain(each)])) : value;
  return (...values) => filter(...(values.map(plain) as never[]));
}
