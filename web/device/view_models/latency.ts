// The speed page's values: recent requests as waterfalls, percentiles, a histogram.
import words from "../../../device_app/view_models/words.toml";
import { momentOf } from "../protocol/moments";
import { TextCatalogue } from "../protocol/text_catalogue";
import type { Timing, TimingStore } from "../store/byte_log";
import { DEVICE_STAGES, SERVER_STAGES } from "../protocol/server_timing";

type Place = "device" | "network" | "server";
type RequestTimes = ReturnType<typeof waterfall>;

const WORDS = new TextCatalogue(words);
const DEVICE = WORDS.pairs("device_stages");
const SERVER = WORDS.pairs("server_stages");
const COUNTED = 200;
const SHOWN = 20;
const RECALL = "recall";
const ROUND_STEPS = [1, 1.5, 2, 3, 5, 7] as const;
const POWERS = [-2, -1, 0, 1, 2, 3, 4, 5, 6] as const;

/** A stage's short name, and a sentence that explains it; an unknown one keeps its name without a sentence. */
export function stageWords(name: string, place: string): { name: string; sentence: string } {
  const [known, sentence] = (place === "server" ? SERVER : DEVICE)[name] ?? [];
  if (known !== undefined && sentence !== undefined) return { name: known, sentence };
  const plain = name.replaceAll("_", " ").toLowerCase();
  return { name: plain.slice(0, 1).toUpperCase() + plain.slice(1), sentence: WORDS.say("stage_unknown") };
}

/**
 * Percentiles and histogram over the pages in the last 200 timings, waterfalls of the newest 20; stages cover pages and
 * requests for candidates. Percentiles are null before the first request. recall: the background's last request for
 * candidates, from which pages are made.
 */
export function latencyView(timings: TimingStore) {
  const times = timings.last(COUNTED).map(waterfall);
  const requests = times.filter(({ kind }) => kind !== RECALL);
  const recalls = times.filter(({ kind }) => kind === RECALL);
  const recall = recalls[0] ?? null;
  if (!requests.length)
    return { requests: [], count: 0, p50_ms: null, p95_ms: null, p99_ms: null, stages: [], histogram: [], recall };
  const totals = requests.map(({ total_ms }) => total_ms);
  return {
    requests: requests.slice(0, SHOWN),
    count: requests.length,
    ...percentiles(totals),
    stages: stageFigures([...requests, ...recalls]),
    histogram: histogram(totals),
    recall,
  };
}

/** Stages end to end in the order they ran; the server's own are centred in the network's bar. */
function waterfall({ at, kind, device_ms, server_ms }: Timing) {
  const stages: { name: string; place: Place; start_ms: number; ms: number }[] = [];
  let clockMs = 0;
  for (const [name, ms] of Object.entries(device_ms).sort(([one], [other]) => order(one) - order(other))) {
    stages.push({ name, place: name === "network" ? "network" : "device", start_ms: clockMs, ms });
    if (name === "network") {
      const inServer = Object.values(server_ms).reduce((sum, part) => sum + part, 0);
      let insideMs = clockMs + Math.max(0, (ms - inServer) / 2);
      for (const [part, partMs] of Object.entries(server_ms)) {
        stages.push({ name: part, place: "server", start_ms: insideMs, ms: partMs });
        insideMs += partMs;
      }
    }
    clockMs += ms;
  }
  return { at: momentOf(at), kind, total_ms: clockMs, stages };
}

function percentiles(values: readonly number[]) {
  const sorted = [...values].sort((one, other) => one - other);
  const at = (share: number) => {
    const place = (sorted.length - 1) * share;
    const low = sorted[Math.floor(place)] ?? 0;
    const high = sorted[Math.ceil(place)] ?? low;
    const rest = place - Math.floor(place);
    return rest < 0.5 ? low + (high - low) * rest : high - (high - low) * (1 - rest);
  };
  return { p50_ms: at(0.5), p95_ms: at(0.95), p99_ms: at(0.99) };
}

/**
 * Bars of the requests with low_ms <= total < high_ms. They grow by about half each: latencies have long tails, and
 * equal steps would put nearly all into one bar.
 */
function histogram(totals: readonly number[]) {
  const edges = roundEdges(Math.min(...totals), Math.max(...totals));
  return edges.slice(1).map((high_ms, place) => {
    const low_ms = edges[place] ?? 0;
    const last = place === edges.length - 2; // the last bin includes its upper edge
    const count = totals.filter((total) => total >= low_ms && (total < high_ms || (last && total === high_ms))).length;
    return { low_ms, high_ms, count };
  });
}

/** From the round number at or below the lowest to the first above the highest. */
function roundEdges(lowMs: number, highMs: number): number[] {
  const ladder = POWERS.flatMap((power) => ROUND_STEPS.map((step) => step * 10 ** power));
  const first = Math.max(ladder.filter((edge) => edge <= lowMs).length - 1, 0);
  const above = ladder.findIndex((edge) => edge > highMs);
  const last = Math.max(above < 0 ? ladder.length - 1 : above, first + 1);
  const edges = ladder.slice(first, last + 1);
  const [lowest = 0] = edges;
  const highest = edges.at(-1) ?? highMs;
  return [lowMs < lowest ? 0 : lowest, ...edges.slice(1, -1), Math.max(highest, highMs)];
}

/** Percentiles of each stage over the requests that had it; count: how many. */
function stageFigures(requests: readonly RequestTimes[]) {
  const times = new Map<string, { name: string; place: Place; all: number[] }>();
  for (const { name, place, ms } of requests.flatMap(({ stages }) => stages)) {
    const key = `${place} ${name}`;
    const found = times.get(key) ?? { name, place, all: [] };
    found.all.push(ms);
    times.set(key, found);
  }
  return [...times.values()]
    .sort((one, other) => stageOrder(one) - stageOrder(other))
    .map(({ name, place, all }) => ({ name, place, count: all.length, ...percentiles(all) }));
}

/** Returns the running order, with the server's stages inside the network's. */
function stageOrder({ name, place }: { name: string; place: Place }): number {
  if (place !== "server") return order(name);
  const known = SERVER_STAGES.findIndex((each) => each === name);
  return order("network") + (1 + (known < 0 ? SERVER_STAGES.length : known)) / (SERVER_STAGES.length + 2);
}

function order(stage: string): number {
  const known = DEVICE_STAGES.findIndex((each) => each === stage);
  return known < 0 ? DEVICE_STAGES.length : known;
}
