// What every page shows of the device: protection, budget, connection, release and alerts.
import words from "../../../device_app/view_models/words.toml";
import firstUse from "../first_use.toml";
import { plural } from "../protocol/formatting";
import type { Ledger } from "../privacy/accounting/ledger";
import type { ReportPolicy } from "../reports/policy";
import { TextCatalogue } from "../protocol/text_catalogue";
import type { Moment } from "../protocol/forms";

export const WORDS = new TextCatalogue(words);
const FIRST_USE = new TextCatalogue(firstUse);
export type ReportStatus = "green" | "weak" | "amber" | "red";

/** A background failure, in a sentence; at: milliseconds since 1970. */
export interface LoopAlert {
  readonly loop: "sync" | "training" | "texts" | "copy";
  readonly at: number;
  readonly words: string;
}

/** Names are those of the templates; see StatusView in device_app/view_models/status.py. */
export interface StatusView {
  readonly profile: string;
  readonly mode: string;
  readonly shield: ReportStatus;
  readonly shield_words: string;
  readonly feed_made_at: Moment | null;
  readonly online: boolean | null;
  readonly clicks: number;
  readonly chosen_sections: readonly string[] | null;
  readonly training: boolean;
  readonly own_feeds: boolean;
  readonly as_published: string | null;
  readonly alerts: readonly LoopAlert[];
}

/** Relative tolerance of the ceiling, as in the ledger. */
const ROUNDING = 1e-9;
/** Above this epsilon, a report is described as too costly to protect the reader. */
export const PROMISE_UP_TO = 10;

/** The state of reports as a colour and a sentence. price: of one new report; null if none can be made. */
export function shieldOf(
  policy: ReportPolicy,
  ledger: Ledger,
  price: number | null | undefined,
  refused: "forked" | "refused" | null,
): { shield: ReportStatus; shield_words: string } {
  const statusOf = (shield: ReportStatus, key: string, values: Record<string, unknown> = {}) => ({
    shield,
    shield_words: WORDS.say(key, values),
  });
  const { settings } = policy;
  if (refused) return statusOf("red", refused);
  if (settings.mode === "none") return statusOf("green", "reports_off");
  if (settings.mode === "broadcast") return statusOf("green", "found_here");
  if (price === undefined) return statusOf("green", "nothing_sent");
  if (price === null) return statusOf("amber", "no_way");
  if (ledger.isOpen) return { shield: "amber", shield_words: FIRST_USE.say("shield") };
  const left = ledger.left("reports");
  if (left < price * (1 - ROUNDING)) {
    const whole = settings.epsilon_lifetime_reports;
    const spent = whole !== null && ledger.total("reports") + price > whole * (1 + ROUNDING);
    return statusOf("amber", spent ? "spent_for_good" : "spent_today");
  }
  const more = Math.floor((left * (1 + ROUNDING)) / price);
  if (price > PROMISE_UP_TO) return statusOf("weak", "no_promise", { price, reports: plural(more, "report") });
  return statusOf("green", "may_leave", { reports: plural(more, "report") });
}
