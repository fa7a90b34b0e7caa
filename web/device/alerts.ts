// What went wrong in the background and has not gone well since.
import { BackendUnreachable, DeviceError } from "./errors";
import type { Clock } from "./moments";
import type { LoopAlert } from "./view_models/status";

type Loop = LoopAlert["loop"];

/** The last error of each background loop, for the reader to see; a step that goes well clears it. */
export class LoopAlerts {
  private readonly last = new Map<Loop, { readonly error: DeviceError; readonly at: number }>();

  constructor(private readonly clock: Clock) {}

  /** Do the work of a loop, and keep the DeviceError that it throws. Throws any other. */
  async of(loop: Loop, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.last.delete(loop);
    } catch (error) {
      if (!(error instanceof DeviceError)) throw error;
      this.last.set(loop, { error, at: this.clock() });
    }
  }

  /** The error of a loop that has not gone well since. */
  error(loop: Loop): DeviceError | undefined {
    return this.last.get(loop)?.error;
  }

  /** All but those that stand only while the backend is away, which every page says by itself. */
  now(): LoopAlert[] {
    return [...this.last]
      .filter(([, { error }]) => !(error instanceof BackendUnreachable))
      .map(([loop, { error, at }]) => ({ loop, at, words: error.message }));
  }
}
