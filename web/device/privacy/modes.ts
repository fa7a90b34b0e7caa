// The ways of finding news that this device has: `code`, `broadcast`, `none`, and `auto`, which stands for one of them.
// The other modes of the Python device are for comparison; under one of them this device reports nothing.
import { type ListChoice, chooseList } from "../recall_frontier";
import type { RecallProtocol } from "../wire/releases";
import type { PrivacySettings } from "./settings";

const FEWEST_NEW_CLICKS = 3;

/**
 * finds: who finds news beyond the default list: the server by a report, this device in its copy of the pool ('here'), or
 * nobody. reports: whether this device makes reports in this mode. chooses: of a mode that stands for another by the
 * pool's size: which, and how long a list.
 */
export interface ReportMode {
  readonly finds: "server" | "here" | "nobody";
  readonly reports: boolean;
  readonly chooses?: (news: number, settings: PrivacySettings, protocol: RecallProtocol) => ListChoice;
}

const COMPARED: ReportMode = { finds: "server", reports: false };

export const MODES: Readonly<Record<PrivacySettings["mode"], ReportMode>> = {
  code: { finds: "server", reports: true },
  auto: {
    finds: "nobody",
    reports: false,
    chooses: (news, settings, protocol) =>
      chooseList(news, {
        epsilonLimit: settings.epsilon_per_report,
        bytesLimit: settings.bytes_per_list,
        codebooks: protocol.codebooks.map((book) => [book.size, book.epsilon] as const),
        poolCodes: protocol.pool_codes,
      }),
  },
  broadcast: { finds: "here", reports: false },
  none: { finds: "nobody", reports: false },
  topics: COMPARED,
  subset: COMPARED,
  direction: COMPARED,
  basis_l1: COMPARED,
  basis_laplace: COMPARED,
};

/** What the mode stands for under a release that says it has so many news; null where it stands for itself. */
export function choiceOf(settings: PrivacySettings, news: number | null, protocol: RecallProtocol): ListChoice | null {
  const { chooses } = MODES[settings.mode];
  return chooses && news !== null ? chooses(news, settings, protocol) : null;
}

/**
 * The reader's settings as they hold under a choice: its mode for the reader's, and no report dearer than it, nor than the
 * reader allows.
 */
export function inForce(settings: PrivacySettings, choice: ListChoice | null): PrivacySettings {
  if (!choice) return settings;
  const limit = choice.epsilon ? Math.min(settings.epsilon_per_report, choice.epsilon) : settings.epsilon_per_report;
  return { ...settings, mode: choice.mode as PrivacySettings["mode"], epsilon_per_report: limit };
}

/**
 * New clicks after which a report is out of date: as many as stood behind it, 3 to `clicksPerReport`. A report made from
 * three clicks says little; once there are many, 20 new ones change little (docs/decisions/021).
 */
export function asManyAgain(clicksBehind: number, clicksPerReport: number): number {
  return Math.min(clicksPerReport, Math.max(FEWEST_NEW_CLICKS, clicksBehind));
}

/** Whether a device keeps the codes of a pool of so many news: a matter of its settings, never of its reader. */
export function keepsPool(privacy: PrivacySettings, poolLimit: number, news: number): boolean {
  const { finds } = MODES[privacy.mode];
  return finds === "here" || (finds === "server" && poolLimit > 0 && news <= poolLimit);
}
