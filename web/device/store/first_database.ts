// A new device's database as the build makes it (web/bundling.mjs): to run every migration in the browser would be a tenth
// of a first visit.
import { openMemory } from "./database";

const MADE = "1970-01-01T00:00:00.000";

/** The bytes of an empty store of the newest version, the same at every build; wasm: those of sqlite3.wasm. */
export async function firstDatabase(wasm: Uint8Array<ArrayBuffer>): Promise<Uint8Array> {
  const database = await openMemory(wasm);
  database.transaction(() => {
    database.run("UPDATE _yoyo_version SET installed_at_utc = ?", [MADE]);
    database.run("UPDATE _yoyo_migration SET applied_at_utc = ?", [MADE]);
  });
  const content = database.exported();
  database.close();
  return content;
}
