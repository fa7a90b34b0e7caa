// The file of the kept front page, over a disk that stops in the middle of any of its writes.
import { type FrontPage, FrontPageFile, keptFrontPage } from "../../web/device/store/front_page";

const SCRIPT = "/worker.js";
const page = (html: string): FrontPage => ({ script: SCRIPT, from: 0, until: 10, html, pictures: {} });

class Killed extends Error {}

/** One file whose holder is killed at a call: of a write the first half is done then, of the others nothing. */
class Disk {
  content = new Uint8Array();
  left = Infinity;

  folder(): FileSystemDirectoryHandle {
    const disk = this;
    const call = () => {
      if (disk.left-- === 0) throw new Killed();
    };
    const put = (bytes: Uint8Array, at: number) => {
      const grown = new Uint8Array(Math.max(disk.content.length, at + bytes.length));
      grown.set(disk.content);
      grown.set(bytes, at);
      disk.content = grown;
    };
    const handle = {
      getSize: () => disk.content.length,
      flush: call,
      truncate(size: number) {
        call();
        disk.content = disk.content.slice(0, size);
      },
      write(bytes: Uint8Array, { at }: { at: number }) {
        const whole = disk.left-- !== 0;
        put(whole ? bytes : bytes.subarray(0, bytes.length >> 1), at);
        if (!whole) throw new Killed();
        return bytes.length;
      },
    };
    const file = {
      createSyncAccessHandle: async () => handle,
      getFile: async () => ({ arrayBuffer: async () => disk.content.slice().buffer }),
    };
    return { getFileHandle: async () => file } as unknown as FileSystemDirectoryHandle;
  }
}

export const frontPage = {
  /** What is found after each death of who replaces a page of this text by another, and after each of who wipes it. */
  async front_page_deaths({ before, after }: { before: string; after: string }): Promise<unknown> {
    const found = { keep: [] as unknown[], wipe: [] as unknown[] };
    for (const deed of ["keep", "wipe"] as const) {
      for (let left = 0, dead = true; dead; left++) {
        const disk = new Disk();
        const folder = disk.folder();
        const file = await FrontPageFile.open(folder);
        await file.keep(page(before), () => true);
        disk.left = left;
        dead = await (deed === "keep" ? file.keep(page(after), () => true) : (async () => file.wipe())()).then(
          () => false,
          (why: unknown) => {
            if (!(why instanceof Killed)) throw why;
            return true;
          },
        );
        found[deed].push({
          shown: (await keptFrontPage(folder, SCRIPT, 5))?.html ?? null,
          readable: new TextDecoder().decode(disk.content).includes(before),
          dead,
        });
      }
    }
    return found;
  },

  /** Whether a page that was kept is shown, by what is asked for; `unwanted` was overtaken by a deed. */
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
