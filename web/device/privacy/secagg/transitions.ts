// A device's part in a secure sum, without I/O: how its state advances with each answer of the server.\nkeys -> shares
// -> complaints -> masked -> (agree) -> unmask        Bonawitz et al. 2017, figure 4\nThe state holds what a device
// must remember so that a kill at any point neither loses nor repeats a message. It (and in the `masked` stage the
// vector) must be on disk before the message of its stage leaves.
import {
  absent,
  bytes,
  integer,
  list,
  literal,
  optional,
  record,
  text,
  type Bytes,
  type ValueOf,
} from "../../protocol/forms";
import { bitsOf, maskedBytes, type RingVector } from "../../protocol/ring";
import {
  channelKeys,
  checkAgreement,
  checkAlive,
  closeBox,
  openBox,
  pairSeed,
  rosterDigest,
  seedCommitment,
  signKeys,
  termsDigest,
} from "../../protocol/pairing";
import { hex, type Primitives } from "../../protocol/primitives";
import {
  complaints,
  isWhole,
  revealedShares,
  roster,
  saysAlive,
  SecaggError,
  SHARE_BYTES,
  sharedKeys,
  sumTerms,
  type AdvertisedKeys,
  type Agreements,
  type Box,
  type Roster,
  type RosterEntry,
  type Sharers,
  type Shares,
  type SumTerms,
  type Survivors,
} from "../../protocol/secagg";
import { splitBytes } from "../../protocol/shamir";
import type { NoiseSource } from "../exact_samplers";
import type { Charge } from "../sealed";
import { checkRoster, checkSharers, fewest, type RosterRules } from "./messages";

const share = bytes({ min: SHARE_BYTES, max: SHARE_BYTES });

/** The two shares that this device holds for one member, or for itself. */
export const heldShares = record({ member: integer(), key_share: share, seed_share: share });
export type HeldShares = ValueOf<typeof heldShares>;

/**
 * A device's state of one secure sum. Never sent: it holds every secret. The JSON is the Python device's.
 *
 * stage names the message that is being or has been sent. Messages are kept as sent, since a different second message
 * of the same stage could reveal what the first one hid.
 */
export const sumState = record({
  terms: sumTerms,
  stage: literal("keys", "shares", "complaints", "masked", "agree", "unmask"),
  identity_secret: bytes(),
  encryption_secret: bytes(),
  mask_secret: bytes(),
  roster: absent(roster),
  seed: absent(bytes()),
  own: absent(heldShares),
  shared: absent(sharedKeys),
  complaints: absent(complaints),
  held: optional(list(heldShares), []),
  masked_sha256: absent(text()),
  survivors: optional(list(integer()), []),
  revealed: absent(revealedShares),
});
export type SumState = ValueOf<typeof sumState>;

/** Creates fresh keys for one round. */
export function beginSum(terms: SumTerms, source: NoiseSource): SumState {
  return sumState.make({
    terms,
    stage: "keys",
    identity_secret: source.uniformBits(32),
    encryption_secret: source.uniformBits(32),
    mask_secret: source.uniformBits(32),
  });
}

/** The message of the `keys` stage; Ed25519 signatures are deterministic, so the bytes are always the same. */
export async function keysOf(state: SumState, primitives: Primitives): Promise<AdvertisedKeys> {
  const publics = [state.encryption_secret, state.mask_secret].map((secret) => primitives.agreementKey(secret));
  const [encryption = new Uint8Array(0), mask = new Uint8Array(0)] = publics;
  return signKeys(await termsDigest(state.terms, primitives), state.identity_secret, encryption, mask, primitives);
}

/**
 * What a device adds to a sum: its clipped, encoded and perhaps noisy vector, and the sum's cost.
 * The cost is that of the fewest survivors that the round allows, because the device pays before the number of
 * survivors is known. paid is called in the transaction that records the charge.
 */
export interface Contribution {
  readonly vector: RingVector;
  readonly charge: Charge;
  readonly paid?: () => void;
}

/** A masked vector, its state, and its cost; none of it may leave before it is paid for. */
export interface MaskedVector {
  readonly state: SumState;
  readonly payload: Bytes;
  readonly charge: Charge;
}

/** Each step throws SecaggError if the answer can't come from an honest server; this device's part then ends. */
export class SumTransitions {
  constructor(
    private readonly rules: RosterRules,
    private readonly primitives: Primitives,
    private readonly source: NoiseSource,
  ) {}

  /** Round 1: checks the roster, draws b_u, and shares it and s_u among the members. */
  async share(state: SumState, received: Roster): Promise<SumState> {
    const context = await termsDigest(state.terms, this.primitives);
    await checkRoster(this.rules, state.terms, await keysOf(state, this.primitives), received, this.primitives);
    const seed = this.source.uniformBits(32);
    const points = received.members.map((entry) => entry.member);
    const draw = (size: number): Bytes => this.source.uniformBits(size);
    const keyShares = splitBytes(state.mask_secret, received.threshold, points, draw);
    const seedShares = splitBytes(seed, received.threshold, points, draw);
    const held = (member: number): HeldShares => {
      const [key_share, seed_share] = [keyShares.get(member), seedShares.get(member)];
      if (!key_share || !seed_share) throw new SecaggError(`member ${member} has no shares`);
      return { member, key_share, seed_share };
    };
    const boxes: Box[] = [];
    for (const entry of received.members) {
      if (entry.member === received.me) continue;
      const { key_share, seed_share } = held(entry.member);
      const [key] = await this.channel(state, context, entry, received.me);
      boxes.push({ member: entry.member, box: closeBox(key, received.me, entry.member, key_share, seed_share) });
    }
    const seed_commitment = await seedCommitment(context, received.me, seed, this.primitives);
    return { ...state, stage: "shares", roster: received, seed, own: held(received.me), shared: { seed_commitment, boxes } };
  }

  /** Between rounds 1 and 2: keeps the shares, and complains about boxes that don't contain any. */
  async openBoxes(state: SumState, shares: Shares): Promise<SumState> {
    const [received, own] = [given(state.roster), given(state.own)];
    const context = await termsDigest(state.terms, this.primitives);
    const held = [own];
    const members: number[] = [];
    for (const box of shares.boxes) {
      const entry = received.members.find((each) => each.member === box.member);
      if (!entry || box.member === received.me)
        throw new SecaggError(`a box from member ${box.member}, who is not on the roster`);
      try {
        const [, key] = await this.channel(state, context, entry, received.me);
        const [key_share, seed_share] = openBox(key, box.member, received.me, box.box);
        held.push({ member: box.member, key_share, seed_share });
      } catch (broken) {
        if (!(broken instanceof SecaggError)) throw broken;
        members.push(box.member);
      }
    }
    const least = fewest(this.rules, state.terms, received);
    if (shares.boxes.length + 1 < least)
      throw new SecaggError(`${shares.boxes.length + 1} members shared their keys, at least ${least} are needed`);
    held.sort((one, other) => one.member - other.member);
    return { ...state, stage: "complaints", held, complaints: { members } };
  }

  /**
   * Round 2: adds self mask and pair masks; the lower member adds, the higher subtracts. Without one of the seeds the
   * payload is uniform noise. It isn't paid for yet: charge, state and payload belong in one transaction.
   */
  async mask(state: SumState, sharers: Sharers, contribution: Contribution): Promise<MaskedVector> {
    const [received, seed] = [given(state.roster), given(state.seed)];
    const { terms } = state;
    const { vector, charge } = contribution;
    if (vector.length !== terms.length || bitsOf(vector) !== terms.bits)
      throw new RangeError(
        `vector: ${vector.length} of ${bitsOf(vector)} bits, the terms say ${terms.length} of ${terms.bits}`,
      );
    checkSharers(this.rules, terms, state.held, received, sharers);
    const context = await termsDigest(terms, this.primitives);
    const held = state.held.filter((one) => sharers.members.includes(one.member));
    const [plus, minus] = [[seed], [] as Bytes[]];
    for (const { member } of held) {
      const entry = received.members.find((each) => each.member === member);
      if (!entry || member === received.me) continue;
      const pair = await pairSeed(context, state.mask_secret, entry.keys.mask_key, [received.me, member], this.primitives);
      (member > received.me ? plus : minus).push(pair);
    }
    const payload = maskedBytes(vector, plus, minus);
    const masked_sha256 = hex(await this.primitives.sha256(payload));
    const after: SumState = { ...state, stage: "masked", held, masked_sha256 };
    return { state: after, payload, charge: { ...charge, payloadSha256: masked_sha256 } };
  }

  /** First half of round 3, or round 4 if the server is trusted to follow the protocol. */
  receiveSurvivors(state: SumState, survivors: Survivors): SumState {
    const received = given(state.roster);
    const shared = new Set(state.held.map((one) => one.member));
    const unknown = survivors.members.find((member) => !shared.has(member));
    if (unknown !== undefined)
      throw new SecaggError(`member ${unknown} is listed as a survivor but has not shared its keys`);
    if (!survivors.members.includes(received.me))
      throw new SecaggError("the server says that this device's vector is not in the sum");
    const least = fewest(this.rules, state.terms, received);
    if (survivors.members.length < least)
      throw new SecaggError(`${survivors.members.length} members survived, at least ${least} are needed`);
    const agreeing: SumState = { ...state, stage: "agree", survivors: survivors.members };
    return state.terms.mode === "active" ? agreeing : reveal(agreeing);
  }

  /**
   * Second half of round 3: checks that at least t members have signed the list of survivors that this device was sent,
   * or, in the sparse form, that this device is one.
   */
  async receiveAgreements(state: SumState, agreements: Agreements): Promise<SumState> {
    const received = given(state.roster);
    const context = await termsDigest(state.terms, this.primitives);
    const digest = await rosterDigest(received, this.primitives);
    const whole = isWhole(received);
    const agreed = new Set([received.me]);
    for (const one of agreements.signatures) {
      const { member, signature } = one;
      const entry = received.members.find((each) => each.member === member);
      if (!entry || !state.survivors.includes(member))
        throw new SecaggError(`member ${member} signed but is not a survivor`);
      const key = entry.keys.verify_key;
      if (!whole && !saysAlive(one, received.me))
        throw new SecaggError(`the list of survivors of member ${member} leaves this device out`);
      if (whole) await checkAgreement(context, digest, state.survivors, key, signature, this.primitives);
      else await checkAlive(context, one, key, this.primitives);
      agreed.add(member);
    }
    if (agreed.size < received.threshold)
      throw new SecaggError(`${agreed.size} members agreed on the survivors, the threshold is ${received.threshold}`);
    return reveal(state);
  }

  /** The keys (for boxes to, for boxes from) another member. */
  private async channel(
    state: SumState,
    context: Bytes,
    entry: RosterEntry,
    me: number,
  ): Promise<readonly [Bytes, Bytes]> {
    const theirs = entry.keys.encryption_key;
    const between = [me, entry.member] as const;
    const [up, down] = await channelKeys(context, state.encryption_secret, theirs, between, this.primitives);
    return me < entry.member ? [up, down] : [down, up];
  }
}

/** For each member reveals either the share of the seed or that of the key, never both. */
function reveal(state: SumState): SumState {
  const alive = (one: HeldShares): boolean => state.survivors.includes(one.member);
  const seeds = state.held.filter(alive).map(({ member, seed_share }) => ({ member, share: seed_share }));
  const keys = state.held.filter((one) => !alive(one)).map(({ member, key_share }) => ({ member, share: key_share }));
  return { ...state, stage: "unmask", revealed: { seeds, keys } };
}

/** Returns a part that a state of this stage must have; a state without it wasn't stored by this device. */
function given<T>(part: T | null): T {
  if (part === null) throw new SecaggError("the stored state of this sum is incomplete");
  return part;
}
