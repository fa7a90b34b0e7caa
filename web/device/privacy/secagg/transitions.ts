// A device's part in a secure sum, without I/O: how its state goes on with each answer of the server.
//
//   keys -> shares -> complaints -> masked -> (agree) -> unmask        Bonawitz et al. 2017, figure 4
//
// The state (and at stage masked the vector) must be on the disk before the message of its stage leaves.
import { maskedBytes } from "../../wire/masks";
import {
  channelKeys,
  checkAgreement,
  closeBox,
  openBox,
  pairSeed,
  rosterDigest,
  seedCommitment,
  termsDigest,
} from "../../wire/pairing";
import { type Primitives, hex } from "../../wire/primitives";
import { type RingVector, bitsOf } from "../../wire/ring";
import {
  type Agreements,
  type Box,
  type Roster,
  type RosterEntry,
  SecaggError,
  type Sharers,
  type Shares,
  type Survivors,
} from "../../wire/secagg";
import { splitBytes } from "../../wire/shamir";
import type { Bytes } from "../../wire/values";
import type { Charge } from "../sealed";
import type { NoiseSource } from "../noise_sources";
import { type RosterRules, checkRoster, checkSharers, fewest } from "./roster";
import { type HeldShares, type SumState, keysOf } from "./state";

/**
 * What a device adds to a sum: its clipped, encoded and perhaps noisy vector, and what the opened sum costs it at the
 * smallest number of survivors that the round's terms allow: it has to pay before it can know how many will survive.
 * paid is called in the transaction that pays.
 */
export interface Contribution {
  readonly vector: RingVector;
  readonly charge: Charge;
  readonly paid?: () => void;
}

/** A vector under its masks, the state that goes with it, and what it costs: none of it may leave before it's paid. */
export interface MaskedVector {
  readonly state: SumState;
  readonly payload: Bytes;
  readonly charge: Charge;
}

/** Each step throws SecaggError where the answer is not an honest server's: this device's part ends there. */
export class SumTransitions {
  constructor(
    private readonly rules: RosterRules,
    private readonly primitives: Primitives,
    private readonly source: NoiseSource,
  ) {}

  /** Round 1: check the roster, draw b_u, share it and s_u among the members. */
  async share(state: SumState, told: Roster): Promise<SumState> {
    const context = await termsDigest(state.terms, this.primitives);
    await checkRoster(this.rules, state.terms, await keysOf(state, this.primitives), told, this.primitives);
    const seed = this.source.uniformBits(32);
    const points = told.members.map((entry) => entry.member);
    const draw = (size: number): Bytes => this.source.uniformBits(size);
    const keyShares = splitBytes(state.mask_secret, told.threshold, points, draw);
    const seedShares = splitBytes(seed, told.threshold, points, draw);
    const held = (member: number): HeldShares => {
      const [key_share, seed_share] = [keyShares.get(member), seedShares.get(member)];
      if (!key_share || !seed_share) throw new SecaggError(`member ${member} has no shares`);
      return { member, key_share, seed_share };
    };
    const boxes: Box[] = [];
    for (const entry of told.members) {
      if (entry.member === told.me) continue;
      const { key_share, seed_share } = held(entry.member);
      const [key] = await this.channel(state, context, entry, told.me);
      boxes.push({ member: entry.member, box: closeBox(key, told.me, entry.member, key_share, seed_share) });
    }
    const seed_commitment = await seedCommitment(context, told.me, seed, this.primitives);
    return { ...state, stage: "shares", roster: told, seed, own: held(told.me), shared: { seed_commitment, boxes } };
  }

  /** Between rounds 1 and 2: keep the shares, and complain of boxes that don't hold any. */
  async openBoxes(state: SumState, shares: Shares): Promise<SumState> {
    const [told, own] = [given(state.roster), given(state.own)];
    const context = await termsDigest(state.terms, this.primitives);
    const held = [own];
    const members: number[] = [];
    for (const box of shares.boxes) {
      const entry = told.members.find((each) => each.member === box.member);
      if (!entry || box.member === told.me)
        throw new SecaggError(`a box from member ${box.member}, who is not on the roster`);
      try {
        const [, key] = await this.channel(state, context, entry, told.me);
        const [key_share, seed_share] = openBox(key, box.member, told.me, box.box);
        held.push({ member: box.member, key_share, seed_share });
      } catch (broken) {
        if (!(broken instanceof SecaggError)) throw broken;
        members.push(box.member);
      }
    }
    const least = fewest(this.rules, state.terms, told);
    if (shares.boxes.length + 1 < least)
      throw new SecaggError(`${shares.boxes.length + 1} members shared their keys, at least ${least} are needed`);
    held.sort((one, other) => one.member - other.member);
    return { ...state, stage: "complaints", held, complaints: { members } };
  }

  /**
   * Round 2: add self mask and pair masks; the lower member adds, the higher takes away. To whoever lacks one of the
   * seeds the payload is uniform noise. It isn't paid for yet: charge, state and payload belong in one transaction.
   */
  async mask(state: SumState, sharers: Sharers, contribution: Contribution): Promise<MaskedVector> {
    const [told, seed] = [given(state.roster), given(state.seed)];
    const { terms } = state;
    const { vector, charge } = contribution;
    if (vector.length !== terms.length || bitsOf(vector) !== terms.bits)
      throw new RangeError(
        `vector: ${vector.length} of ${bitsOf(vector)} bits, the terms say ${terms.length} of ${terms.bits}`,
      );
    checkSharers(this.rules, terms, state.held, told, sharers);
    const context = await termsDigest(terms, this.primitives);
    const held = state.held.filter((one) => sharers.members.includes(one.member));
    const [plus, minus] = [[seed], [] as Bytes[]];
    for (const { member } of held) {
      const entry = told.members.find((each) => each.member === member);
      if (!entry || member === told.me) continue;
      const pair = await pairSeed(context, state.mask_secret, entry.keys.mask_key, [told.me, member], this.primitives);
      (member > told.me ? plus : minus).push(pair);
    }
    const payload = maskedBytes(vector, plus, minus);
    const masked_sha256 = hex(await this.primitives.sha256(payload));
    const after: SumState = { ...state, stage: "masked", held, masked_sha256 };
    return { state: after, payload, charge: { ...charge, payloadSha256: masked_sha256 } };
  }

  /** Round 3's first half, or round 4 where the server is trusted to follow the protocol. */
  hearSurvivors(state: SumState, survivors: Survivors): SumState {
    const told = given(state.roster);
    const shared = new Set(state.held.map((one) => one.member));
    const unknown = survivors.members.find((member) => !shared.has(member));
    if (unknown !== undefined)
      throw new SecaggError(`member ${unknown} is named a survivor and has not shared its keys`);
    if (!survivors.members.includes(told.me))
      throw new SecaggError("the server says that this device's vector is not in the sum");
    const least = fewest(this.rules, state.terms, told);
    if (survivors.members.length < least)
      throw new SecaggError(`${survivors.members.length} members survived, at least ${least} are needed`);
    const heard: SumState = { ...state, stage: "agree", survivors: survivors.members };
    return state.terms.mode === "active" ? heard : reveal(heard);
  }

  /** Round 3's second half: at least t members have signed the survivors that this device was told. */
  async hearAgreements(state: SumState, agreements: Agreements): Promise<SumState> {
    const told = given(state.roster);
    const context = await termsDigest(state.terms, this.primitives);
    const digest = await rosterDigest(told, this.primitives);
    const agreed = new Set([told.me]);
    for (const { member, signature } of agreements.signatures) {
      const entry = told.members.find((each) => each.member === member);
      if (!entry || !state.survivors.includes(member))
        throw new SecaggError(`member ${member} signed and is no survivor`);
      await checkAgreement(context, digest, state.survivors, entry.keys.verify_key, signature, this.primitives);
      agreed.add(member);
    }
    if (agreed.size < told.threshold)
      throw new SecaggError(`${agreed.size} members agreed on the survivors, the threshold is ${told.threshold}`);
    return reveal(state);
  }

  /** The keys (of boxes to, of boxes from) another member. */
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

/** Of one member either the share of the seed or that of the key is revealed, never both. */
function reveal(state: SumState): SumState {
  const alive = (one: HeldShares): boolean => state.survivors.includes(one.member);
  const seeds = state.held.filter(alive).map(({ member, seed_share }) => ({ member, share: seed_share }));
  const keys = state.held.filter((one) => !alive(one)).map(({ member, key_share }) => ({ member, share: key_share }));
  return { ...state, stage: "unmask", revealed: { seeds, keys } };
}

/** What a state of this stage has; a state that lacks it was not kept by this device. */
function given<T>(part: T | null): T {
  if (part === null) throw new SecaggError("the state of this sum is not whole");
  return part;
}
