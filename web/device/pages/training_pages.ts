// Training: the current round, what this device contributes, and the switch.
import { age, grouped, size } from "../protocol/formatting";
import { type TrainingView, trainingView } from "../view_models/training";
import { type PageRenderer, WORDS } from "./renderer";
import { get, post, seeOther, type Route } from "./route";
import { chosen } from "./story_pages";

/** The daily budget that joining sets if there was none: one usual round is charged 4.3. */
const ONE_ROUND_EPSILON = 5;

export function trainingPages(renderer: PageRenderer): Route[] {
  const { device } = renderer;
  const view = (): Promise<TrainingView> => trainingView(device.parts, device.trainingPaused);
  return [
    get(/^\/training$/, async (call) => {
      const training = await view();
      return renderer.page(call, "training", { training, steps: steps(training), mark: mark(training) });
    }),
    get(/^\/training\/live$/, async () => {
      const content = new TextEncoder().encode(JSON.stringify(live(await view(), Date.now())));
      return { kind: "file", name: "live.json", type: "application/json", content };
    }),
    post(/^\/training\/pause$/, ({ form }) => {
      const paused = chosen("paused", form.one("paused"), ["yes", "no"] as const) === "yes";
      device.pauseTraining(paused);
      return seeOther("/training", paused ? "paused" : "resumed");
    }),
    post(/^\/training\/switch$/, ({ form }) => {
      const training = chosen("training", form.one("training"), ["on", "off"] as const) === "on";
      const allowed = device.privacy.settings.epsilon_per_day_training;
      device.privacy.change({ training, ...(training && !allowed && { epsilon_per_day_training: ONE_ROUND_EPSILON }) });
      return seeOther("/training", "settings");
    }),
  ];
}

/** The data that the page's script reads while the page is open. */
function live(view: TrainingView, now: number): unknown {
  const { round, gone, stage } = view;
  const looked = round === null ? view.looked_at : view.seen_at;
  const checked = looked === null ? {} : { looked: ago(looked, now) };
  if (round === null || gone) return { round: null, state: mark(view), live: false, figures: checked };
  const figures = {
    ...checked,
    joined: grouped(round.joined),
    uploaded: grouped(round.uploaded),
    received: size(round.received_bytes),
  };
  return { round: round.round, state: mark(view), stage, live: !["applied", "failed"].includes(round.state), figures };
}

/**
 * What a page shows besides its figures, as one text: a page with another one is out of date. '' if the device checks
 * for no rounds and shows none.
 */
function mark({ round, gone, settings, looked_at: looked, paused, contributions }: TrainingView): string {
  if (round === null && !(settings.training || settings.counting)) return "";
  const shown = round === null ? "none" : `${round.round} ${round.state}${gone ? " gone" : ""}`;
  const parts = contributions.map((one) => `${one.round} ${one.state}`).join(", ");
  return `${shown}; ${looked === null ? "" : "checked"}; ${paused ? "True" : "False"}; ${parts}`;
}

function ago(then: number, now: number): string {
  const words = age(then, now);
  return ["yesterday", "just now"].includes(words) ? words : `${words} ago`;
}

/** A round's stages as (label, description, state), where state is 'done', 'now', 'failed' or ''. */
function steps({ round, gone }: TrainingView): (readonly [string, string, string])[] {
  if (round === null) return [];
  // after the keys stage, a secure sum's stages are those in which updates arrive and are unmasked
  const at = round.state === "keys" || round.state === "open" ? 0 : round.state === "applied" ? 2 : 1;
  const plain = round.state === "applied" && round.published === null;
  const ended = WORDS.say(round.finished_at === null ? "not_yet" : "published_nothing");
  const labels = [
    [WORDS.say("stage_check_in"), WORDS.say("stage_joined", { joined: round.joined, wanted: round.cohort })],
    [
      WORDS.say("stage_updates"),
      WORDS.say("stage_uploaded", { uploaded: round.uploaded, needed: round.cohort_minimum }),
    ],
    [
      WORDS.say(plain ? "ended_plain" : "ended_published"),
      round.summary || (round.published ? WORDS.say("orders_next") : ended),
    ],
  ] as const;
  const state = (step: number): string => {
    if (round.state === "failed") return ["done", "failed", ""][step] ?? "";
    if (step < at || round.state === "applied") return "done";
    return step === at && !gone ? "now" : "";
  };
  return labels.map(([label, words], step) => [label, words, state(step)]);
}
