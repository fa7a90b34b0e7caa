// The front page as it was drawn last, in a file of its own: a new tab shows it while the database and the templates start.
import { onceFree } from "./held_file";

const NAME = "ownfeed-front-page";
const DIGEST_BYTES = 32;
const SPACE = 0x20;

/**
 * A page as it was drawn. script: the worker that drew it; from, until: while a device would show this feed, in
 * milliseconds since 1970; pictures: drawn ones, by the addresses that the page names.
 */
export interface FrontPage {
  readonly script: string;
  readonly from: number;
  readonly until: number;
  readonly html: string;
  readonly pictures: Readonly<Record<string, string>>;
}

/** What is used of a file's handle in a worker. */
interface Handle {
  getSize(): number;
  truncate(size: number): void;
  write(bytes: Uint8Array<ArrayBuffer>, options: { at: number }): number;
  flush(): void;
  close(): void;
}
type Holdable = FileSystemFileHandle & { createSyncAccessHandle(): Promise<Handle> };

/**
 * The file of the front page, held by the worker that owns the database.
 *
 * Formal guarantees: it begins with the SHA-256 of all that follows, so that a page of which a killed tab has written a
 * part is none. When `wipe` returns, no byte of a page is in the file, and after a kill none is; nor is one after a power
 * cut, where it waits for the disk. The file gets shorter only once the disk has zeros in the place of all of it, so that
 * no block is given back to the file system with a page in it; `remove`, for what can't be overwritten, doesn't promise it.
 */
export class FrontPageFile {
  private handle: Handle | null = null;
  private isGone = false; // and not to be made again
  private written: string | null = null; // digest of the page that is kept whole

  private constructor(private readonly folder: FileSystemDirectoryHandle) {}

  /** Hold the file in the origin's own folder; made if it isn't there. Where that fails it is removed and none is kept. */
  static async open(folder: FileSystemDirectoryHandle): Promise<FrontPageFile> {
    const held = new FrontPageFile(folder);
    try {
      const file = (await folder.getFileHandle(NAME, { create: true })) as Holdable;
      held.handle = await onceFree(() => file.createSyncAccessHandle());
    } catch (fault) {
      console.error("no front page is kept:", fault);
      await held.remove().catch((left: unknown) => console.error("that of before is still there:", left));
    }
    return held;
  }

  /**
   * Keep a page in the place of the last one, if that is still wanted when it is ready to be written; nothing is written
   * where it is the same. It is filled up with spaces to the length of the file.
   */
  async keep(page: FrontPage, wanted: () => boolean): Promise<void> {
    const { handle } = this;
    if (!handle) return;
    const text = new TextEncoder().encode(JSON.stringify(page));
    const content = new Uint8Array(Math.max(text.length, handle.getSize() - DIGEST_BYTES)).fill(SPACE);
    content.set(text);
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
    const name = digest.join();
    if (name === this.written || !wanted()) return;
    this.written = null;
    try {
      write(handle, content, DIGEST_BYTES);
      write(handle, digest, 0);
      this.written = name;
    } catch (full) {
      this.wipe();
      throw full;
    }
  }

  /**
   * Overwrite the page that is kept, and keep none. waits: for the disk, where something is deleted; else the file keeps
   * its length, and the disk gets the zeros when it likes. Throws where it can't be overwritten.
   */
  wipe({ waits = true } = {}): void {
    this.written = null;
    if (this.isGone) return;
    if (!this.handle) throw new Error("the file of the front page can't be opened");
    const size = this.handle.getSize();
    if (!size) return;
    write(this.handle, new Uint8Array(size), 0);
    if (!waits) return;
    this.handle.flush();
    this.handle.truncate(0);
  }

  /** Remove the file, and keep no page any more. */
  async remove(): Promise<void> {
    this.handle?.close();
    this.handle = this.written = null;
    try {
      await this.folder.removeEntry(NAME);
    } catch (missing) {
      if (!(missing instanceof DOMException && missing.name === "NotFoundError")) throw missing;
    }
    this.isGone = true;
  }
}

function write(handle: Handle, bytes: Uint8Array<ArrayBuffer>, at: number): void {
  if (handle.write(bytes, { at }) !== bytes.length) throw new Error("the storage took a part of the front page");
}

/** The page that the worker of this script has kept and that its device would show now; null where there is none. */
export async function keptFrontPage(
  folder: FileSystemDirectoryHandle,
  script: string,
  now: number,
): Promise<FrontPage | null> {
  try {
    const file = await (await folder.getFileHandle(NAME)).getFile();
    const bytes = new Uint8Array(await file.arrayBuffer());
    if (bytes.length <= DIGEST_BYTES) return null;
    const content = bytes.subarray(DIGEST_BYTES);
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
    if (digest.some((byte, at) => byte !== bytes[at])) return null;
    const page = JSON.parse(new TextDecoder().decode(content)) as FrontPage;
    return page.script === script && page.from < now && now < page.until ? page : null;
  } catch (missing) {
    // none was kept yet, or it was written while it was read
    if (missing instanceof DOMException && ["NotFoundError", "NotReadableError"].includes(missing.name)) return null;
    throw missing;
  }
}
