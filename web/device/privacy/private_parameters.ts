// Separates what may be shared of a training update from private parameters, before clipping and noise.
import type { Values } from "../protocol/ring";
import type { ModelEntry } from "../protocol/releases";

export const PREFIX = "g.";
/** Last name components of parameters that are never shared, even if a release declares them shared. */
const ALWAYS_PRIVATE: ReadonlySet<string> = new Set(["user_embedding"]);

/** A tensor of an update: float32 in C order. */
export interface UpdateTensor extends Values {
  readonly values: Float32Array<ArrayBuffer>;
}
export type UpdateTensors = ReadonlyMap<string, UpdateTensor>;
export type Shapes = ReadonlyMap<string, readonly number[]>;

/** A private parameter was about to be shared; the message names it. */
export class PrivateParameterShared extends RangeError {
  constructor(readonly tensor: string) {
    super(`tensor ${tensor}: a private parameter stays on this device`);
  }
}

/**
 * Tensors none of which is the gradient `g.<parameter>` of a private parameter of `model`; checked on construction. A
 * release could fail to mark a parameter as private; those in ALWAYS_PRIVATE are kept under any release.
 */
export class SharedUpdate {
  constructor(
    readonly tensors: UpdateTensors,
    readonly model: ModelEntry | null,
  ) {
    for (const name of tensors.keys()) if (isPrivate(name, model)) throw new PrivateParameterShared(name);
  }
}

/** The update of a device with no data: zeros of these shapes, by name. It doesn't depend on the reader. */
export function zeroUpdate(shapes: Shapes, model: ModelEntry | null): SharedUpdate {
  const zeros = [...shapes].map(([name, shape]): [string, UpdateTensor] => [
    name,
    { shape, values: new Float32Array(elements(shape)) },
  ]);
  return new SharedUpdate(new Map(zeros), model);
}

/** Splits an update into what may be shared and the gradients of private parameters, which stay here. */
export function divide(tensors: UpdateTensors, model: ModelEntry | null): readonly [SharedUpdate, UpdateTensors] {
  const shared = [...tensors].filter(([name]) => !isPrivate(name, model));
  const own = [...tensors].filter(([name]) => isPrivate(name, model));
  const byParameter = own.map(([name, each]): [string, UpdateTensor] => [parameterOf(name), each]);
  return [new SharedUpdate(new Map(shared), model), new Map(byParameter)];
}

/** Whether `g.<parameter>` belongs to a parameter that this device keeps private. */
export function isPrivate(tensor: string, model: ModelEntry | null): boolean {
  const parameter = parameterOf(tensor);
  return (model?.private ?? []).includes(parameter) || ALWAYS_PRIVATE.has(parameter.split(".").at(-1) ?? "");
}

/** The number of elements of a tensor of this shape. */
export function elements(shape: readonly number[]): number {
  return shape.reduce((all, axis) => all * axis, 1);
}

function parameterOf(tensor: string): string {
  return tensor.startsWith(PREFIX) ? tensor.slice(PREFIX.length) : tensor;
}
