// The operations of the browser's code that the conformance tests call.
import { art } from "./art";
import { binary } from "./binary_forms";
import { bodies } from "./bodies";
import { builds } from "./builds";
import { cleared } from "./cleared";
import { feed } from "./feed";
import { frontPage } from "./front_page";
import { graphs } from "./graphs";
import { groups } from "./groups";
import { listedAfter, reread, rereadByOlder } from "./messages";
import { mutePatterns } from "./mute_patterns";
import { moving } from "./moving";
import { pages } from "./pages";
import { privacy } from "./privacy";
import { secureSum } from "./secure_sum";
import { store } from "./store";
import { pictures } from "./pictures";
import { upkeep } from "./upkeep";
import type { Wasm } from "./wasm";
import { leadsOut } from "../../web/device/protocol/links";

type Answering = (given: never, wasm: Wasm) => unknown;

const KNOWN: Readonly<Record<string, Answering>> = {
  message: reread,
  message_by_older: rereadByOlder,
  listed_after: listedAfter,
  ...art,
  ...binary,
  ...bodies,
  ...privacy,
  ...secureSum,
  ...store,
  ...pages,
  links_lead_out: (links: readonly string[]) => links.map(leadsOut),
  ...feed,
  ...frontPage,
  ...graphs,
  ...groups,
  ...builds,
  ...cleared,
  ...moving,
  ...mutePatterns,
  ...pictures,
  ...upkeep,
};

/** Answers one question; throws if it isn't one. */
export async function answer(what: string, given: unknown, wasm: Wasm): Promise<unknown> {
  const known = KNOWN[what];
  if (!known) throw new Error(`nothing is known of ${what}`);
  return known(given as never, wasm);
}
