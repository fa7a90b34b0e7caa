// The You pages, the history, and the forms that change or delete what this device stores.
import { ExportRefused } from "../errors";
import { plural } from "../protocol/formatting";
import { type PrivacySettings, privacySettings } from "../privacy/settings";
import { exportAll } from "../view_models/export";
import { historyPage } from "../view_models/explore";
import { todayView } from "../view_models/traffic";
import { WORDS, sectionName, type PageAnswer, type PageRenderer } from "./renderer";
import { privacyView } from "../view_models/privacy";
import { RARE_FIRST } from "../store/preferences";
import { WireError } from "../protocol/forms";
import { get, pageNumber, post, seeOther, type FormFields, type Route } from "./route";
import { chosen } from "./story_pages";

export const ERASE_WORD = "erase";
const HISTORY_PAGES = 100_000;
const QUERY_CHARS = 200;
const INTERESTS_NAMED = 3;
/**
 * The switches that each level sets. Balanced is a device's default, except for training, which is asked separately.
 */
const LEVELS: Readonly<Record<"off" | "balanced" | "strict", Partial<PrivacySettings>>> = {
  off: { mode: "none", counting: false, training: false },
  balanced: usual(),
  strict: { mode: "broadcast", counting: false, training: false },
};
const LEVEL_NAMES = { off: "Off", balanced: "Balanced", strict: "Strict", custom: "Custom" } as const;
type Level = keyof typeof LEVEL_NAMES;

function usual(): Partial<PrivacySettings> {
  const { training, epsilon_per_day_training, epsilon_lifetime_training, ...others } = privacySettings.make({});
  return others;
}

/** The level that these settings match; 'custom' if none. */
export function levelOf(settings: PrivacySettings): Level {
  const levels = Object.entries(LEVELS) as [Exclude<Level, "custom">, Partial<PrivacySettings>][];
  const stands = (sets: Partial<PrivacySettings>) =>
    Object.entries(sets).every(([name, value]) => settings[name as keyof PrivacySettings] === value);
  return levels.find(([, sets]) => stands(sets))?.[0] ?? "custom";
}

/** Levels that this server can't currently support. */
export function unusable(privacy: Record<string, unknown>): string[] {
  const modes = (privacy["modes"] as { name: string; unusable: string | null }[]).filter((mode) => mode.unusable);
  return Object.entries(LEVELS).flatMap(([name, sets]) => (modes.some((mode) => mode.name === sets.mode) ? [name] : []));
}

const TRUTHS = ["training", "searches_in_reports", "counting"] as const;

/** The switches that a form sets, not yet validated; a blank field changes nothing. */
export function switchesOf(form: FormFields): Partial<PrivacySettings> {
  const changes: Record<string, unknown> = { mode: form.one("mode") };
  for (const name of TRUTHS) if (name === "training" || form.all(name).length) changes[name] = form.all(name).includes("on");
  for (const name of Object.keys(privacySettings.make({}))) {
    const value = form.one(name);
    if (value && /^(?:epsilon|clicks)_/.test(name)) changes[name] = Number(value);
  }
  return changes as Partial<PrivacySettings>;
}

export function settingsPages(renderer: PageRenderer): Route[] {
  const { device } = renderer;
  const { stores, policy, ledger } = device.parts;

  const you = async (call: Parameters<Route["answer"]>[0]): Promise<PageAnswer> => {
    const { clicks, training } = device.status();
    const { searches, topics } = await device.library.searches();
    const found = [...new Set((await device.interests.clusters()).map(({ label }) => label))].slice(0, INTERESTS_NAMED).map(sectionName);
    const places = [
      ["/interests", "Interests", found.join(", ") || WORDS.say("no_interests")],
      ["/saved", "Saved", plural(device.library.saved().length, "story", "stories")],
      ["/searches", "Searches", `${plural(searches.length + topics.length, "search or topic", "searches and topics")} saved`],
      ["/interests/history", "History", `${plural(clicks, "story", "stories")} opened`],
      ["/privacy", "Privacy", WORDS.say("privacy_place")],
      ["/training", "Training", training ? "On" : "Off"],
      ["/settings", "Settings", LEVEL_NAMES[levelOf(device.privacy.settings)]],
      ["/latency", "Speed", WORDS.say("speed_place")],
    ];
    const privacy = { today: todayView(stores, policy, ledger), settings: device.privacy.settings };
    return renderer.page(call, "you", { privacy, places, signed_in: false });
  };

  const settings = (call: Parameters<Route["answer"]>[0], problem: string | null = null): PageAnswer => {
    const privacy = privacyView(device);
    const values = {
      privacy,
      problem,
      first_use: stores.firstUse.question,
      erase_word: ERASE_WORD,
      level: levelOf(device.privacy.settings),
      unusable: unusable(privacy),
      switches_open: call.query.has("switches"),
      hidden: device.interests.stances().filter(({ stance }) => stance === "block").map(({ kind, name }) => [kind, name]),
      unwanted: device.library.unwanted(),
      pictures_shown: stores.pictures.shown(),
      tools: WORDS.table("tools"),
      rare_first: device.parts.serving.context.rare.on(),
    };
    return renderer.page(call, "settings", values, problem === null ? 200 : 422);
  };

  return [
    get(/^\/you$/, you),
    get(/^\/settings$/, (call) => settings(call)),
    post(/^\/privacy\/switches$/, (call) => {
      try {
        device.privacy.change(switchesOf(call.form));
      } catch (refused) {
        if (!(refused instanceof WireError)) throw refused;
        return settings(call, WORDS.say("nothing_changed", { field: "switches", what: refused.message }));
      }
      return seeOther("/settings", "settings");
    }),
    get(/^\/interests\/history$/, (call) => {
      const words = (call.query.get("q") ?? "").slice(0, QUERY_CHARS);
      const history = historyPage(stores, words, pageNumber(call, HISTORY_PAGES));
      return renderer.page(call, "history", { history });
    }),
    post(/^\/interests\/history\/(\d{1,15})\/delete$/, (call) => {
      device.library.deleteClick(Number(call.parts[0]));
      return seeOther(call.form.one("back"), "deleted");
    }),
    post(/^\/settings\/pictures$/, ({ form }) => {
      const shown = chosen("shown", form.one("shown"), ["on", "off"] as const);
      stores.pictures.show(shown === "on");
      return seeOther("/settings#pictures", `pictures_${shown}`);
    }),
    post(/^\/settings\/rare-first$/, ({ form }) => {
      stores.preferences.set(RARE_FIRST, chosen("rare", form.one("rare"), ["on", "off"] as const) === "on");
      device.parts.serving.changed();
      return seeOther("/settings#rare", "settings");
    }),
    post(/^\/settings\/level$/, ({ form }) => {
      const level = chosen("level", form.one("level"), ["off", "balanced", "strict", "custom"] as const);
      if (level === "custom") return seeOther("/settings?switches=open#custom");
      const untrained = device.privacy.settings.training && LEVELS[level].training === false;
      device.privacy.change(LEVELS[level]);
      return seeOther(form.one("back") || "/settings", untrained ? "settings_without_training" : "settings");
    }),
    get(/^\/privacy\/export$/, () => {
      const kept = exportAll(stores, "reader", renderer.now());
      const content = new TextEncoder().encode(JSON.stringify(kept));
      return { kind: "file", name: "ownfeed-everything.json", type: "application/json", content };
    }),
    post(/^\/privacy\/import$/, (call) => {
      const used = chosen("used", call.form.one("used"), ["yes", "no"] as const) === "yes";
      try {
        device.moving.takeOver(call.form.one("file"), { used, settings: call.form.one("settings") === "on" });
      } catch (refused) {
        if (!(refused instanceof ExportRefused)) throw refused;
        return settings(call, refused.message);
      }
      return seeOther("/settings", "taken_over");
    }),
    post(/^\/settings\/first-use$/, ({ form }) => {
      const answer = chosen("answer", form.one("answer"), ["before", "first"] as const);
      if (!stores.firstUse.isOpen) return seeOther("/settings");
      if (answer === "first") device.privacy.beginFirstUse();
      else device.moving.beginAgain();
      return seeOther("/settings", answer === "first" ? "first_use" : "began_again");
    }),
    post(/^\/privacy\/erase$/, async (call) => {
      if (call.form.one("confirm").trim().toLowerCase() !== ERASE_WORD)
        return settings(call, WORDS.say("nothing_erased", { word: ERASE_WORD }));
      await device.privacy.erase();
      return { kind: "see_other", path: "/welcome?said=erased", erased: true };
    }),
  ];
}
