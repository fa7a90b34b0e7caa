// Keeps a copy of the reader's data in an open tab's memory, to restore it if the browser clears the store.
import { momentOf, type Clock } from "./protocol/moments";
import type { DeviceStores } from "./parts";
import type { Row } from "./store/database";
import { VERSION } from "./store/exported";
import { exportedRow, rowsOfTable } from "./view_models/export";

/** Tables of what was paid for; none of it may ever be missing. */
const PAID = ["charge", "drawn_report", "report_meaning", "round_upload", "view_round"] as const;
/** Number of newest stories remembered with text, besides those that the reader has reacted to. */
const STORIES = 500;
const NEWEST = `SELECT news_id FROM (SELECT news_id FROM click ORDER BY id DESC LIMIT ${STORIES})`;
const TOUCHED = `${NEWEST} UNION SELECT news_id FROM reaction`;
const READING: Readonly<Record<string, string>> = {
  click: `news_id IN (${NEWEST}) ORDER BY id`,
  reaction: "true",
  news: `id IN (${TOUCHED})`,
  body: `news_id IN (${TOUCHED})`,
  vector: `news_id IN (${TOUCHED})`,
  preference: "name = 'interests'",
};
/** The reader's switches and sections. */
const CHOSEN = "name IN ('privacy', 'chosen_sections', 'training_paused', 'pictures_hidden')";
const SEARCHES = ["stance", "search", "opened"] as const;
const AFTER_MS = 1_000;

type Tables = Readonly<Record<string, readonly Row[]>>;

/**
 * export: the reader's export file, dated when the store was last seen intact. settled: whether the reader had answered
 * whether there was earlier use.
 */
export interface Remembered {
  readonly export: string;
  readonly settled: boolean;
}

/**
 * Formal guarantees: when a transaction that charges returns, its charge and what was drawn for it are in this copy, so
 * that no byte leaves whose charge the copy lacks. What a form deletes is in no copy once the form's action begins;
 * impressions and the request log are never copied.
 */
export class Memory {
  private seenMs: number;
  private paid: Tables = {};
  private state = "";
  private reading: { tables: Tables; searches: Tables } | null = null;
  private actions = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly stores: DeviceStores,
    clock: Clock,
  ) {
    this.seenMs = clock();
    stores.database.whenCommitted(() => this.notePaid());
    this.notePaid();
    this.noteSoon();
  }

  /** Records that the store was intact at this time, in ms since 1970. */
  storeSeen(atMs: number): void {
    this.seenMs = atMs;
  }

  /** Runs an action that changes what was copied. deletes: whether it may delete some of it. */
  async around<R>(action: () => R | Promise<R>, { deletes }: { deletes: boolean }): Promise<R> {
    this.actions += 1;
    if (deletes) this.reading = null;
    try {
      return await action();
    } finally {
      this.actions -= 1;
      this.noteSoon();
    }
  }

  /** The current copy; includes the latest changes if the cleared files can still be read. */
  now(): Remembered {
    if (!this.actions) this.noteReading();
    const plain = (tables: Tables) =>
      Object.fromEntries(Object.entries(tables).map(([name, rows]) => [name, rows.map(exportedRow)]));
    const empty = Object.fromEntries([...Object.keys(READING), "impression"].map((name) => [name, []]));
    const [read, paid] = [plain(this.reading?.tables ?? {}), plain(this.paid)];
    const preference = [...(read["preference"] ?? []), ...(paid["preference"] ?? [])];
    const tables = { ...empty, ...read, ...paid, preference };
    const views = this.reading ? { searches: plain(this.reading.searches) } : {};
    const kept = { version: VERSION, profile: "reader", exported_at: momentOf(this.seenMs), tables, views };
    return { export: JSON.stringify(kept), settled: this.state.startsWith("settled") };
  }

  private noteSoon(): void {
    this.timer ??= setTimeout(() => {
      this.timer = undefined;
      if (this.actions) this.noteSoon();
      else this.noteReading();
    }, AFTER_MS);
  }

  private notePaid(): void {
    const { database, firstUse } = this.stores;
    const counts = PAID.map((table) => `(SELECT count(*) FROM ${table})`);
    const [row] = database.rows(
      `SELECT ${[...counts, "(SELECT total(length(subject) + length(payload_sha256)) FROM charge)"].join(" || ' ' || ")} AS state,
       (SELECT group_concat(name || value) FROM preference WHERE ${CHOSEN}) AS chosen`,
    );
    const state = `${firstUse.isOpen ? "open" : "settled"} ${String(row?.["state"])} ${String(row?.["chosen"])}`;
    if (state === this.state) return;
    const rows = PAID.map((name) => [name, rowsOfTable(database, name, "true")] as const);
    this.paid = { ...Object.fromEntries(rows), preference: rowsOfTable(database, "preference", CHOSEN) };
    this.state = state;
  }

  private noteReading(): void {
    const { database, searchDatabase } = this.stores;
    try {
      const tables = Object.entries(READING).map(([name, which]) => [name, rowsOfTable(database, name, which)] as const);
      const searches = SEARCHES.map((name) => [name, rowsOfTable(searchDatabase, name, "true")] as const);
      this.reading = { tables: Object.fromEntries(tables), searches: Object.fromEntries(searches) };
    } catch (gone) {
      console.error("what was read is remembered no more than before:", gone);
    }
  }
}
