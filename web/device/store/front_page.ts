// The front page as it was drawn last, in a file of its own: a new tab shows it while the database and the templates start.
import { onceFree } from "./held_file";

const NAME = "ownfeed-front-page";
const DIGEST_BYTES = 32;

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
}
type Holdable = FileSystemFileHandle & { createSyncAccessHandle(): Promise<Handle> };

/**
 * The file of the front page, held by the worker that owns the database.
 *
 * Formal guarantees: it begins with the SHA-256 of all that follows, so that a page of which a killed tab has written a
 * part is none. When `wipe` returns, no byte of a page is in the file, and after a kill none is; nor is one after a power
 * cut, where it waits for the disk.
 */
export class FrontPageFile {
  private constructor(private readonly handle: Handle) {}

  /** Hold the file in the origin's own folder; made if it isn't there. */
  static async open(folder: FileSystemDirectoryHandle): Promise<FrontPageFile> {
    const file = (await folder.getFileHandle(NAME, { create: true })) as Holdable;
    return new FrontPageFile(await onceFree(() => file.createSyncAccessHandle()));
  }

  /** Keep a page in the place of the last one, if that is still wanted when it is ready to be written. */
  async keep(page: FrontPage, wanted: () => boolean): Promise<void> {
    const content = new TextEncoder().encode(JSON.stringify(page));
    const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", content));
    if (!wanted()) return;
    try {
      this.write(content, DIGEST_BYTES);
      this.handle.truncate(DIGEST_BYTES + content.length);
      this.write(digest, 0);
    } catch (full) {
      this.wipe();
      throw full;
    }
  }

  /** Overwrite the page that is kept, and keep none. waits: for the disk, where something is deleted. */
  wipe({ waits = true } = {}): void {
    const size = this.handle.getSize();
    if (!size) return;
    this.write(new Uint8Array(size), 0);
    if (waits) this.handle.flush();
    this.handle.truncate(0);
  }

  private write(bytes: Uint8Array<ArrayBuffer>, at: number): void {
    if (this.handle.write(bytes, { at }) !== bytes.length) throw new Error("the storage took a part of the front page");
  }
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
