// The label of a report mode: what people read about it. The texts are those of the Python device.
import labels from "../../../device_app/reports/labels.toml";
import type { RandomisedCode } from "../privacy/mechanisms/code";
import { TextCatalogue, filled } from "../protocol/text_catalogue";

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
