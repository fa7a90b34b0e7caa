// Parameters of models that stay on this device: a release's private ones.
import { type Tensor, load, pack } from "../wire/tensors";
import type { Database } from "./database";

export type Parameters = Readonly<Record<string, Tensor>>;

/**
 * By the model's name in its release. They outlive releases, but not the encoder in whose space they were learnt. Values
 * are read by ranking and training on this device; what leaves is made of a `SharedUpdate` alone, which refuses them.
 */
export class PrivateParameters {
  constructor(private readonly database: Database) {}

  /** By name; empty before the first step under this encoder. */
  get(model: string, encoder: string): Parameters {
    const found = "SELECT parameters FROM private_parameters WHERE model = ? AND encoder = ?";
    const row = this.database.one(found, [model, encoder]);
    return row ? Object.fromEntries(load(new Uint8Array(row["parameters"] as Uint8Array))) : {};
  }

  /** Keep them in place of those before, in the caller's transaction. Throws RangeError for values not finite. */
  keep(model: string, encoder: string, parameters: Parameters): void {
    for (const [name, tensor] of Object.entries(parameters))
      if (!(tensor.data instanceof Float32Array) || !tensor.data.every(Number.isFinite))
        throw new RangeError(`parameter ${name}: has values that are not finite`);
    this.database.run(
      `INSERT INTO private_parameters (model, encoder, parameters, steps) VALUES (?, ?, ?, 1)
       ON CONFLICT (model) DO UPDATE SET parameters = excluded.parameters,
         steps = iif(encoder = excluded.encoder, steps + 1, 1), encoder = excluded.encoder`,
      [model, encoder, pack(parameters)],
    );
  }
}
