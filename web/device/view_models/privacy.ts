// The privacy page's values: what left, what it could reveal, what can be switched, and what noisy sums cost if the
// other devices are real and if they are all fake. Names are those of the templates; see
// device_app/view_models/privacy.py.
import type { Device } from "../device";
import { HOUR_MS, momentOf, msOf } from "../protocol/moments";
import { affordable } from "../privacy/mechanisms/code";
import type { Ledger } from "../privacy/accounting/ledger";
import { CHANNELS } from "../privacy/accounting/limits";
import { MODES } from "../reports/modes";
import { composed } from "../privacy/accounting/composition";
import { isBlank } from "../privacy/sealed_reports";
import type { PrivacySettings } from "../privacy/settings";
import { newsInPool } from "../protocol/broadcast";
import { readMessage } from "../protocol/forms";
import { recallRequest } from "../protocol/recall";
import { USUAL_PLACES, gainOf } from "../protocol/recall_frontier";
import type { RecallProtocol, ReleaseManifest } from "../protocol/releases";
import type { LedgerEntry } from "../store/ledger_entries";
import type { Memo } from "../store/report_memo";
import type { StoredPool } from "../store/pool_codes";
import { PROMISE_UP_TO, WORDS } from "./status";
import { todayView } from "./traffic";
import { trafficLog, type ShownTraffic } from "./traffic";

/** The costs of one sum in epsilon at delta. */
export function sumCost(entry: LedgerEntry) {
  const { parameters: known, delta, epsilon } = entry;
  return {
    delta,
    epsilon,
    alone: known["epsilon_alone"] ?? Infinity,
    one_click: known["epsilon_one_click"] ?? null,
    one_click_alone: known["epsilon_one_click_alone"] ?? null,
  };
}

/** The cost of all noisy sums together if every other member was fake, in epsilon at delta, with the ceilings. */
export function aloneView(ledger: Ledger) {
  const [{ delta, aloneDay, aloneLife }, alone] = [ledger.ceilings, ledger.alone()];
  return {
    today: alone.today(delta),
    per_day: aloneDay,
    in_all: alone.inAll(delta),
    lifetime_limit: aloneLife,
    delta,
  };
}

/** The modes of this device, in the page's order: all but those of reports that only the Python device makes. */
const OFFERED = (Object.keys(MODES) as PrivacySettings["mode"][]).filter(
  (name) => MODES[name].finds !== "server" || MODES[name].reporter,
);
const COUNTS_SHOWN = 10;
const VIEW_DELTA = 1e-3;

/** page: page of the log, from 1; shown: by default what concerned the reader, or everything if nothing did. */
export function privacyView(device: Device, page = 1, shown: ShownTraffic | null = null): Record<string, unknown> {
  const { stores, policy, ledger, serving } = device.parts;
  const [own, settings, { day, life }] = [device.privacy.settings, policy.settings, ledger.ceilings];
  const protocol = serving.manifest()?.recall ?? null;
  const memo = stores.reportMemo.latest();
  const pulled = stores.pool.current();
  const pool = pulled && { news: newsInPool(pulled.listing), pulled_bytes: pulledBytes(pulled) };
  const loss = composed(stores.ledgerEntries.grouped());
  const madeSince = memo ? stores.clicks.latestId() - memo.clicks : 0;
  const newClicks = stores.clicks.count() - (memo ? stores.clicks.countUpTo(memo.clicks) : 0);
  const charges = stores.ledgerEntries.ofSums();
  return {
    settings,
    own,
    given: [],
    modes: OFFERED.map((name) => modeFacts(device, name, protocol)),
    mechanism: mechanismFacts(device, protocol),
    composed: {
      by_sum: loss.bySum,
      delta_by_sum: loss.deltaBySum,
      by_loss: loss.byLoss,
      charges: loss.charges,
      sums: loss.sums,
    },
    pool,
    budgets: CHANNELS.map((channel) => ({
      channel,
      per_day: day[channel],
      spent_today: ledger.spentToday(channel),
      left_today: ledger.left(channel),
      lifetime: ledger.total(channel),
      lifetime_limit: life[channel],
    })),
    days: stores.ledgerEntries.days(),
    log: trafficLog(stores.database, page, shown),
    report: memo && policy.mode.reporter ? reportPair(memo, settings) : null,
    new_clicks: newClicks,
    clicks_until_report: memo ? Math.max(0, isBlank(memo) ? settings.clicks_before_report - stores.clicks.count() : settings.clicks_per_report - madeSince) : 0,
    alone: aloneView(ledger),
    today: todayView(stores, policy, ledger),
    reported: memo !== undefined,
    blank: memo !== undefined && isBlank(memo),
    counts: stores.counted.list(COUNTS_SHOWN).map((taken) => {
      const charge = charges.get(taken.round);
      return {
        round: taken.round,
        until: momentOf(taken.until),
        displayed: taken.displayed,
        clicked: taken.clicked,
        cost: charge ? sumCost(charge) : null,
      };
    }),
    chain: null,
    sources: { sources: [reading(stores.clicks.count(), settings.mode)], delta: VIEW_DELTA, apart: false },
  };
}

/** Bytes received for the pool, if pulled at once. */
function pulledBytes({ listing, text }: StoredPool): number {
  const shards = listing.shards.flatMap(({ codes, cards }) => [codes.size_bytes, cards.size_bytes]);
  return text.length + listing.book.size_bytes + listing.priors.size_bytes + shards.reduce((sum, size) => sum + size, 0);
}

function reading(clicks: number, mode: string): Record<string, unknown> {
  const weighs = WORDS.table("reading_weighs");
  const holds = `${clicks} ${clicks === 1 ? "click" : "clicks"}`;
  return { title: WORDS.table("views")["reading"], holds, weighs: weighs[mode] ?? weighs["other"], rounds: 0, epsilon: 0 };
}

/** The mechanism under the current release; null if nothing is reported. */
export function mechanismFacts(device: Device, protocol: RecallProtocol | null): Record<string, unknown> | null {
  const { mode, settings } = device.parts.policy;
  const book = protocol && affordable(protocol, settings.epsilon_per_report);
  const mechanism = book && mode.mechanism?.(book);
  if (!mechanism) return null;
  return {
    name: settings.mode,
    sentence: mode.label.sent(mechanism),
    costs: [[WORDS.say("whole_report"), mechanism.epsilon]],
    epsilon_per_report: mechanism.epsilon,
    truth: mechanism.truth ?? null,
    uncovered: mode.label.uncovered,
    is_promise: mechanism.epsilon <= PROMISE_UP_TO,
  };
}

/** A smaller gain rounds to zero. */
const SHOWN = 0.5;

/**
 * A short summary of the measured gain of reports by one of K codes for a pool of this many articles; empty if not
 * measured.
 */
export function reportWorth(mode: string, size: number, epsilon: number, news: number): string {
  const found = gainOf(mode, size, epsilon, news);
  if (!found || news === 0) return "";
  if (news <= USUAL_PLACES) return WORDS.say("report_unneeded", { places: USUAL_PLACES, news });
  return found.gain < SHOWN ? WORDS.say("worth_none") : WORDS.say("worth", { gain: found.gain });
}

/** The same for the reader's mode under a release; empty if that reports nothing. */
export function worthOf(device: Device, release: ReleaseManifest | null): string {
  const { mode, settings } = device.parts.policy;
  const book = release && mode.reporter ? affordable(release.recall, settings.epsilon_per_report) : null;
  return book && release?.news != null ? reportWorth(settings.mode, book.size, book.epsilon, release.news) : "";
}

function modeFacts(device: Device, name: PrivacySettings["mode"], protocol: RecallProtocol | null): Record<string, unknown> {
  const { settings } = device.privacy;
  const book = (protocol && affordable(protocol, settings.epsilon_per_report)) ?? null;
  const { label, finds, mechanism } = MODES[name];
  const unusable =
    !protocol || finds === "nobody" ? null
    : finds === "here" ? (protocol.pool_codes ? null : WORDS.say("no_pool_codes"))
    : book ? null
    : WORDS.say("nothing_within", { limit: settings.epsilon_per_report }); // prettier-ignore
  const cost =
    name === "none" ? WORDS.say("costs_nothing")
    : finds === "here" ? WORDS.say("costs_no_pool")
    : mechanism && book ? WORDS.say("costs_report", { epsilon: book.epsilon })
    : ""; // prettier-ignore
  return {
    name,
    title: label.title,
    paragraph: label.paragraph((book && mechanism?.(book)) ?? null),
    cost,
    recommended: false,
    unusable,
    for_comparison: false,
    worth: "",
  };
}

function reportPair(
  memo: Pick<Memo, "payload" | "clear" | "madeAt" | "release" | "mechanism">,
  { mode, report_window_hours: windowHours }: PrivacySettings,
): Record<string, unknown> | null {
  const { report } = readMessage(recallRequest, memo.payload);
  const { label } = MODES[mode];
  if ((memo.mechanism.split("/")[0] || "code") !== mode) return null;
  return {
    kind: mode,
    made_at: momentOf(memo.madeAt),
    expires_at: momentOf(memo.madeAt + windowHours * HOUR_MS),
    release: memo.release,
    clear: memo.clear,
    noisy: label.rows(report),
    counts: [],
    labels: [],
    steps: reportSteps(memo.clear),
    in_a_sentence: label.inASentence,
    row_label: null,
  };
}

const GROUPS_SHOWN = 3;

/** Returns each interest's heaviest groups, then those of all interests together (`InterestReporter.shown`); empty for
 * other reports. */
function reportSteps([, weights, ...interests]: readonly (readonly number[])[]): Record<string, unknown>[] {
  if (!weights) return [];
  const steps = interests.map(([count = 0, ...row], at) => ({
    title: WORDS.say("step_interest", {
      name: WORDS.say("step_unnamed", { number: at + 1 }),
      clicks: `${count} ${count === 1 ? "story" : "stories"}`,
    }),
    groups: heaviest(row),
  }));
  return [...steps, { title: WORDS.say("step_together"), groups: heaviest(weights) }];
}

function heaviest(weights: readonly number[]): (readonly [number, number])[] {
  const order = weights.map((weight, group) => [group, weight] as const);
  return order.sort(([, one], [, other]) => other - one).slice(0, GROUPS_SHOWN);
}

/** When the UTC day ends and new budgets begin; in milliseconds since 1970. */
export function dayEnds(now: number): number {
  return msOf(momentOf(Math.floor(now / (24 * HOUR_MS) + 1) * 24 * HOUR_MS));
}
