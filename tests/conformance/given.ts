// What tests hand to the browser's end instead of chance and of files: bits from a key, and bytes as hexadecimal
// digits.
import type { NoiseSource } from "../../web/device/privacy/exact_samplers";
import { expand } from "../../web/device/protocol/ring";
import type { Bytes } from "../../web/device/protocol/forms";
import type { Folder } from "../../web/device/store/blobs";

/** The ChaCha20 stream of a key: the same bits as `SeededNoise` of the Python device. */
export class GivenBits implements NoiseSource {
  private stream: Uint8Array = new Uint8Array(0);
  private taken = 0;
  constructor(private readonly key: Bytes) {}

  uniformBits(n: number): Bytes {
    const end = this.taken + n;
    if (end > this.stream.length) this.stream = expand(this.key, Math.max(4_096, 2 * end), 8) as Uint8Array;
    const drawn = this.stream.slice(this.taken, end);
    this.taken = end;
    return new Uint8Array(drawn);
  }

  /** How many bytes were requested. */
  get used(): number {
    return this.taken;
  }
}

export function unhex(digits: string): Bytes {
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16));
}

export function base64(content: Uint8Array): string {
  let binary = "";
  for (const byte of content) binary += String.fromCharCode(byte);
  return btoa(binary);
}

export function unbase64(text: string): Bytes {
  const characters = atob(text);
  const found = new Uint8Array(characters.length);
  for (let place = 0; place < found.length; place++) found[place] = characters.charCodeAt(place);
  return found;
}

/** A folder of blobs in memory. */
export class MemoryFolder implements Folder {
  private readonly files = new Map<string, { content: Bytes; at: number }>();

  async read(name: string): Promise<Bytes | null> {
    return this.files.get(name)?.content ?? null;
  }

  async write(name: string, content: Bytes): Promise<void> {
    this.files.set(name, { content, at: Date.now() });
  }

  async remove(name: string): Promise<void> {
    this.files.delete(name);
  }

  async names(): Promise<ReadonlyMap<string, number>> {
    return new Map([...this.files].map(([name, { at }]) => [name, at]));
  }
}
