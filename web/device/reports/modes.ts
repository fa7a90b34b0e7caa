// The report modes; each is a value that names its mechanism, its reporter and its label. This device reports in
// `interest` and `code` and searches in `broadcast`; in the Python device's comparison modes it sends no report.\nA
// label is what people read about a mode. The texts are those of the Python device.
import labels from "../../../device_app/reports/labels.toml";
import { RandomisedCode } from "../privacy/mechanisms/code";
import type { Mechanism, Reporter } from "../privacy/reporter";
import { filled, TextCatalogue } from "../protocol/text_catalogue";
import type { PrivacySettings } from "../privacy/settings";
import { chooseList, type ListChoice } from "../protocol/recall_frontier";
import type { Report } from "../protocol/recall";
import type { Codebook, RecallProtocol } from "../protocol/releases";
import type { Vectors } from "../vectors";
import { CodeReporter, InterestReporter } from "./reporters";

const LABELS = new TextCatalogue(labels);

/**
 * Texts about a mode, with placeholders for its mechanism's figures. usual: the mechanism whose figures are shown while
 * a release offers none; a paragraph with figures needs one. rows: the content of a report, row by row. inASentence: a
 * report is one true number, or a set that contains the true one.
 */
export class Label {
  private readonly texts: Readonly<Record<string, string>>;

  constructor(
    name: string,
    private readonly shown: {
      readonly inASentence?: boolean;
      readonly usual?: Mechanism;
      readonly rows?: (report: Report) => number[][];
    } = {},
  ) {
    this.texts = LABELS.table(name);
  }

  get inASentence(): boolean {
    return this.shown.inASentence ?? false;
  }

  rows(report: Report): number[][] {
    return this.shown.rows?.(report) ?? [];
  }

  get title(): string {
    return this.text("title", null);
  }

  /** What epsilon does not cover, in a sentence. */
  get uncovered(): string {
    return LABELS.say("uncovered");
  }

  /** Returns the paragraph that describes the mode, with this mechanism's figures. */
  paragraph(mechanism: Mechanism | null): string {
    return this.text("paragraph", mechanism ?? this.shown.usual ?? null);
  }

  /** What a report contains, in one sentence. */
  sent(mechanism: Mechanism): string {
    return this.text("sent", mechanism);
  }

  private text(key: string, mechanism: Mechanism | null): string {
    return filled(this.texts[key] ?? "", mechanism?.figures ?? {});
  }
}

const FEWEST_NEW_CLICKS = 3;

/**
 * label: texts for people. If this device reports in this mode, mechanism randomises, and reporter uses it to make the
 * reports. finds: who finds articles beyond the default list: the server from a report, this device in its copy of the
 * pool ('here'), or nobody. chooses: for a mode that depends on the pool's size, selects mode and list length.
 */
export interface ReportMode {
  readonly label: Label;
  readonly mechanism?: (book: Codebook) => Mechanism;
  readonly reporter?: (book: Codebook, prototypes: Vectors, encoder: string, generation: string) => Reporter;
  readonly finds: "server" | "here" | "nobody";
  readonly chooses?: (news: number, settings: PrivacySettings, protocol: RecallProtocol) => ListChoice;
}

/** A mode in which this device sends reports: drawn by this mechanism, and made by this reporter. */
function reporting<M extends Mechanism>(
  label: Label,
  mechanism: new (size: number, epsilon: number) => M,
  reporter: new (drawing: M, book: Codebook, prototypes: Vectors, encoder: string, generation: string) => Reporter,
): ReportMode {
  const drawing = ({ size, epsilon }: Codebook): M => new mechanism(size, epsilon);
  return { label, finds: "server", mechanism: drawing, reporter: (book, ...under) => new reporter(drawing(book), book, ...under) };
}

/** The label of a mode that reports one of K numbers. */
function numbered(name: string): Label {
  const rows = (report: Report): number[][] => (report.kind === "code" ? [[report.code]] : []);
  return new Label(name, { inASentence: true, usual: new RandomisedCode(16, 4), rows });
}

function auto(news: number, settings: PrivacySettings, protocol: RecallProtocol): ListChoice {
  return chooseList(news, {
    epsilonLimit: settings.epsilon_per_report,
    bytesLimit: settings.bytes_per_list,
    codebooks: protocol.codebooks.map((book) => [book.size, book.epsilon] as const),
    poolCodes: protocol.pool_codes,
  });
}

export const MODES: Readonly<Record<PrivacySettings["mode"], ReportMode>> = {
  interest: reporting(numbered("interest"), RandomisedCode, InterestReporter),
  auto: { label: new Label("auto"), finds: "nobody", chooses: auto },
  broadcast: { label: new Label("broadcast"), finds: "here" },
  none: { label: new Label("none"), finds: "nobody" },
  code: reporting(numbered("code"), RandomisedCode, CodeReporter),
  topics: { label: new Label("topics"), finds: "server" },
  subset: { label: new Label("subset", { inASentence: true }), finds: "server" },
  basis_l1: { label: new Label("basis_l1"), finds: "server" },
  basis_laplace: { label: new Label("basis_laplace"), finds: "server" },
};

/**
 * Number of new clicks after which a report is out of date: as many as it was based on, 3 to `clicksPerReport`. A
 * report from three clicks says little; once there are many, 20 new ones change little (docs/decisions/017).
 */
export function asManyAgain(clicksBehind: number, clicksPerReport: number): number {
  return Math.min(clicksPerReport, Math.max(FEWEST_NEW_CLICKS, clicksBehind));
}
