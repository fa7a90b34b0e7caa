// A browser's device in a secure sum, one stage a question: its state goes in as JSON and comes out with the message to
// send.
import { systemNoise } from "../../web/device/privacy/noise_sources";
import { type SumState, beginSum, keysOf, sumState } from "../../web/device/privacy/secagg/state";
import { SumTransitions } from "../../web/device/privacy/secagg/transitions";
import { readMessage } from "../../web/device/wire/forms";
import { signAgreement } from "../../web/device/wire/pairing";
import { choosePrimitives, hex } from "../../web/device/wire/primitives";
import { ringVector } from "../../web/device/wire/ring";
import * as wire from "../../web/device/wire/secagg";
import { unhex } from "./given";

const primitives = await choosePrimitives();
const device = new SumTransitions({ directory: null, smallest: 2 }, primitives, systemNoise);

type Given = { state: string; reply: string; vector: string };

/** The message of the state's stage, as hexadecimal digits, beside the state. */
async function told(state: SumState, payload: Uint8Array | null = null): Promise<unknown> {
  const message = payload ?? new TextEncoder().encode(await messageOf(state));
  return { state: sumState.write(state), stage: state.stage, message: hex(message) };
}

async function messageOf(state: SumState): Promise<string> {
  const { roster, shared, complaints, revealed } = state;
  if (state.stage === "keys") return wire.advertisedKeys.write(await keysOf(state, primitives));
  if (state.stage === "shares" && shared) return wire.sharedKeys.write(shared);
  if (state.stage === "complaints" && complaints) return wire.complaints.write(complaints);
  if (state.stage === "unmask" && revealed) return wire.revealedShares.write(revealed);
  if (!roster) throw new Error(`a state of stage ${state.stage} has a roster`);
  const context = await primitives.sha256(new TextEncoder().encode(wire.sumTerms.write(state.terms)));
  const signature = await signAgreement(context, roster, state.survivors, state.identity_secret, primitives);
  return wire.agreement.write({ signature });
}

export const secureSum = {
  sum_begins: (terms: string) => told(beginSum(readMessage(wire.sumTerms, terms), systemNoise)),
  sum_hears: async ({ state: kept, reply, vector }: Given) => {
    const state = readMessage(sumState, kept);
    try {
      if (state.stage === "keys") return await told(await device.share(state, readMessage(wire.roster, reply)));
      if (state.stage === "shares") return await told(await device.openBoxes(state, readMessage(wire.shares, reply)));
      if (state.stage === "masked") return await told(device.hearSurvivors(state, readMessage(wire.survivors, reply)));
      if (state.stage === "agree")
        return await told(await device.hearAgreements(state, readMessage(wire.agreements, reply)));
      const own = unhex(vector);
      const ring = ringVector((8 * own.length) / state.terms.bits, state.terms.bits);
      new Uint8Array(ring.buffer).set(own);
      const charges: string[] = [];
      const ledger = { spend: (charge: { payloadSha256: string }) => void charges.push(charge.payloadSha256) };
      const blank = { mechanism: "secure_sum", parameters: {}, epsilon: 1, delta: 0, payloadSha256: "" };
      const charge = { ...blank, channel: "training", subject: state.terms.round };
      const sharers = readMessage(wire.sharers, reply);
      const [after, payload] = await device.mask(state, sharers, { vector: ring, charge }, ledger);
      if (charges.join() !== after.masked_sha256) throw new Error("the vector was masked and not paid for");
      return await told(after, payload);
    } catch (refused) {
      if (refused instanceof wire.SecaggError) return { refused: refused.message };
      throw refused;
    }
  },
} as const;
