// A database that exists only once something was put into it.
import type { Database, Row, Value } from "./database";

/** How the file of a late database is opened or made, and whether it is there. */
export interface LateFile {
  open(): Database;
  there(): boolean;
}

/** Reads as empty while its file is missing; the first transaction makes it. Throws StoreBroken as `Database` does. */
export class LateDatabase {
  private opened: Database | null = null;

  constructor(private readonly file: LateFile) {}

  /** The database, or null while nothing was ever put into it. */
  known(): Database | null {
    return this.opened || this.file.there() ? this.made() : null;
  }

  /** As `Database.transaction`. */
  transaction<R>(work: () => R): R {
    return this.made().transaction(work);
  }

  /** Run one statement; call it inside a transaction. Returns how many rows it changed. */
  run(sql: string, params: readonly Value[] = []): number {
    return this.made().run(sql, params);
  }

  /** All rows of a query; none without a file. */
  rows<T extends Row = Row>(sql: string, params: readonly Value[] = []): T[] {
    return this.known()?.rows<T>(sql, params) ?? [];
  }

  /** Delete all rows, overwrite them and give the space back. */
  erase(): void {
    this.known()?.erase();
  }

  /** As `Database.fold`. */
  fold(): void {
    this.known()?.fold();
  }

  private made(): Database {
    return (this.opened ??= this.file.open());
  }
}
