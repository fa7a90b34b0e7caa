// Publishers' pictures: the same shards for every device, so that no request for one tells of a story
// (device_app/wire/pictures.py is the definition). What a picture may be is checked without decoding it.
import { type ValueOf, WireError, list, messageBytes, readMessage, record } from "./forms";
import { distinct, newsId } from "./ids";
import { blobRef } from "./releases";
import { type Bytes, integer } from "./values";

export const [PICTURE_WIDTH, PICTURE_HEIGHT] = [480, 300];
export const PICTURE_LIMIT_BYTES = 16_384;
export const SHARD_PICTURES_LIMIT = 64;
export const SHARDS_LIMIT = 4_096;
export const HEAD_LIMIT_BYTES = 128 * SHARD_PICTURES_LIMIT;
export const SHARD_LIMIT_BYTES = 4 + HEAD_LIMIT_BYTES + SHARD_PICTURES_LIMIT * PICTURE_LIMIT_BYTES;
/** Of all shards together. */
export const PICTURES_LIMIT_BYTES = 32 * 1024 * 1024;

/** What should be a picture, or a shard of them, isn't; names the field and the limit. */
export class PictureError extends Error {}

/** A story's id and its picture. */
export type Pictured = readonly [newsId: string, picture: Bytes];

/** Some stories' pictures, as `unpackPictures` reads them. */
export const pictureShard = record({ count: integer({ min: 1, max: SHARD_PICTURES_LIMIT }), pictures: blobRef });
export type PictureShard = ValueOf<typeof pictureShard>;

/** GET /v1/pictures, with an ETag that is the SHA-256 of these very bytes. */
export const pictureList = record({ shards: list(pictureShard, { max: SHARDS_LIMIT }) }, ({ shards }) => {
  const refs = shards.map((shard) => shard.pictures);
  if (!distinct(refs.map((ref) => ref.sha256))) throw new WireError("shards must have distinct hashes");
  if (refs.some((ref) => ref.size_bytes > SHARD_LIMIT_BYTES))
    throw new WireError(`a shard has more than ${SHARD_LIMIT_BYTES} bytes`);
  const bytes = refs.reduce((sum, ref) => sum + ref.size_bytes, 0);
  if (bytes > PICTURES_LIMIT_BYTES)
    throw new WireError(`shards have ${bytes} bytes, the limit is ${PICTURES_LIMIT_BYTES}`);
});
export type PictureList = ValueOf<typeof pictureList>;

const size = integer();
/** A head's entry: a list of an id and a size. */
const entry = {
  read(value: unknown): readonly [string, number] {
    if (!Array.isArray(value) || value.length !== 2) throw new WireError("must be a pair");
    return [newsId.read(value[0]), size.read(value[1])];
  },
  write: ([id, bytes]: readonly [string, number]) => `[${newsId.write(id)},${size.write(bytes)}]`,
};

/** Each story's picture, checked. Throws PictureError for a shard that is anything else, or of another count. */
export function unpackPictures(blob: Bytes, count: number): Pictured[] {
  if (blob.length > SHARD_LIMIT_BYTES)
    throw new PictureError(`shard: ${blob.length} bytes, the limit is ${SHARD_LIMIT_BYTES}`);
  const length = number(blob.subarray(0, 4));
  if (blob.length < 4 || length > Math.min(HEAD_LIMIT_BYTES, blob.length - 4))
    throw new PictureError(`head: ${length} bytes, the limit is ${HEAD_LIMIT_BYTES}, and it must be whole`);
  const head = headOf(blob.subarray(4, 4 + length));
  if (head.length !== count) throw new PictureError(`head: ${head.length} pictures, declared were ${count}`);
  if (!distinct(head.map(([id]) => id))) throw new PictureError("head: each story once");
  if (head.some(([, bytes]) => bytes < 1 || bytes > PICTURE_LIMIT_BYTES))
    throw new PictureError(`head: a size is from 1 to ${PICTURE_LIMIT_BYTES}`);
  if (4 + length + head.reduce((sum, [, bytes]) => sum + bytes, 0) !== blob.length)
    throw new PictureError("shard: the sizes of its pictures don't add up to its own");
  let at = 4 + length;
  return head.map(([id, bytes]) => [id, checkPicture(blob.slice(at, (at += bytes)))] as const);
}

const headForm = list(entry);

/** Written in one way only: a size of 1.0 would be a whole number here, and none to Python. */
function headOf(text: Bytes): readonly (readonly [string, number])[] {
  const head = listed(text);
  const written = messageBytes(headForm, head);
  if (written.length !== text.length || written.some((byte, at) => byte !== text[at]))
    throw new PictureError("head: is no list of ids and sizes in its shortest form");
  return head;
}

function listed(text: Bytes): readonly (readonly [string, number])[] {
  try {
    return readMessage(headForm, text);
  } catch (broken) {
    if (broken instanceof WireError) return [];
    throw broken;
  }
}

/**
 * The content itself, if it is a WebP file that holds one lossy still picture of the one size and nothing else: no
 * metadata, no animation, no transparency (RFC 9649, section 2.5; RFC 6386, section 9.1). Throws PictureError.
 */
export function checkPicture(content: Bytes): Bytes {
  if (content.length > PICTURE_LIMIT_BYTES)
    throw new PictureError(`picture: ${content.length} bytes, the limit is ${PICTURE_LIMIT_BYTES}`);
  const letters = (from: number, to: number) => String.fromCharCode(...content.subarray(from, to));
  if (content.length < 30 || letters(0, 4) !== "RIFF" || letters(8, 16) !== "WEBPVP8 ")
    throw new PictureError("picture: is no WebP with one picture and nothing else");
  const [whole, chunk] = [number(content.subarray(4, 8)), number(content.subarray(16, 20))];
  if (whole !== content.length - 8 || chunk + (chunk % 2) !== content.length - 20)
    throw new PictureError("picture: its lengths don't fit");
  if ((content[20] as number) & 1 || letters(23, 26) !== "\x9d\x01\x2a")
    throw new PictureError("picture: doesn't begin with a key frame");
  const [width, height] = [number(content.subarray(26, 28)), number(content.subarray(28, 30))];
  if (width !== PICTURE_WIDTH || height !== PICTURE_HEIGHT)
    throw new PictureError(`picture: ${width} x ${height} pixels, it must be ${PICTURE_WIDTH} x ${PICTURE_HEIGHT}`);
  return content;
}

/** A whole number, the lowest byte first. */
function number(bytes: Uint8Array): number {
  return bytes.reduceRight((value, byte) => value * 256 + byte, 0);
}
