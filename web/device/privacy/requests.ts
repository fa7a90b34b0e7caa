// Requests that contain nothing computed from clicks: check-ins, and polls of a secure sum.
import sentences from "../../../device_app/privacy/words.toml";
import { TextCatalogue } from "../protocol/text_catalogue";
import { SHORT_RELEASES } from "../protocol/ids";
import { type CheckIn, type RoundOffer, checkIn } from "../protocol/rounds";
import { JSON_TYPE, Sealed, free } from "./sealed";

const WORDS = new TextCatalogue(sentences);

/**
 * Seals a check-in: protocol version, the release's number modulo 16 and the tasks this program knows. Nothing in it is
 * computed from clicks: epsilon 0. That a device checks in at all shows that its reader switched training on and has
 * enough clicks to train; no number bounds that.
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
