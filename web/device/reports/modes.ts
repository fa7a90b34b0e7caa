// The report modes: each one value that names its mechanism, its reporter and its label. This device reports in `interest`
// and `code` and searches in `broadcast`; under the Python device's modes for comparison it sends no report.
//
// A label is what people read about a mode. The texts are those of the Python device.
import labels from "../../../device_app/reports/labels.toml";
import { RandomisedCode } from "../privacy/mechanisms/code";
import { filled, TextCatalogue } from "../protocol/text_catalogue";
import type { PrivacySettings } from "../privacy/settings";
import { chooseList, type ListChoice } from "../protocol/recall_frontier";
import type { RecallProtocol } from "../protocol/releases";
import { CodeReporter, InterestReporter } from "./code_reporter";

const LABELS = new TextCatalogue(labels);

/**
 * Texts about a mode, filled in with its mechanism's figures. usual: the mechanism whose figures stand in while a
 * release offers none. inASentence: a report is one true number, or a set that hides one.
 */
export class Label {
  private readonly texts: Readonly<Record<string, string>>;

  constructor(
    name: string,
    private readonly shown: { readonly inASentence?: boolean; readonly usual?: RandomisedCode } = {},
  ) {
    this.texts = LABELS.table(name);
  }

  get inASentence(): boolean {
    return this.shown.inASentence ?? false;
  }

  get title(): string {
    return this.text("title", null);
  }

  /** What no epsilon covers. */
  get uncovered(): string {
    return LABELS.say("uncovered");
  }

  /** The mode in a paragraph. */
  paragraph(mechanism: RandomisedCode | null): string {
    return this.text("paragraph", mechanism ?? this.shown.usual ?? null);
  }

  /** What a report contains, in one sentence. */
  sent(mechanism: RandomisedCode): string {
    return this.text("sent", mechanism);
  }

  private text(key: string, mechanism: RandomisedCode | null): string {
    return filled(this.texts[key] ?? "", mechanism?.figures ?? {});
  }
}

const FEWEST_NEW_CLICKS = 3;

/**
 * label: texts for people. Of a mode in which this device reports: mechanism randomises, and reporter makes the reports
 * with it. finds: who finds articles beyond the default list: the server from a report, this device in its copy of the
 * pool ('here'), or nobody. chooses: for a mode that depends on the pool's size, selects mode and list length.
 */
export interface ReportMode {
  readonly label: Label;
  readonly mechanism?: typeof RandomisedCode;
  readonly reporter?: typeof CodeReporter | typeof InterestReporter;
  readonly finds: "server" | "here" | "nobody";
  readonly chooses?: (news: number, settings: PrivacySettings, protocol: RecallProtocol) => ListChoice;
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
  interest: {
    label: new Label("interest", { inASentence: true, usual: new RandomisedCode(16, 4) }),
    mechanism: RandomisedCode,
    reporter: InterestReporter,
    finds: "server",
  },
  auto: { label: new Label("auto"), finds: "nobody", chooses: auto },
  broadcast: { label: new Label("broadcast"), finds: "here" },
  none: { label: new Label("none"), finds: "nobody" },
  code: {
    label: new Label("code", { inASentence: true, usual: new RandomisedCode(16, 4) }),
    mechanism: RandomisedCode,
    reporter: CodeReporter,
    finds: "server",
  },
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
