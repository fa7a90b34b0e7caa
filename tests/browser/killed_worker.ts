// The browser's device, which asks for the death of its tab at a point of its work: before a write, a truncation or a
// flush of its files, before a request leaves, or after its answer came. killed_reader.py serves it in the place of the
// worker's script, with the point before it; whoever serves it kills the tab while this worker stands still in the call.
import "../../web/device/worker";

type Kind = "file" | "request" | "answer";
const DIE = "/reader/die";
const SHORTER = 20;
const LONG_MS = 2_000;
/** within: points count from the first request on whose address matches. */
const { deadly } = globalThis as unknown as { deadly: { kind: Kind; left: number; within: string } };
let begun = deadly.within === "";

function point(kind: Kind, address = ""): void {
  begun ||= new RegExp(deadly.within).test(address);
  if (!begun || kind !== deadly.kind || --deadly.left !== 0) return;
  const call = new XMLHttpRequest();
  call.open("GET", DIE, false);
  call.send();
}

type Files = Record<string, (...given: unknown[]) => unknown>;
const files = (globalThis as unknown as { FileSystemSyncAccessHandle: { prototype: Files } }).FileSystemSyncAccessHandle.prototype;
for (const name of ["write", "truncate", "flush"]) {
  const does = files[name]!;
  files[name] = function (...given) {
    point("file");
    return does.apply(this, given);
  };
}

const ask = globalThis.fetch;
globalThis.fetch = async (address, ...how) => {
  const own = String(address).includes("/reader/");
  if (!own) point("request", String(address));
  const answer = await ask(address, ...how);
  if (!own) point("answer");
  return answer;
};

// what comes by the minute comes by seconds, so that a short life has some of it
const later = globalThis.setTimeout as unknown as (work: () => void, ms?: number) => number;
Object.assign(globalThis, { setTimeout: (work: () => void, ms = 0) => later(work, ms < LONG_MS ? ms : ms / SHORTER) });
