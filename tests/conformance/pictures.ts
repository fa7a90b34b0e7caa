// The browser's device pulls publishers' pictures while its reader acts and its backend fails or sends false data.
import { Device, chosenSettings } from "../../web/device/device";
import { systemChance } from "../../web/device/feed/chance";
import { feedSettings, performanceSettings } from "../../web/device/feed_settings";
import { partsOf, storesOf } from "../../web/device/parts";
import { systemNoise } from "../../web/device/privacy/exact_samplers";
import { OnnxRuntime } from "../../web/device/ranking/onnx_runtime";
import { Graphs } from "../../web/device/ranking/session";
import { Blobs } from "../../web/device/store/blobs";
import { lateMemory, openMemory } from "../../web/device/store/database";
import { type Departing, NoAnswer } from "../../web/device/uplink/transport";
import { noblePrimitives } from "../../web/device/protocol/primitives";
import { MemoryFolder, unhex } from "./given";
import { SQLITE, type Wasm } from "./wasm";

/** actions: by a request's number in this poll, from 0: what happens before its answer, or instead of it. */
interface Look {
  readonly listing: string;
  readonly actions: Readonly<Record<string, readonly string[]>>;
}

interface Given {
  /** Milliseconds since 1970. */
  readonly now: number;
  readonly looks: readonly Look[];
  /** Bytes by hash, in hex. */
  readonly blobs: Readonly<Record<string, string>>;
}

/** After each poll: the requests, the stored pictures by shard, the shards of the list in use, and the text on pages. */
async function pulled({ now, looks, blobs }: Given, wasm: Wasm): Promise<unknown> {
  const stores = storesOf(await openMemory(wasm(SQLITE)), await lateMemory(wasm(SQLITE)), new Blobs(new MemoryFolder()));
  let [look, asked] = [looks[0] as Look, [] as string[]];
  const send = async ({ path }: Departing) => {
    const actions = look.actions[String(asked.length)] ?? [];
    asked.push(path);
    for (const action of actions) {
      if (action === "off" || action === "on") stores.pictures.show(action === "on");
      if (action === "erase") await device.privacy.erase();
    }
    if (actions.includes("dead")) throw new NoAnswer("no answer in time");
    const body = path === "/v1/pictures" ? new TextEncoder().encode(look.listing) : unhex(blobs[path.slice(10)] ?? "");
    if (actions.includes("lie")) body[0] = (body[0] ?? 0) ^ 1;
    return { status: actions.includes("gone") ? 404 : 200, headers: new Map<string, string>(), body };
  };
  const around = {
    stores,
    transport: { send },
    graphs: new Graphs(new OnnxRuntime(new Uint8Array())),
    primitives: noblePrimitives,
    clock: () => now,
    noise: systemNoise,
    chance: systemChance,
    backendUrl: "http://127.0.0.1:9",
    pinnedKey: null,
  };
  const settings = { privacy: () => chosenSettings(stores), performance: performanceSettings.make({}), feed: feedSettings.make({}) };
  const device: Device = new Device(partsOf(around, settings), () => now);
  const found: unknown[] = [];
  for (look of looks) {
    asked = [];
    await device.takePictures();
    const rows = stores.database.rows<{ shard: string; here: number }>("SELECT shard, count(*) AS here FROM picture GROUP BY shard");
    const kept = Object.fromEntries(rows.map(({ shard, here }) => [shard, here]));
    const { online, alerts } = device.status();
    const used = stores.pictures.current()?.shards ?? null;
    found.push({ asked, kept, used, shown: stores.pictures.shown(), online, alerts: alerts.length });
  }
  return found;
}

export const pictures = { pictures_pulled: pulled };
