// Immutable files by SHA-256: graphs and weights of releases, and materials of rounds. They are the same for every
// reader, so they aren't part of the database that is erased or exported.
import { contentHash } from "../protocol/primitives";
import type { Bytes } from "../protocol/forms";
import { DAY_MS } from "../protocol/moments";

/** A folder of named files; a file is complete or absent. */
export interface Folder {
  read(name: string): Promise<Bytes | null>;
  write(name: string, content: Bytes): Promise<void>;
  remove(name: string): Promise<void>;
  /** Names, with the time each was last written, in milliseconds since 1970. */
  names(): Promise<ReadonlyMap<string, number>>;
}

const UNUSED_KEPT_MS = DAY_MS;

/** A folder of blobs, each named by its hash. */
export class Blobs {
  private known: Set<string> | null = null;
  private readonly used = new Map<string, number>();

  constructor(
    private readonly folder: Folder,
    private readonly now: () => number = Date.now,
  ) {}

  /** Whether the blob is here; `read` checks its integrity. */
  async has(name: string): Promise<boolean> {
    this.known ??= new Set((await this.folder.names()).keys());
    return this.known.has(name);
  }

  /** Stores a blob; returns its hash. */
  async put(content: Bytes): Promise<string> {
    const name = await contentHash(content);
    if (!(await this.has(name))) {
      await this.folder.write(name, content);
      this.known?.add(name);
    }
    this.touch(name);
    return name;
  }

  /** The blob; null if missing. A damaged file is removed and counts as missing. */
  async read(name: string): Promise<Bytes | null> {
    const content = await this.folder.read(name);
    if (content === null || (await contentHash(content)) === name) return content;
    await this.folder.remove(name);
    this.known?.delete(name);
    return null;
  }

  /** Marks the blob as used now: `prune` then keeps it for a day. */
  touch(name: string): void {
    this.used.set(name, this.now());
  }

  /** Removes blobs not in `keep` and not used for a day; returns their number. */
  async prune(keep: Iterable<string>): Promise<number> {
    const wanted = new Set(keep);
    let removed = 0;
    for (const [name, written] of await this.folder.names()) {
      const last = Math.max(written, this.used.get(name) ?? 0);
      if (wanted.has(name) || this.now() - last <= UNUSED_KEPT_MS) continue;
      await this.folder.remove(name);
      this.known?.delete(name);
      removed += 1;
    }
    return removed;
  }
}

/** A folder of the origin's private file system. */
export class PrivateFolder implements Folder {
  private constructor(private readonly handle: FileSystemDirectoryHandle) {}

  /** Opens the folder of that name; creates it if missing. */
  static async open(name: string): Promise<PrivateFolder> {
    return new PrivateFolder(await (await navigator.storage.getDirectory()).getDirectoryHandle(name, { create: true }));
  }

  async read(name: string): Promise<Bytes | null> {
    try {
      const file = await (await this.handle.getFileHandle(name)).getFile();
      return new Uint8Array(await file.arrayBuffer());
    } catch (missing) {
      if (missing instanceof DOMException && missing.name === "NotFoundError") return null;
      throw missing;
    }
  }

  /** The browser replaces the file atomically when the stream is closed. */
  async write(name: string, content: Bytes): Promise<void> {
    const stream = await (await this.handle.getFileHandle(name, { create: true })).createWritable();
    await stream.write(content);
    await stream.close();
  }

  async remove(name: string): Promise<void> {
    try {
      await this.handle.removeEntry(name);
    } catch (missing) {
      if (!(missing instanceof DOMException && missing.name === "NotFoundError")) throw missing;
    }
  }

  async names(): Promise<ReadonlyMap<string, number>> {
    const found = new Map<string, number>();
    const entries = this.handle as unknown as AsyncIterable<[string, FileSystemHandle]>;
    for await (const [name, entry] of entries)
      if (entry.kind === "file")
        found.set(name, (await (entry as FileSystemFileHandle).getFile()).lastModified);
    return found;
  }
}
