// The privacy page's values: what left, what it could reveal, what can be switched. By the names that the templates know;
// see device_app/view_models/privacy.py.
import privacyWords from "../../../device_app/privacy/words.toml";
import { msOf, momentOf, HOUR_MS } from "../moments";
import type { Device } from "../device";
import { RandomisedCode, affordable } from "../privacy/code";
import { CHANNELS, lifetime, perDay } from "../privacy/ledger";
import { composed } from "../privacy/privacy_loss";
import { MODES } from "../privacy/modes";
import { Prose } from "../prose";
import { SLACK, USUAL_PLACES, around, gainOf } from "../recall_frontier";
import type { StoredPool } from "../store/pool_codes";
import { newsInPool } from "../wire/broadcast";
import { readMessage } from "../wire/forms";
import { recallRequest } from "../wire/recall";
import type { RecallProtocol, ReleaseManifest } from "../wire/releases";
import { PROMISE_UP_TO, WORDS } from "./status";
import { aloneView, sumCost } from "./sums";
import { todayView } from "./today";
import { type ShownTraffic, trafficLog } from "./traffic";

const MODE_WORDS = new Prose(privacyWords);
/** Those that this device has; the others of the Python device are for comparison. */
const OFFERED = ["code", "auto", "broadcast", "none"] as const;
const USUAL = { size: 16, epsilon: 4 } as const;
const COUNTS_SHOWN = 10;
const VIEW_DELTA = 1e-3;

/** page counts lines of the log from 1; shown: by default what concerned the reader, or all where nothing did. */
export function privacyView(device: Device, page = 1, shown: ShownTraffic | null = null): Record<string, unknown> {
  const { stores, ledger, serving } = device.parts;
  const [own, settings] = [device.settings, ledger.settings];
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
      per_day: perDay(settings, channel),
      spent_today: ledger.spentToday(channel),
      left_today: ledger.left(channel),
      lifetime: ledger.total(channel),
      lifetime_limit: lifetime(settings, channel),
    })),
    days: stores.ledgerEntries.days(),
    log: trafficLog(stores.database, page, shown),
    report: memo && settings.mode === "code" ? reportPair(memo, settings.report_window_hours) : null,
    new_clicks: newClicks,
    clicks_until_report: memo ? Math.max(0, settings.clicks_per_report - madeSince) : 0,
    alone: aloneView(ledger),
    today: todayView(stores, ledger),
    reported: memo !== undefined,
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

/** What came over the wire for the pool, if it was pulled at once. */
function pulledBytes({ listing, text }: StoredPool): number {
  const shards = listing.shards.flatMap(({ codes, cards }) => [codes.size_bytes, cards.size_bytes]);
  return text.length + listing.book.size_bytes + listing.priors.size_bytes + shards.reduce((sum, size) => sum + size, 0);
}

function reading(clicks: number, mode: string): Record<string, unknown> {
  const weighs = WORDS.table("reading_weighs");
  const holds = `${clicks} ${clicks === 1 ? "click" : "clicks"}`;
  return { title: WORDS.table("views")["reading"], holds, weighs: weighs[mode] ?? weighs["other"], rounds: 0, epsilon: 0 };
}

/** The mechanism in use under the current release; null where nothing is reported. */
export function mechanismFacts(device: Device, protocol: RecallProtocol | null): Record<string, unknown> | null {
  const { settings } = device.parts.ledger;
  const book = protocol && MODES[settings.mode].reports ? affordable(protocol, settings.epsilon_per_report) : null;
  if (!book) return null;
  const { truth } = new RandomisedCode(book.size, book.epsilon);
  return {
    name: settings.mode,
    sentence: MODE_WORDS.say("code_sent", { last: book.size - 1, size: book.size, truth }),
    costs: [[WORDS.say("whole_report"), book.epsilon]],
    epsilon_per_report: book.epsilon,
    truth,
    uncovered: MODE_WORDS.say("uncovered"),
    is_promise: book.epsilon <= PROMISE_UP_TO,
  };
}

/** What was measured of reports by one of K codes in a pool of so many news; nothing where it wasn't. */
export function reportWorth(mode: string, size: number, epsilon: number, news: number): string {
  const found = gainOf(mode, size, epsilon, news);
  if (!found || news === 0) return "";
  if (news <= USUAL_PLACES) return WORDS.say("report_unneeded", { places: USUAL_PLACES, news });
  const [low, high] = around(news);
  const where =
    low < high ? WORDS.say("report_between", { low, high, news })
    : low === news ? WORDS.say("report_measured", { measured: low })
    : WORDS.say("report_measured_elsewhere", { measured: low, news });
  return WORDS.say(found.gain < SLACK ? "report_adds_nothing" : "report_worth", { where, ...found });
}

/** The same of the reader's mode under a release; nothing where that reports nothing. */
export function worthOf(device: Device, release: ReleaseManifest | null): string {
  const { settings } = device.parts.ledger;
  const book = release && MODES[settings.mode].reports ? affordable(release.recall, settings.epsilon_per_report) : null;
  return book && release?.news != null ? reportWorth(settings.mode, book.size, book.epsilon, release.news) : "";
}

function modeFacts(device: Device, name: (typeof OFFERED)[number], protocol: RecallProtocol | null): Record<string, unknown> {
  const { settings } = device;
  const book = (protocol && affordable(protocol, settings.epsilon_per_report)) ?? null;
  const { size, epsilon } = book ?? USUAL;
  const { truth } = new RandomisedCode(size, epsilon);
  const unusable =
    !protocol || name === "none" || name === "auto" ? null
    : name === "broadcast" ? (protocol.pool_codes ? null : WORDS.say("no_pool_codes"))
    : book ? null
    : WORDS.say("nothing_within", { limit: settings.epsilon_per_report }); // prettier-ignore
  const cost =
    name === "none" ? WORDS.say("costs_nothing")
    : name === "broadcast" ? WORDS.say("costs_no_pool")
    : name === "code" && book ? WORDS.say("costs_report", { epsilon })
    : ""; // prettier-ignore
  return {
    name,
    title: MODE_WORDS.say(`${name}_title`),
    paragraph: MODE_WORDS.say(`${name}_paragraph`, { size, truth }),
    cost,
    recommended: false,
    unusable,
    for_comparison: false,
    worth: "",
  };
}

function reportPair(
  memo: { payload: Uint8Array<ArrayBuffer>; clear: readonly (readonly number[])[]; madeAt: number; release: string },
  windowHours: number,
): Record<string, unknown> | null {
  const { report } = readMessage(recallRequest, memo.payload);
  if (report.kind !== "code") return null;
  return {
    kind: "code",
    made_at: momentOf(memo.madeAt),
    expires_at: momentOf(memo.madeAt + windowHours * HOUR_MS),
    release: memo.release,
    clear: memo.clear,
    noisy: [[report.code]],
    counts: [],
    labels: [],
    in_a_sentence: true,
    row_label: null,
  };
}

/** When the UTC day ends, and the budgets of the next begin; in milliseconds since 1970. */
export function dayEnds(now: number): number {
  return msOf(momentOf(Math.floor(now / (24 * HOUR_MS) + 1) * 24 * HOUR_MS));
}
