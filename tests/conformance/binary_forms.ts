// The parts of the wire that are not JSON: tensors, ring elements, masks, shares, and results of keys.
import { PictureError, unpackPictures } from "../../web/device/protocol/pictures";
import { unpackBook, unpackCards, unpackCodes, unpackPriors } from "../../web/device/protocol/broadcast";
import {
  fingerprint,
  follow,
  headAfter,
  keyHistory,
  readable,
  releaseChain,
  RotationRefused,
} from "../../web/device/protocol/chain";
import { readMessage } from "../../web/device/protocol/forms";
import {
  expand,
  FixedPoint,
  maskedBytes,
  RingError,
  ringVector,
  UpdateLayout,
  type RingVector,
} from "../../web/device/protocol/ring";
import { advertisedKeys, chooseNeighbourhood, roster, SecaggError, sumTerms } from "../../web/device/protocol/secagg";
import { newsCard } from "../../web/device/protocol/news";
import * as pairing from "../../web/device/protocol/pairing";
import {
  choosePrimitives,
  hex,
  noblePrimitives,
  webPrimitives,
  type Primitives,
} from "../../web/device/protocol/primitives";
import { SignatureRefused, signedManifest, verifyRelease } from "../../web/device/protocol/releases";
import { signedOffer, verifyOffer } from "../../web/device/protocol/rounds";
import { SharingError, splitBytes } from "../../web/device/protocol/shamir";
import {
  asFloat32,
  dequantise,
  pack,
  TensorError,
  unpack,
  type DType,
  type TensorData,
  type TensorSpec,
} from "../../web/device/protocol/tensors";
import { GivenBits, unhex } from "./given";

const REFUSALS = [PictureError, TensorError, RingError, SharingError, SecaggError, SignatureRefused, RotationRefused, RangeError];

/** Returns the result, or the message of an error of the wire. */
async function orRefused(make: () => unknown): Promise<unknown> {
  try {
    return await make();
  } catch (refused) {
    if (REFUSALS.some((kind) => refused instanceof kind)) return { refused: (refused as Error).message };
    throw refused;
  }
}

function digits(vector: ArrayBufferView): string {
  return hex(new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength));
}

const ARRAYS: Readonly<Record<DType, (buffer: ArrayBuffer) => TensorData>> = {
  float32: (buffer) => new Float32Array(buffer),
  float16: (buffer) => new Uint16Array(buffer),
  int8: (buffer) => new Int8Array(buffer),
  uint8: (buffer) => new Uint8Array(buffer),
  int32: (buffer) => new Int32Array(buffer),
  int64: (buffer) => new BigInt64Array(buffer),
};

function ring(bits: number, content: string): RingVector {
  const bytes = unhex(content);
  const vector = ringVector((8 * bytes.length) / bits, bits);
  new Uint8Array(vector.buffer).set(bytes);
  return vector;
}

const CURVES: Readonly<Record<string, Primitives>> = { noble: noblePrimitives, web: webPrimitives };
const primitivesOf = (name: string): Primitives => CURVES[name] ?? noblePrimitives;

type Fixed = { bits: number; fraction_bits: number; bound: number; contributors: number; headroom: number };
const fixedPoint = (f: Fixed): FixedPoint =>
  new FixedPoint(f.bits, f.fraction_bits, f.bound, f.contributors, f.headroom);

export const binary = {
  pack: (tensors: Record<string, { dtype: DType; shape: number[]; data: string }>) =>
    hex(
      pack(
        Object.fromEntries(
          Object.entries(tensors).map(([name, each]) => [
            name,
            { ...each, data: ARRAYS[each.dtype](unhex(each.data).buffer) },
          ]),
        ),
      ),
    ),
  unpack: ({ blob, specs, limit }: { blob: string; specs: Record<string, TensorSpec>; limit: number }) =>
    orRefused(() =>
      Object.fromEntries(
        Object.entries(unpack(unhex(blob), specs, limit)).map(([name, each]) => [name, digits(each.data)]),
      ),
    ),
  halves: (bits: string) =>
    digits(
      asFloat32({
        dtype: "float16",
        shape: [bits.length / 4],
        data: ARRAYS.float16(unhex(bits).buffer) as Uint16Array<ArrayBuffer>,
      }),
    ),
  dequantise: ({ codes, scales }: { codes: string; scales: string }) =>
    digits(
      dequantise(ARRAYS.int8(unhex(codes).buffer) as Int8Array, ARRAYS.float32(unhex(scales).buffer) as Float32Array),
    ),
  pool: async ({
    codes,
    book,
    priors,
    cards,
    count,
    subspaces,
    dimensions,
  }: {
    codes: string;
    book: string;
    priors: string;
    cards: string;
    count: number;
    subspaces: number;
    dimensions: number;
  }) => ({
    codes: digits(unpackCodes(unhex(codes), count, subspaces)),
    book: digits(unpackBook(unhex(book), subspaces, dimensions)),
    priors: digits(unpackPriors(unhex(priors), count)),
    cards: (await unpackCards(unhex(cards), count)).map((card) => newsCard.write(card)),
  }),
  cards: ({ cards, count }: { cards: string; count: number }) =>
    orRefused(async () => (await unpackCards(unhex(cards), count)).length),

  pictures: ({ blob, count }: { blob: string; count: number }) =>
    orRefused(() => unpackPictures(unhex(blob), count).map(([id, place, picture]) => [id, place, digits(picture)])),

  encode: ({ fixed, values }: { fixed: Fixed; values: number[] }) =>
    orRefused(() => digits(fixedPoint(fixed).encode(values))),
  decode: ({ fixed, total }: { fixed: Fixed; total: string }) =>
    digits(fixedPoint(fixed).decode(ring(fixed.bits, total))),
  layout: ({
    fixed,
    update,
    samples,
    limit,
  }: {
    fixed: Fixed;
    update: Record<string, { shape: number[]; values: number[] }>;
    samples: number;
    limit: number;
  }) =>
    orRefused(() => {
      const shapes = new Map(Object.entries(update).map(([name, { shape }]) => [name, shape]));
      return digits(
        new UpdateLayout(shapes, fixedPoint(fixed), limit).encode(new Map(Object.entries(update)), samples),
      );
    }),
  expand: ({ seed, length, bits }: { seed: string; length: number; bits: number }) =>
    digits(expand(unhex(seed), length, bits)),
  masked: ({ vector, bits, plus, minus }: { vector: string; bits: number; plus: string[]; minus: string[] }) =>
    hex(maskedBytes(ring(bits, vector), plus.map(unhex), minus.map(unhex))),

  split: ({ secret, threshold, points, key }: { secret: string; threshold: number; points: number[]; key: string }) =>
    orRefused(() => {
      const bits = new GivenBits(unhex(key));
      return [...splitBytes(unhex(secret), threshold, points, (size) => bits.uniformBits(size))].map(
        ([point, share]) => [point, hex(share)],
      );
    }),
  neighbourhood: (members: number) => chooseNeighbourhood(members),

  chosen: async () => (await choosePrimitives()).source,
  hkdf: async ({ curves, secret, info, size }: { curves: string; secret: string; info: string; size: number }) =>
    hex(await primitivesOf(curves).hkdf(unhex(secret), unhex(info), size)),
  agree: async ({ curves, secret, theirs }: { curves: string; secret: string; theirs: string }) => {
    const primitives = primitivesOf(curves);
    const shared = await primitives.agree(unhex(secret), unhex(theirs));
    return { mine: hex(primitives.agreementKey(unhex(secret))), shared: shared && hex(shared) };
  },
  sign: async ({ curves, secret, content }: { curves: string; secret: string; content: string }) => {
    const primitives = primitivesOf(curves);
    return {
      key: hex(primitives.signingKey(unhex(secret))),
      signature: hex(await primitives.sign(unhex(secret), unhex(content))),
      sha256: hex(await primitives.sha256(unhex(content))),
    };
  },
  verify: ({ curves, key, signature, content }: { curves: string; key: string; signature: string; content: string }) =>
    primitivesOf(curves).verify(unhex(key), unhex(signature), unhex(content)),
  pairing: async (g: {
    curves: string;
    context: string;
    identity: string;
    mine: string;
    encryption: string;
    mask: string;
    theirs: string;
    members: [number, number];
    roster: string;
    terms: string;
    survivors: number[];
    key_share: string;
    seed_share: string;
  }) => {
    const primitives = primitivesOf(g.curves);
    const context = unhex(g.context);
    const told = readMessage(roster, g.roster);
    const keys = await pairing.signKeys(context, unhex(g.identity), unhex(g.encryption), unhex(g.mask), primitives);
    await pairing.checkKeys(context, keys, primitives);
    const [up, down] = await pairing.channelKeys(context, unhex(g.mine), unhex(g.theirs), g.members, primitives);
    const closed = pairing.closeBox(up, ...g.members, unhex(g.key_share), unhex(g.seed_share));
    const signature = await pairing.signAgreement(context, told, g.survivors, unhex(g.identity), primitives);
    await pairing.checkAgreement(
      context,
      await pairing.rosterDigest(told, primitives),
      g.survivors,
      keys.verify_key,
      signature,
      primitives,
    );
    return {
      keys: advertisedKeys.write(keys),
      seed: hex(await pairing.pairSeed(context, unhex(g.mine), unhex(g.theirs), g.members, primitives)),
      channels: [hex(up), hex(down)],
      box: hex(closed),
      opened: pairing.openBox(up, ...g.members, closed).map(hex),
      commitment: hex(await pairing.seedCommitment(context, g.members[0], unhex(g.mine), primitives)),
      terms: hex(await pairing.termsDigest(readMessage(sumTerms, g.terms), primitives)),
      roster: hex(await pairing.rosterDigest(told, primitives)),
      agreement: hex(signature),
    };
  },
  open_box: ({ key, sender, receiver, box }: { key: string; sender: number; receiver: number; box: string }) =>
    orRefused(() => pairing.openBox(unhex(key), sender, receiver, unhex(box)).map(hex)),

  head: async (text: string) => {
    const head = await headAfter(null, readMessage(releaseChain, text).releases, noblePrimitives);
    return [head, head && readable(head)];
  },
  release: ({ signed, key }: { signed: string; key: string }) =>
    orRefused(
      async () =>
        (await verifyRelease(readMessage(signedManifest, signed), unhex(key), await choosePrimitives())).release,
    ),
  offer: ({ signed, key }: { signed: string; key: string }) =>
    orRefused(
      async () =>
        (await verifyOffer(readMessage(signedOffer, signed), unhex(key), await choosePrimitives())).manifest.round,
    ),
  follow: ({ history, key, after }: { history: string; key: string; after: number }) =>
    orRefused(async () => {
      const [now, last] = await follow(readMessage(keyHistory, history), unhex(key), after, await choosePrimitives());
      return [hex(now), last, await fingerprint(now, noblePrimitives)];
    }),
} as const;
