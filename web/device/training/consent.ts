// What the reader allows this device to do now: settings, a pause, budgets, and whether the reader is reading.
import { NotEligible } from "../errors";
import type { Ledger } from "../privacy/ledger";
import { type Readiness, switchedOn } from "./eligibility";
import type { StoredSamples } from "./stored_samples";
import type { Tasks } from "./tasks/registry";

/** Asked anew at every step: a reader may change its mind at any moment. */
export class ReaderConsent {
  /** paused: whether the reader has paused training. idleSec: how long the reader must have read nothing. */
  constructor(
    readonly ledger: Ledger,
    private readonly reading: StoredSamples,
    private readonly tasks: Tasks,
    readonly paused: () => boolean = () => false,
    private readonly idleSec = 0,
  ) {}

  /** What is known before any request, on a device with this release. */
  readiness(release: string | null): Readiness {
    const { ledger } = this;
    const { training, counting } = ledger.settings;
    const quietSince = ledger.now() - 1_000 * this.idleSec;
    return {
      switchedOn: training,
      paused: this.paused(),
      release,
      clicks: this.reading.count(),
      epsilonLeft: ledger.left("training"),
      idle: this.idleSec === 0 || this.reading.quietSince(quietSince),
      counting,
      countsLeft: ledger.left("counts"),
    };
  }

  /** Whether the reader lets a device take part in such a task, a pause apart. */
  switchedOn(task: string): boolean {
    return switchedOn(this.ledger.settings, this.tasks.get(task)?.channel ?? "training");
  }

  /** Throws NotEligible if the reader has changed its mind meanwhile: the last moment is before the payment. */
  check(task: string): void {
    if (this.paused() || !this.switchedOn(task))
      throw new NotEligible("its reader has paused training or switched it off meanwhile.", "off");
  }
}
