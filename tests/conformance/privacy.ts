// The arithmetic of privacy: draws from given bits, codes, costs, the ledger.
import { BudgetSpent } from "../../web/device/errors";
import { affordable, nearest, RandomisedCode } from "../../web/device/privacy/mechanisms/code";
import { addNoiseShare, clipAndEncode, discreteGaussian } from "../../web/device/privacy/noise_share";
import {
  atMostExp,
  bernoulliExp,
  randomisedResponse,
  rational,
  systemNoise,
  uniformBelow,
} from "../../web/device/privacy/exact_samplers";
import { Ledger, type ChargeStore } from "../../web/device/privacy/accounting/ledger";
import { ceilingsOf, type Channel } from "../../web/device/privacy/accounting/limits";
import { clickSteps, parametersOf, possible, sumPrices } from "../../web/device/privacy/accounting/cost_of_sums";
import { composed, type ChargeGroup } from "../../web/device/privacy/accounting/composition";
import type { Charge } from "../../web/device/privacy/sealed";
import { privacySettings, type PrivacySettings } from "../../web/device/privacy/settings";
import { reportWorth } from "../../web/device/view_models/privacy";
import { epsilonOf, rhoOfSum, rhoWithin } from "../../web/device/protocol/concentrated";
import { readMessage } from "../../web/device/protocol/forms";
import { hex } from "../../web/device/protocol/primitives";
import { secureSum } from "../../web/device/protocol/protections";
import { codeReport } from "../../web/device/protocol/recall";
import { recallProtocol, type Codebook } from "../../web/device/protocol/releases";
import { FixedPoint } from "../../web/device/protocol/ring";
import { InterestReporter } from "../../web/device/reports/reporters";
import { ReportInput } from "../../web/device/privacy/reporter";
import { vectors } from "../../web/device/vectors";
import { GivenBits, unhex } from "./given";

/** The values drawn from the bits of a key, and how many bytes that took. */
function drawn(key: string, draw: (bits: GivenBits) => unknown): unknown {
  const bits = new GivenBits(unhex(key));
  const draws = draw(bits);
  return { draws, used: bits.used };
}

/** How often each value occurs. */
function counts(values: Iterable<number>): Record<string, number> {
  const found: Record<string, number> = {};
  for (const value of values) found[value] = (found[value] ?? 0) + 1;
  return found;
}

class ChargesInMemory implements ChargeStore {
  private kept: { at: number; charge: Charge }[] = [];

  transaction<T>(work: () => T): T {
    const before = [...this.kept];
    try {
      return work();
    } catch (refused) {
      this.kept = before;
      throw refused;
    }
  }

  append(at: number, charge: Charge): void {
    this.kept.push({ at, charge });
  }

  spent(channel: Channel, since: number): number {
    return this.sum(since, (charge) => (charge.channel === channel ? charge.epsilon : 0));
  }

  rhoAlone(since: number): number {
    return this.sum(since, (charge) => charge.parameters["rho_alone"] ?? 0);
  }

  charged(payloadSha256: string): Charge | undefined {
    return this.kept.find(({ charge }) => charge.payloadSha256 === payloadSha256)?.charge;
  }

  private sum(since: number, of: (charge: Charge) => number): number {
    return this.kept.reduce((all, { at, charge }) => all + (at >= since ? of(charge) : 0), 0);
  }
}

/** The outcome of each charge at its time, and what is left of each channel at the end. */
function spendAll(own: PrivacySettings, charges: readonly { at: number; charge: Charge }[]): unknown {
  let now = 0;
  const ledger = new Ledger(
    new ChargesInMemory(),
    () => ceilingsOf(own),
    () => now,
  );
  const outcomes = charges.map(({ at, charge }) => {
    now = at;
    try {
      ledger.spend(charge);
      return "spent";
    } catch (refused) {
      if (refused instanceof BudgetSpent) return [refused.channel, refused.wanted, refused.left, refused.lifetime];
      if (refused instanceof RangeError) return "refused";
      throw refused;
    }
  });
  return { outcomes, left: ["reports", "training", "counts"].map((channel) => ledger.left(channel)) };
}

const float32 = (digits: string): Float32Array => new Float32Array(unhex(digits).buffer);
type Fixed = { bits: number; fraction_bits: number; bound: number; contributors: number; headroom: number };

export const privacy = {
  report_worth: ([mode, size, epsilon, news]: [string, number, number, number]) => reportWorth(mode, size, epsilon, news),
  rational: (epsilon: number) => {
    try {
      const { numerator, denominator } = rational(epsilon);
      return [numerator, denominator];
    } catch (refused) {
      if (refused instanceof RangeError) return "refused";
      throw refused;
    }
  },
  uniform: ({ key, bound, n }: { key: string; bound: number; n: number }) =>
    drawn(key, (bits) => uniformBelow(bits, bound, n)),
  words_below: ({ words, bound, n }: { words: string; bound: number; n: number }) => {
    const stream = unhex(words);
    let used = 0;
    const source = { uniformBits: (size: number) => stream.slice(used, (used += size)) };
    const draws = uniformBelow(source, bound, n);
    return { draws, used };
  },
  bernoulli: ({ key, numerators, denominator }: { key: string; numerators: number[]; denominator: number }) =>
    drawn(key, (bits) => bernoulliExp(bits, numerators, denominator)),
  response: ({ key, truths, size, epsilon }: { key: string; truths: number[]; size: number; epsilon: number }) =>
    drawn(key, (bits) => randomisedResponse(bits, truths, size, epsilon)),
  gaussian: ({ key, sigma, size }: { key: string; sigma: number; size: number }) =>
    drawn(key, (bits) => Array.from(discreteGaussian(sigma, size, bits))),
  at_most_exp: ({ key, word, exponent }: { key: string; word: string; exponent: [string, string] }) =>
    drawn(key, (bits) => atMostExp(BigInt(word), [BigInt(exponent[0]), BigInt(exponent[1])], bits)),
  response_law: ({
    key,
    truth,
    size,
    epsilon,
    n,
  }: Record<"truth" | "size" | "epsilon" | "n", number> & { key: string }) =>
    counts(randomisedResponse(new GivenBits(unhex(key)), new Array<number>(n).fill(truth), size, epsilon)),
  gaussian_law: ({ key, sigma, n }: { key: string; sigma: number; n: number }) =>
    counts(discreteGaussian(sigma, n, new GivenBits(unhex(key)))),
  noisy: ({
    key,
    values,
    norm,
    sigma,
    fixed,
  }: {
    key: string;
    values: number[];
    norm: number;
    sigma: number;
    fixed: Fixed;
  }) => {
    const ring = new FixedPoint(fixed.bits, fixed.fraction_bits, fixed.bound, fixed.contributors, fixed.headroom);
    const code = clipAndEncode(Float64Array.from(values), norm, ring);
    const noise = addNoiseShare(code, sigma, new GivenBits(unhex(key)), fixed.bits);
    return [code.codes, noise].map((each) => hex(new Uint8Array(each.buffer)));
  },
  system: (n: number) => {
    const [one, other] = [systemNoise.uniformBits(n), systemNoise.uniformBits(n)];
    return { sizes: [one.length, other.length], same: hex(one) === hex(other), values: new Set(one).size };
  },

  nearest: ({ prototypes, user }: { prototypes: string; user: string }) => nearest(float32(prototypes), float32(user)),
  interest: (asked: { prototypes: string; clicks: string; labels: number[]; searched: string | null }) => {
    const prototypes = vectors(float32(asked.prototypes), 32);
    const reader = new ReportInput(vectors(float32(asked.clicks), 32), asked.labels, asked.searched ? float32(asked.searched) : null);
    const book = { size: 16, epsilon: 4, prototypes: { sha256: "ab".repeat(32), size_bytes: 9 } } as Codebook;
    const reporter = new InterestReporter(new RandomisedCode(16, 4), book, prototypes, "", "");
    return [reporter.meaning.mechanism, reporter.shown(reader)];
  },
  truth: ([size, epsilon]: [number, number]) => new RandomisedCode(size, epsilon).truth,
  affordable: ({ protocol, limit }: { protocol: string; limit: number }) => {
    const book = affordable(readMessage(recallProtocol, protocol), limit);
    return book && [book.size, book.epsilon];
  },
  report: ({ protocol, key, code }: { protocol: string; key: string; code: number }) => {
    const book = readMessage(recallProtocol, protocol).codebooks[0];
    if (!book) return null;
    const drawn = new RandomisedCode(book.size, book.epsilon).release(code, new GivenBits(unhex(key)));
    return codeReport.write(codeReport.make({ codebook: book.size, code: drawn }));
  },

  concentrated: ([steps, sigma, contributors, coordinates, delta]: [number, number, number, number, number]) => {
    const rho = rhoOfSum(steps, sigma, contributors, coordinates);
    return [rho, epsilonOf(rho, delta), coordinates % 5 ? 0 : rhoWithin(2, delta)];
  },
  prices: (g: {
    protection: string;
    survivors: number;
    coordinates: number;
    delta: number;
    click: [number, number];
  }) => {
    const sum = readMessage(secureSum, g.protection);
    const steps = clickSteps({ distance: g.click[0], coordinates: g.click[1] }, 2 ** -sum.fraction_bits);
    const prices = sumPrices(sum, g.survivors, g.coordinates, g.delta, steps);
    return { parameters: parametersOf(prices), epsilon: prices.epsilon, possible: possible(prices) };
  },
  composed: (groups: ChargeGroup[]) => composed(groups),
  ledger: ({ ceilings, charges }: { ceilings: unknown; charges: { at: number; charge: Charge }[] }) =>
    spendAll(privacySettings.read(ceilings), charges),
} as const;
