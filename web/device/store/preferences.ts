// Small choices of the reader by name (privacy switches, chosen sections, names of interests), and private model
// parameters, which stay on this device.
import { load, pack, type Tensor } from "../protocol/tensors";
import type { Database } from "./database";

/** The reader's changes to the privacy switches. */
export const PRIVACY_CHANGES = "privacy";
/** When another device's export was last imported. */
export const TAKEN_OVER = "taken_over";
/** Encoder and ids of the last answer to a report, and whether the report was blank. */
export const LAST_ANSWER = "last_answer";
/** False: stories of publishers that rarely publish are not ranked higher. */
export const RARE_FIRST = "rare_first";
/** Whether the reader hides publishers' pictures. */
export const PICTURES_HIDDEN = "pictures_hidden";

/** JSON values by name. */
export class Preferences {
  constructor(private readonly database: Database) {}

  /** The value; null if never set. */
  get(name: string): unknown {
    const found = this.database.one<{ value: string }>("SELECT value FROM preference WHERE name = ?", [name]);
    return found ? JSON.parse(found.value) : null;
  }

  /** Stores a JSON value; null deletes it. */
  set(name: string, value: unknown): void {
    this.database.transaction(() => {
      if (value === null) this.database.run("DELETE FROM preference WHERE name = ?", [name]);
      else {
        const kept = JSON.stringify(value);
        this.database.run("INSERT OR REPLACE INTO preference (name, value) VALUES (?, ?)", [name, kept]);
      }
    });
  }
}

export type Parameters = Readonly<Record<string, Tensor>>;

/**
 * Private parameters by model name. They are kept across releases, but not across a change of the encoder that they
 * were trained with. Ranking and training on this device read them; what leaves is made only from a `SharedUpdate`,
 * which rejects them.
 */
export class PrivateParameters {
  constructor(private readonly database: Database) {}

  /** Returns parameters by name; empty before the first step under this encoder. */
  get(model: string, encoder: string): Parameters {
    const found = "SELECT parameters FROM private_parameters WHERE model = ? AND encoder = ?";
    const row = this.database.one(found, [model, encoder]);
    return row ? Object.fromEntries(load(new Uint8Array(row["parameters"] as Uint8Array))) : {};
  }

  /** Replaces the parameters, in the caller's transaction. Throws RangeError for values that aren't finite. */
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
