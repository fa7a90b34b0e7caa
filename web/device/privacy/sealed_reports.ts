// The report of interests: drawn and paid for once, then sent again bit for bit until it is out of date.
//
// Formal guarantees: those of device_app/privacy/sealed_reports.py, whose rules these are: under one meaning the reader's
// value is drawn once, by randomised response, and charged before its bytes leave; what is sent again is the number
// drawn.
import sentences from "../../../device_app/privacy/words.toml";
import { CodebooksSpent } from "../errors";
import { TextCatalogue } from "../protocol/text_catalogue";
import type { DrawnReports, Memo, ReportMemo } from "../store/report_memo";
import { messageBytes, readMessage } from "../protocol/forms";
import { shortened } from "../protocol/ids";
import { recallRequest, report as reportForm, type RecallRequest, type Report } from "../protocol/recall";
import type { NoiseSource } from "./exact_samplers";
import type { Ledger } from "./accounting/ledger";
import { gramBytes, UNKNOWN, type Reporter, type ReportInput, type ReportMeaning } from "./reporter";
import { digest, free, JSON_TYPE, Sealed } from "./sealed";
import type { PrivacySettings } from "./settings";

const WORDS = new TextCatalogue(sentences);
/** The number of clicks stored for a cover report, which is based on none. */
const NOBODYS_CLICKS = -1;

/** The stores in which reports are kept and charged. */
export interface ReportDesk {
  /** Returns the settings in force now. */
  readonly settings: () => PrivacySettings;
  readonly ledger: Ledger;
  readonly noise: NoiseSource;
  readonly memo: ReportMemo;
  readonly drawn: DrawnReports;
}

/**
 * Makes the report for the reader's current value, charges it unless it was drawn before, and stores it for sending.
 *
 * reader null: a blank report, for a reader with too few clicks. sent: describes a fresh report to the reader. clicks: Clicks.latestId() when the vectors were read.
 * Throws BudgetSpent (nothing is drawn and the memo stays), its subclass CodebooksSpent if the server has already
 * introduced `codebooks_per_day` new codebooks today, and RangeError for vectors that aren't finite. Charge, drawing
 * and memo are stored in one transaction, on disk before this returns: after a crash either all exist or none does, and
 * nothing was sent.
 */
export function sealReport(
  reporter: Reporter,
  reader: ReportInput | null,
  { release, limit, clicks, sent }: { release: string; limit: number; clicks: number; sent: string },
  { settings, ledger, noise, memo, drawn }: ReportDesk,
): Sealed<RecallRequest> {
  const { codebooks_per_day: most } = stillAllowed(reporter, settings());
  const [value, { meaning }] = [reporter.value(reader), reporter];
  const both = reader?.searched ? WORDS.say("both_views") : "";
  const keep = (payload: Memo["payload"], madeAt: number): void => {
    memo.keep(memoOf(meaning, { release, payload, clear: reader ? reporter.shown(reader) : [], clicks, madeAt }));
  };
  const requestOf = (report: Report): RecallRequest => recallRequest.make({ release: shortened(release), limit, report });
  return ledger.store.transaction(() => {
    const before = drawn.get(reporter.name, meaning.name, value);
    if (before !== undefined) {
      const request = requestOf(readMessage(reportForm, before));
      const payload = messageBytes(recallRequest, request);
      keep(payload, ledger.now());
      return Sealed.close(request, payload, JSON_TYPE, free(reporter.name, release), WORDS.say("report_before") + both);
    }
    if (!drawn.begun(meaning.name) && drawn.begunSince(ledger.midnight()) >= most) throw new CodebooksSpent(most);
    const report = reporter.make(value, noise);
    const request = requestOf(report);
    const payload = messageBytes(recallRequest, request);
    const { epsilon } = reporter.mechanism;
    const charge = {
      channel: "reports",
      mechanism: reporter.name,
      parameters: { ...reporter.mechanism.parameters, ...(reader?.searched && { views: 2 }) },
      epsilon,
      delta: 0,
      payloadSha256: digest(payload),
      subject: release,
    };
    const at = ledger.spend(charge);
    drawn.begin(meaning.name, at);
    drawn.keep(reporter.name, meaning.name, value, reportForm.write(report), at);
    keep(payload, at);
    const words = WORDS.say(reader ? "report_fresh" : "report_blank", { sent });
    return Sealed.close(request, payload, JSON_TYPE, charge, words + both);
  });
}

/**
 * Seals a cover: a blank report sent when no report may be drawn and none is left to send. It is sent until one may be
 * drawn. It is drawn independently of the reader, and every reader with these charges, settings, release and vectors
 * has one drawn the same way: epsilon 0.
 */
export function sealCover(
  reporter: Reporter,
  { release, limit }: { release: string; limit: number },
  { settings, ledger, noise, memo }: ReportDesk,
): Sealed<RecallRequest> {
  stillAllowed(reporter, settings());
  const request = recallRequest.make({ release: shortened(release), limit, report: reporter.make(UNKNOWN, noise) });
  const payload = messageBytes(recallRequest, request);
  memo.keep(memoOf(reporter.meaning, { release, payload, clear: [], clicks: NOBODYS_CLICKS, madeAt: ledger.now() }));
  return Sealed.close(request, payload, JSON_TYPE, free(reporter.name, release), WORDS.say("report_cover"));
}

/** The settings in force. Throws RangeError if they now name another mode than the reporter's. */
function stillAllowed(reporter: Reporter, settings: PrivacySettings): PrivacySettings {
  if (settings.mode !== reporter.name)
    throw new RangeError(`the reader's mode is ${settings.mode}: no report of interests may be made`);
  return settings;
}

/** Whether the report in use contains nothing about its reader. */
export function isBlank({ clear }: Memo): boolean {
  return !clear.length;
}

/** Whether the report in use is a cover, to be replaced as soon as a report may be drawn. */
export function isCover({ clicks }: Memo): boolean {
  return clicks === NOBODYS_CLICKS;
}

function memoOf(
  meaning: ReportMeaning,
  made: Pick<Memo, "release" | "payload" | "clear" | "clicks" | "madeAt">,
): Memo {
  const { name, mechanism, encoder, directions } = meaning;
  return { ...made, meaning: name, mechanism, encoder, directions, gram: gramBytes(meaning) };
}

/**
 * The report in use, of any age, under a release; null if another mode made it. Sending the same noisy values
 * again is post-processing: epsilon 0.
 */
export function lastReport(
  memo: Memo,
  settings: PrivacySettings,
  limit: number,
  under: string,
): Sealed<RecallRequest> | null {
  let request = readMessage(recallRequest, memo.payload);
  if ((memo.mechanism.split("/")[0] || request.report.kind) !== settings.mode) return null;
  let { payload } = memo;
  if (request.limit !== limit || request.release !== shortened(under)) {
    request = { ...request, limit, release: shortened(under) };
    payload = messageBytes(recallRequest, request);
  }
  return Sealed.close(request, payload, JSON_TYPE, free(settings.mode, under), WORDS.say("report_again"));
}

