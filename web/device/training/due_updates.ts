// Sends each update at a random time, drawn when the device gets its place, independent of the computing
// time.\nOtherwise a server could infer from the time of an upload how much the reader has read, or whether the reader
// was using a page. So the computation runs in the background, each slice after the pages' own work, and its result is
// used when it is due. An update that isn't ready by then counts as zeros.
import type { ComputedUpdate } from "../privacy/protections/protection";
import type { Computation } from "./computation";

/** An update is due after the configured seconds times a uniform draw from this range. */
const SPREAD = [0.5, 1.5] as const;

/** The update for one place in a round. */
export class DueUpdate {
  private found: ComputedUpdate | null = null;
  private fault: unknown = null;
  private computing: Promise<void> | null = null;

  /** atOnce: compute the update when it is taken. */
  constructor(
    readonly computation: Computation,
    private readonly beganAt: number,
    private readonly dueAt: number,
    private readonly atOnce: boolean,
  ) {}

  /**
   * Starts the computation, if it hasn't started. Call it after a step: reading the reader's data would delay the
   * step's own requests.
   */
  start(): void {
    if (!this.atOnce) void this.compute();
  }

  /** Gathers and computes; `take` throws its errors. */
  private compute(): Promise<void> {
    this.computing ??= this.computation.update().then(
      (update) => void (this.found = update),
      (fault: unknown) => void (this.fault = fault),
    );
    return this.computing;
  }

  /** Whether it is due; a clock that was set back makes it due at once. */
  isDue(now: number): boolean {
    return now >= this.dueAt || now < this.beganAt;
  }

  /**
   * The update; zeros if it isn't ready, or the reader has deleted or muted some of its data. Throws what doesn't
   * depend on the reader's data, like `Computation.update`.
   */
  async take(): Promise<ComputedUpdate> {
    const { computation } = this;
    if (this.atOnce) await this.compute();
    if (this.fault !== null) throw this.fault;
    if (this.found === null) {
      console.warn(`the update for ${computation.round} was not ready when it was due, and counts as zeros`);
      return computation.nothing();
    }
    return computation.unchanged() ? this.found : computation.nothing();
  }
}

/** Draws the due times. */
export class DueUpdates {
  /**
   * sendSec: mean seconds from a place to its update; 0: computed when taken, as in a simulation, where no reader is
   * present. chance: uniform in [0, 1), cryptographic on a device.
   */
  constructor(
    private readonly clock: () => number,
    private readonly sendSec: number,
    private readonly chance: () => number,
  ) {}

  /** Makes an update that is yet to be started, with its due time. */
  begin(computation: Computation): DueUpdate {
    const now = this.clock();
    const [low, high] = SPREAD;
    const waitMs = 1_000 * this.sendSec * (low + (high - low) * this.chance());
    return new DueUpdate(computation, now, now + waitMs, this.sendSec === 0);
  }
}
