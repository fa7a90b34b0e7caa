// The store of the browser's device, in memory.
import { StoreBroken } from "../../web/device/errors";
import type { DeviceStores } from "../../web/device/parts";
import { type Database, lateMemory, openMemory } from "../../web/device/store/database";
import { ImpressionStore } from "../../web/device/store/impressions";
import { exportAll } from "../../web/device/view_models/export";
import { SQLITE, type Wasm } from "./wasm";
import { base64, unbase64 } from "./given";

const SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name";
const COLUMNS = "SELECT name, type, pk FROM pragma_table_info(?)";
const PUT = "INSERT INTO preference (name, value) VALUES (?, ?)";
const NAMES = "SELECT name FROM preference ORDER BY name";

const names = (database: Database) => database.rows<{ name: string }>(NAMES).map((row) => row.name);

export const store = {
  /** The request log in an export: each line's columns, with the body's length instead of the body. */
  async store_exported_log({ file }: { file: string }, wasm: Wasm): Promise<unknown> {
    const database = await openMemory(wasm(SQLITE), unbase64(file));
    const stores = { database, searchDatabase: await lateMemory(wasm(SQLITE)) } as unknown as DeviceStores;
    const { traffic } = exportAll(stores, "reader", 0)["tables"] as { traffic: { body: string }[] };
    return traffic.map(({ body, ...line }) => [line, unbase64(body).length]);
  },

  /** A new database, and whether its file is the same when opened again. */
  async store_new(bookkeeping: readonly string[], wasm: Wasm): Promise<unknown> {
    const database = await openMemory(wasm(SQLITE));
    const described = () => ({
      schema: database.rows(SCHEMA),
      bookkeeping: bookkeeping.map((table) => database.rows(COLUMNS, [table])),
      applied: database.rows("SELECT migration_hash, migration_id FROM _yoyo_migration ORDER BY migration_id"),
      pragmas: ["foreign_keys", "secure_delete", "synchronous"].map((name) => database.number(`PRAGMA ${name}`)),
    });
    return { ...described(), file: base64(database.exported()) };
  },

  /** Opens a file of the Python device, adds a row, and hands the file back. */
  async store_opened(given: { file: string; name: string }, wasm: Wasm): Promise<unknown> {
    const database = await openMemory(wasm(SQLITE), unbase64(given.file));
    const before = names(database);
    database.transaction(() => database.run(PUT, [given.name, "1"]));
    return { before, file: base64(database.exported()) };
  },

  /** What remains of transactions that succeed, that throw, and that throw inside another. */
  async store_transactions(_: null, wasm: Wasm): Promise<unknown> {
    const database = await openMemory(wasm(SQLITE));
    let undone = 0;
    database.whenUndone(() => undone++);
    const put = (name: string) => database.run(PUT, [name, "1"]);
    const failing = (work: () => void) => {
      try {
        database.transaction(() => {
          work();
          throw new RangeError("as asked");
        });
      } catch (broken) {
        if (!(broken instanceof RangeError)) throw broken;
      }
    };
    database.transaction(() => {
      put("outer");
      database.transaction(() => put("inner"));
    });
    failing(() => names(database));
    failing(() => put("alone"));
    failing(() => database.transaction(() => put("joined")));
    let refused = "";
    try {
      database.transaction(() => database.run("INSERT INTO body (news_id, body) VALUES ('nowhere', '')"));
    } catch (broken) {
      refused = String(broken);
    }
    const changed = database.transaction(() => database.run("UPDATE preference SET value = '2'"));
    return { names: names(database), undone, refused, changed };
  },

  /** After each read of the news shown: how many were new, and how often each was seen, from memory and from disk. */
  async store_views(given: { served: [string, string[]][]; looks: [string, string[], number][] }, wasm: Wasm): Promise<unknown> {
    const database = await openMemory(wasm(SQLITE));
    const impressions = new ImpressionStore(database);
    for (const [feedId, newsIds] of given.served) impressions.serve(feedId, newsIds, 0);
    const all = [...new Set(given.served.flatMap(([, newsIds]) => newsIds))];
    const seen = (store: ImpressionStore, since: number) => Object.fromEntries(store.timesSeen(all, since));
    seen(impressions, 0);
    return given.looks.map(([feedId, newsIds, at]) => {
      try {
        database.transaction(() => {
          impressions.view(feedId, [...newsIds, "never-served"], at + 1);
          throw new RangeError("undone");
        });
      } catch (undone) {
        if (!(undone instanceof RangeError)) throw undone;
      }
      const found = impressions.view(feedId, newsIds, at);
      const read = new ImpressionStore(database);
      return { found, remembered: [seen(impressions, 0), seen(impressions, at)], read: [seen(read, 0), seen(read, at)] };
    });
  },

  /** The message and the content when there is no room for a row, and once there is room again. */
  async store_full(_: null, wasm: Wasm): Promise<unknown> {
    const database = await openMemory(wasm(SQLITE));
    const put = (name: string) => database.run(PUT, [name, "1".repeat(100_000)]);
    const said: string[] = [];
    let undone = 0;
    database.whenUndone(() => undone++);
    database.run(`PRAGMA max_page_count = ${database.number("PRAGMA page_count")}`);
    const inside = () => {
      database.run(PUT, ["little", "1"]);
      put("inside");
    };
    for (const work of [() => put("alone"), () => database.transaction(inside)]) {
      try {
        work();
      } catch (broken) {
        said.push(`${(broken as Error).constructor.name === StoreBroken.name}: ${(broken as Error).message}`);
      }
    }
    database.run("PRAGMA max_page_count = 100000");
    database.transaction(() => put("later"));
    return { said, undone, names: names(database) };
  },

  /** Values as read back, by SQLite's names of their types. */
  async store_values(_: null, wasm: Wasm): Promise<unknown> {
    const database = await openMemory(wasm(SQLITE));
    const given = [null, 2 ** 52 + 1, 2 ** 31, -0.5, 2n ** 62n, "ein Wörtchen", new Uint8Array([0, 255]), new Uint8Array()];
    return given.map((value) => {
      const found = database.one("SELECT ? AS value", [value])!["value"];
      const kind = database.one("SELECT typeof(?) AS kind", [value])!["kind"];
      return { kind, value: found instanceof Uint8Array ? [...found] : typeof found === "bigint" ? `${found}` : found };
    });
  },

  /** How a store of a newer version, and a file that is not a store, are refused. */
  async store_refused(files: readonly string[], wasm: Wasm): Promise<unknown> {
    const said: string[] = [];
    for (const file of files) {
      try {
        await openMemory(wasm(SQLITE), unbase64(file));
        said.push("");
      } catch (broken) {
        said.push(String(broken));
      }
    }
    return said;
  },

  /** Clicks after an interrupted erase, and the given file after an erase with a preference that stays. */
  async store_erased(file: string, wasm: Wasm): Promise<unknown> {
    const database = await openMemory(wasm(SQLITE), unbase64(file));
    try {
      database.erase(() => {
        throw new Error("cut off");
      });
    } catch (broken) {
      if ((broken as Error).message !== "cut off") throw broken;
    }
    const clicks = database.number("SELECT count(*) FROM click");
    database.erase(() => void database.run(PUT, ["privacy", '{"mode": "none"}']));
    return { clicks, file: base64(database.exported()) };
  },
};
