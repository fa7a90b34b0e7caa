// Requests made of nothing that clicks tell: check-ins, and polls of a sum.
import sentences from "../../../device_app/privacy/words.toml";
import { Prose } from "../prose";
import { SHORT_RELEASES } from "../wire/ids";
import { type CheckIn, type RoundOffer, checkIn } from "../wire/rounds";
import { JSON_TYPE, Sealed, free } from "./sealed";

const WORDS = new Prose(sentences);

/**
 * A check-in: protocol version, the release's number modulo 16 and the tasks this program knows. Nothing in it is
 * computed from clicks: epsilon 0. That a device checks in at all shows that its reader switched training on and has
 * clicks enough to train; no number bounds that.
 */
export function sealCheckIn(message: CheckIn): Sealed<CheckIn> {
  const charge = free("presence", `release ${message.release} modulo ${SHORT_RELEASES}`);
  return Sealed.closeJson(checkIn, message, charge, WORDS.say("check_in"));
}

/**
 * A look at what a stage of a secure sum came to; it has no body, its address holds the round's pseudonym. Nothing in it
 * is computed from clicks: epsilon 0. That the device of this pseudonym is still there shows.
 */
export function sealPoll(offer: RoundOffer, stage: string): Sealed<RoundOffer> {
  const charge = free("presence", offer.manifest.round);
  return Sealed.close(offer, new Uint8Array(0), JSON_TYPE, charge, WORDS.say("poll", { stage }));
}
