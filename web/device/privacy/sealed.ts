// The one envelope that may leave the device. Only this package can close it; `uplink` takes nothing else.
import { sha256 } from "@noble/hashes/sha2.js";

import { type Form, messageBytes } from "../wire/forms";
import { hex } from "../wire/primitives";
import type { Bytes } from "../wire/values";

export const JSON_TYPE = "application/json";
export const OCTETS = "application/octet-stream";

/**
 * What a release of data costs, before it's in the ledger.
 *
 * channel: 'reports', 'training' or 'counts', or 'none' for what is derived from nothing private (or from what was paid
 * for already), which costs 0 and isn't written down. epsilon and delta are of one whole release, never per coordinate;
 * parameters are the mechanism's numbers; subject names a release or a round.
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

/** A charge of nothing: of a mechanism whose message is made of nothing private, or of what was paid for. */
export function free(mechanism: string, subject = "", payloadSha256 = ""): Charge {
  return { channel: "none", mechanism, parameters: {}, epsilon: 0, delta: 0, payloadSha256, subject };
}

/**
 * A message that has been paid for, with the exact bytes to send.
 *
 * words say to the reader what it is. charge is what sealing it cost now: 0 when the same bytes had been paid before.
 * An instance exists only if a module of privacy/ made it: the constructor is private, and a contract test holds that
 * nothing outside this folder names `close`. It protects against mistakes; code that means to break it isn't stopped.
 */
export class Sealed<M> {
  /** Hash of the payload, as the ledger knows it. */
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

  /** Seal; called by the modules of this package only, after `Ledger.spend` where something is charged. */
  static close<M>(message: M, payload: Bytes, contentType: string, charge: Charge, words: string): Sealed<M> {
    return new Sealed(message, payload, contentType, charge, words);
  }

  /** The same with the message's bytes as they go over the wire. */
  static closeJson<M>(form: Form<M>, message: M, charge: Charge, words: string): Sealed<M> {
    return Sealed.close(message, messageBytes(form, message), JSON_TYPE, charge, words);
  }
}

/** SHA-256 in hex, by which the ledger knows what was paid for. At once, as a transaction needs it. */
export function digest(payload: Uint8Array): string {
  return hex(sha256(payload));
}
