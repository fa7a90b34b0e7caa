// Records whether an empty store is this reader's first one here, which only the reader can know.\nA server can make
// the browser clear the site's data (`Clear-Site-Data`); the browser itself and its user can, too. Any marker of
// earlier use is then cleared as well.
import type { Preferences } from "./preferences";

const FIRST_USE = "first_use";

/**
 * "new": no sign of earlier use; "lost": there is one, such as a tab's own history or the browser's promise to keep the
 * site's data. null: answered, or a store in use since before this question existed.
 */
export type Question = "new" | "lost" | null;

export class FirstUse {
  constructor(private readonly preferences: Preferences) {}

  get question(): Question {
    return this.preferences.get(FIRST_USE) as Question;
  }

  /** Whether nothing may be charged yet. */
  get isOpen(): boolean {
    return this.question !== null;
  }

  /** Opens the question. */
  ask(question: "new" | "lost"): void {
    this.preferences.set(FIRST_USE, question);
  }

  /** Records a sign of earlier use. */
  signFound(): void {
    if (this.isOpen) this.ask("lost");
  }

  /** Closes the question: the reader has answered, or an earlier ledger was restored. */
  settle(): void {
    this.preferences.set(FIRST_USE, null);
  }
}
