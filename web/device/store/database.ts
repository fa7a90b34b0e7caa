// The device's SQLite databases: opened, migrated, and written in transactions that survive a kill intact.
//
// Also converts moments, and divides long lists into pages. The second view's database is created only when something
// is stored in it.
import sqlite3InitModule, { type Database as Oo1Database, type PreparedStatement, type SAHPoolUtil, type Sqlite3Static } from "@sqlite.org/sqlite-wasm";
import bookkeeping from "./bookkeeping.sql";
import { StoreBroken } from "../errors";
import { FOLDER, onceFree } from "./held_file";
import storeSchema from "../../../device_app/store/migrations/0001_first_schema.sql";
import searchesSchema from "../../../device_app/store/search_migrations/0001_first_schema.sql";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";

/** A migration's name in the table of applied ones, and its statements. They are the Python device's own. */
interface Migration {
  readonly name: string;
  readonly sql: string;
}
const MIGRATIONS: readonly Migration[] = [{ name: "0001_first_schema", sql: storeSchema }];
/** Migrations of the second view's store. */
const SEARCH_MIGRATIONS: readonly Migration[] = [{ name: "0001_first_schema", sql: searchesSchema }];

/** To the store's microseconds since 1970, as on the Python device. Elsewhere moments are milliseconds since 1970. */
export function toUs(ms: number): number {
  return Math.round(ms * 1000);
}

export function fromUs(us: number): number {
  return us / 1000;
}

export const PAGE_SIZE = 50;

/** Rows of page `number` (from 1) and the total number of rows. */
export interface Page<T> {
  readonly rows: readonly T[];
  readonly number: number;
  readonly total: number;
  /** Number of pages; an empty list has one. */
  readonly pages: number;
}

export function pageOf<T>(rows: readonly T[], number: number, total: number): Page<T> {
  return { rows, number, total, pages: Math.max(1, Math.ceil(total / PAGE_SIZE)) };
}

/** Returns the number of rows before page `number`. Throws RangeError below page 1. */
export function offset(number: number): number {
  if (number < 1) throw new RangeError(`page ${number}: pages count from 1`);
  return (number - 1) * PAGE_SIZE;
}

/** Integers beyond 2^53 are bigint. */
export type Value = null | number | string | bigint | Uint8Array;
/** A row by the names of its columns. */
export type Row = Record<string, Value>;

const CACHE_KIB = 4096;
const BOOKKEEPING_VERSION = 2;
const KEPT_STATEMENTS = 256;
/**
 * Tables that `erase` keeps: charges without their subjects (erasing must not renew the budget), and data that isn't
 * about the reader.
 */
const KEPT_BY_ERASE: ReadonlySet<string> = new Set([
  "charge",
  "pinned_key",
  "release",
  "encoder",
  "view_round",
  "report_meaning",
  "release_chain",
  "round_upload",
]);
const POOL_FILES = 6;

/** SQLite's error codes for a full or removed browser storage, and for damaged files. */
const IO_ERROR = 10;
const FULL = 13;
const CORRUPT = 11;
const NOT_A_DATABASE = 26;

/**
 * A SQLite database. A nested transaction joins the outer one. Nothing waits for locks: one worker owns the database.
 *
 * As on the Python device: what `transaction` has written when it returns survives a kill of the tab and a power cut.
 * What `quickTransaction` and single statements have written survives a kill; a power cut may lose the latest writes,
 * but never part of one. Deleted rows are overwritten (secure_delete); they remain in the log until `fold`.
 */
export class Database {
  private depth = 0;
  private quick = false;
  private readonly undone: (() => void)[] = [];
  private readonly committed: (() => void)[] = [];
  private readonly statements = new Map<string, PreparedStatement>();

  /** Migrates the file to the newest version. Throws StoreBroken if a newer Ownfeed wrote it, or if it isn't ours. */
  constructor(
    private readonly sqlite: Sqlite3Static,
    private readonly opened: Oo1Database,
    migrations: readonly Migration[] = MIGRATIONS,
  ) {
    try {
      for (const pragma of [
        // no other connection ever has the file: reads needn't check for others' changes, and the log needs no shared
        // memory
        "locking_mode=EXCLUSIVE",
        "journal_mode=WAL",
        "synchronous=NORMAL",
        "foreign_keys=ON",
        "secure_delete=ON",
        `cache_size=-${CACHE_KIB}`,
        "temp_store=MEMORY",
      ]) {
        opened.exec(`PRAGMA ${pragma}`);
      }
      this.migrate(migrations);
    } catch (broken) {
      this.close();
      throw storeError(broken);
    }
  }

  /** Runs one statement; returns the number of rows it changed. */
  run(sql: string, params: readonly Value[] = []): number {
    return this.stepped(sql, params, (statement) => {
      while (statement.step());
      return Number(this.opened.changes());
    });
  }

  /** All rows of a query. */
  rows<T extends object = Row>(sql: string, params: readonly Value[] = []): T[] {
    return this.stepped(sql, params, (statement) => {
      const found: T[] = [];
      while (statement.step()) found.push(statement.get({}) as T);
      return found;
    });
  }

  /** The first row of a query, or undefined. */
  one<T extends object = Row>(sql: string, params: readonly Value[] = []): T | undefined {
    return this.rows<T>(sql, params)[0];
  }

  /** The first column of the first row, for counts; 0 if there is none. */
  number(sql: string, params: readonly Value[] = []): number {
    const found = this.one(sql, params);
    return found ? Number(Object.values(found)[0] ?? 0) : 0;
  }

  /**
   * Runs `work` in a transaction: all of its writes are on disk when this returns, or none if it throws. Throws Error
   * inside a quick transaction, whose end wouldn't wait for the disk.
   */
  transaction<R>(work: () => R): R {
    if (this.quick) throw new Error("a write that must reach the disk can't be nested in a quick transaction");
    if (this.depth) return work();
    this.opened.exec("PRAGMA synchronous=FULL");
    try {
      const result = this.inTransaction(work);
      for (const note of this.committed) note();
      return result;
    } finally {
      this.opened.exec("PRAGMA synchronous=NORMAL");
    }
  }

  /** Calls `note` at the end of each `transaction`, before it returns. */
  whenCommitted(note: () => void): void {
    this.committed.push(note);
  }

  /** Like `transaction`, but doesn't wait for the disk at the end. Inside another transaction it joins that one. */
  quickTransaction<R>(work: () => R): R {
    if (this.depth) return work();
    this.quick = true;
    try {
      return this.inTransaction(work);
    } finally {
      this.quick = false;
    }
  }

  private inTransaction<R>(work: () => R): R {
    const written = this.opened.changes(true);
    try {
      this.opened.exec("BEGIN IMMEDIATE");
      this.depth = 1;
      const result = work();
      this.opened.exec("COMMIT");
      return result;
    } catch (broken) {
      if (!this.sqlite.capi.sqlite3_get_autocommit(this.opened)) this.opened.exec("ROLLBACK");
      // nothing needs undoing if it failed before writing, for example for lack of budget
      if (this.opened.changes(true) !== written) this.forgetAll();
      throw storeError(broken);
    } finally {
      this.depth = 0;
    }
  }

  /** Calls `forget` whenever writes are rolled back: for caches of written data. */
  whenUndone(forget: () => void): void {
    this.undone.push(forget);
  }

  /**
   * Deletes and overwrites all data about the reader and releases the space; charges stay, see above. keep: writes what
   * is kept besides; it is committed with the deletion or not at all, even if the tab is killed.
   */
  erase(keep: () => void = () => undefined): void {
    this.transaction(() => {
      const kinds = "SELECT name, type FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')";
      for (const { name, type } of this.rows<{ name: string; type: string }>(kinds)) {
        if (/^(_yoyo|yoyo|sqlite_)/.test(name) || KEPT_BY_ERASE.has(name)) continue;
        this.run(`DELETE FROM ${name}`);
        this.run("DELETE FROM sqlite_sequence WHERE name = ?", [name]);
        // a full-text index keeps the words of deleted rows until it is rebuilt
        if (type === "virtual") this.run(`INSERT INTO ${name} (${name}) VALUES ('rebuild')`);
      }
      if (this.has("charge")) {
        this.run("UPDATE charge SET subject = '', payload_sha256 = ''");
        this.run("UPDATE round_upload SET payload_sha256 = ''");
      }
      keep();
    });
    this.forgetAll();
    this.finalizeAll();
    this.opened.exec("VACUUM");
    this.fold();
  }

  /**
   * Checkpoints the log into the file and empties it; after that no file contains anything that was deleted or
   * overwritten before.
   */
  fold(): void {
    try {
      this.opened.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch (broken) {
      throw storeError(broken);
    }
  }

  /** The whole file, in a form that the Python device can open. */
  exported(): Uint8Array {
    return this.sqlite.capi.sqlite3_js_db_export(this.opened);
  }

  close(): void {
    this.finalizeAll();
    this.opened.close();
  }

  /** Runs a statement. Throws StoreBroken for a storage fault. */
  private stepped<R>(sql: string, params: readonly Value[], work: (statement: PreparedStatement) => R): R {
    const statement = this.prepared(sql);
    try {
      if (params.length) statement.bind([...params]);
      return work(statement);
    } catch (broken) {
      throw storeError(broken);
    } finally {
      try {
        statement.reset(true);
      } catch {
        // SQLite repeats the last step's error, which was already thrown
      }
    }
  }

  private has(table: string): boolean {
    return this.number("SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?", [table]) > 0;
  }

  private prepared(sql: string): PreparedStatement {
    let statement = this.statements.get(sql);
    if (!statement) {
      if (this.statements.size >= KEPT_STATEMENTS) this.finalizeAll();
      statement = this.opened.prepare(sql);
      this.statements.set(sql, statement);
    }
    return statement;
  }

  private finalizeAll(): void {
    for (const statement of this.statements.values()) statement.finalize();
    this.statements.clear();
  }

  /** Clears all caches, even those of rows that weren't written through them. */
  forgetAll(): void {
    for (const forget of this.undone) forget();
  }

  private migrate(migrations: readonly Migration[]): void {
    if (!this.number("SELECT count(*) FROM sqlite_schema")) this.opened.exec("PRAGMA encoding='UTF-8'");
    else if (!this.has("_yoyo_migration"))
      throw new StoreBroken("the file contains no Ownfeed data");
    this.transaction(() => {
      const now = new Date().toISOString().slice(0, -1);
      if (!this.number("SELECT count(*) FROM sqlite_schema")) {
        this.opened.exec(bookkeeping);
        this.run("INSERT INTO _yoyo_version VALUES (?, ?)", [BOOKKEEPING_VERSION, now]);
      }
      const applied = new Set(
        this.rows<{ migration_id: string }>("SELECT migration_id FROM _yoyo_migration").map((row) => row.migration_id),
      );
      const known = new Set(migrations.map(({ name }) => name));
      const first = migrations[0]?.name ?? "none";
      if (applied.size > 0 && !applied.has(first))
        throw new StoreBroken(
          "Ownfeed before 0.2.0 wrote this data, which this version can't read. Nothing was changed. Delete this site's data in the " +
            "browser to start again; that also deletes the record of what was read and of the privacy budget spent",
        );
      const newer = [...applied].filter((name) => !known.has(name)).sort()[0];
      const newest = migrations.at(-1)?.name ?? "none";
      if (newer)
        throw new StoreBroken(`it was written by a newer version of Ownfeed (migration ${newer}; this one knows up to ${newest})`);
      for (const { name, sql } of migrations) {
        if (applied.has(name)) continue;
        this.opened.exec(sql);
        this.run("INSERT INTO _yoyo_migration VALUES (?, ?, ?)", [bytesToHex(sha256(utf8ToBytes(name))), name, now]);
      }
    });
  }
}

/** Converts an SQLite failure: StoreBroken for storage or file faults, otherwise the error itself. */
function storeError(broken: unknown): unknown {
  const code = (broken as { resultCode?: unknown } | null)?.resultCode;
  const kind = typeof code === "number" ? code & 0xff : null;
  if (kind === IO_ERROR || kind === FULL)
    return new StoreBroken("the browser has no space left for it, or has removed it. This last step was not saved; everything before it was");
  if (kind === CORRUPT || kind === NOT_A_DATABASE) return new StoreBroken("it is damaged");
  return broken;
}

/** Starts SQLite from the bytes of sqlite3.wasm. */
async function started(wasm: Uint8Array | ArrayBuffer): Promise<Sqlite3Static> {
  // Only SQLite's pool of held files is used; web/bundling.mjs removes its other file systems.
  const settings = globalThis as { sqlite3ApiConfig?: unknown };
  settings.sqlite3ApiConfig = { disable: { vfs: { kvvfs: true, opfs: true, "opfs-vfs": true, "opfs-wl": true } } };
  const init = sqlite3InitModule as unknown as (options: object) => Promise<Sqlite3Static>;
  return init({ wasmBinary: wasm });
}

let ofMemory: Promise<Sqlite3Static> | null = null;

/** Opens a database in memory: empty, or a copy of a file's bytes. All of them share one SQLite, the first one's. */
export async function openMemory(wasm: Uint8Array | ArrayBuffer, content?: Uint8Array): Promise<Database> {
  const sqlite = await (ofMemory ??= started(wasm));
  return new Database(sqlite, inMemory(sqlite, content));
}

/** The second view's store in memory: none yet, or a copy of a file's bytes. */
export async function lateMemory(wasm: Uint8Array | ArrayBuffer, content?: Uint8Array): Promise<LazyDatabase> {
  const sqlite = await (ofMemory ??= started(wasm));
  return new LazyDatabase({
    open: () => new Database(sqlite, inMemory(sqlite, content), SEARCH_MIGRATIONS),
    there: () => content !== undefined,
  });
}

function inMemory(sqlite: Sqlite3Static, content?: Uint8Array): Oo1Database {
  const opened = new sqlite.oo1.DB(":memory:", "c");
  if (content) {
    const held = sqlite.wasm.allocFromTypedArray(rollbackJournal(content));
    const { SQLITE_DESERIALIZE_FREEONCLOSE, SQLITE_DESERIALIZE_RESIZEABLE } = sqlite.capi;
    const flags = SQLITE_DESERIALIZE_FREEONCLOSE | SQLITE_DESERIALIZE_RESIZEABLE;
    const found = sqlite.capi.sqlite3_deserialize(opened.pointer!, "main", held, content.length, content.length, flags);
    opened.checkRc(found);
  }
  return opened;
}

/** The worker's files in the origin private file system: the device's database, and its second view's store. */
export interface PrivateFiles {
  readonly database: Database;
  readonly searches: LazyDatabase;
}

/**
 * Opens the databases of these names in the origin private file system; the first is created if missing, from the bytes
 * of a new one (first_database.ts). Only in a worker, and one at a time: throws while another holds the folder.
 */
export async function openPrivateFiles(
  wasm: Uint8Array | ArrayBuffer,
  name: string,
  searches: string,
  first: () => Promise<ArrayBuffer>,
): Promise<PrivateFiles> {
  const sqlite = await started(wasm);
  const pool = await poolOf(sqlite);
  const [path, beside] = [`/${name}`, `/${searches}`];
  // all of it is written before the file gets its name, so a killed tab leaves no partial file
  if (!pool.getFileNames().includes(path)) await pool.importDb(path, new Uint8Array(await first()));
  return {
    database: new Database(sqlite, new pool.OpfsSAHPoolDb(path)),
    searches: new LazyDatabase({
      open: () => new Database(sqlite, new pool.OpfsSAHPoolDb(beside), SEARCH_MIGRATIONS),
      there: () => pool.getFileNames().includes(beside),
    }),
  };
}

/** The folder's files. */
async function poolOf(sqlite: Sqlite3Static): Promise<SAHPoolUtil> {
  const settings = {
    directory: FOLDER,
    initialCapacity: POOL_FILES,
    preserveOnInitFailure: true, // opening too early must not delete the reader's file
    forceReinitIfPreviouslyFailed: true,
  };
  return onceFree(() => sqlite.installOpfsSAHPoolVfs(settings));
}

/** A database file's bytes without the write-ahead-log flag, which a database in memory can't have. */
function rollbackJournal(content: Uint8Array): Uint8Array {
  const copy = new Uint8Array(content);
  copy[18] = 1;
  copy[19] = 1;
  return copy;
}

/** How a late database's file is opened or created, and whether it exists. */
export interface LazyFile {
  open(): Database;
  there(): boolean;
}

/** Reads as empty while its file is missing; the first transaction creates it. Throws StoreBroken like `Database`. */
export class LazyDatabase {
  private opened: Database | null = null;

  constructor(private readonly file: LazyFile) {}

  /** The database; null while nothing has been stored in it. */
  known(): Database | null {
    return this.opened || this.file.there() ? this.made() : null;
  }

  /** Like `Database.transaction`. */
  transaction<R>(work: () => R): R {
    return this.made().transaction(work);
  }

  /** Runs one statement, only inside a transaction. Returns the number of rows it changed. */
  run(sql: string, params: readonly Value[] = []): number {
    return this.made().run(sql, params);
  }

  /** All rows of a query; none without a file. */
  rows<T extends object = Row>(sql: string, params: readonly Value[] = []): T[] {
    return this.known()?.rows<T>(sql, params) ?? [];
  }

  /** Deletes and overwrites all rows, and releases the space. */
  erase(): void {
    this.known()?.erase();
  }

  /** Like `Database.fold`. */
  fold(): void {
    this.known()?.fold();
  }

  private made(): Database {
    return (this.opened ??= this.file.open());
  }
}
