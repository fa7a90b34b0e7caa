// What every page shows of the device: the state of its protection, budget, connection, release and alerts.
import words from "../../../device_app/view_models/words.toml";
import { plural } from "../figures";
import type { Ledger } from "../privacy/ledger";
import { Prose } from "../prose";
import type { Moment } from "../wire/values";

export const WORDS = new Prose(words);
export type ReportStatus = "green" | "weak" | "amber" | "red";

/** Something that failed in the background, in a sentence; at is milliseconds since 1970. */
export interface LoopAlert {
  readonly loop: "sync" | "training" | "texts" | "copy";
  readonly at: number;
  readonly words: string;
}

/** By the names that the templates know; see StatusView of device_app/view_models/status.py. */
export interface StatusView {
  readonly profile: string;
  readonly mode: string;
  readonly shield: ReportStatus;
  readonly shield_words: string;
  readonly feed_made_at: Moment | null;
  readonly feed_ms: number | null;
  readonly online: boolean | null;
  readonly clicks: number;
  readonly chosen_sections: readonly string[] | null;
  readonly training: boolean;
  readonly own_feeds: boolean;
  readonly as_printed: string | null;
  readonly alerts: readonly LoopAlert[];
}

/** Relative slack of the ceiling, as in the ledger. */
const ROUNDING = 1e-9;
/** An epsilon beyond which a report's bound is called no promise. */
export const PROMISE_UP_TO = 10;

/** How reports stand, in a colour and in a sentence. price: of one fresh report; null where none can be made. */
export function shieldOf(
  ledger: Ledger,
  price: number | null | undefined,
  refused: "forked" | "refused" | null,
): { shield: ReportStatus; shield_words: string } {
  const said = (shield: ReportStatus, key: string, values: Record<string, unknown> = {}) => ({
    shield,
    shield_words: WORDS.say(key, values),
  });
  const { settings } = ledger;
  if (refused) return said("red", refused);
  if (settings.mode === "none") return said("green", "reports_off");
  if (settings.mode === "broadcast") return said("green", "found_here");
  if (price === undefined) return said("green", "nothing_sent");
  if (price === null) return said("amber", "no_way");
  const left = ledger.left("reports");
  if (left < price * (1 - ROUNDING)) {
    const whole = settings.epsilon_lifetime_reports;
    const spent = whole !== null && ledger.total("reports") + price > whole * (1 + ROUNDING);
    return said("amber", spent ? "spent_for_good" : "spent_today");
  }
  const more = Math.floor((left * (1 + ROUNDING)) / price);
  if (price > PROMISE_UP_TO) return said("weak", "no_promise", { price, reports: plural(more, "fresh report") });
  return said("green", "may_leave", { numbers: plural(more, "new number") });
}
