// A new device's database, made by the build (web/bundling.mjs): running every migration in the browser would take a
// tenth of a first visit. It already contains the question whether this is the reader's first store (first_use.ts), so
// that a killed tab can't leave an empty store without it.
import { FirstUse } from "./first_use";
import { Preferences } from "./preferences";
import { openMemory } from "./database";

const MADE = "1970-01-01T00:00:00.000";

/** The bytes of an empty store of the newest version, the same in every build; wasm: those of sqlite3.wasm. */
export async function firstDatabase(wasm: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const database = await openMemory(wasm);
  database.transaction(() => {
    database.run("UPDATE _yoyo_version SET installed_at_utc = ?", [MADE]);
    database.run("UPDATE _yoyo_migration SET applied_at_utc = ?", [MADE]);
  });
  new FirstUse(new Preferences(database)).ask("new");
  const content = database.exported();
  database.close();
  return content;
}
