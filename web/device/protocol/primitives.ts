// X25519, Ed25519, HKDF and SHA-256: the browser's own if it has them, otherwise @noble's. None is our own code.
import { ed25519, x25519 } from "@noble/curves/ed25519.js";
import { hkdf } from "@noble/hashes/hkdf.js";
import { sha256 } from "@noble/hashes/sha2.js";
import { hexToBytes } from "@noble/hashes/utils.js";
import type { Bytes } from "./forms";

/** Keys and secrets are raw bytes, 32 each; signatures 64. */
export interface Primitives {
  /** Where the implementations of the two curves come from. */
  readonly source: "web" | "noble";
  sha256(content: Bytes): Promise<Bytes>;
  /** HKDF with SHA-256 and no salt (RFC 5869). */
  hkdf(secret: Bytes, info: Bytes, size: number): Promise<Bytes>;
  /** The public half of an X25519 key. */
  agreementKey(secret: Bytes): Bytes;
  /** The shared secret; null for a key of low order (RFC 7748, 6.1). */
  agree(secret: Bytes, theirs: Bytes): Promise<Bytes | null>;
  /** The public half of an Ed25519 key. */
  signingKey(secret: Bytes): Bytes;
  sign(secret: Bytes, content: Bytes): Promise<Bytes>;
  verify(key: Bytes, signature: Bytes, content: Bytes): Promise<boolean>;
}

/** Copies into its own buffer, as WebCrypto and the wire types require. */
function owned(content: Uint8Array): Bytes {
  return new Uint8Array(content);
}

/** All primitives in JavaScript: for browsers without the two curves, and for pages outside a secure context. */
export const noblePrimitives: Primitives = {
  source: "noble",
  sha256: async (content) => owned(sha256(content)),
  hkdf: async (secret, info, size) => owned(hkdf(sha256, secret, undefined, info, size)),
  agreementKey: (secret) => owned(x25519.getPublicKey(secret)),
  agree: async (secret, theirs) => {
    try {
      return owned(x25519.getSharedSecret(secret, theirs));
    } catch {
      return null; // the only errors: a key of low order, or of another length
    }
  },
  signingKey: (secret) => owned(ed25519.getPublicKey(secret)),
  sign: async (secret, content) => owned(ed25519.sign(content, secret)),
  verify: async (key, signature, content) => {
    try {
      return ed25519.verify(signature, content, key, { zip215: false });
    } catch {
      return false;
    }
  },
};

/** The PKCS #8 prefix of a raw private key (RFC 8410); byte 11 is set to the curve's identifier. */
const PKCS8 = [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x00, 0x04, 0x22, 0x04, 0x20];
const CURVES = { X25519: 0x6e, Ed25519: 0x70 } as const;

async function privateKey(curve: keyof typeof CURVES, secret: Bytes, use: KeyUsage): Promise<CryptoKey> {
  const wrapped = new Uint8Array([...PKCS8, ...secret]);
  wrapped[11] = CURVES[curve];
  return crypto.subtle.importKey("pkcs8", wrapped, curve, false, [use]);
}

/**
 * The browser's primitives. Public keys are computed by @noble: WebCrypto exports them only for keys that it generated.
 */
export const webPrimitives: Primitives = {
  source: "web",
  sha256: async (content) => new Uint8Array(await crypto.subtle.digest("SHA-256", content)),
  hkdf: async (secret, info, size) => {
    const key = await crypto.subtle.importKey("raw", secret, "HKDF", false, ["deriveBits"]);
    const how = { name: "HKDF", hash: "SHA-256", salt: new Uint8Array(0), info };
    return new Uint8Array(await crypto.subtle.deriveBits(how, key, 8 * size));
  },
  agreementKey: noblePrimitives.agreementKey,
  agree: async (secret, theirs) => {
    const mine = await privateKey("X25519", secret, "deriveBits");
    const other = await crypto.subtle.importKey("raw", theirs, "X25519", false, []);
    try {
      const shared = new Uint8Array(await crypto.subtle.deriveBits({ name: "X25519", public: other }, mine, 256));
      return shared.some((byte) => byte !== 0) ? shared : null;
    } catch (refused) {
      if (refused instanceof DOMException && refused.name === "OperationError") return null;
      throw refused;
    }
  },
  signingKey: noblePrimitives.signingKey,
  sign: async (secret, content) => {
    const key = await privateKey("Ed25519", secret, "sign");
    return new Uint8Array(await crypto.subtle.sign("Ed25519", key, content));
  },
  verify: async (key, signature, content) => {
    try {
      const imported = await crypto.subtle.importKey("raw", key, "Ed25519", false, ["verify"]);
      return await crypto.subtle.verify("Ed25519", imported, signature, content);
    } catch (refused) {
      if (refused instanceof DOMException) return false; // not a valid key
      throw refused;
    }
  },
};

/**
 * RFC 7748, 5.2: a secret key, another's public key, their shared secret. RFC 8032, 7.1, test 1: a key, and its
 * signature of an empty message.
 */
const AGREED = [
  "a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4",
  "e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c",
  "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552",
] as const;
const SIGNED = [
  "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
  "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
] as const;

/**
 * Selects the browser's primitives if it has both curves, otherwise JavaScript's; checked once against published test
 * vectors.
 */
export async function choosePrimitives(): Promise<Primitives> {
  const given = (digits: string): Bytes => owned(hexToBytes(digits));
  try {
    const [agreed, trusted] = await Promise.all([
      webPrimitives.agree(given(AGREED[0]), given(AGREED[1])),
      webPrimitives.verify(given(SIGNED[0]), given(SIGNED[1]), new Uint8Array(0)),
    ]);
    return agreed && hex(agreed) === AGREED[2] && trusted ? webPrimitives : noblePrimitives;
  } catch {
    return noblePrimitives; // no `crypto.subtle` outside a secure context, or a missing curve
  }
}

/**
 * SHA-256 in hex, computed by the browser off this thread. Only pages in a secure context have it; only those have
 * files.
 */
export async function contentHash(content: Bytes): Promise<string> {
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", content)));
}

/** Lower-case hexadecimal digits. */
export function hex(content: Uint8Array): string {
  return Array.from(content, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Concatenates byte arrays. */
export function joined(...parts: readonly Uint8Array[]): Bytes {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
