// You as one place, the history, and the forms that change or take what this device keeps.
import { plural } from "../figures";
import { type PrivacySettings, privacySettings } from "../privacy/settings";
import { exportAll } from "../view_models/export";
import { historyPage } from "../view_models/history";
import { todayView } from "../view_models/today";
import { type PageAnswer, type PageRenderer, WORDS } from "./renderer";
import { NotTaken, type Route, pageNumber, seeOther } from "./routes";
import { chosen } from "./story_pages";

export const ERASE_WORD = "erase";
const HISTORY_PAGES = 100_000;
const QUERY_CHARS = 200;
/** What each level sets. Balanced is how a device comes, training apart: that is asked for by itself. */
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

/** Which level these settings are; 'custom' where a switch stands as no level sets it. */
export function levelOf(settings: PrivacySettings): Level {
  const levels = Object.entries(LEVELS) as [Exclude<Level, "custom">, Partial<PrivacySettings>][];
  const stands = (sets: Partial<PrivacySettings>) =>
    Object.entries(sets).every(([name, value]) => settings[name as keyof PrivacySettings] === value);
  return levels.find(([, sets]) => stands(sets))?.[0] ?? "custom";
}

export function settingsPages(renderer: PageRenderer): Route[] {
  const { device } = renderer;
  const { stores, ledger } = device.parts;

  const you = (call: Parameters<Route["answer"]>[0]): PageAnswer => {
    const { clicks, training } = device.status();
    const places = [
      ["/saved", "Saved", plural(device.saved().length, "story", "stories")],
      ["/interests/history", "History", `${plural(clicks, "story", "stories")} opened`],
      ["/privacy", "Privacy", WORDS.say("privacy_place")],
      ["/training", "Training", training ? "On" : "Off"],
      ["/settings", "Settings", LEVEL_NAMES[levelOf(device.settings)]],
      ["/latency", "Speed", WORDS.say("speed_place")],
    ];
    const privacy = { today: todayView(stores, ledger), settings: device.settings };
    return renderer.page(call, "you", { privacy, places });
  };

  return [
    { method: "GET", path: /^\/you$/, answer: you },
    {
      method: "GET",
      path: /^\/interests\/history$/,
      answer(call) {
        const words = (call.query.get("q") ?? "").slice(0, QUERY_CHARS);
        const history = historyPage(stores, words, pageNumber(call, HISTORY_PAGES));
        return renderer.page(call, "history", { history });
      },
    },
    {
      method: "POST",
      path: /^\/interests\/history\/(\d{1,15})\/delete$/,
      answer(call) {
        device.deleteClick(Number(call.parts[0]));
        return seeOther(call.form.one("back"), "deleted");
      },
    },
    {
      method: "POST",
      path: /^\/settings\/level$/,
      answer({ form }) {
        const level = chosen("level", form.one("level"), ["off", "balanced", "strict", "custom"] as const);
        if (level === "custom") return seeOther("/settings?switches=open#custom");
        device.setPrivacy(LEVELS[level]);
        return seeOther(form.one("back") || "/settings", "settings");
      },
    },
    {
      method: "GET",
      path: /^\/privacy\/export$/,
      answer() {
        const kept = exportAll(stores.database, "reader", renderer.now());
        const content = new TextEncoder().encode(JSON.stringify(kept));
        return { kind: "file", name: "ownfeed-everything.json", type: "application/json", content };
      },
    },
    {
      method: "POST",
      path: /^\/privacy\/erase$/,
      async answer({ form }) {
        if (form.one("confirm").trim().toLowerCase() !== ERASE_WORD)
          throw new NotTaken(WORDS.say("nothing_erased", { word: ERASE_WORD }));
        await device.erase();
        return seeOther("/welcome", "erased");
      },
    },
  ];
}
