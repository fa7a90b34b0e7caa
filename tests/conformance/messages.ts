// Every message, by its Python name: read, and written again.
import * as broadcast from "../../web/device/protocol/broadcast";
import * as chain from "../../web/device/protocol/chain";
import { type Form, WireError, readMessage } from "../../web/device/protocol/forms";
import * as news from "../../web/device/protocol/news";
import * as pictures from "../../web/device/protocol/pictures";
import * as popularity from "../../web/device/protocol/popularity";
import { problem } from "../../web/device/protocol/ids";
import * as protections from "../../web/device/protocol/protections";
import * as recall from "../../web/device/protocol/recall";
import * as releases from "../../web/device/protocol/releases";
import * as rotations from "../../web/device/protocol/chain";
import * as rounds from "../../web/device/protocol/rounds";
import * as secagg from "../../web/device/protocol/secagg";

const MODULES = [broadcast, chain, news, pictures, popularity, protections, recall, releases, rotations, rounds, secagg];

/** newsCard -> NewsCard: forms are named like the messages. */
const FORMS: ReadonlyMap<string, Form<unknown>> = new Map([
  ["Problem", problem as Form<unknown>],
  ...MODULES.flatMap((module) =>
    Object.entries(module)
      .filter(
        (entry): entry is [string, Form<unknown>] =>
          typeof entry[1] === "object" && entry[1] !== null && "fields" in entry[1],
      )
      .map(([name, form]): [string, Form<unknown>] => [name.charAt(0).toUpperCase() + name.slice(1), form]),
  ),
]);

/** The message written again after it was read, or where and why it was refused. */
export function reread([name, text]: readonly [string, string]): unknown {
  const form = FORMS.get(name);
  if (!form) return { unknown: name };
  try {
    return { written: form.write(readMessage(form, text)) };
  } catch (refused) {
    if (refused instanceof WireError) return { path: refused.path, reason: refused.reason };
    throw refused;
  }
}

/** The ids of a default list after one with the ids `earlier`, or why it is refused. */
export function listedAfter([text, earlier]: readonly [string, readonly string[]]): unknown {
  try {
    return { listed: recall.listed(readMessage(recall.defaultListAnswer, text), earlier) };
  } catch (refused) {
    if (refused instanceof WireError) return { refused: refused.message };
    throw refused;
  }
}

/** The same in a browser that has no String.prototype.isWellFormed yet. */
export function rereadByOlder(given: readonly [string, string]): unknown {
  const known = Object.getOwnPropertyDescriptor(String.prototype, "isWellFormed");
  delete (String.prototype as { isWellFormed?: unknown }).isWellFormed;
  try {
    return reread(given);
  } finally {
    if (known) Object.defineProperty(String.prototype, "isWellFormed", known);
  }
}
