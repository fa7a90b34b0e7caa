// One route of the pages: the address it answers, what its handler receives, and how it refuses.
import type { PageAnswer, PageRequest } from "./renderer";

/** A submitted form; null: the page is only viewed. quietly: a script that doesn't want a page back. */
export interface Asked {
  readonly address: string;
  readonly form: readonly (readonly [string, string])[] | null;
  /** Whether the reader followed a link, rather than going back or reloading. */
  readonly followed: boolean;
  readonly quietly: boolean;
}

/** What a handler receives: the named parts of its path, decoded. */
export interface Call extends PageRequest {
  readonly parts: readonly string[];
  readonly form: FormFields;
  readonly followed: boolean;
}

/** The fields of a form, by name. */
export class FormFields {
  constructor(private readonly fields: readonly (readonly [string, string])[]) {}

  one(name: string): string {
    return this.all(name).at(-1) ?? "";
  }

  all(name: string): string[] {
    return this.fields.filter(([key]) => key === name).map(([, value]) => value);
  }
}

export interface Route {
  readonly method: "GET" | "POST";
  /** Matches the whole path; its groups are the call's parts. */
  readonly path: RegExp;
  answer(call: Call): PageAnswer | Promise<PageAnswer>;
}

export const get = (path: RegExp, answer: Route["answer"]): Route => ({ method: "GET", path, answer });
export const post = (path: RegExp, answer: Route["answer"]): Route => ({ method: "POST", path, answer });

/** Nothing exists at this address (any more). */
export class Nowhere extends Error {}

/** The input is invalid; the message says why. */
export class NotTaken extends Error {}

const BACK_CHARS = 3_000;

/** The path if it is on this site, else that of the feed. */
export function localPath(path: string): string {
  return /^\/(?![/\\])[^\\\s\x00-\x1f]*$/.test(path) && path.length <= BACK_CHARS ? path : "/";
}

/** Redirects after a form to `path`, which may show one of [said] in words.toml. */
export function seeOther(path: string, message?: string): PageAnswer {
  const local = localPath(path);
  if (message === undefined) return { kind: "see_other", path: local };
  const [before = "", anchor] = local.split("#", 2);
  const joined = `${before}${before.includes("?") ? "&" : "?"}said=${message}`;
  return { kind: "see_other", path: anchor === undefined ? joined : `${joined}#${anchor}` };
}

/** An integer of the address, from 1; throws Nowhere. */
export function pageNumber(request: PageRequest, most: number): number {
  const text = request.query.get("page") ?? "1";
  const page = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (page < 1 || page > most) throw new Nowhere();
  return page;
}
