// Publishers' pictures: the same shards for every device, so that no request reveals a story (defined in
// protocol/pictures.py). Pictures are validated without decoding them.
import { WireError, integer, list, messageBytes, readMessage, record, type Bytes, type ValueOf } from "./forms";
import { LIMITS } from "./bodies";
import { distinct, newsId } from "./ids";
import { blobRef } from "./releases";

export const [PICTURE_WIDTH, PICTURE_HEIGHT] = [480, 300];
/** Limit for a card's picture, whose width and height are fixed. */
export const PICTURE_LIMIT_BYTES = 16_384;
/** Limits for a picture in a text, which is shown whole. */
export const [TEXT_PICTURE_WIDTH, TEXT_PICTURE_HEIGHT] = [800, 2_400];
export const TEXT_PICTURE_LIMIT_BYTES = 98_304;
/** Most pictures of one text. */
const TEXT_PICTURES_LIMIT = LIMITS.pictures;
export const SHARD_PICTURES_LIMIT = 64;
export const SHARDS_LIMIT = 4_096;
export const HEAD_LIMIT_BYTES = 128 * SHARD_PICTURES_LIMIT;
export const SHARD_LIMIT_BYTES = 4 + HEAD_LIMIT_BYTES + SHARD_PICTURES_LIMIT * TEXT_PICTURE_LIMIT_BYTES;
/** Limit for all shards together. */
export const PICTURES_LIMIT_BYTES = 64 * 1024 * 1024;

/** Invalid picture or shard; names the field and the limit. */
export class PictureError extends Error {}

/** A story's picture. place: 0 for its card's, else from 1 the number of the picture in its text. */
export type Pictured = readonly [newsId: string, place: number, picture: Bytes];

/** The pictures of some stories, as `unpackPictures` reads them. */
export const pictureShard = record({ count: integer({ min: 1, max: SHARD_PICTURES_LIMIT }), pictures: blobRef });
export type PictureShard = ValueOf<typeof pictureShard>;

/** GET /v1/pictures, with the SHA-256 of exactly these bytes as ETag. */
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

type Entry = readonly [newsId: string, place: number, bytes: number];
const whole = integer();
/** An entry of the head: a list of an id, a place and a size. */
const entry = {
  read(value: unknown): Entry {
    if (!Array.isArray(value) || value.length !== 3) throw new WireError("must be three values");
    return [newsId.read(value[0]), whole.read(value[1]), whole.read(value[2])];
  },
  write: ([id, place, bytes]: Entry) => `[${newsId.write(id)},${whole.write(place)},${whole.write(bytes)}]`,
};

/** Unpacks and checks each story's picture. Throws PictureError for an invalid shard or another count. */
export function unpackPictures(blob: Bytes, count: number): Pictured[] {
  if (blob.length > SHARD_LIMIT_BYTES)
    throw new PictureError(`shard: ${blob.length} bytes, the limit is ${SHARD_LIMIT_BYTES}`);
  const length = number(blob.subarray(0, 4));
  if (blob.length < 4 || length > Math.min(HEAD_LIMIT_BYTES, blob.length - 4))
    throw new PictureError(`head: ${length} bytes, the limit is ${HEAD_LIMIT_BYTES}, and it must be whole`);
  const head = headOf(blob.subarray(4, 4 + length));
  if (head.length !== count) throw new PictureError(`head: ${head.length} pictures instead of the declared ${count}`);
  if (!distinct(head.map(([id, place]) => `${id} ${place}`))) throw new PictureError("head: must list each picture once");
  if (head.some(([, place]) => place < 0 || place > TEXT_PICTURES_LIMIT))
    throw new PictureError(`head: a place must be from 0 to ${TEXT_PICTURES_LIMIT}`);
  if (head.some(([, , bytes]) => bytes < 1 || bytes > TEXT_PICTURE_LIMIT_BYTES))
    throw new PictureError(`head: a size must be from 1 to ${TEXT_PICTURE_LIMIT_BYTES}`);
  if (4 + length + head.reduce((sum, [, , bytes]) => sum + bytes, 0) !== blob.length)
    throw new PictureError("shard: the sizes of its pictures don't add up to its own size");
  let at = 4 + length;
  return head.map(([id, place, bytes]) => [id, place, checkPicture(blob.slice(at, (at += bytes)), place)] as const);
}

const headForm = list(entry);

/** Reads the head in a single spelling only: a size of 1.0 would be an integer here, but not in Python. */
function headOf(text: Bytes): readonly Entry[] {
  const head = listed(text);
  const written = messageBytes(headForm, head);
  if (written.length !== text.length || written.some((byte, at) => byte !== text[at]))
    throw new PictureError("head: is not a list of ids, places and sizes in its shortest form");
  return head;
}

function listed(text: Bytes): readonly Entry[] {
  try {
    return readMessage(headForm, text);
  } catch (broken) {
    if (broken instanceof WireError) return [];
    throw broken;
  }
}

/**
 * Returns the content if it is a WebP file with one lossy still picture and nothing else: no metadata, animation or
 * transparency (RFC 9649, section 2.5; RFC 6386, section 9.1). A card's picture (place 0) has a fixed size; a text's
 * picture has a maximum size. Throws PictureError.
 */
export function checkPicture(content: Bytes, place = 0): Bytes {
  const limit = place ? TEXT_PICTURE_LIMIT_BYTES : PICTURE_LIMIT_BYTES;
  if (content.length > limit) throw new PictureError(`picture: ${content.length} bytes, the limit is ${limit}`);
  const letters = (from: number, to: number) => String.fromCharCode(...content.subarray(from, to));
  if (content.length < 30 || letters(0, 4) !== "RIFF" || letters(8, 16) !== "WEBPVP8 ")
    throw new PictureError("picture: is not a WebP file with one picture and nothing else");
  const [all, chunk] = [number(content.subarray(4, 8)), number(content.subarray(16, 20))];
  if (all !== content.length - 8 || chunk + (chunk % 2) !== content.length - 20)
    throw new PictureError("picture: its declared lengths don't match its bytes");
  if ((content[20] as number) & 1 || letters(23, 26) !== "\x9d\x01\x2a")
    throw new PictureError("picture: doesn't begin with a key frame");
  const [width, height] = pictureSize(content);
  if (place && !(width >= 1 && width <= TEXT_PICTURE_WIDTH && height >= 1 && height <= TEXT_PICTURE_HEIGHT))
    throw new PictureError(
      `picture: ${width} x ${height} pixels, at most ${TEXT_PICTURE_WIDTH} x ${TEXT_PICTURE_HEIGHT} are allowed`,
    );
  if (place) return content;
  if (width !== PICTURE_WIDTH || height !== PICTURE_HEIGHT)
    throw new PictureError(`picture: ${width} x ${height} pixels, it must be ${PICTURE_WIDTH} x ${PICTURE_HEIGHT}`);
  return content;
}

/** Width and height of a checked picture, in pixels. */
export function pictureSize(content: Uint8Array): readonly [width: number, height: number] {
  return [number(content.subarray(26, 28)), number(content.subarray(28, 30))];
}

/** A little-endian integer. */
function number(bytes: Uint8Array): number {
  return bytes.reduceRight((value, byte) => value * 256 + byte, 0);
}
