// The training page's values, with the templates' names; see device_app/view_models/training.py.
import { DeviceError } from "../errors";
import type { Parts } from "../parts";
import { elements } from "../privacy/private_parameters";
import type { Participation } from "../store/participations";
import { type Release, currentRelease } from "../sync/installed_release";
import type { OwnGroup } from "../training/computation";
import { TASKS } from "../training/tasks/registry";
import { aloneView, sumCost } from "./privacy";
import { LEFT_BEFORE_ERASE } from "./traffic";

const WAITING: readonly unknown[] = [null, "looking"];
const ENDED: readonly string[] = ["applied", "failed"];

export type TrainingView = Awaited<ReturnType<typeof trainingView>>;

/** The training page: the round as seen by the background loop, this device's contributions, and what it could send. */
export async function trainingView(parts: Parts, paused: boolean) {
  const { trainer, stores, policy, ledger } = parts;
  const { status, receivedAt, lookedAt } = trainer.seen;
  const kept = stores.participations.list();
  const sums = stores.ledgerEntries.ofSums();
  const release = stores.releases.current() ? currentRelease(stores.releases) : null;
  const mine = kept.find((one) => one.round === status?.round);
  return {
    settings: policy.own(),
    paused,
    why_not: await trainer.whyNot(),
    round: status,
    // what the trainer does now, unless it is only waiting and its part in the round is known
    stage: mine && WAITING.includes(trainer.stage) ? wordsOf(mine) : trainer.stage,
    updates: release ? await updateFacts(release) : [],
    contributions: kept.map((one) => {
      const entry = sums.get(one.round);
      return {
        round: one.round,
        system: one.system,
        release: one.release,
        state: one.state,
        at: one.changedAt,
        sent_bytes: one.sentBytes,
        epsilon: one.epsilon,
        detail: one.detail,
        cost: entry ? sumCost(entry) : null,
        counts: counts(one.task),
      };
    }),
    release: release?.id ?? null,
    groups: await groupsOf(parts),
    alone: aloneView(ledger),
    counts: counts(status?.task ?? null),
    erased: stores.preferences.get(LEFT_BEFORE_ERASE) !== null,
    seen_at: receivedAt,
    looked_at: lookedAt,
    gone:
      status !== null &&
      receivedAt !== null &&
      lookedAt !== null &&
      !ENDED.includes(status.state) &&
      lookedAt > receivedAt,
  };
}

function counts(task: string | null): boolean {
  return task !== null && TASKS.get(task)?.channel === "counts";
}

/** The state of this device's part; in a secure sum, what it has sent and waits for. */
function wordsOf(mine: Participation): string {
  return mine.state === "summing" && mine.detail ? mine.detail : mine.state;
}

/**
 * An update of each trainable ranker, the default one first; none for a damaged release. This device trains no other
 * models, and contributes only to secure sums, whose cost a round states beforehand.
 */
async function updateFacts(release: Release) {
  const { manifest } = release;
  const found = [];
  for (const [model, { graphs, role }] of manifest.models) {
    if (role !== "ranker" || !graphs.has("gradient")) continue;
    try {
      const sizes = [...(await release.weights(model)).values()].map(({ shape }) => elements(shape));
      const coordinates = sizes.reduce((all, size) => all + size, 0);
      const priced = { noise: null, epsilon_per_upload: null, epsilon_beside: null };
      found.push({ model, default: model === manifest.default_ranker, coordinates, ...priced });
    } catch (damaged) {
      if (damaged instanceof DeviceError) return [];
      throw damaged;
    }
  }
  const order = (one: { default: boolean; model: string }) => `${one.default ? 0 : 1} ${one.model}`;
  return found.sort((one, other) => (order(one) < order(other) ? -1 : 1));
}

/** Returns the reader's groups; none if the release is damaged. */
async function groupsOf({ trainer }: Parts): Promise<OwnGroup[]> {
  try {
    return await trainer.ownGroups();
  } catch (broken) {
    if (broken instanceof DeviceError) return [];
    throw broken;
  }
}
