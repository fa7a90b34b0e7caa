// Training: the current round, what this device contributes, and the switch.
import { type TrainingView, trainingView } from "../view_models/training";
import { type PageRenderer, WORDS } from "./renderer";
import { get, post, seeOther, type Route } from "./route";
import { chosen } from "./story_pages";

/** The daily budget that joining sets if there was none: one usual round is charged 4.3. */
export const ONE_ROUND_EPSILON = 5;

export function trainingPages(renderer: PageRenderer): Route[] {
  const { device } = renderer;
  return [
    get(/^\/training$/, async (call) => {
      const training = await trainingView(device.parts, device.trainingPaused);
      return renderer.page(call, "training", { training, steps: steps(training) });
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
