// What of a training update may be shared at all; private parameters stop here, before any clipping or noise.
import type { Values } from "../wire/layout";
import type { ModelEntry } from "../wire/releases";

export const PREFIX = "g.";
/** Last names of parameters that this program never shares, whatever a release declares. */
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
 * Tensors none of which is the gradient `g.<parameter>` of a private parameter of `model`; checked when it's made. A
 * release could misname such a parameter; those in ALWAYS_PRIVATE are held back under any release.
 */
export class SharedUpdate {
  constructor(
    readonly tensors: UpdateTensors,
    readonly model: ModelEntry | null,
  ) {
    for (const name of tensors.keys()) if (isPrivate(name, model)) throw new PrivateParameterShared(name);
  }
}

/** What a device gives that has nothing to give: zeros of these shapes, by name. It depends on no reader. */
export function zeroUpdate(shapes: Shapes, model: ModelEntry | null): SharedUpdate {
  const zeros = [...shapes].map(([name, shape]): [string, UpdateTensor] => [
    name,
    { shape, values: new Float32Array(elements(shape)) },
  ]);
  return new SharedUpdate(new Map(zeros), model);
}

/** An update in two: what may be shared, and the gradients of private parameters, by parameter, that stay here. */
export function divide(tensors: UpdateTensors, model: ModelEntry | null): readonly [SharedUpdate, UpdateTensors] {
  const shared = [...tensors].filter(([name]) => !isPrivate(name, model));
  const own = [...tensors].filter(([name]) => isPrivate(name, model));
  const byParameter = own.map(([name, each]): [string, UpdateTensor] => [parameterOf(name), each]);
  return [new SharedUpdate(new Map(shared), model), new Map(byParameter)];
}

/** Whether `g.<parameter>` belongs to a parameter that this device keeps for itself. */
export function isPrivate(tensor: string, model: ModelEntry | null): boolean {
  const parameter = parameterOf(tensor);
  return (model?.private ?? []).includes(parameter) || ALWAYS_PRIVATE.has(parameter.split(".").at(-1) ?? "");
}

/** How many numbers a tensor of this shape has. */
export function elements(shape: readonly number[]): number {
  return shape.reduce((all, axis) => all * axis, 1);
}

function parameterOf(tensor: string): string {
  return tensor.startsWith(PREFIX) ? tensor.slice(PREFIX.length) : tensor;
}
