// Files of the origin private file system that one worker holds exclusively.

/** The folder of the databases, in which SQLite names its files at random. */
export const FOLDER = ".ownfeed";
const FILES = ".opaque";

/** Number of attempts for a file that another tab holds, and the milliseconds between them. */
const TRIES = 100;
const AGAIN_MS = 100;

/** Opens files; retries, because a just closed or killed tab releases its files a moment later. */
export async function onceFree<T>(open: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await open();
    } catch (held) {
      const busy = held instanceof DOMException && held.name === "NoModificationAllowedError";
      if (!busy || tries >= TRIES) throw held;
      await new Promise((again) => setTimeout(again, AGAIN_MS));
    }
  }
}

/** Whether this browser still has a database that was opened here before. */
export async function hasPrivateFile(): Promise<boolean> {
  try {
    await (await navigator.storage.getDirectory()).getDirectoryHandle(FOLDER);
    return true;
  } catch (missing) {
    if (missing instanceof DOMException && missing.name === "NotFoundError") return false;
    throw missing;
  }
}

/**
 * Notices when the browser has cleared the files that a worker holds: at a server's request (`Clear-Site-Data`), for
 * lack of space, or by its user. Other files may exist there by then.
 */
export class HeldFiles {
  private constructor(private readonly names: readonly string[]) {}

  /** Returns the held files of the open databases. */
  static async here(): Promise<HeldFiles> {
    const names: string[] = [];
    for await (const [name] of (await files()) as unknown as AsyncIterable<[string, FileSystemHandle]>) names.push(name);
    return new HeldFiles(names);
  }

  /** Returns whether the files no longer exist. */
  async areGone(): Promise<boolean> {
    const [first] = this.names;
    if (first === undefined) return true;
    try {
      await (await files()).getFileHandle(first);
      return false;
    } catch (missing) {
      if (!(missing instanceof DOMException)) throw missing;
      return true;
    }
  }
}

async function files(): Promise<FileSystemDirectoryHandle> {
  return (await (await navigator.storage.getDirectory()).getDirectoryHandle(FOLDER)).getDirectoryHandle(FILES);
}
