// Errors of the background loops that no later success has cleared.
import { BackendUnreachable, DeviceError } from "./errors";
import type { Clock } from "./protocol/moments";
import type { LoopAlert } from "./view_models/status";

type Loop = LoopAlert["loop"];

/** Keeps the last error of each background loop for the reader to see; a successful step clears it. */
export class LoopAlerts {
  private readonly last = new Map<Loop, { readonly error: DeviceError; readonly at: number }>();

  constructor(private readonly clock: Clock) {}

  /** Runs one step of a loop and stores any DeviceError; throws all other errors. */
  async of(loop: Loop, work: () => Promise<void>): Promise<void> {
    try {
      await work();
      this.last.delete(loop);
    } catch (error) {
      if (!(error instanceof DeviceError)) throw error;
      this.last.set(loop, { error, at: this.clock() });
    }
  }

  /** The loop's error if it hasn't succeeded since. */
  error(loop: Loop): DeviceError | undefined {
    return this.last.get(loop)?.error;
  }

  /** All current alerts except those caused by an unreachable backend, which every page already shows. */
  now(): LoopAlert[] {
    return [...this.last]
      .filter(([, { error }]) => !(error instanceof BackendUnreachable))
      .map(([loop, { error, at }]) => ({ loop, at, words: error.message }));
  }
}
