// What a page says to the worker that is the device, and what it hears.
import type { BuildVerdict } from "./wire/builds";

/** A page or a form; followed: its reader followed a link. quietly: only the deed is wanted, no page. */
export interface Asking {
  readonly address: string;
  readonly form: readonly (readonly [string, string])[] | null;
  readonly followed: boolean;
  readonly quietly: boolean;
}

/** Pictures by the addresses that pages name. */
export interface AskingForPictures {
  readonly pictures: readonly string[];
}

/** Whether this browser has promised to keep what is stored: told by the page, as a worker can't ask for it. */
export interface TellingOfStorage {
  readonly persisted: boolean;
}

/** What the publisher's signed list says of builds, by their SHA-256 in hex. */
export interface AskingForVerdicts {
  readonly builds: readonly string[];
}

/** To be told once the device has looked at what is new, or could not: what can wait waits for that. */
export interface AskingForQuiet {
  readonly quiet: true;
}

export type Question = Asking | AskingForPictures | TellingOfStorage | AskingForVerdicts | AskingForQuiet;

/** erased: all that the device knew of its reader, so that no tab shows anything of it any more. */
export type Answer =
  | { readonly kind: "page"; readonly status: number; readonly html: string }
  | { readonly kind: "see_other"; readonly path: string; readonly erased?: true }
  | { readonly kind: "done" }
  | { readonly kind: "file"; readonly name: string; readonly type: string; readonly content: Uint8Array }
  | { readonly kind: "pictures"; readonly drawn: readonly string[] }
  | { readonly kind: "builds"; readonly verdicts: readonly BuildVerdict[] }
  | { readonly kind: "failed"; readonly words: string };

/** Whether the reader has erased everything. */
export function hasErased(answer: Answer): boolean {
  return answer.kind === "see_other" && answer.erased === true;
}

/** A question and its answer are of one number, drawn by chance by who asks. */
export interface Asked {
  readonly id: string;
  readonly question: Question;
}
export interface Answered {
  readonly id: string;
  readonly answer: Answer;
}
