// The last drawn front page, in a file of its own: a new tab shows it while the database and the templates start.
import { onceFree } from "./held_file";

const NAME = "ownfeed-front-page";
const DIGEST_BYTES = 32;
const SPACE = 0x20;

/**
 * A drawn page. script: the worker that drew it; from, until: when a device would show this feed, in milliseconds since
 * 1970; pictures: drawn ones, by their addresses in the page.
 */
export interface FrontPage {
  readonly script: string;
  readonly from: number;
  readonly until: number;
  readonly html: string;
  readonly pictures: Readonly<Record<string, string>>;
}

/** The used part of a worker's file handle. */
interface Handle {
  getSize(): number;
  truncate(size: number): void;
  write(bytes: Uint8Array<ArrayBuffer>, options: { at: number }): number;
  flush(): void;
  close(): void;
}
type Holdable = FileSystemFileHandle & { createSyncAccessHandle(): Promise<Handle> };

/**
 * The front page's file, held by the worker that owns the database.
 *
 * Formal guarantees: it begins with the SHA-256 of all that follows, so that a page of which a killed tab has written
 * only a part isn't read. When `wipe` returns, the file contains no byte of a page, not even after a kill; and not
 * after a power cut either if it waits for the disk. The file is shortened only once the disk has zeros in place of all
 * of it, so that no block is returned to the file system with a page in it; `remove`, for files that can't be
 * overwritten, doesn't promise this.
 */
export class FrontPageFile {
  private handle: Handle | null = null;
  private isGone = false; // and not to be created again
  private written: string | null = null; // digest of the completely written page

  private constructor(private readonly folder: FileSystemDirectoryHandle) {}

  /**
   * Holds the file in the origin's own folder; creates it if missing. If that fails, it is removed and no page is kept.
   */
  static async open(folder: FileSystemDirectoryHandle): Promise<FrontPageFile> {
    const held = new FrontPageFile(folder);
    try {
      const file = (await folder.getFileHandle(NAME, { create: true })) as Holdable;
      held.handle = await onceFree(() => file.createSyncAccessHandle());
    } catch (fault) {
      console.error("no front page is kept:", fault);
      await held.remove().catch((left: unknown) => console.error("the previous front page is still there:", left));
    }
    return held;
  }

  /**
   * Stores a page in place of the last one, if it is still wanted when ready to be written; skips it if unchanged. Pads
   * it with spaces to the file's length.
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
   * Overwrites the kept page. waits: waits for the disk, when something is deleted; otherwise the file keeps its
   * length, and the zeros are flushed at any time. Throws if it can't be overwritten.
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

  /** Removes the file; no page is kept any more. */
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
  if (handle.write(bytes, { at }) !== bytes.length) throw new Error("the storage accepted only part of the front page");
}

/** The page kept by this script's worker that its device would show now; null if there is none. */
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
    // none was kept yet, or it was written during the read
    if (missing instanceof DOMException && ["NotFoundError", "NotReadableError"].includes(missing.name)) return null;
    throw missing;
  }
}
