// A browser's device in a secure sum, one stage a question: its state goes in as JSON and comes out with the message to
// send.
import { systemNoise } from "../../web/device/privacy/exact_samplers";
import { sealedMessage } from "../../web/device/privacy/secagg/messages";
import { SumTransitions, beginSum, sumState, type SumState } from "../../web/device/privacy/secagg/transitions";
import { readMessage, type Bytes } from "../../web/device/protocol/forms";
import { choosePrimitives, hex } from "../../web/device/protocol/primitives";
import { ringVector } from "../../web/device/protocol/ring";
import * as wire from "../../web/device/protocol/secagg";
import { unhex } from "./given";

const primitives = await choosePrimitives();
const device = new SumTransitions({ directory: null, smallest: 2 }, primitives, systemNoise);

type Given = { state: string; reply: string; vector: string };

/** The message of the state's stage as hexadecimal digits, and the state. */
async function told(state: SumState, payload: Bytes | null = null): Promise<unknown> {
  const { payload: message } = await sealedMessage(state, payload, primitives);
  return { state: sumState.write(state), stage: state.stage, message: hex(message) };
}

export const secureSum = {
  sum_begins: (terms: string) => told(beginSum(readMessage(wire.sumTerms, terms), systemNoise)),
  sum_hears: async ({ state: kept, reply, vector }: Given) => {
    const state = readMessage(sumState, kept);
    try {
      if (state.stage === "keys") return await told(await device.share(state, readMessage(wire.roster, reply)));
      if (state.stage === "shares") return await told(await device.openBoxes(state, readMessage(wire.shares, reply)));
      if (state.stage === "masked") return await told(device.receiveSurvivors(state, readMessage(wire.survivors, reply)));
      if (state.stage === "agree")
        return await told(await device.receiveAgreements(state, readMessage(wire.agreements, reply)));
      const own = unhex(vector);
      const ring = ringVector((8 * own.length) / state.terms.bits, state.terms.bits);
      new Uint8Array(ring.buffer).set(own);
      const blank = { mechanism: "secure_sum", parameters: {}, epsilon: 1, delta: 0, payloadSha256: "" };
      const charge = { ...blank, channel: "training", subject: state.terms.round };
      const masked = await device.mask(state, readMessage(wire.sharers, reply), { vector: ring, charge });
      if (masked.charge.payloadSha256 !== masked.state.masked_sha256) throw new Error("the charge is of other bytes");
      return await told(masked.state, masked.payload);
    } catch (refused) {
      if (refused instanceof wire.SecaggError) return { refused: refused.message };
      throw refused;
    }
  },
} as const;
