// What a device asks of the backend about rounds, and hands in to them; answers are checked.
import { AnswerMalformed } from "../errors";
import type { Reply } from "../privacy/secagg/messages";
import { JSON_TYPE, type Sealed } from "../privacy/sealed";
import type { Form } from "../wire/forms";
import {
  type CheckIn,
  OPEN_ROUNDS,
  type OpenRounds,
  type RoundOffer,
  type RoundStatus,
  type SignedOffer,
  type UploadReceipt,
  openRounds,
  roundStatus,
  signedOffer,
  uploadReceipt,
} from "../wire/rounds";
import { agreements, roster, sharers, shares, survivors } from "../wire/secagg";
import { parsed } from "./answers";
import type { HttpClient } from "./http";
import { REQUESTS } from "./requests";

const ANSWERS: Readonly<Record<string, Form<unknown>>> = {
  keys: roster,
  shares,
  complaints: sharers,
  masked: survivors,
  agree: agreements,
};

/** Each call throws BackendUnreachable, BackendRefused or AnswerMalformed. */
export class RoundsUplink {
  constructor(private readonly client: HttpClient) {}

  /** The rounds under way, oldest first; a server of an earlier version tells one, whatever is accepted. */
  async openRounds(): Promise<OpenRounds> {
    const answer = await this.client.get("/v1/rounds/current", {
      words: REQUESTS.say("current_round"),
      purpose: "progress",
      accept: `${OPEN_ROUNDS}, ${JSON_TYPE}`,
    });
    if (answer.status === 204) return { rounds: [] };
    if ((answer.headers.get("content-type") ?? "").startsWith(OPEN_ROUNDS))
      return parsed(openRounds, answer.body, "open rounds");
    return { rounds: [parsed(roundStatus, answer.body, "current round")] };
  }

  /** How a round stands; the same for everybody. */
  async roundStatus(round: string): Promise<RoundStatus> {
    const words = REQUESTS.say("round_status", { round });
    const answer = await this.client.get(`/v1/rounds/${round}`, { words, purpose: "progress" });
    return parsed(roundStatus, answer.body, "round status");
  }

  /** A round to take part in, not yet verified, or null: not now. */
  async checkIn(sealed: Sealed<CheckIn>): Promise<SignedOffer | null> {
    const answer = await this.client.deliver(sealed, "/v1/rounds/check-in", { purpose: "training" });
    return answer.status === 204 ? null : parsed(signedOffer, answer.body, "check-in");
  }

  /** Hand in a message of a secure sum; the same bytes again get the same receipt. Checks the receipt's hash. */
  async sumMessage(offer: RoundOffer, stage: string, sealed: Sealed<unknown>): Promise<UploadReceipt> {
    const answer = await this.client.deliver(sealed, stagePath(offer, stage), { purpose: "training", method: "PUT" });
    const receipt = parsed(uploadReceipt, answer.body, "upload");
    if (receipt.sha256 !== sealed.sha256 || receipt.round !== offer.manifest.round)
      throw new AnswerMalformed("upload", "its receipt is for other bytes or another round");
    return receipt;
  }

  /** What a stage came to for this device, or null while it isn't closed. */
  async sumAnswer(sealed: Sealed<RoundOffer>, stage: string): Promise<Reply | null> {
    const path = stagePath(sealed.message, stage);
    const answer = await this.client.deliver(sealed, path, { purpose: "training", method: "GET" });
    const form = ANSWERS[stage];
    if (answer.status === 204) return null;
    if (!form) throw new RangeError(`stage ${stage} of a sum has no answer`);
    return { stage, told: parsed(form, answer.body, `stage ${stage}`) } as Reply;
  }
}

/** Where the messages of a secure sum go, and their answers come from. */
function stagePath(offer: RoundOffer, stage: string): string {
  return `/v1/rounds/${offer.manifest.round}/${stage}/${offer.pseudonym}`;
}
