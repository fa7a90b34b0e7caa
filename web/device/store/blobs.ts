// Immutable files by their SHA-256: graphs and weights of releases, and what rounds need. The same for everybody, so
// they are no part of the database that an erase or an export is about.
import { contentHash } from "../wire/primitives";
import type { Bytes } from "../wire/values";
import { DAY_MS } from "../moments";

/** Where files lie by name; a file is there whole or not at all. */
export interface Folder {
  read(name: string): Promise<Bytes | null>;
  write(name: string, content: Bytes): Promise<void>;
  remove(name: string): Promise<void>;
  /** Names, with when each was written last, in milliseconds since 1970. */
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

  /** Whether it's here; `read` checks that it's intact. */
  async has(name: string): Promise<boolean> {
    this.known ??= new Set((await this.folder.names()).keys());
    return this.known.has(name);
  }

  /** Keep a blob; returns its hash. */
  async put(content: Bytes): Promise<string> {
    const name = await contentHash(content);
    if (!(await this.has(name))) {
      await this.folder.write(name, content);
      this.known?.add(name);
    }
    this.touch(name);
    return name;
  }

  /** The blob, or null if it's missing; a damaged file is removed and counts as missing. */
  async read(name: string): Promise<Bytes | null> {
    const content = await this.folder.read(name);
    if (content === null || (await contentHash(content)) === name) return content;
    await this.folder.remove(name);
    this.known?.delete(name);
    return null;
  }

  /** Say that the blob was of use now: `prune` keeps it for a day from here. */
  touch(name: string): void {
    this.used.set(name, this.now());
  }

  /** Remove blobs not in `keep` that were not used for a day; returns how many. */
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

/** A folder in memory, for tests and for browsers without a private file system. */
export class MemoryFolder implements Folder {
  private readonly files = new Map<string, { content: Bytes; at: number }>();

  async read(name: string): Promise<Bytes | null> {
    return this.files.get(name)?.content ?? null;
  }

  async write(name: string, content: Bytes): Promise<void> {
    this.files.set(name, { content, at: Date.now() });
  }

  async remove(name: string): Promise<void> {
    this.files.delete(name);
  }

  async names(): Promise<ReadonlyMap<string, number>> {
    return new Map([...this.files].map(([name, { at }]) => [name, at]));
  }
}


/** A folder of the origin's private file system. */
export class PrivateFolder implements Folder {
  private constructor(private readonly handle: FileSystemDirectoryHandle) {}

  /** The folder of that name; made if it isn't there. */
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

  /** The browser puts the new content in the place of the file when the stream is closed, as a whole. */
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
