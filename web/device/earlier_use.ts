// Signs that this browser had the app before, where what it kept is gone. None of them is certain to be left: whoever clears a
// site's data clears most of them, so that no sign says nothing.
import { NOTED } from "./pinned_build";
import { hasPrivateFile } from "./store/held_file";
import { markedBuild } from "./place";

/** What is gone. build: the installed one, by its hash, or "" where no sign names it; null: it is still here. */
export interface EarlierUse {
  readonly build: string | null;
  readonly store: boolean;
}

/**
 * Null where nothing is missing, or nothing says that anything was here: the tab's own history, which clearing a site's data
 * leaves alone; what the page noted; the browser's promise to keep the site's data, which stays with the site.
 */
export async function earlierUse(): Promise<EarlierUse | null> {
  if (!("serviceWorker" in navigator)) return null; // such a browser keeps no build
  const [registered, stored, promised] = await Promise.all([
    navigator.serviceWorker.getRegistration("/reader/"),
    hasPrivateFile(),
    navigator.storage.persisted(),
  ]);
  const build = markedBuild() ?? localStorage.getItem(NOTED);
  if (registered !== undefined) return stored ? null : { build: null, store: true };
  return build !== null || (promised && !stored) ? { build: build ?? "", store: !stored } : null;
}
