// The chain of releases: each names what came before it, so that one short value stands for the whole history.
import { type ValueOf, WireError, list, record } from "./forms";
import { releaseId, releaseNumber, sha256Hex } from "./ids";
import { type Primitives, hex } from "./primitives";
import { moment } from "./values";

export const CHAIN_LIMIT = 65_536;
/** So many last releases can be asked for, and no other number: what a device asks for repeats next to nothing. */
export const LENGTHS = [16, 256, 4_096, 65_536] as const;
const SHOWN = 20;

/** One release of the chain. */
export const chainedRelease = record({ release: releaseId, manifest_sha256: sha256Hex, published_at: moment });
export type ChainedRelease = ValueOf<typeof chainedRelease>;

/** GET /v1/releases/chain: the last releases, oldest first, the same for everybody. */
export const releaseChain = record({ releases: list(chainedRelease, { max: CHAIN_LIMIT }) }, ({ releases }) => {
  const numbers = releases.map((each) => releaseNumber(each.release));
  if (numbers.some((number, place) => place > 0 && number !== (numbers[place - 1] ?? 0) + 1))
    throw new WireError("releases must follow one another, oldest first");
});
export type ReleaseChain = ValueOf<typeof releaseChain>;

/** The head of the chain that ends with this release; `before` is that of the release before, null at its start. */
export async function nextHead(
  before: string | null,
  release: string,
  manifestSha256: string,
  primitives: Primitives,
): Promise<string> {
  const parts = ["ownfeed release chain", before ?? "", String(releaseNumber(release)), manifestSha256];
  return hex(await primitives.sha256(new TextEncoder().encode(parts.join("\n"))));
}

/** The head after these releases, which follow the one that `before` is the head of. */
export async function headAfter(
  before: string | null,
  releases: readonly ChainedRelease[],
  primitives: Primitives,
): Promise<string | null> {
  let head = before;
  for (const each of releases) head = await nextHead(head, each.release, each.manifest_sha256, primitives);
  return head;
}

/** The head's first 20 hexadecimal digits by fours, for two readers to compare. */
export function readable(head: string): string {
  return (head.slice(0, SHOWN).match(/.{4}/g) ?? []).join(" ");
}
