// What is popular, as the backend tells everybody.
import { readMessage } from "../wire/forms";
import { LIFT_REACH, LIFT_STEP, type Popularity, popularity } from "../wire/popularity";
import type { Database } from "./database";
import { fromUs, toUs } from "./rows";

/** content is the answer to the byte, from which its ETag is computed; values are its lifts, from -1 to 1. */
export interface StoredPopularity {
  readonly told: Popularity;
  readonly content: Uint8Array;
  readonly keptAt: number;
  readonly values: ReadonlyMap<string, number>;
}

/** The last answer; read once, then from memory. */
export class PopularityStore {
  private known: StoredPopularity | null | undefined;

  constructor(private readonly database: Database) {
    database.whenUndone(() => (this.known = undefined));
  }

  /** The answer in use; null before the first. */
  current(): StoredPopularity | null {
    if (this.known === undefined) this.known = this.read();
    return this.known;
  }

  /** Use this answer, checked before, from now on. */
  keep(content: Uint8Array, at: number): void {
    this.database.quickTransaction(() => {
      this.database.run("INSERT OR REPLACE INTO popularity (only, content, kept_at) VALUES (1, ?, ?)", [content, toUs(at)]);
      this.known = undefined;
    });
  }

  private read(): StoredPopularity | null {
    const row = this.database.one<{ content: Uint8Array; kept_at: number }>("SELECT content, kept_at FROM popularity");
    if (!row) return null;
    const told = readMessage(popularity, row.content);
    const values = new Map(told.news.map((id, at) => [id, ((told.lifts[at] as number) * LIFT_STEP) / LIFT_REACH]));
    return { told, content: row.content, keptAt: fromUs(row.kept_at), values };
  }
}
