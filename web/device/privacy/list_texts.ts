// Requests for texts, made of nothing that clicks tell, or of a whole block of the pool.
import sentences from "../../../device_app/privacy/words.toml";
import { plural } from "../figures";
import { Prose } from "../prose";
import { BLOCK, type PoolBlock } from "../store/pool_codes";
import { BODIES_PER_REQUEST, type BodiesRequest, bodiesRequest } from "../wire/news";
import type { RecallAnswer } from "../wire/recall";
import { Sealed, free } from "./sealed";

const WORDS = new Prose(sentences);

/**
 * Ask for the texts of every candidate of an answer, in the answer's order: any choice among the candidates would come
 * from the reader's clicks. The request is a function of the server's own answer, so it's post-processing of a report
 * that was paid for: epsilon 0. Throws RangeError for an answer without candidates or with more than 1,000.
 */
export function sealReturned(answer: RecallAnswer): Sealed<BodiesRequest> {
  const request = wholeOf(answer);
  const words = WORDS.say("texts_of_list", { count: request.ids.length });
  return Sealed.closeJson(bodiesRequest, request, free("post_processing"), words);
}

/** The mechanism of what every device asks alike. */
export const LIST_OF_EVERYBODY = "public_list";

/** Ask for the texts of the list that every device gets, in its order: a function of a public list, epsilon 0. */
export function sealCommon(listed: RecallAnswer): Sealed<BodiesRequest> {
  const request = wholeOf(listed);
  const words = WORDS.say("texts_of_common", { stories: plural(request.ids.length, "story", "stories") });
  return Sealed.closeJson(bodiesRequest, request, free(LIST_OF_EVERYBODY), words);
}

/**
 * Ask for the texts of a whole block of the pool, one of which was opened after it was found on this device.
 *
 * Epsilon 0 is charged for the report that isn't made, and none is claimed for this: it tells that one of the block's
 * stories (neighbours by id, not by topic) was opened now, and not which. Blocks are cut alike on every device. A server
 * that fills the pool with news that nobody would open learns which was opened. Throws RangeError for a block of fewer
 * than BLOCK, or of more than can be asked for at once.
 */
export function sealBlock(block: PoolBlock): Sealed<BodiesRequest> {
  const distinct = new Set(block.ids).size;
  if (distinct < BLOCK || distinct > BODIES_PER_REQUEST)
    throw new RangeError(`the block has ${distinct} stories; texts are asked for ${BLOCK} to ${BODIES_PER_REQUEST}`);
  const words = WORDS.say("texts_of_block", { count: block.ids.length });
  return Sealed.closeJson(bodiesRequest, { ids: block.ids }, free("block"), words);
}

function wholeOf(answer: RecallAnswer): BodiesRequest {
  const ids = [...new Set(answer.candidates.map((card) => card.id))];
  if (!ids.length || ids.length > BODIES_PER_REQUEST)
    throw new RangeError(`the answer has ${ids.length} candidates; texts are asked for 1 to ${BODIES_PER_REQUEST}`);
  return { ids };
}
