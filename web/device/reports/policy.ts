// Decides which report mode applies: by the reader's settings and by what releases state, never by clicks.
import { type Ceilings, ceilingsOf } from "../privacy/accounting/limits";
import { affordable } from "../privacy/mechanisms/code";
import type { Reporter } from "../privacy/reporter";
import type { PrivacySettings } from "../privacy/settings";
import type { ListChoice } from "../protocol/recall_frontier";
import type { RecallProtocol, ReleaseManifest } from "../protocol/releases";
import type { PublicVectors } from "../sync/installed_release";
import { MODES, type ReportMode } from "./modes";

/** Which mode, cost and ceilings apply now. */
export class ReportPolicy {
  /** own: the settings that the reader set. release: the manifest of the current release; null before the first. */
  constructor(
    readonly own: () => PrivacySettings,
    private readonly release: () => ReleaseManifest | null,
  ) {}

  /** The reader's settings, with a mode that stands for another one replaced by it. */
  get settings(): PrivacySettings {
    return inForce(this.own(), this.choice());
  }

  /** The mode in effect. */
  get mode(): ReportMode {
    return MODES[this.settings.mode];
  }

  /** The mode and list length that the reader's mode stands for now; null if it stands for itself. */
  choice(): ListChoice | null {
    const manifest = this.release();
    return manifest ? choiceOf(this.own(), manifest.news, manifest.recall) : null;
  }

  ceilings(): Ceilings {
    return ceilingsOf(this.own());
  }

  /** The list length chosen by the mode if the default list is the only one, otherwise the given one. */
  listLength(otherwise: number): number {
    const chosen = this.choice();
    const alone = chosen && MODES[chosen.mode as PrivacySettings["mode"]].finds === "nobody";
    return alone ? chosen.places : otherwise;
  }

  /** Whether this device keeps the codes of a pool of this size. */
  keepsPool(poolLimit: number, news: number): boolean {
    const { finds } = this.mode;
    return finds === "here" || (finds === "server" && poolLimit > 0 && news <= poolLimit);
  }
}

/**
 * The choice that the mode stands for under a release with that many articles; null if the mode is already concrete.
 */
function choiceOf(settings: PrivacySettings, news: number | null, protocol: RecallProtocol): ListChoice | null {
  const { chooses } = MODES[settings.mode];
  return chooses && news !== null ? chooses(news, settings, protocol) : null;
}

/** The reader's settings with a choice applied: its mode, and the lower of its epsilon and the reader's limit. */
function inForce(settings: PrivacySettings, choice: ListChoice | null): PrivacySettings {
  if (!choice) return settings;
  const limit = choice.epsilon ? Math.min(settings.epsilon_per_report, choice.epsilon) : settings.epsilon_per_report;
  return { ...settings, mode: choice.mode as PrivacySettings["mode"], epsilon_per_report: limit };
}

/**
 * The reporter of the reader's mode under a release; null if the mode makes no reports or the release doesn't support
 * it. The release proposes codebooks and their epsilons; only those within `epsilon_per_report` are used.
 */
export function reporterOf(
  settings: PrivacySettings,
  protocol: RecallProtocol,
  spaces: PublicVectors,
  encoder: string,
  generation: string,
): Reporter | null {
  const { reporter } = MODES[settings.mode];
  if (!reporter) return null;
  const book = affordable(protocol, settings.epsilon_per_report);
  const prototypes = book && spaces.prototypes.get(book.size);
  return prototypes ? reporter(book, prototypes, encoder, generation) : null;
}
