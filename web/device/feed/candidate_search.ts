// Finds a page's candidates on this device: in the last answer, the copy of the pool, and the default list. The copy is
// used whenever there is one: the answer to a noisy report may contain hardly anything that the reader would read, and
// searching the copy sends nothing. There is no index: all codes of the copy are scanned (broadcast.ts).
import notices from "../../../device_app/feed/notices.toml";
import { BackendRefused, BackendUnreachable, type BudgetSpent, CodebooksSpent, FirstUseOpen } from "../errors";
import { TextCatalogue } from "../protocol/text_catalogue";
import type { Vectors } from "../vectors";
import type { Stopwatch } from "../protocol/server_timing";
import { type Broadcast, PoolBroken } from "./broadcast";
import { type Candidates, nothing, together } from "./candidates";
import type { FeedMode } from "./item";
import type { ServingModels } from "./model_cache";
import type { RecallAnswers } from "./recall_answers";
import firstUse from "../first_use.toml";
import { type ReportChoice, VectorsIncomplete } from "../reports/choice";

export const NOTICES = new TextCatalogue(notices);
const FIRST_USE = new TextCatalogue(firstUse);
const INSTEAD = NOTICES.table("instead");
export const BUSY: readonly number[] = [429, 503];

/** Candidates beyond the default list (perhaps none), and the feed's notice about them. */
export interface Found {
  readonly candidates: Candidates;
  readonly mode: FeedMode;
  readonly notice: string | null;
}

/** clicks: how many have vectors. pool: articles near them in this device's copy of the pool; null without a copy. */
interface Search {
  readonly models: ServingModels;
  readonly clicks: number;
  readonly pool: Candidates | null;
}

function found(candidates: Candidates, mode: FeedMode, notice: string | null = null): Found {
  return { candidates, mode, notice };
}

/** No candidates beyond the default list. */
function onlyDefault({ models }: Search, notice: string | null = null, mode: FeedMode = "front"): Found {
  return found(nothing(models.encoder, models.dimensions), mode, notice);
}

/** What this device finds in its pool; null if it finds nothing there. */
function inOwnPool({ pool }: Search, notice: string | null = null): Found | null {
  return pool && found(pool, "personal", notice);
}

/**
 * Finds a page's candidates besides the default list, without any request. `RecallStep` fetches the answers, at random
 * times that don't depend on what the reader does.
 */
export class Recall {
  constructor(
    private readonly answers: RecallAnswers,
    private readonly reports: ReportChoice,
    readonly broadcast: Broadcast,
  ) {}

  /**
   * Candidates for the reader's interests, from the first applicable source. If this device has a copy of the pool,
   * candidates from it are added. clicks [H, D]: the recent clicks.
   */
  find(models: ServingModels, clicks: Vectors, watch: Stopwatch): Found {
    const search: Search = { models, clicks: clicks.rows, pool: this.ofOwnPool(models, clicks, watch) };
    const first =
      this.ifNobodySearches(search) ??
      this.ifNothingWasClicked(search) ??
      this.ifThisDeviceSearches(search) ??
      this.ifNoReportCanBeMade(search) ??
      this.ifTooLittleWasRead(search) ??
      this.ifNoReportWasDrawn(search) ??
      this.lastAnswer(search) ??
      this.defaultList(search);
    if (!search.pool || first.candidates === search.pool || first.mode === "front") return first;
    return { ...first, candidates: together(first.candidates, search.pool) };
  }

  /** The kept answer and the default list combined. */
  known(defaultList: Candidates): Candidates {
    const kept = this.answers.found();
    return kept ? this.joined(kept, defaultList) : defaultList;
  }

  /** The rows of an answer and of the default list combined, cached for the next feed. */
  joined(answered: Candidates, defaultList: Candidates): Candidates {
    return this.answers.joined(answered, defaultList);
  }

  /** Whether the reader chose on-device search of the pool, whose texts are in no returned list. */
  findsHere(): boolean {
    return this.finds === "here";
  }

  /** Drops the kept answer. */
  forget(): void {
    this.answers.forget();
    this.broadcast.forget();
  }

  private get finds(): string {
    return this.reports.policy.mode.finds;
  }

  private ifNobodySearches(search: Search): Found | null {
    return this.finds === "nobody" ? onlyDefault(search, NOTICES.say("silent")) : null;
  }

  private ifNothingWasClicked(search: Search): Found | null {
    const clicked = this.reports.clicks && (this.finds !== "here" || search.clicks);
    return clicked ? null : onlyDefault(search, null, "cold");
  }

  private ifThisDeviceSearches(search: Search): Found | null {
    if (this.finds !== "here") return null;
    const why = search.models.manifest.recall.pool_codes ? "no_pool" : "no_pool_offered";
    return inOwnPool(search) ?? onlyDefault(search, NOTICES.say(why));
  }

  private ifNoReportCanBeMade(search: Search): Found | null {
    const reporter = this.reports.reporter(search.models);
    if (!reporter) return this.withoutReport(search, "no_way");
    const beyond = this.reports.beyond(reporter);
    return beyond ? this.withoutReport(search, spent(beyond === "life")) : null;
  }

  private ifTooLittleWasRead(search: Search): Found | null {
    return this.reports.readsEnough ? null : onlyDefault(search, null, "cold");
  }

  private ifNoReportWasDrawn(search: Search): Found | null {
    const { why } = this.answers.asked;
    if (!why) return null;
    const { encoder } = search.models;
    const answer = this.answers.personal(encoder);
    if (!answer || this.broadcast.ready(encoder)) return this.withoutReport(search, whyNot(why));
    return found(answer, "personal", noticeOf(whyNot(why), { how: INSTEAD["kept"] }));
  }

  /** The last answer of any age; before the first one, what is found here. */
  private lastAnswer(search: Search): Found | null {
    const [answer, { trouble }] = [this.answers.personal(search.models.encoder), this.answers.asked];
    if (isSilent(trouble)) return answer ? found(answer, "personal") : inOwnPool(search);
    if (answer && trouble instanceof BackendRefused && BUSY.includes(trouble.problem.status))
      return found(answer, "personal", NOTICES.say("last_answer", { trouble: trouble.message }));
    return null;
  }

  /** No candidates, and why the last request brought none. */
  private defaultList(search: Search): Found {
    const { trouble, movedOn } = this.answers.asked;
    if (!trouble || isSilent(trouble)) return onlyDefault(search, movedOn ? NOTICES.say("moved_on") : null);
    if (trouble instanceof BackendRefused && !BUSY.includes(trouble.problem.status))
      return onlyDefault(search, NOTICES.say("report_refused", { why: trouble.message }));
    return onlyDefault(search, NOTICES.say("default_list", { trouble: trouble.message }));
  }

  /** What this device finds without a report, otherwise the default list; `sentence` makes the notice. */
  private withoutReport(search: Search, sentence: string): Found {
    const limit = this.reports.policy.settings.epsilon_per_report;
    const say = (how: string | undefined): string => noticeOf(sentence, { limit, how });
    return inOwnPool(search, say(INSTEAD["here"])) ?? onlyDefault(search, say(INSTEAD["common"]));
  }

  /** The nearest articles of this device's pool; null without clicks or without a pool by this encoder. */
  private ofOwnPool(models: ServingModels, clicks: Vectors, watch: Stopwatch): Candidates | null {
    if (!clicks.rows || this.finds === "nobody" || !this.broadcast.ready(models.encoder)) return null;
    try {
      const { vector } = this.reports.reader(models, clicks, []);
      return watch.stage("search", () => this.broadcast.find(vector, this.reports.limit, models.encoder));
    } catch (broken) {
      if (!(broken instanceof PoolBroken)) throw broken;
      this.broadcast.discard();
      return null;
    }
  }
}

/** Whether no notice is due: nothing failed, or the backend is unreachable, which every page shows by itself. */
function isSilent(trouble: Error | undefined): boolean {
  return !trouble || trouble instanceof BackendUnreachable;
}

/** The name of the sentence that says why no report was drawn. */
function whyNot(why: BudgetSpent | VectorsIncomplete): string {
  if (why instanceof VectorsIncomplete) return "vectors_coming";
  if (why instanceof FirstUseOpen) return "first_use_open";
  if (why instanceof CodebooksSpent) return "codebooks_spent";
  return spent(why.lifetime);
}

const spent = (forLife: boolean): string => (forLife ? "spent_for_good" : "spent_today");

/** Returns why no new report was sent. Only the browser's device asks whether this is its first use. */
function noticeOf(sentence: string, values: Record<string, unknown>): string {
  return sentence === "first_use_open" ? FIRST_USE.say("notice", values) : NOTICES.say(sentence, values);
}
