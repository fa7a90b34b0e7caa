// Times of stages, measured with one stopwatch on both ends and sent in a Server-Timing header (W3C Server Timing).

export const DEVICE_STAGES = [
  "store", "cluster", "decompose", "noise", "search", "encode", "network", "decode", "rank", "build",
] as const; // prettier-ignore
export const SERVER_STAGES = ["decode", "aggregate", "search", "merge", "encode"] as const;
const LONGEST_STAGE_MS = 86_400_000;
const ENTRY = /^\s*([a-z_]{1,32})\s*;\s*dur=([0-9]+(?:\.[0-9]+)?)\s*$/;

/** Milliseconds by stage, in the order the stages first ran; a stage run twice adds up. */
export class Stopwatch {
  readonly stagesMs = new Map<string, number>();

  /** Time `work` and add it to `name`. */
  stage<R>(name: string, work: () => R): R {
    const started = performance.now();
    try {
      return work();
    } finally {
      this.add(name, performance.now() - started);
    }
  }

  /** The same of work that takes turns with other work. */
  async during<R>(name: string, work: () => Promise<R>): Promise<R> {
    const started = performance.now();
    try {
      return await work();
    } finally {
      this.add(name, performance.now() - started);
    }
  }

  private add(name: string, ms: number): void {
    this.stagesMs.set(name, (this.stagesMs.get(name) ?? 0) + ms);
  }
}

/** Milliseconds of SERVER_STAGES; entries of other names or forms, or of over a day, are left out. */
export function parseServerTiming(header: string): Map<string, number> {
  const entries = new Map(
    header.split(",").flatMap((part) => {
      const found = ENTRY.exec(part);
      return found ? [[found[1] as string, Number(found[2])] as const] : [];
    }),
  );
  return new Map(SERVER_STAGES.flatMap((stage) => {
    const ms = entries.get(stage);
    return ms !== undefined && ms <= LONGEST_STAGE_MS ? [[stage, ms] as const] : [];
  }));
}
