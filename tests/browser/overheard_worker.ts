// The browser's device, and in the clear what it gives to secure sums: read beside it, so that a measurement knows its
// oracle. mixed_round.py serves it in the place of the worker's script.
import { SumTransitions } from "../../web/device/privacy/secagg/transitions";
import { hex } from "../../web/device/protocol/primitives";
import "../../web/device/worker";

const given: string[] = [];
const mask = SumTransitions.prototype.mask;
SumTransitions.prototype.mask = function (state, sharers, contribution) {
  const { vector } = contribution;
  given.push(hex(new Uint8Array(vector.buffer, vector.byteOffset, vector.byteLength)));
  return mask.call(this, state, sharers, contribution);
};
Object.assign(globalThis, { given });
