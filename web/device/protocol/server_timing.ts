// Stage times, measured with the same stopwatch on both sides and sent in a Server-Timing header (W3C Server Timing).

export const DEVICE_STAGES = [
  "store", "cluster", "decompose", "noise", "search", "encode", "network", "decode", "rank", "build",
] as const; // prettier-ignore
export const SERVER_STAGES = ["decode", "aggregate", "search", "merge", "encode"] as const;
const LONGEST_STAGE_MS = 86_400_000;
const ENTRY = /^\s*([a-z_]{1,32})\s*;\s*dur=([0-9]+(?:\.[0-9]+)?)\s*$/;

/** Milliseconds per stage, in the order the stages first ran; repeated stages add up. */
export class Stopwatch {
  readonly stagesMs = new Map<string, number>();

  /** Times `work` and adds it to `name`. */
  stage<R>(name: string, work: () => R): R {
    const started = performance.now();
    try {
      return work();
    } finally {
      this.add(name, performance.now() - started);
    }
  }

  /** Times asynchronous work. */
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

/** Milliseconds of SERVER_STAGES; ignores other names and forms, and entries of more than a day. */
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
