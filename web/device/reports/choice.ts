// Chooses the report to send: the current one, else a new one, which may be charged, else one that reveals nothing new.
import { BudgetSpent } from "../errors";
import { HOUR_MS, type Clock } from "../protocol/moments";
import { carriedTo, meaningOf, ReportInput, type Reporter } from "../privacy/reporter";
import { isBlank, isCover, lastReport, sealCover, sealReport, type ReportDesk } from "../privacy/sealed_reports";
import type { PrivacySettings } from "../privacy/settings";
import type { Sealed } from "../privacy/sealed";
import type { PublicVectors } from "../sync/installed_release";
import type { DeviceStores } from "../parts";
import type { Memo } from "../store/report_memo";
import type { Vectors } from "../vectors";
import type { RecallRequest } from "../protocol/recall";
import type { ReleaseManifest } from "../protocol/releases";
import type { Stopwatch } from "../protocol/server_timing";
import { asManyAgain } from "./modes";
import { reporterOf, type ReportPolicy } from "./policy";

/** The current encoder hasn't supplied the vectors of all articles yet. */
export class VectorsIncomplete extends Error {}

/** The report to send. blank: it contains nothing about the reader. why: what prevented a new one. */
export interface ChosenReport {
  readonly report: Sealed<RecallRequest>;
  readonly blank: boolean;
  readonly why: BudgetSpent | VectorsIncomplete | null;
}

/** The models of the current release, as far as a report needs them. */
export interface ReleaseModels {
  readonly release: string;
  readonly encoder: string;
  readonly manifest: ReleaseManifest;
  readonly spaces: PublicVectors;
}

/** What the choice depends on, besides the stores of reports and charges. */
export interface ReportSources {
  readonly stores: DeviceStores;
  readonly clock: Clock;
  /** Number of candidates to request if the reader's mode doesn't set it. */
  readonly limit: number;
  /** The second view's vector by an encoder, or null. */
  readonly searched: (encoder: string) => Float32Array | null;
}

/** Relative tolerance of a ceiling, as in the ledger. */
const ROUNDING = 1e-9;

/** Keeps one report in use. Sending it again costs nothing; another is drawn once it is out of date. */
export class ReportChoice {
  constructor(
    readonly policy: ReportPolicy,
    readonly desk: ReportDesk,
    private readonly sources: ReportSources,
  ) {}

  /**
   * How many candidates to request: depends on settings and release only, so it is the same for every reader with
   * these.
   */
  get limit(): number {
    return this.policy.choice()?.places ?? this.sources.limit;
  }

  /** The number of clicks. What is sent must not reveal for how many of them the server has supplied vectors. */
  get clicks(): number {
    return this.sources.stores.clicks.count();
  }

  /** The mechanism for the reader's reports under the current release; null if there is none. */
  reporter({ manifest, spaces, encoder }: ReleaseModels): Reporter | null {
    const generation = this.sources.stores.pulledShards.generation(encoder) ?? "";
    return reporterOf(this.policy.settings, manifest.recall, spaces, encoder, generation);
  }

  /** Combines both views, each as a single vector. */
  reader(models: ReleaseModels, clicks: Vectors, labels: readonly number[]): ReportInput {
    const wanted = this.policy.settings.searches_in_reports;
    return new ReportInput(clicks, labels, wanted ? this.sources.searched(models.encoder) : null);
  }

  /** Returns which of the reader's ceilings is below the cost of a single report; null if neither is. */
  beyond({ mechanism }: Reporter): "day" | "life" | null {
    const { life: { reports: life }, day: { reports: day } } = this.desk.ledger.ceilings; // prettier-ignore
    if (life !== null && mechanism.epsilon > life * (1 + ROUNDING)) return "life";
    return mechanism.epsilon > day * (1 + ROUNDING) ? "day" : null;
  }

  /** Whether there are enough clicks for a report with content. */
  get readsEnough(): boolean {
    return this.clicks >= this.policy.settings.clicks_before_report;
  }

  /**
   * Returns the report to send now; null if mode, ceilings or release allow none, whatever was read. Prefers the
   * current report, then a new one, which may be charged; if none may be drawn now, the last one or a cover report.
   */
  due(models: ReleaseModels, clicks: Vectors, labels: readonly number[], watch: Stopwatch): ChosenReport | null {
    const reporter = this.reporter(models);
    if (!reporter || this.beyond(reporter)) return null;
    let [report, why]: [Sealed<RecallRequest> | null, ChosenReport["why"]] = [this.inUse(models), null];
    if (!report) {
      try {
        report = this.fresh(reporter, models, clicks, labels, watch);
      } catch (spent) {
        if (!(spent instanceof BudgetSpent || spent instanceof VectorsIncomplete)) throw spent;
        why = spent;
        report = this.leftOver(models) ?? sealCover(reporter, this.terms(models), this.desk);
      }
    }
    const kept = this.desk.memo.latest();
    return { report, blank: !kept || isBlank(kept), why };
  }

  /** The memoised report, even one from an earlier release if it means the same; sending it again costs nothing. */
  private inUse(models: ReleaseModels): Sealed<RecallRequest> | null {
    const memo = this.desk.memo.latest();
    const found = memo && this.answering(memo, models);
    if (!memo || !found || isCover(memo) || (isBlank(memo) && this.readsEnough)) return null;
    const [limit, clicks, now] = [this.limit, this.sources.stores.clicks.latestId(), this.sources.clock()];
    return memoised(memo, this.policy.settings, { limit, clicks, now, ...found });
  }

  /** The current report, of any age, if it can still be sent. */
  private leftOver(models: ReleaseModels): Sealed<RecallRequest> | null {
    const memo = this.desk.memo.latest();
    const found = memo && this.answering(memo, models);
    return memo && found ? lastReport(memo, this.policy.settings, this.limit, found.under) : null;
  }

  private terms({ release }: ReleaseModels): { release: string; limit: number; clicks: number } {
    return { release, limit: this.limit, clicks: this.sources.stores.clicks.latestId() };
  }

  /**
   * Draws a report of the reader's current value (or finds the one drawn before) and charges for it. Throws
   * BudgetSpent, or VectorsIncomplete: vectors still to come would change the value without any action of the reader.
   */
  private fresh(
    reporter: Reporter,
    models: ReleaseModels,
    clicks: Vectors,
    labels: readonly number[],
    watch: Stopwatch,
  ): Sealed<RecallRequest> {
    if (this.sources.stores.pulledShards.generation(models.encoder) === null) throw new VectorsIncomplete();
    const sent = this.policy.mode.label.sent(reporter.mechanism);
    const [terms, reader] = [{ ...this.terms(models), sent }, this.readsEnough ? this.reader(models, clicks, labels) : null];
    return watch.stage("noise", () => sealReport(reporter, reader, terms, this.desk));
  }

  /**
   * The release under which the current report can be sent, and whether its codebook was carried over to it: the
   * current release if the report means the same there, otherwise its own while the server accepts that and the encoder
   * is unchanged.
   */
  private answering(memo: Memo, models: ReleaseModels): { under: string; carried: boolean } | null {
    if (memo.release === models.release) return { under: memo.release, carried: false };
    const kept = meaningOf(memo);
    const offered = this.reporter(models)?.meaning;
    if (offered && kept.name === offered.name) return { under: models.release, carried: false };
    const found = this.sources.stores.releases.installed(memo.release);
    if (found && found[1] < models.manifest.releases_answered && found[0].encoder === models.encoder)
      return { under: memo.release, carried: false };
    return offered && carriedTo(kept, offered) ? { under: models.release, carried: true } : null;
  }
}

/**
 * The current report, ready to be sent again; null if another is due: if it is not of the reader's mode, there were
 * enough new clicks, or the window is past. carried: the codebook was carried over to another encoder; the end of the
 * window doesn't cause a new report then, since that would be charged without any new reading.
 */
function memoised(
  memo: Memo,
  settings: PrivacySettings,
  { limit, clicks, now, under, carried }: { limit: number; clicks: number; now: number; under: string; carried: boolean },
): Sealed<RecallRequest> | null {
  if (!carried && now - memo.madeAt >= settings.report_window_hours * HOUR_MS) return null;
  if (clicks - memo.clicks >= asManyAgain(memo.clicks, settings.clicks_per_report)) return null;
  return lastReport(memo, settings, limit, under);
}
