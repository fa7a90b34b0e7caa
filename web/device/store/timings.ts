// Stage times of the last requests.
import type { Database } from "./database";
import { fromUs, toUs } from "./rows";

export const TIMINGS_KEPT = 1_000;

/** Milliseconds by stage of one request. */
export interface Timing {
  readonly at: number;
  readonly kind: string;
  readonly device_ms: Readonly<Record<string, number>>;
  readonly server_ms: Readonly<Record<string, number>>;
}

type Stages = ReadonlyMap<string, number>;
const json = (stages: Stages): string => JSON.stringify(Object.fromEntries(stages));

/** The last thousand requests. */
export class TimingStore {
  constructor(private readonly database: Database) {}

  /** Keep one request's times; the oldest beyond a thousand go. */
  record(kind: string, deviceMs: Stages, serverMs: Stages, at: number): void {
    this.database.quickTransaction(() => {
      const kept = this.database.one<{ id: number }>(
        "INSERT INTO timing (at, kind, device_ms, server_ms) VALUES (?, ?, ?, ?) RETURNING id",
        [toUs(at), kind, json(deviceMs), json(serverMs)],
      );
      this.database.run("DELETE FROM timing WHERE id <= ?", [(kept?.id ?? 0) - TIMINGS_KEPT]);
    });
  }

  /** The newest n, newest first. */
  last(n = 200): Timing[] {
    return this.database
      .rows<{ at: number; kind: string; device_ms: string; server_ms: string }>(
        "SELECT at, kind, device_ms, server_ms FROM timing ORDER BY id DESC LIMIT ?",
        [n],
      )
      .map((row) => ({
        at: fromUs(row.at),
        kind: row.kind,
        device_ms: JSON.parse(row.device_ms) as Record<string, number>,
        server_ms: JSON.parse(row.server_ms) as Record<string, number>,
      }));
  }
}
