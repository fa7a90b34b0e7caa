// Finds candidates: by the report in use, or on this device, or says why the default list has to do.
import notices from "../../../device_app/feed/notices.toml";
import { AnswerMalformed, BackendRefused, BudgetSpent } from "../errors";
import type { PerformanceSettings } from "../feed_settings";
import type { Clock } from "../moments";
import { MODES } from "../privacy/modes";
import type { Sealed } from "../privacy/sealed";
import { Prose } from "../prose";
import type { Uplink } from "../uplink/backend_client";
import type { Vectors } from "../vectors";
import { shortened } from "../wire/ids";
import type { RecallRequest } from "../wire/recall";
import type { Stopwatch } from "../wire/server_timing";
import type { Bodies } from "./bodies";
import { type Broadcast, PoolBroken } from "./broadcast";
import { type Candidates, nothing } from "./candidates";
import type { FeedMode } from "./item";
import type { ServingModels } from "./model_cache";
import { RecallAnswers } from "./recall_answers";
import { type ReportChoice, VectorsIncomplete, whyNot } from "./report_choice";

export const NOTICES = new Prose(notices);
const INSTEAD = NOTICES.table("instead");
const BUSY: readonly number[] = [429, 503];

/** Candidates beyond the default list (perhaps none), and what the feed should say about it. */
export interface Found {
  readonly candidates: Candidates;
  readonly mode: FeedMode;
  readonly notice: string | null;
  readonly serverMs: ReadonlyMap<string, number>;
}

function found(candidates: Candidates, mode: FeedMode, notice: string | null = null, serverMs = new Map<string, number>()): Found {
  return { candidates, mode, notice, serverMs };
}

/** One report in use, one answer kept: refreshing a feed costs neither budget nor a request while both are young. */
export class Recall {
  private readonly answers: RecallAnswers;

  constructor(
    private readonly uplink: Uplink,
    private readonly bodies: Bodies,
    private readonly reports: ReportChoice,
    readonly broadcast: Broadcast,
    settings: PerformanceSettings,
    clock: Clock,
  ) {
    this.answers = new RecallAnswers(settings.recall_max_age_sec, clock);
  }

  /**
   * Candidates for the reader's interests; clicks [H, D] are the recent clicks.
   *
   * Throws BackendUnreachable; BackendRefused by a backend that has too much to do, where no answer of it is kept. Any
   * other refusal, a malformed answer or a spent budget gives candidates found here where this device keeps the pool's
   * codes, else mode 'front', with a notice.
   */
  async find(models: ServingModels, clicks: Vectors, watch: Stopwatch): Promise<Found> {
    const empty = nothing(models.encoder, models.dimensions);
    const { settings } = this.reports.desk.ledger;
    const { finds } = MODES[settings.mode];
    if (finds === "nobody") return found(empty, "front", NOTICES.say("silent"));
    // Of how many of the clicked news the server has given vectors must not show in whether something is sent.
    if (!this.reports.clicks || (finds === "here" && !clicks.rows)) return found(empty, "cold");
    if (finds === "here") {
      const why = NOTICES.say(models.manifest.recall.pool_codes ? "no_pool" : "no_pool_offered");
      return this.here(models, clicks, watch) ?? found(empty, "front", why);
    }
    let notice: string | null = null;
    let report = this.reports.inUse(models);
    if (!report) {
      const reporter = this.reports.reporter(models);
      if (!reporter) return this.withoutReport(models, clicks, "no_way", watch);
      if (this.reports.clicks < settings.clicks_before_report) return found(empty, "cold");
      try {
        report = this.reports.fresh(reporter, models, clicks, watch);
      } catch (spent) {
        if (!(spent instanceof BudgetSpent || spent instanceof VectorsIncomplete)) throw spent;
        report = this.reports.leftOver(models);
        notice = NOTICES.say(whyNot(spent), { how: INSTEAD["kept"] });
        if (!report || this.broadcast.ready(models.encoder)) return this.withoutReport(models, clicks, whyNot(spent), watch);
      }
    }
    const kept = this.answers.of(report, models.encoder, { young: true });
    if (kept) return found(kept, "personal", notice);
    try {
      this.answers.requireIdle();
      return await this.asked(report, models, notice, watch);
    } catch (refused) {
      if (refused instanceof AnswerMalformed)
        return found(empty, "front", NOTICES.say("default_list", { trouble: refused.message }));
      if (!(refused instanceof BackendRefused)) throw refused;
      if (BUSY.includes(refused.problem.status)) return this.meanwhile(report, models, refused);
      if (report.message.release !== shortened(models.release)) this.reports.desk.memo.clear(); // no longer known there
      return found(empty, "front", NOTICES.say("report_refused", { why: refused.message }));
    }
  }

  /**
   * Have the texts of the last answer's whole list fetched in the background. Called once its feed is built: until then
   * the fetching would compete with the feed for the processor.
   */
  fetchTexts(): void {
    const unfetched = this.answers.unfetched();
    if (unfetched) this.bodies.want(...unfetched);
  }

  /** The kept answer and the default list together. */
  known(defaultList: Candidates): Candidates {
    const kept = this.answers.found();
    return kept ? this.joined(kept, defaultList) : defaultList;
  }

  /** The rows of an answer and of the default list in one, kept for the next feed. */
  joined(answered: Candidates, defaultList: Candidates): Candidates {
    return this.answers.joined(answered, defaultList);
  }

  /** Whether the reader has chosen that this device finds news by itself, whose texts no returned list brings. */
  findsHere(): boolean {
    return MODES[this.reports.desk.ledger.settings.mode].finds === "here";
  }

  /** Drop the kept answer. */
  forget(): void {
    this.answers.forget();
    this.broadcast.forget();
    this.uplink.forget();
  }

  /** What is left where nothing may be reported: recall here, else the default list; the sentence is told which. */
  private withoutReport(models: ServingModels, clicks: Vectors, sentence: string, watch: Stopwatch): Found {
    const limit = this.reports.desk.ledger.settings.epsilon_per_report;
    const say = (how: string | undefined): string => NOTICES.say(sentence, { limit, how });
    const here = this.here(models, clicks, watch, say(INSTEAD["here"]));
    return here ?? found(nothing(models.encoder, models.dimensions), "front", say(INSTEAD["common"]));
  }

  /** Recall on this device; null where it keeps no pool by this encoder. */
  private here(models: ServingModels, clicks: Vectors, watch: Stopwatch, notice: string | null = null): Found | null {
    if (!this.broadcast.ready(models.encoder)) return null;
    try {
      const { vector } = this.reports.reader(models, clicks);
      const find = (): Candidates => this.broadcast.find(vector, this.reports.limit, models.encoder);
      return found(watch.stage("search", find), "personal", notice);
    } catch (broken) {
      if (!(broken instanceof PoolBroken)) throw broken;
      this.broadcast.discard();
      return null;
    }
  }

  /**
   * What there is while the backend can't answer: the last answer to this report, however old. Throws BackendRefused where
   * no answer is kept: the last feed serves then.
   */
  private meanwhile(report: Sealed<RecallRequest>, models: ServingModels, busy: BackendRefused): Found {
    this.answers.noteBusy(busy);
    const kept = this.answers.of(report, models.encoder, { young: false });
    if (!kept) throw busy;
    return found(kept, "personal", NOTICES.say("last_answer", { trouble: busy.message }));
  }

  private async asked(
    report: Sealed<RecallRequest>,
    models: ServingModels,
    notice: string | null,
    watch: Stopwatch,
  ): Promise<Found> {
    const [answer, serverMs] = await this.uplink.recall(report, watch);
    const { encoder, dimensions } = models;
    if (answer.encoder !== encoder)
      return { ...found(nothing(encoder, dimensions), "front", NOTICES.say("moved_on")), serverMs };
    const kept = watch.stage("decode", () => this.answers.keep(report, encoder, answer, dimensions));
    return { ...found(kept, "personal", notice), serverMs };
  }
}
