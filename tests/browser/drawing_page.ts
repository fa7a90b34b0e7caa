// The draws of the browser's device, made with the browser's own generator; asked by test_random_draws.py.
import { discreteGaussian } from "../../web/device/privacy/noise_share";
import { randomisedResponse, systemNoise } from "../../web/device/privacy/exact_samplers";

function counts(values: Iterable<number>): Record<string, number> {
  const found: Record<string, number> = {};
  for (const value of values) found[value] = (found[value] ?? 0) + 1;
  return found;
}

const response = ({ truth, size, epsilon, n }: { truth: number; size: number; epsilon: number; n: number }) =>
  counts(randomisedResponse(systemNoise, new Array<number>(n).fill(truth), size, epsilon));
const gaussian = ({ sigma, n }: { sigma: number; n: number }) => counts(discreteGaussian(sigma, n, systemNoise));

Object.assign(globalThis, { response, gaussian });
