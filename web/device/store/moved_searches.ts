// Searches and stances of another device's export, on their way into the second view's store, as in
// device_app/store/moved_searches.py.
import type { Database } from "./database";
import type { LateDatabase } from "./late_database";
import { FORGET_UNFOLLOWED, type Stance, type StanceKind } from "./opinions";
import { Preferences } from "./preferences";

/** The preference in which they wait: rows by table, each by column. */
export const MOVED_SEARCHES = "moved_searches";

/** Rows as they were exported; moments are microseconds since 1970. */
export interface SearchRows {
  readonly stance: readonly { readonly kind: StanceKind; readonly name: string; readonly stance: Stance; readonly at: number }[];
  readonly search: readonly { readonly words: string; readonly saved_at: number; readonly looked_at: number }[];
  readonly opened: readonly { readonly news_id: string; readonly at: number }[];
}

/**
 * Two files can't be written in one transaction, so that the first one's says what is still to be written into the second.
 *
 * Formal guarantees: what was put in the transaction of `database` is in `searches` once `finish` has run, whatever ended
 * the worker in between; what was rolled back never comes there; nothing of it stays in `database` then, and nothing of
 * it is in exports before.
 */
export class MovedSearches {
  private readonly preferences: Preferences;

  constructor(
    private readonly database: Database,
    private readonly searches: LateDatabase,
  ) {
    this.preferences = new Preferences(database);
  }

  /** Keep rows, inside the transaction that takes the rest over; after `finish`: those that still waited would be lost. */
  put({ stance, search, opened }: SearchRows): void {
    if (stance.length || search.length || opened.length) this.preferences.set(MOVED_SEARCHES, { stance, search, opened });
  }

  /**
   * Write what waits, if anything does; of two words on one thing the later one stands. Called by whoever has put it, and
   * when a device opens.
   */
  finish(): void {
    const rows = this.preferences.get(MOVED_SEARCHES) as SearchRows | null;
    if (rows === null) return;
    const { searches } = this;
    searches.transaction(() => {
      for (const { kind, name, stance, at } of rows.stance)
        searches.run(
          `INSERT INTO stance (kind, name, stance, at) VALUES (?, ?, ?, ?) ON CONFLICT (kind, name) DO UPDATE
           SET stance = excluded.stance, at = excluded.at WHERE excluded.at > stance.at`,
          [kind, name, stance, at],
        );
      for (const { words, saved_at, looked_at } of rows.search)
        searches.run(
          `INSERT INTO search (words, saved_at, looked_at) VALUES (?, ?, ?) ON CONFLICT (words) DO UPDATE
           SET looked_at = max(search.looked_at, excluded.looked_at)`,
          [words, saved_at, looked_at],
        );
      for (const { news_id, at } of rows.opened)
        searches.run("INSERT INTO opened (news_id, at) VALUES (?, ?) ON CONFLICT DO NOTHING", [news_id, at]);
      searches.run(FORGET_UNFOLLOWED);
    });
    this.preferences.set(MOVED_SEARCHES, null);
    this.database.fold();
  }
}
