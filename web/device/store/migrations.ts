// The Python device's own migrations, in order: both devices share one schema, and each reads the other's export.
import store from "../../../device_app/store/migrations/0001_first_schema.sql";
import searches from "../../../device_app/store/search_migrations/0001_first_schema.sql";

/** A migration's name in the table of applied ones, and its statements. */
export interface Migration {
  readonly name: string;
  readonly sql: string;
}

export const MIGRATIONS: readonly Migration[] = [{ name: "0001_first_schema", sql: store }];

/** Migrations of the second view's store. */
export const SEARCH_MIGRATIONS: readonly Migration[] = [{ name: "0001_first_schema", sql: searches }];
