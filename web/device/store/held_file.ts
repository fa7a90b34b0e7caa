// Files of the origin's private file system that one worker holds alone.

/** A file that another tab holds is tried so often, every so many milliseconds. */
const TRIES = 100;
const AGAIN_MS = 100;

/** What `open` opens; the files of a tab that was just closed or killed are let go of a moment after it. */
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
