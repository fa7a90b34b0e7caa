// The whole pool as product-quantised codes, for recall on the device; the requests reveal nothing about the reader.
import { WireError, integer, list, readMessage, real, record, text, type Bytes, type ValueOf } from "./forms";
import { distinct, releaseId, shardName } from "./ids";
import { type NewsCard, newsCard } from "./news";
import { BLOB_LIMIT_BYTES, blobRef } from "./releases";
import { type Tensor, TensorError, asFloat32, unpack } from "./tensors";

export const CENTROIDS = 256;
export const SHARD_NEWS_LIMIT = 5_000;
export const POOL_NEWS_LIMIT = 500_000;
export const CARDS_LIMIT_BYTES = 32 * 1024 * 1024;

/** One publishing day (or part of it): a blob of codes and one of cards, in the same order. */
export const codeShard = record({
  name: shardName,
  count: integer({ min: 1, max: SHARD_NEWS_LIMIT }),
  codes: blobRef,
  cards: blobRef,
});

/** GET /v1/releases/{number}/codes. */
export const poolCodes = record(
  {
    release: releaseId,
    version: integer({ min: 0 }),
    encoder: text({ max: 80 }),
    subspaces: integer({ min: 1, max: 256 }),
    sharpness: real({ above: 0, max: 1_000 }),
    book: blobRef,
    priors: blobRef,
    shards: list(codeShard, { max: 2_000 }),
  },
  (pool) => {
    if (!distinct(pool.shards.map((shard) => shard.name))) throw new WireError("shards must have distinct names");
    if (newsInPool(pool) > POOL_NEWS_LIMIT)
      throw new WireError(`shards contain ${newsInPool(pool)} articles, the limit is ${POOL_NEWS_LIMIT}`);
  },
);
export type PoolCodes = ValueOf<typeof poolCodes>;

/** n: number of articles in the whole pool. */
export function newsInPool(pool: { readonly shards: readonly { readonly count: number }[] }): number {
  return pool.shards.reduce((count, shard) => count + shard.count, 0);
}

/** Codes [count, subspaces] of one shard. Throws TensorError. */
export function unpackCodes(blob: Bytes, count: number, subspaces: number): Uint8Array {
  return blobTensor(blob, "codes", { dtype: "uint8", shape: [count, subspaces] }).data as Uint8Array;
}

/** Centroids [M, 256, D / M]. Throws TensorError, also if M doesn't divide D. */
export function unpackBook(blob: Bytes, subspaces: number, dimensions: number): Float32Array {
  if (dimensions % subspaces)
    throw new TensorError(`tensor centroids: ${subspaces} subspaces do not divide ${dimensions} dimensions`);
  const shape = [subspaces, CENTROIDS, dimensions / subspaces];
  return asFloat32(blobTensor(blob, "centroids", { dtype: "float32", shape }));
}

/** Log popularity [count] of the whole pool. Throws TensorError. */
export function unpackPriors(blob: Bytes, count: number): Float32Array {
  return asFloat32(blobTensor(blob, "priors", { dtype: "float16", shape: [count] }));
}

function blobTensor(
  blob: Bytes,
  name: string,
  spec: { dtype: "uint8" | "float16" | "float32"; shape: number[] },
): Tensor {
  return unpack(blob, { [name]: spec }, BLOB_LIMIT_BYTES)[name] as Tensor;
}

/** The cards of one shard. Throws TensorError if the blob isn't such a list, is too long, or has another count. */
export async function unpackCards(blob: Bytes, count: number): Promise<readonly NewsCard[]> {
  let cards: readonly NewsCard[];
  try {
    cards = readMessage(list(newsCard), await inflated(blob));
  } catch (broken) {
    throw broken instanceof WireError ? new TensorError(`cards: ${broken.message}`) : broken;
  }
  if (cards.length !== count) throw new TensorError(`cards: ${cards.length} of them instead of the declared ${count}`);
  return cards;
}

/** Inflates zlib data of up to CARDS_LIMIT_BYTES. */
async function inflated(blob: Bytes): Promise<Bytes> {
  const reader = new Blob([blob]).stream().pipeThrough(new DecompressionStream("deflate")).getReader();
  const chunks: Uint8Array[] = [];
  let size = 0;
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) {
      size += next.value.length;
      if (size > CARDS_LIMIT_BYTES) break;
      chunks.push(next.value);
    }
  } catch (broken) {
    throw new TensorError(`cards: not compressed JSON: ${broken instanceof Error ? broken.message : String(broken)}`);
  }
  if (size > CARDS_LIMIT_BYTES) {
    await reader.cancel();
    throw new TensorError(`cards: more than ${CARDS_LIMIT_BYTES} bytes unpacked`);
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}
