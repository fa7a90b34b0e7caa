// Chooses the report to send: the one in use, else a fresh one, which may cost; or says why there is none.
import { type BudgetSpent, CodebooksSpent } from "../errors";
import type { Clock } from "../moments";
import {
  type CodeReporter,
  type ReportDesk,
  ReportInput,
  lastReport,
  memoised,
  reporterOf,
  sealReport,
} from "../privacy/reports";
import { carriedTo, meaningOf } from "../privacy/report_meaning";
import type { Sealed } from "../privacy/sealed";
import type { ListChoice } from "../recall_frontier";
import type { Clicks } from "../store/clicks";
import type { InstalledReleases } from "../store/releases";
import type { Memo } from "../store/report_memo";
import type { Vectors } from "../vectors";
import type { RecallRequest } from "../wire/recall";
import type { Stopwatch } from "../wire/server_timing";
import type { ServingModels } from "./model_cache";

/** The encoder in use has not given its vectors of all news yet. */
export class VectorsIncomplete extends Error {}

/** The name of the sentence that says why no report was drawn. */
export function whyNot(why: BudgetSpent | VectorsIncomplete): string {
  if (why instanceof VectorsIncomplete) return "vectors_coming";
  if (why instanceof CodebooksSpent) return "codebooks_spent";
  return why.lifetime ? "spent_for_good" : "spent_today";
}

/** What the choice goes by, besides where reports are kept and paid for. */
export interface ReportSources {
  readonly clicks: Clicks;
  readonly releases: InstalledReleases;
  readonly clock: Clock;
  /** Candidates to ask for, where the reader's mode doesn't say. */
  readonly limit: number;
  /** What the reader's mode stands for under the release in use; null where it stands for itself. */
  readonly choice: () => ListChoice | null;
  /** Names an encoder's vectors on this device, null while they are not complete. */
  readonly generation: (encoder: string) => string | null;
  /** The second view's vector by an encoder, or null. */
  readonly searched: (encoder: string) => Float32Array | null;
}

/** One report is in use: sending it again costs nothing, and it is drawn anew where it is out of date. */
export class ReportChoice {
  constructor(
    readonly desk: ReportDesk,
    private readonly sources: ReportSources,
  ) {}

  /** How many candidates to look for: a matter of settings and release, the same for every reader with these. */
  get limit(): number {
    return this.sources.choice()?.places ?? this.sources.limit;
  }

  /** How many clicks there are: of how many the server has given vectors must not show in what is sent. */
  get clicks(): number {
    return this.sources.clicks.count();
  }

  /** What makes the reader's reports under the release in use; null where nothing can. */
  reporter({ manifest, spaces, encoder }: ServingModels): CodeReporter | null {
    const generation = this.sources.generation(encoder) ?? "";
    return reporterOf(this.desk.ledger.settings, manifest.recall, spaces, encoder, generation);
  }

  /** Both views meet here, and only as one vector each. */
  reader(models: ServingModels, clicks: Vectors): ReportInput {
    const wanted = this.desk.ledger.settings.searches_in_reports;
    return new ReportInput(clicks, wanted ? this.sources.searched(models.encoder) : null);
  }

  /** The memoised report, also of an earlier release where it says the same: sending it again costs nothing. */
  inUse(models: ServingModels): Sealed<RecallRequest> | null {
    const memo = this.desk.memo.latest();
    const found = memo && this.answering(memo, models);
    if (!memo || !found) return null;
    const [limit, clicks, now] = [this.limit, this.sources.clicks.latestId(), this.sources.clock()];
    return memoised(memo, this.desk.ledger.settings, { limit, clicks, now, ...found });
  }

  /** The report in use however old it is, as far as it can still be sent. */
  leftOver(models: ServingModels): Sealed<RecallRequest> | null {
    const memo = this.desk.memo.latest();
    const found = memo && this.answering(memo, models);
    return memo && found ? lastReport(memo, this.desk.ledger.settings, this.limit, found.under) : null;
  }

  /**
   * Draw a report of what the reader is now (or find the one drawn before), and pay. Throws BudgetSpent, or
   * VectorsIncomplete: vectors that still come would change the reader's value without the reader.
   */
  fresh(reporter: CodeReporter, models: ServingModels, clicks: Vectors, watch: Stopwatch): Sealed<RecallRequest> {
    if (this.sources.generation(models.encoder) === null) throw new VectorsIncomplete();
    const terms = { release: models.release, limit: this.limit, clicks: this.sources.clicks.latestId() };
    const reader = this.reader(models, clicks);
    return watch.stage("noise", () => sealReport(reporter, reader, terms, this.desk));
  }

  /**
   * Under which release the report in use can be sent, and whether its codebook was carried over to it: the one in use
   * where it means the same there, else its own while the server answers that and the encoder is the same.
   */
  private answering(memo: Memo, models: ServingModels): { under: string; carried: boolean } | null {
    if (memo.release === models.release) return { under: memo.release, carried: false };
    const kept = meaningOf(memo);
    const offered = this.reporter(models)?.meaning;
    if (offered && kept.name === offered.name) return { under: models.release, carried: false };
    const found = this.sources.releases.installed(memo.release);
    if (found && found[1] < models.manifest.releases_answered && found[0].encoder === models.encoder)
      return { under: memo.release, carried: false };
    return offered && carriedTo(kept, offered) ? { under: models.release, carried: true } : null;
  }
}
