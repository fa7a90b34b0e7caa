// The only envelope that may leave the device. Only this package can seal one; `uplink` accepts nothing else.
import { sha256 } from "@noble/hashes/sha2.js";

import { messageBytes, type Bytes, type Form } from "../protocol/forms";
import { hex } from "../protocol/primitives";

export const JSON_TYPE = "application/json";
export const OCTETS = "application/octet-stream";

/**
 * The cost of a data release, before it is in the ledger.
 *
 * channel: 'reports', 'training' or 'counts'; or 'none' for what is derived from nothing private (or from what was
 * already paid for), which costs 0 and isn't recorded. epsilon and delta are of one whole release, never per
 * coordinate; parameters are the mechanism's numbers; subject names a release or a round.
 */
export interface Charge {
  readonly channel: string;
  readonly mechanism: string;
  readonly parameters: Readonly<Record<string, number>>;
  readonly epsilon: number;
  readonly delta: number;
  readonly payloadSha256: string;
  readonly subject: string;
}

/** Returns a charge of 0, for a message made from nothing private, or from what was paid for. */
export function free(mechanism: string, subject = "", payloadSha256 = ""): Charge {
  return { channel: "none", mechanism, parameters: {}, epsilon: 0, delta: 0, payloadSha256, subject };
}

/**
 * A message that has been paid for, with the exact bytes to send.
 *
 * words: describes it to the reader. charge: what sealing cost now; 0 if the same bytes had been paid for before. Only
 * modules of privacy/ can make an instance: the constructor is private, and a contract test checks that nothing outside
 * this folder names `close`. This protects against mistakes, not against code that deliberately bypasses it.
 */
export class Sealed<M> {
  /** Hash of the payload, as in the ledger. */
  readonly sha256: string;

  private constructor(
    readonly message: M,
    readonly payload: Bytes,
    readonly contentType: string,
    readonly charge: Charge,
    readonly words: string,
  ) {
    this.sha256 = digest(payload);
  }

  /** Seals a message; called only by modules of this package, after `Ledger.spend` if something is charged. */
  static close<M>(message: M, payload: Bytes, contentType: string, charge: Charge, words: string): Sealed<M> {
    return new Sealed(message, payload, contentType, charge, words);
  }

  /** Seals a message as JSON in its wire form. */
  static closeJson<M>(form: Form<M>, message: M, charge: Charge, words: string): Sealed<M> {
    return Sealed.close(message, messageBytes(form, message), JSON_TYPE, charge, words);
  }
}

/** SHA-256 in hex, by which the ledger identifies what was paid for. Synchronous, as a transaction requires. */
export function digest(payload: Uint8Array): string {
  return hex(sha256(payload));
}
