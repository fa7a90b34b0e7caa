// The report of interests: drawn, paid for once, then sent again bit for bit until it's out of date.
//
// Formal guarantees: those of device_app/privacy/reports.py, whose rules these are: under one meaning the reader's value
// is drawn once, by randomised response, and charged before its bytes leave; what is sent again is the number drawn.
import sentences from "../../../device_app/privacy/words.toml";
import { CodebooksSpent } from "../errors";
import { HOUR_MS } from "../moments";
import { Prose } from "../prose";
import type { DrawnReports } from "../store/drawn_reports";
import type { Memo, ReportMemo } from "../store/report_memo";
import type { PublicVectors } from "../sync/installed_release";
import { type Vectors, meanOf, scaled, stacked } from "../vectors";
import { messageBytes, readMessage } from "../wire/forms";
import { shortened } from "../wire/ids";
import { type CodeReport, type RecallRequest, codeReport, recallRequest } from "../wire/recall";
import type { Codebook, RecallProtocol } from "../wire/releases";
import { realText } from "../wire/values";
import { RandomisedCode, affordable, nearest } from "./code";
import type { Ledger } from "./ledger";
import { MODES, asManyAgain } from "./modes";
import type { NoiseSource } from "./noise_sources";
import { type ReportMeaning, gram, gramBytes, meaningName } from "./report_meaning";
import { JSON_TYPE, Sealed, digest, free } from "./sealed";
import type { PrivacySettings } from "./settings";

const WORDS = new Prose(sentences);

/** The mean of clicks [H, D], scaled to length 1; zero where they cancel out, or where there are none. */
export function userVector(clicks: Vectors): Float32Array {
  const mean = meanOf(clicks);
  return mean ? scaled(mean) : new Float32Array(clicks.width);
}

/**
 * Sensitive: what a report is made from. clicks is [H, D]; searched is the second view's vector [D], of length 1: null
 * where there is none, or it is kept out of reports. Views count alike: each gives its vector and not how much stands
 * behind it.
 */
export class ReportInput {
  constructor(
    readonly clicks: Vectors,
    readonly searched: Float32Array | null = null,
  ) {}

  get vector(): Float32Array {
    const read = userVector(this.clicks);
    return this.searched ? userVector(stacked([read, this.searched], read.length)) : read;
  }
}

/** Reports the nearest prototype of a codebook. */
export class CodeReporter {
  readonly name = "code";
  readonly mechanism: RandomisedCode;
  readonly meaning: ReportMeaning;

  /** generation names the encoder's vectors as they are on this device. */
  constructor(
    readonly codebook: Codebook,
    private readonly prototypes: Vectors,
    encoder: string,
    generation: string,
  ) {
    this.mechanism = new RandomisedCode(codebook.size, codebook.epsilon);
    const mechanism = `${this.name}/${codebook.size}/${realText(codebook.epsilon)}`;
    const { sha256 } = codebook.prototypes;
    const name = meaningName(mechanism, sha256, generation);
    this.meaning = { name, mechanism, encoder, directions: sha256, gram: gram(prototypes) };
  }

  /** The nearest prototype. */
  value(reader: ReportInput): number {
    return nearest(this.prototypes.data, reader.vector);
  }

  /** Draw a code. */
  make(value: number, noise: NoiseSource): CodeReport {
    return codeReport.make({ codebook: this.codebook.size, code: this.mechanism.release(value, noise) });
  }
}

/**
 * What makes the reader's reports under a release; null where its mode makes none or the release can't serve it. The
 * release proposes codebooks and their epsilons; only those within `epsilon_per_report` are used.
 */
export function reporterOf(
  settings: PrivacySettings,
  protocol: RecallProtocol,
  spaces: PublicVectors,
  encoder: string,
  generation: string,
): CodeReporter | null {
  if (!MODES[settings.mode].reports) return null;
  const book = affordable(protocol, settings.epsilon_per_report);
  const prototypes = book && spaces.prototypes.get(book.size);
  return prototypes ? new CodeReporter(book, prototypes, encoder, generation) : null;
}

/** Where reports are kept and paid for. */
export interface ReportDesk {
  readonly ledger: Ledger;
  readonly noise: NoiseSource;
  readonly memo: ReportMemo;
  readonly drawn: DrawnReports;
}

/**
 * Make the report for what the reader is now, charge it unless it was drawn before, and put it in use.
 *
 * clicks is Clicks.latestId() at the time the vectors were read. Throws BudgetSpent (nothing is drawn up to be sent, the
 * memo stays), its CodebooksSpent where the server has brought `codebooks_per_day` new codebooks today already, and
 * RangeError for vectors that are not finite. Charge, drawing and memo are kept in one transaction, on the disk before
 * this returns: after a kill either all exist or none, and the bytes have not left.
 */
export function sealReport(
  reporter: CodeReporter,
  reader: ReportInput,
  { release, limit, clicks }: { release: string; limit: number; clicks: number },
  { ledger, noise, memo, drawn }: ReportDesk,
): Sealed<RecallRequest> {
  if (ledger.settings.mode !== reporter.name)
    throw new RangeError(`the reader's mode is ${ledger.settings.mode}: no report of interests may be made`);
  const [value, { meaning }] = [reporter.value(reader), reporter];
  const both = reader.searched ? WORDS.say("both_views") : "";
  const keep = (payload: Memo["payload"], madeAt: number): void => {
    const { name, mechanism, encoder, directions } = meaning;
    const kept = { release, payload, clear: [[value]], clicks, madeAt, meaning: name, mechanism, encoder, directions };
    memo.keep({ ...kept, gram: gramBytes(meaning) });
  };
  const requestOf = (report: CodeReport): RecallRequest => recallRequest.make({ release: shortened(release), limit, report });
  return ledger.store.transaction(() => {
    const before = drawn.get(reporter.name, meaning.name, value);
    if (before !== undefined) {
      const request = requestOf(readMessage(codeReport, before));
      const payload = messageBytes(recallRequest, request);
      keep(payload, ledger.now());
      return Sealed.close(request, payload, JSON_TYPE, free(reporter.name, release), WORDS.say("report_before") + both);
    }
    const most = ledger.settings.codebooks_per_day;
    if (!drawn.begun(meaning.name) && drawn.begunSince(ledger.midnight()) >= most) throw new CodebooksSpent(most);
    const report = reporter.make(value, noise);
    const request = requestOf(report);
    const payload = messageBytes(recallRequest, request);
    const { size, epsilon, truth } = reporter.mechanism;
    const charge = {
      channel: "reports",
      mechanism: reporter.name,
      parameters: { ...reporter.mechanism.parameters, ...(reader.searched && { views: 2 }) },
      epsilon,
      delta: 0,
      payloadSha256: digest(payload),
      subject: release,
    };
    const at = ledger.spend(charge);
    drawn.begin(meaning.name, at);
    drawn.keep(reporter.name, meaning.name, value, codeReport.write(report), at);
    keep(payload, at);
    const sent = WORDS.say("code_sent", { last: size - 1, size, truth });
    return Sealed.close(request, payload, JSON_TYPE, charge, WORDS.say("report_fresh", { sent }) + both);
  });
}

/**
 * The report in use, ready to be sent again, or null if another one is due: no report of the reader's mode, enough new
 * clicks since, the window over. carried: by a codebook carried over to another encoder; the end of the window has no
 * report drawn by it then, since that would cost where nothing was read. Sending the same noisy values again is
 * post-processing: epsilon 0.
 */
export function memoised(
  memo: Memo,
  settings: PrivacySettings,
  { limit, clicks, now, under, carried }: { limit: number; clicks: number; now: number; under: string; carried: boolean },
): Sealed<RecallRequest> | null {
  if (!carried && now - memo.madeAt >= settings.report_window_hours * HOUR_MS) return null;
  if (clicks - memo.clicks >= asManyAgain(memo.clicks, settings.clicks_per_report)) return null;
  return lastReport(memo, settings, limit, under);
}

/** The report in use however old it is, under a release; null where the reader's mode made another. Epsilon 0. */
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

