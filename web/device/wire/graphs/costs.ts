// What a run of a graph costs at most, by the sizes of its free axes, and what it may cost.
import { CLICKS_LIMIT } from "../recall";
import { GraphRefused } from "./message";
import { type Size, bounds } from "./sizes";

/** All tensors of one run together, freed ones too. */
const RUN_LIMIT_BYTES = 1024n ** 3n;
/** Of one run, other work in its measure (`operators`). */
const RUN_LIMIT_MULTIPLY_ADDS = 2n * 10n ** 10n;
/**
 * The free axes, and how large each is at most in what a device runs daily: batches of training, a recall's candidates.
 * A graph must keep the limits here; of a larger run that is asked before it begins.
 */
export const AXES_OF_A_RUN: ReadonlyMap<string, bigint> = new Map([
  ["batch", 8n],
  ["news", 1_000n],
  ["clicks", BigInt(CLICKS_LIMIT)],
]);
export const GREATEST_AXIS = 2n ** 20n;
const KNOWN_RUNS_KEPT = 1_024;

/** Name of an input, which of its axes, name of the axis. */
export interface FreeAxis {
  readonly input: string;
  readonly place: number;
  readonly axis: string;
}

/** What a run of a checked graph needs at most; made: axes that the graph makes itself, each with its greatest size. */
export class GraphCosts {
  private readonly allowed = new Set<string>();

  constructor(
    private readonly axes: readonly FreeAxis[],
    private readonly memoryBytes: Size,
    private readonly multiplyAdds: Size,
    private readonly made: ReadonlyMap<string, Size>,
  ) {}

  /** Bytes and multiply-adds of a run with axes of these sizes. */
  of(sizes: ReadonlyMap<string, bigint>): [bigint, bigint] {
    const axes = new Map<string, readonly [bigint, bigint]>([...sizes].map(([name, size]) => [name, [size, size]]));
    for (const [name, greatest] of this.made) {
      const [, most] = bounds(greatest, axes);
      axes.set(name, [1n, most > 1n ? most : 1n]);
    }
    return [bounds(this.memoryBytes, axes)[1], bounds(this.multiplyAdds, axes)[1]];
  }

  /** Throws GraphRefused unless a graph keeps the limits at the sizes of what a device runs daily. */
  requireDaily(): void {
    const used = new Set(this.axes.map(({ axis }) => axis));
    requireLimits(this, new Map([...AXES_OF_A_RUN].filter(([axis]) => used.has(axis))));
  }

  /** Throws GraphRefused unless a run on inputs of these shapes is consistent and within the limits. */
  require(shapes: Readonly<Record<string, readonly number[]>>): void {
    const sizes = new Map<string, bigint>();
    for (const { input, place, axis } of this.axes) {
      const shape = shapes[input] ?? [];
      const size = shape[place];
      if (size === undefined) throw new GraphRefused(`input ${input} has ${shape.length} axes`);
      const known = sizes.get(axis) ?? BigInt(size);
      if (known !== BigInt(size)) throw new GraphRefused(`input ${input}: axis ${axis} has size ${size}, elsewhere ${known}`);
      sizes.set(axis, known);
    }
    const key = [...sizes.values()].join();
    if (this.allowed.has(key)) return;
    for (const [axis, size] of sizes)
      if (size < 1n || size > GREATEST_AXIS)
        throw new GraphRefused(`axis ${axis} has size ${size}, allowed are 1 to ${GREATEST_AXIS}`);
    requireLimits(this, sizes);
    if (this.allowed.size >= KNOWN_RUNS_KEPT) this.allowed.clear();
    this.allowed.add(key);
  }
}

function requireLimits(costs: GraphCosts, sizes: ReadonlyMap<string, bigint>): void {
  const [bytes, multiplyAdds] = costs.of(sizes);
  const where = [...sizes].map(([axis, size]) => `${axis} ${size}`).join(", ") || "no free axes";
  if (bytes > RUN_LIMIT_BYTES)
    throw new GraphRefused(`a run with ${where} needs ${bytes} bytes, the limit is ${RUN_LIMIT_BYTES}`);
  if (multiplyAdds > RUN_LIMIT_MULTIPLY_ADDS)
    throw new GraphRefused(
      `a run with ${where} needs ${multiplyAdds} multiply-adds, the limit is ${RUN_LIMIT_MULTIPLY_ADDS}`,
    );
}
