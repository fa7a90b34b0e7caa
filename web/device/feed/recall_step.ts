// Requests candidates in the background: one report and one request for texts, at random times independent of what the
// reader does.
import { AnswerMalformed, BackendRefused, BackendUnreachable } from "../errors";
import type { Clock } from "../protocol/moments";
import type { TimingStore } from "../store/byte_log";
import type { Uplink } from "../uplink/backend_client";
import { shortened } from "../protocol/ids";
import type { RecallAnswer } from "../protocol/recall";
import { Stopwatch } from "../protocol/server_timing";
import type { Bodies } from "./bodies";
import { readerOf } from "./build";
import { BUSY } from "./candidate_search";
import type { ServingModels } from "./model_cache";
import type { Vectors } from "../vectors";
import type { RecallAnswers } from "./recall_answers";
import type { ChosenReport, ReportChoice } from "../reports/choice";
import type { Serving } from "./serving";

/**
 * The only caller of `/v1/recall`. Whether a step sends a report, and then requests the texts of the whole answer,
 * depends only on settings, release and the server's answers. Only the report depends on what the reader did, within
 * what the ledger has charged for it.
 */
export class RecallStep {
  constructor(
    private readonly serving: Serving,
    private readonly uplink: Uplink,
    private readonly bodies: Bodies,
    private readonly reports: ReportChoice,
    private readonly answers: RecallAnswers,
    private readonly timings: TimingStore,
    private readonly clock: Clock,
  ) {}

  /**
   * Sends the due report, or the current one again, and keeps the answer for the pages. Returns how many seconds the
   * backend asks to wait, or null. Keeps errors for the pages. Throws NoRelease or ReleaseRefused.
   */
  async step(): Promise<number | null> {
    const { desk, policy } = this.reports;
    if (policy.mode.finds !== "server") return null;
    const [watch, models] = [new Stopwatch(), await this.serving.models()];
    const { erasures } = this.serving;
    const [clicks, labels] = await this.clustered(models, watch);
    if (this.serving.erasures !== erasures) return null;
    const chosen = this.reports.due(models, clicks, labels, watch);
    if (!chosen) {
      this.answers.asked = {};
      return null;
    }
    const { report, why } = chosen;
    try {
      const [answer, serverMs] = await this.uplink.recall(report, watch);
      this.serving.reached();
      if (this.serving.erasures === erasures) await this.keep(chosen, answer, serverMs, watch);
    } catch (trouble) {
      if (trouble instanceof BackendUnreachable) this.serving.unreachable(trouble);
      else if (!(trouble instanceof BackendRefused || trouble instanceof AnswerMalformed)) throw trouble;
      this.answers.asked = { why, trouble };
      if (!(trouble instanceof BackendRefused)) return null;
      if (BUSY.includes(trouble.problem.status)) return trouble.retryAfterSec ?? null;
      // the server no longer answers this release
      if (report.message.release !== shortened((await this.serving.models()).release)) desk.memo.clear();
    }
    return null;
  }

  /** The clicks and their clusters; read again if one was added or deleted while the graph ran. */
  private async clustered(models: ServingModels, watch: Stopwatch): Promise<[Vectors, number[]]> {
    for (;;) {
      const clicks = watch.stage("store", () => readerOf(this.serving.context, models).preferences.clickVectors);
      const contexts = await watch.during("cluster", () => models.recall.contexts(clicks));
      const now = readerOf(this.serving.context, models).preferences.clickVectors;
      if (now.data.length === clicks.data.length && now.data.every((value, at) => value === clicks.data[at]))
        return [clicks, watch.stage("cluster", () => models.recall.clusters(contexts))];
    }
  }

  private async keep(
    { blank, why }: ChosenReport,
    answer: RecallAnswer,
    serverMs: ReadonlyMap<string, number>,
    watch: Stopwatch,
  ): Promise<void> {
    const { encoder, dimensions } = await this.serving.models();
    if (answer.encoder !== encoder) {
      this.answers.asked = { why, movedOn: true };
      return;
    }
    const { vectors } = watch.stage("decode", () => this.answers.keep(answer, dimensions, { blank }));
    this.answers.asked = { why };
    this.bodies.want(answer, vectors);
    this.timings.record("recall", watch.stagesMs, serverMs, this.clock());
  }
}
