// Requests that contain nothing computed from clicks: texts of whole lists, check-ins, and polls of a secure sum.
import sentences from "../../../device_app/privacy/words.toml";
import { plural } from "../protocol/formatting";
import { SHORT_RELEASES } from "../protocol/ids";
import { BODIES_PER_REQUEST, type BodiesRequest, bodiesRequest } from "../protocol/news";
import type { RecallAnswer } from "../protocol/recall";
import { type CheckIn, type RoundOffer, checkIn } from "../protocol/rounds";
import { TextCatalogue } from "../protocol/text_catalogue";
import { BLOCK, type PoolBlock } from "../store/pool_codes";
import { JSON_TYPE, Sealed, free } from "./sealed";

const WORDS = new TextCatalogue(sentences);

/**
 * Seals a request for the texts of every candidate of an answer, in the answer's order: any selection would be based on
 * the reader's clicks. The request is a function of the server's answer, so it is post-processing of a report that was
 * paid for: epsilon 0. Throws RangeError for an answer without candidates or with more than 1,000.
 */
export function sealReturned(answer: RecallAnswer): Sealed<BodiesRequest> {
  const request = wholeOf(answer);
  const words = WORDS.say("texts_of_list", { count: request.ids.length });
  return Sealed.closeJson(bodiesRequest, request, free("post_processing"), words);
}

/** Mechanism of requests that are the same on every device. */
export const LIST_OF_EVERYBODY = "public_list";

/** Seals a request for the default list's texts, in its order: a function of a public list, epsilon 0. */
export function sealCommon(listed: RecallAnswer): Sealed<BodiesRequest> {
  const request = wholeOf(listed);
  const words = WORDS.say("texts_of_common", { stories: plural(request.ids.length, "story", "stories") });
  return Sealed.closeJson(bodiesRequest, request, free(LIST_OF_EVERYBODY), words);
}

/**
 * Seals a request for the texts of a whole block of the pool, one of whose stories was found on this device and opened.
 * Nothing is charged and no epsilon is claimed: the request reveals that one of the block's stories (neighbours by id,
 * not by topic) was opened now, but not which. Blocks are the same on every device. A server that fills the pool with
 * articles that nobody would open learns which was opened. Throws RangeError for a block of fewer than BLOCK, or of
 * more than one request may name.
 */
export function sealBlock(block: PoolBlock): Sealed<BodiesRequest> {
  const distinct = new Set(block.ids).size;
  if (distinct < BLOCK || distinct > BODIES_PER_REQUEST)
    throw new RangeError(`the block has ${distinct} stories; one request may ask for the texts of ${BLOCK} to ${BODIES_PER_REQUEST}`);
  const words = WORDS.say("texts_of_block", { count: block.ids.length });
  return Sealed.closeJson(bodiesRequest, { ids: block.ids }, free("block"), words);
}

function wholeOf(answer: RecallAnswer): BodiesRequest {
  const ids = [...new Set(answer.candidates.map((card) => card.id))];
  if (!ids.length || ids.length > BODIES_PER_REQUEST)
    throw new RangeError(`the answer has ${ids.length} candidates; one request may ask for the texts of 1 to ${BODIES_PER_REQUEST}`);
  return { ids };
}

/**
 * Seals a check-in: protocol version, the release's number modulo 16 and the tasks this program knows. Nothing in it is
 * computed from clicks: epsilon 0. A check-in reveals that the reader has switched on what it is for; no epsilon bounds
 * that.
 */
export function sealCheckIn(message: CheckIn): Sealed<CheckIn> {
  const charge = free("presence", `release ${message.release} modulo ${SHORT_RELEASES}`);
  return Sealed.closeJson(checkIn, message, charge, WORDS.say("check_in"));
}

/**
 * Seals a poll for the result of a secure sum's stage; it has no body, and its address contains the round's pseudonym.
 * Nothing in it is computed from clicks: epsilon 0. It does reveal that the device with this pseudonym is still
 * present.
 */
export function sealPoll(offer: RoundOffer, stage: string): Sealed<RoundOffer> {
  const charge = free("presence", offer.manifest.round);
  return Sealed.close(offer, new Uint8Array(0), JSON_TYPE, charge, WORDS.say("poll", { stage }));
}
