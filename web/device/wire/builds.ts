// The publisher's list of this app's builds, signed with the release key: what it says of one of them.
import { type ValueOf, WireError, list, readMessage, record } from "./forms";
import { sha256Hex } from "./ids";
import type { Primitives } from "./primitives";
import { sameBytes } from "./releases";
import { type Bytes, bytes, moment, text } from "./values";

/** Before the list's bytes under the signature, so that no other signature of the key is taken for this one. */
const DOMAIN = "ownfeed builds of the browser's device v1\n";

/** GET /reader/builds.json: the list's exact text, and the server's signature over it. */
const signedBuilds = record({ builds: text(), signature: bytes(), public_key: bytes() });
const knownBuilds = record({ builds: list(record({ build: sha256Hex, since: moment })) });

/**
 * Whether a list that the trusted key has signed has the build; "forged" is a list that this key has not signed, or that
 * can't be read; "unknown" where there is no list, or no key is trusted yet.
 */
export type BuildVerdict = "listed" | "unlisted" | "forged" | "unknown";

/** What a server's list says of a build, by its SHA-256 in hex; nothing of the list is read before its signature. */
export async function verdictOf(
  build: string,
  answer: Bytes,
  trusted: Bytes,
  primitives: Primitives,
): Promise<Exclude<BuildVerdict, "unknown">> {
  try {
    const signed: ValueOf<typeof signedBuilds> = readMessage(signedBuilds, answer);
    const content = new TextEncoder().encode(DOMAIN + signed.builds);
    const genuine = sameBytes(signed.public_key, trusted) && (await primitives.verify(trusted, signed.signature, content));
    if (!genuine) return "forged";
    const { builds } = readMessage(knownBuilds, `{"builds":${signed.builds}}`);
    return builds.some((each) => each.build === build) ? "listed" : "unlisted";
  } catch (broken) {
    if (broken instanceof WireError) return "forged";
    throw broken;
  }
}
