// The file of the stored front page, on a disk that fails in the middle of any write.
import type { Asking } from "../../web/device/link";
import { FrontPages } from "../../web/device/pages/front_page";
import type { Pictures } from "../../web/device/pages/art";
import type { PageRenderer } from "../../web/device/pages/renderer";
import { type FrontPage, FrontPageFile, keptFrontPage } from "../../web/device/store/front_page";

const SCRIPT = "/worker.js";
const page = (html: string): FrontPage => ({ script: SCRIPT, from: 0, until: 10, html, pictures: {} });

class Killed extends Error {}

/**
 * One file whose holder is killed at a call: half of a write is then done, and nothing of other calls. The disk may
 * have any byte that was ever written to a place since the last flush; given: nonzero bytes that it may
 * have in blocks that the file gave back.
 */
class Disk {
  content = new Uint8Array();
  left = Infinity;
  given = 0;
  writes = 0;
  isBroken = false;
  isLocked = false;
  isThere = false;
  private readonly onDisk = new Set<number>(); // places where something other than zero may stand

  folder(): FileSystemDirectoryHandle {
    const disk = this;
    const call = () => {
      if (disk.left-- === 0) throw new Killed();
    };
    const settle = () => {
      disk.onDisk.clear();
      disk.content.forEach((byte, place) => byte && disk.onDisk.add(place));
    };
    const put = (bytes: Uint8Array, at: number) => {
      bytes.forEach((byte, place) => byte && disk.onDisk.add(at + place));
      const grown = new Uint8Array(Math.max(disk.content.length, at + bytes.length));
      grown.set(disk.content);
      grown.set(bytes, at);
      disk.content = grown;
    };
    const handle = {
      getSize: () => disk.content.length,
      close() {},
      flush() {
        call();
        settle();
      },
      truncate(size: number) {
        call();
        for (const place of disk.onDisk)
          if (place >= size) {
            disk.given += 1;
            disk.onDisk.delete(place);
          }
        disk.content = disk.content.slice(0, size);
      },
      write(bytes: Uint8Array, { at }: { at: number }) {
        if (disk.isBroken) throw new Error("the disk takes nothing");
        disk.writes += 1;
        const whole = disk.left-- !== 0;
        put(whole ? bytes : bytes.subarray(0, bytes.length >> 1), at);
        if (!whole) throw new Killed();
        return bytes.length;
      },
    };
    const file = {
      createSyncAccessHandle: async () => {
        if (disk.isLocked) throw new Error("the file can't be held");
        return handle;
      },
      getFile: async () => ({ arrayBuffer: async () => disk.content.slice().buffer }),
    };
    const folder = {
      async getFileHandle() {
        disk.isThere = true;
        return file;
      },
      async removeEntry() {
        disk.isThere = false;
      },
    };
    return folder as unknown as FileSystemDirectoryHandle;
  }
}

export const frontPage = {
  /** What is found after a kill at each call of replacing a page by another, and of wiping it. */
  async front_page_deaths({ before, after }: { before: string; after: string }): Promise<unknown> {
    const found = { keep: [] as unknown[], wipe: [] as unknown[] };
    for (const action of ["keep", "wipe"] as const) {
      for (let left = 0, dead = true; dead; left++) {
        const disk = new Disk();
        const folder = disk.folder();
        const file = await FrontPageFile.open(folder);
        await file.keep(page(before), () => true);
        disk.left = left;
        dead = await (action === "keep" ? file.keep(page(after), () => true) : (async () => file.wipe())()).then(
          () => false,
          (why: unknown) => {
            if (!(why instanceof Killed)) throw why;
            return true;
          },
        );
        found[action].push({
          shown: (await keptFrontPage(folder, SCRIPT, 5))?.html ?? null,
          readable: new TextDecoder().decode(disk.content).includes(before),
          dead,
        });
      }
    }
    return found;
  },

  /** After each of these steps: what is shown, the file's length, and what its disk returned (see `Disk`). */
  async front_page_blocks(steps: readonly (readonly ["keep", string] | readonly ["wipe", boolean])[]): Promise<unknown> {
    const disk = new Disk();
    const folder = disk.folder();
    const file = await FrontPageFile.open(folder);
    const found = [];
    for (const [action, how] of steps) {
      const before = disk.writes;
      if (action === "keep") await file.keep(page(how), () => true);
      else file.wipe({ waits: how });
      const shown = (await keptFrontPage(folder, SCRIPT, 5))?.html ?? null;
      found.push({ shown, size: disk.content.length, given: disk.given, writes: disk.writes - before });
    }
    return found;
  },

  /**
   * The outcome of these actions, in order, when the file takes no more bytes, or can't be opened at all: whether each
   * was done, or why not, and whether the file then exists; kept: how often a page was to be stored again.
   */
  async front_page_broken({ held, asked }: { held: boolean; asked: readonly (readonly [string, boolean])[] }): Promise<unknown> {
    const disk = new Disk();
    disk.isLocked = !held;
    const file = await FrontPageFile.open(disk.folder());
    await file.keep(page("kept"), () => true);
    disk.isBroken = true;
    const front = new FrontPages({} as PageRenderer, {} as Pictures, file, SCRIPT);
    let kept = 0;
    front.keepSoon = () => void (kept += 1);
    const found = [];
    for (const [address, isForm] of asked) {
      const asking: Asking = { address, form: isForm ? [] : null, followed: true, quietly: false };
      const done = await front.around(asking, async () => "done").catch((why: Error) => why.message);
      found.push({ done, isThere: disk.isThere, kept });
    }
    return found;
  },

  /** Whether a stored page is shown, by request; `unwanted` was overtaken by an action. */
  async front_page_shown(_: null): Promise<unknown> {
    const folder = new Disk().folder();
    const file = await FrontPageFile.open(folder);
    const shown = async (script: string, now: number) => (await keptFrontPage(folder, script, now)) !== null;
    await file.keep(page("unwanted"), () => false);
    const unwanted = await shown(SCRIPT, 5);
    await file.keep(page("kept"), () => true);
    const [now, outdated, early, another] = [await shown(SCRIPT, 5), await shown(SCRIPT, 10), await shown(SCRIPT, 0), await shown("/other.js", 5)];
    return { unwanted, now, outdated, early, another };
  },
};
