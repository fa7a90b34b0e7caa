// Small choices of the reader by name: privacy switches, chosen sections, names of interests.
import type { Database } from "./database";

/** When another device's export was last taken over. */
export const TAKEN_OVER = "taken_over";
/** Whether the reader wants to see no pictures of publishers. */
export const PICTURES_HIDDEN = "pictures_hidden";

/** JSON values by name. */
export class Preferences {
  constructor(private readonly database: Database) {}

  /** The value, or null if it was never set. */
  get(name: string): unknown {
    const found = this.database.one<{ value: string }>("SELECT value FROM preference WHERE name = ?", [name]);
    return found ? JSON.parse(found.value) : null;
  }

  /** Keep a JSON value; null forgets the name. */
  set(name: string, value: unknown): void {
    this.database.transaction(() => {
      if (value === null) this.database.run("DELETE FROM preference WHERE name = ?", [name]);
      else {
        const kept = JSON.stringify(value);
        this.database.run("INSERT OR REPLACE INTO preference (name, value) VALUES (?, ?)", [name, kept]);
      }
    });
  }
}
