// Keeps the last answer to a report, and how long a busy backend is left alone.
import type { BackendRefused } from "../errors";
import type { Clock } from "../moments";
import type { Sealed } from "../privacy/sealed";
import type { Vectors } from "../vectors";
import type { RecallAnswer, RecallRequest } from "../wire/recall";
import { type Candidates, candidatesOf, together } from "./candidates";
import { systemChance } from "./chance";

/** Where a backend that has too much to do doesn't say when to come back. */
const BUSY_RETRY_SEC = 5;

interface Kept {
  readonly payloadSha256: string;
  readonly encoder: string;
  readonly at: number;
  readonly answer: RecallAnswer;
  readonly found: Candidates;
}

/** At most one answer is kept. */
export class RecallAnswers {
  private kept: Kept | null = null;
  private both: readonly [Candidates, Candidates, Candidates] | null = null;
  private notFetched: readonly [RecallAnswer, Vectors] | null = null;
  private busy: BackendRefused | null = null;
  private busyUntil = 0;

  /** maxAgeSec: an older answer is not used again unless the backend is too busy for another. */
  constructor(
    private readonly maxAgeSec: number,
    private readonly clock: Clock,
  ) {}

  /** Drop the kept answer and the busy backend's wait. */
  forget(): void {
    this.kept = this.both = this.notFetched = this.busy = null;
    this.busyUntil = 0;
  }

  /** The candidates of an answer just heard, which is kept from now on. Throws AnswerMalformed. */
  keep(report: Sealed<RecallRequest>, encoder: string, answer: RecallAnswer, dimensions: number): Candidates {
    const found = this.kept?.answer === answer ? this.kept.found : candidatesOf(answer, dimensions);
    this.busy = null;
    this.kept = { payloadSha256: report.sha256, encoder, at: this.clock(), answer, found };
    this.notFetched = [answer, found.vectors];
    return found;
  }

  /** What the kept answer brought, whatever was asked. */
  found(): Candidates | null {
    return this.kept?.found ?? null;
  }

  /** What the kept answer to this very report brought; null if none is kept, or only one too old where young. */
  of(report: Sealed<RecallRequest>, encoder: string, { young }: { young: boolean }): Candidates | null {
    const { kept } = this;
    if (!kept || kept.payloadSha256 !== report.sha256 || kept.encoder !== encoder) return null;
    return young && Math.abs(this.clock() - kept.at) >= 1_000 * this.maxAgeSec ? null : kept.found;
  }

  /** The answer whose texts nobody has asked for yet, with its vectors; given once. */
  unfetched(): readonly [RecallAnswer, Vectors] | null {
    const found = this.notFetched;
    this.notFetched = null;
    return found;
  }

  /** `together`, remembered: both live longer than a feed. */
  joined(found: Candidates, defaultList: Candidates): Candidates {
    if (this.both?.[0] !== found || this.both[1] !== defaultList) {
      const another = defaultList.length > 0 && found.encoder !== defaultList.encoder;
      this.both = [found, defaultList, another ? defaultList : together(found, defaultList)];
    }
    return this.both[2];
  }

  /** Throws the BackendRefused of a backend that asked to be left alone for longer than this. */
  requireIdle(): void {
    if (this.busy && this.clock() < this.busyUntil) throw this.busy;
  }

  /**
   * Leave the backend alone for as long as it says, and a random time more, so that devices that were refused together
   * don't come back together.
   */
  noteBusy(busy: BackendRefused): void {
    if (busy === this.busy) return;
    const more = Number(systemChance.bits64() >> 11n) / 2 ** 53;
    this.busy = busy;
    this.busyUntil = this.clock() + 1_000 * (busy.retryAfterSec || BUSY_RETRY_SEC) * (1 + more);
  }
}
