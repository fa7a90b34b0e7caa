// The device's one SQLite database: opened, migrated, and written in transactions that a kill can't tear.
import sqlite3InitModule, { type Database as Oo1Database, type PreparedStatement, type SAHPoolUtil, type Sqlite3Static } from "@sqlite.org/sqlite-wasm";
import { sha256 } from "@noble/hashes/sha2.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import bookkeeping from "./bookkeeping.sql";
import { StoreBroken } from "../errors";
import { onceFree } from "./held_file";
import { LateDatabase } from "./late_database";
import { MIGRATIONS, type Migration, SEARCH_MIGRATIONS } from "./migrations";

/** Whole numbers beyond 2^53 come as bigint. */
export type Value = null | number | string | bigint | Uint8Array;
/** A row by the names of its columns. */
export type Row = Record<string, Value>;

const CACHE_KIB = 4096;
const BOOKKEEPING_VERSION = 2;
const KEPT_STATEMENTS = 256;
/** Kept by `erase`: charges without their subjects (else erasing would refill the budget), and what says nothing of the reader. */
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
const FOLDER = ".ownfeed";
const POOL_FILES = 6;

/** SQLite's own numbers of what a browser's storage does when it is full or taken away, and of damaged files. */
const IO_ERROR = 10;
const FULL = 13;
const CORRUPT = 11;
const NOT_A_DATABASE = 26;

/**
 * A transaction inside another joins it. Nothing here waits: one worker owns the database.
 *
 * As on the Python device: what `transaction` has written when it returns survives a kill of the tab and a power cut. What
 * `quickTransaction` and single statements have written survives a kill, and a power cut may take the last of it but never
 * part of one. Deleted rows are overwritten (secure_delete); in the log they stand until `fold`.
 */
export class Database {
  private depth = 0;
  private quick = false;
  private readonly undone: (() => void)[] = [];
  private readonly statements = new Map<string, PreparedStatement>();

  /** Bring the file to the newest version. Throws StoreBroken if a newer Ownfeed wrote it, or if it isn't ours. */
  constructor(
    private readonly sqlite: Sqlite3Static,
    private readonly opened: Oo1Database,
    migrations: readonly Migration[] = MIGRATIONS,
  ) {
    try {
      for (const pragma of [
        // no other connection ever has the file: reads look for nobody's changes, and a log needs no shared memory
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

  /** Run one statement; returns how many rows it changed. */
  run(sql: string, params: readonly Value[] = []): number {
    return this.stepped(sql, params, (statement) => {
      while (statement.step());
      return Number(this.opened.changes());
    });
  }

  /** All rows of a query. */
  rows<T extends Row = Row>(sql: string, params: readonly Value[] = []): T[] {
    return this.stepped(sql, params, (statement) => {
      const found: T[] = [];
      while (statement.step()) found.push(statement.get({}) as T);
      return found;
    });
  }

  /** The first row of a query, or undefined. */
  one<T extends Row = Row>(sql: string, params: readonly Value[] = []): T | undefined {
    return this.rows<T>(sql, params)[0];
  }

  /** The first column of the first row, for counts; 0 where there is none. */
  number(sql: string, params: readonly Value[] = []): number {
    const found = this.one(sql, params);
    return found ? Number(Object.values(found)[0] ?? 0) : 0;
  }

  /**
   * All that `work` writes, on the disk when this returns, or nothing of it if it throws. Throws Error inside a quick
   * transaction, whose end would not wait for the disk.
   */
  transaction<R>(work: () => R): R {
    if (this.quick) throw new Error("what must be on the disk can't be written inside a quick transaction");
    if (this.depth) return work();
    this.opened.exec("PRAGMA synchronous=FULL");
    try {
      return this.begun(work);
    } finally {
      this.opened.exec("PRAGMA synchronous=NORMAL");
    }
  }

  /** Like `transaction`, without waiting for the disk at the end. Inside another transaction it joins that one. */
  quickTransaction<R>(work: () => R): R {
    if (this.depth) return work();
    this.quick = true;
    try {
      return this.begun(work);
    } finally {
      this.quick = false;
    }
  }

  private begun<R>(work: () => R): R {
    const written = this.opened.changes(true);
    try {
      this.opened.exec("BEGIN IMMEDIATE");
      this.depth = 1;
      const result = work();
      this.opened.exec("COMMIT");
      return result;
    } catch (broken) {
      if (!this.sqlite.capi.sqlite3_get_autocommit(this.opened)) this.opened.exec("ROLLBACK");
      // of one that was refused before it wrote, as for want of budget, nothing is taken back
      if (this.opened.changes(true) !== written) this.forgetAll();
      throw storeError(broken);
    } finally {
      this.depth = 0;
    }
  }

  /** Have `forget` called whenever written rows are taken back: for those who keep in memory what they wrote. */
  whenUndone(forget: () => void): void {
    this.undone.push(forget);
  }

  /**
   * Delete all that this device knows of its reader, overwrite it and give the space back; charges stay, see above. keep:
   * writes what else stands after; it holds with the deletion or not at all, whenever the tab is killed.
   */
  erase(keep: () => void = () => undefined): void {
    this.transaction(() => {
      const kinds = "SELECT name, type FROM pragma_table_list WHERE schema = 'main' AND type IN ('table', 'virtual')";
      for (const { name, type } of this.rows<{ name: string; type: string }>(kinds)) {
        if (/^(_yoyo|yoyo|sqlite_)/.test(name) || KEPT_BY_ERASE.has(name)) continue;
        this.run(`DELETE FROM ${name}`);
        this.run("DELETE FROM sqlite_sequence WHERE name = ?", [name]);
        // an index of words keeps those of deleted rows until it is built again
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

  /** Bring the log into the file and empty it: no file holds a byte then of what was deleted or overwritten before. */
  fold(): void {
    try {
      this.opened.exec("PRAGMA wal_checkpoint(TRUNCATE)");
    } catch (broken) {
      throw storeError(broken);
    }
  }

  /** The whole file, as the Python device opens it too. */
  exported(): Uint8Array {
    return this.sqlite.capi.sqlite3_js_db_export(this.opened);
  }

  close(): void {
    this.finalizeAll();
    this.opened.close();
  }

  /** Throws StoreBroken where the storage itself is at fault. */
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
        // SQLite tells the error of the last step once more, which was told above
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

  /** Have all of them forget: of rows that were written past them, too. */
  forgetAll(): void {
    for (const forget of this.undone) forget();
  }

  private migrate(migrations: readonly Migration[]): void {
    if (!this.number("SELECT count(*) FROM sqlite_schema")) this.opened.exec("PRAGMA encoding='UTF-8'");
    else if (!this.has("_yoyo_migration"))
      throw new StoreBroken("the file holds nothing that Ownfeed keeps");
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
      const newer = [...applied].filter((name) => !known.has(name)).sort()[0];
      const newest = migrations.at(-1)?.name ?? "none";
      if (newer)
        throw new StoreBroken(`a newer version of Ownfeed wrote the store (migration ${newer}; this one knows up to ${newest})`);
      for (const { name, sql } of migrations) {
        if (applied.has(name)) continue;
        this.opened.exec(sql);
        this.run("INSERT INTO _yoyo_migration VALUES (?, ?, ?)", [bytesToHex(sha256(utf8ToBytes(name))), name, now]);
      }
    });
  }
}

/** What a failure of SQLite is to the device: StoreBroken where storage or file are at fault, else itself. */
function storeError(broken: unknown): unknown {
  const code = (broken as { resultCode?: unknown } | null)?.resultCode;
  const kind = typeof code === "number" ? code & 0xff : null;
  if (kind === IO_ERROR || kind === FULL)
    return new StoreBroken("this browser has no room left for it, or has taken it away. Nothing of this step was kept, all before it was");
  if (kind === CORRUPT || kind === NOT_A_DATABASE) return new StoreBroken("it is damaged");
  return broken;
}

/** SQLite itself, of the bytes of sqlite3.wasm. */
async function started(wasm: Uint8Array | ArrayBuffer): Promise<Sqlite3Static> {
  // of its file systems only the pool of held files is used; web/bundling.mjs leaves the others out
  const settings = globalThis as { sqlite3ApiConfig?: unknown };
  settings.sqlite3ApiConfig = { disable: { vfs: { kvvfs: true, opfs: true, "opfs-vfs": true, "opfs-wl": true } } };
  const init = sqlite3InitModule as unknown as (options: object) => Promise<Sqlite3Static>;
  return init({ wasmBinary: wasm });
}

let ofMemory: Promise<Sqlite3Static> | null = null;

/** A database in memory: an empty one, or a copy of a file's bytes. All of them share one SQLite, the first one's. */
export async function openMemory(wasm: Uint8Array | ArrayBuffer, content?: Uint8Array): Promise<Database> {
  const sqlite = await (ofMemory ??= started(wasm));
  return new Database(sqlite, inMemory(sqlite, content));
}

/** The second view's store in memory: none yet, or a copy of a file's bytes. */
export async function lateMemory(wasm: Uint8Array | ArrayBuffer, content?: Uint8Array): Promise<LateDatabase> {
  const sqlite = await (ofMemory ??= started(wasm));
  return new LateDatabase({
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

/** What the worker holds in the origin's private file system: the device's database, and the store of its second view. */
export interface PrivateFiles {
  readonly database: Database;
  readonly searches: LateDatabase;
}

/** Whether this browser has opened a database here before. */
export async function hasPrivateFile(): Promise<boolean> {
  try {
    await (await navigator.storage.getDirectory()).getDirectoryHandle(FOLDER);
    return true;
  } catch (missing) {
    if (missing instanceof DOMException && missing.name === "NotFoundError") return false;
    throw missing;
  }
}

/**
 * The databases of these names in the origin's private file system; the first is made if it isn't there, of the bytes of
 * a new one (first_database.ts) where they are given. Only in a worker, and one at a time: throws while another holds the
 * folder.
 */
export async function openPrivateFiles(
  wasm: Uint8Array | ArrayBuffer,
  name: string,
  searches: string,
  first: ArrayBuffer | null = null,
): Promise<PrivateFiles> {
  const sqlite = await started(wasm);
  const pool = await poolOf(sqlite);
  const [path, beside] = [`/${name}`, `/${searches}`];
  // all of it is written before the file has its name: a kill of the tab leaves no half of it
  if (first && !pool.getFileNames().includes(path)) await pool.importDb(path, new Uint8Array(first));
  return {
    database: new Database(sqlite, new pool.OpfsSAHPoolDb(path)),
    searches: new LateDatabase({
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
    preserveOnInitFailure: true, // who comes too early must not take the reader's file away
    forceReinitIfPreviouslyFailed: true,
  };
  return onceFree(() => sqlite.installOpfsSAHPoolVfs(settings));
}

/** The bytes of a database file without the mark of a write-ahead log, which a database in memory can't have. */
function rollbackJournal(content: Uint8Array): Uint8Array {
  const copy = new Uint8Array(content);
  copy[18] = 1;
  copy[19] = 1;
  return copy;
}
