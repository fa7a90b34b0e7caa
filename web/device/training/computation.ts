// Computes what a round asks of this device: the task on the release's model, from the samples that the task may use.
// Also finds the reader's group for each ranker with groups, as a round would.
import { AnswerMalformed, BackendRefused, BackendUnreachable, NotEligible, ReleaseRefused } from "../errors";
import type { NoiseSource } from "../privacy/exact_samplers";
import type { OneClick } from "../privacy/accounting/cost_of_sums";
import { divide, type Shapes, type SharedUpdate, type UpdateTensors, zeroUpdate } from "../privacy/private_parameters";
import type { ComputedUpdate } from "../privacy/protections/protection";
import type { BlobRef, ModelEntry } from "../protocol/releases";
import { MATERIALS_LIMIT_BYTES, type RoundManifest } from "../protocol/rounds";
import type { Tensor } from "../protocol/tensors";
import type { Bytes } from "../protocol/forms";
import { GroupChoice } from "../ranking/groups";
import type { PrivateParameters } from "../store/preferences";
import { gradientsOf, noGradients, paramsOf, stepped, type BoundGraph, type GradientFn, type GraphLoader, type Params, type TrainingRelease } from "./gradients";
import { NOBODYS_READING, NO_SAMPLES, ReaderSamples, drawsFrom, type Draws, type ReadingMark, type SampleSource, type StoredSamples } from "./samples";
import { scoreGraphOf } from "./tasks/group_gradient";
import type { Tasks } from "./tasks/registry";
import { ZEROS, type LocalTask, type TaskInputs, type TaskKind, type Update } from "./tasks/task";

/**
 * The group chosen for the reader in one ranker, counted from 0, and the number of groups. Sensitive: it reveals what
 * the reader reads, and is shown only to the reader.
 */
export interface OwnGroup {
  readonly ranker: string;
  readonly group: number;
  readonly groups: number;
}

/** Returns the group in each ranker with groups. Throws ReleaseRefused. */
export async function ownGroups(release: TrainingRelease, reading: StoredSamples, load: GraphLoader): Promise<OwnGroup[]> {
  const { models, encoder } = release.manifest;
  const found: OwnGroup[] = [];
  for (const [ranker, { groups: offered, features }] of models) {
    if (!offered) continue;
    const groups = await release.groups(ranker);
    const graph = load(await release.graph(ranker, "score"), new Map(), []);
    try {
      const [now, next] = [scoreGraphOf(graph, groups.vectors), scoreGraphOf(graph, groups.nextVectors)];
      const group = await new GroupChoice(groups, now, next, features.length).inForce(reading.clicked(encoder));
      found.push({ ranker, group, groups: groups.size });
    } finally {
      await graph.release();
    }
  }
  return found;
}

const GRADIENT = "gradient";
/** A device whose reader has fewer clicks takes part like any other, but contributes zeros. */
export const ENOUGH_CLICKS = 5;

/** Makes computations from the device's side of their inputs; release and round come per call. */
export class ComputationFactory {
  /**
   * reading: the reader's feeds and clicks. own: values of the parameters kept on this device. materials: fetches what
   * a round's task needs besides the release. features: names that this program computes. source: randomness for
   * sampling. pagesFirst: resolves when no page waits for an answer; each slice of a computation waits for it.
   */
  constructor(
    readonly reading: StoredSamples,
    readonly own: PrivateParameters,
    readonly materials: (ref: BlobRef) => Promise<Bytes>,
    readonly load: GraphLoader,
    readonly features: ReadonlySet<string>,
    readonly tasks: Tasks,
    private readonly source: NoiseSource,
    private readonly clock: () => number,
    readonly pagesFirst: () => Promise<void> = async () => undefined,
  ) {}

  /** Makes the computation of one round on one release. */
  async make(release: TrainingRelease, manifest: RoundManifest, kind: TaskKind): Promise<Computation> {
    const material = (name: string): Promise<Bytes> => this.material(manifest, name);
    const loaded: BoundGraph[] = [];
    const graph = async (model: string, purpose: string): Promise<BoundGraph> => {
      const privates = release.manifest.models.get(model)?.private ?? [];
      const found = this.load(await release.graph(model, purpose), this.ownOf(release, model), privates);
      loaded.push(found);
      return found;
    };
    const inputs: TaskInputs = { release, manifest, reading: NOBODYS_READING, material, graph, now: this.clock() };
    const task = await kind.make(inputs);
    const params: Params = manifest.model === null ? new Map() : paramsOf(await release.weights(manifest.model));
    return new Computation(this, inputs, kind, task, params, loaded, await kind.oneClick(inputs));
  }

  /** Models of the release that the task can run on; null for a task without a model. */
  trainable(release: TrainingRelease, kind: TaskKind): readonly string[] | null {
    const { role, graph } = kind;
    if (role === null) return null;
    return [...release.manifest.models]
      .filter(([, entry]) => entry.role === role && (graph === null || entry.graphs.has(graph)))
      .filter(([, entry]) => entry.features.every((feature) => this.features.has(feature)))
      .map(([name]) => name);
  }

  draws(): Draws {
    return drawsFrom(this.source);
  }

  /** A model's private parameters, as learned here. */
  ownOf(release: TrainingRelease, model: string): Params {
    return paramsOf(Object.entries(this.own.get(model, release.manifest.encoder)));
  }

  /**
   * Fetches a data item of the round. Throws NotEligible, which declines the round, if it isn't available for any
   * reason.
   */
  private async material(manifest: RoundManifest, name: string): Promise<Bytes> {
    const sizeBytes = [...manifest.materials.values()].reduce((all, ref) => all + ref.size_bytes, 0);
    if (sizeBytes > MATERIALS_LIMIT_BYTES)
      throw new NotEligible(`its data have ${sizeBytes} bytes, the limit is ${MATERIALS_LIMIT_BYTES}.`);
    const ref = manifest.materials.get(name);
    if (!ref) throw new NotEligible(`the round includes no '${name}'.`);
    try {
      return await this.materials(ref);
    } catch (trouble) {
      const known = [BackendUnreachable, BackendRefused, AnswerMalformed, ReleaseRefused];
      if (known.some((kind) => trouble instanceof kind))
        throw new NotEligible(`'${name}' of the round can't be downloaded: ${(trouble as Error).message}`);
      throw trouble;
    }
  }
}

/**
 * One round's task on one release: the form of its update, and the update. The form depends only on release and round:
 * nothing about the reader is read before `update`, which starts when the device has joined.
 */
export class Computation {
  private marks: ReadingMark[] = [];
  private alsoUnchanged = (): boolean => true;

  constructor(
    private readonly factory: ComputationFactory,
    private readonly inputs: TaskInputs,
    private readonly kind: TaskKind,
    private readonly task: LocalTask,
    private readonly params: Params,
    private readonly loaded: readonly BoundGraph[],
    /** How far replacing one click by another moves the update; null: as far as replacing everything. */
    readonly oneClick: OneClick | null,
  ) {}

  /** The round's id. */
  get round(): string {
    return this.inputs.manifest.round;
  }

  /** Shapes of an update's tensors. */
  shapes(): Shapes {
    return this.task.shapes(this.params);
  }

  /** Returns whether all gathered clicks and counts still exist, unmuted and not yet contributed elsewhere. */
  unchanged(): boolean {
    return this.marks.every((mark) => this.factory.reading.holds(mark)) && this.alsoUnchanged();
  }

  /**
   * The task's update, without what stays private; `nothing` if it can't be computed.
   *
   * Graphs, weights, vectors and the round's data come from the server, which could choose them so that the computation
   * fails, gives non-finite values, or other tensors than declared, for certain clicks only. None of this is visible in
   * what is sent or charged: such a device contributes zeros, in the same form, with the same noise, at the same cost.
   * So does one whose reader has too few clicks, or none that can be used for the task. The time of sending doesn't
   * depend on the computing time (`DueUpdates`). `paid` throws NotEligible, so that nothing is charged, if clicks were
   * deleted or muted since they were gathered.
   */
  async update(): Promise<ComputedUpdate> {
    const { factory, kind } = this;
    try {
      this.marks = [factory.reading.mark()];
      const source = this.gathered();
      const few = source instanceof ReaderSamples && !source.available;
      if (few || (kind.needsSamples && (this.marks.at(-1)?.clicks ?? 0) < ENOUGH_CLICKS)) return this.nothing();
      try {
        await factory.pagesFirst();
        const task = await kind.make({ ...this.inputs, reading: factory.reading });
        const update = await task.run(this.params, source, await this.gradients(), factory.draws());
        const [shared, own] = this.divided(update, zeroUpdate(this.shapes(), this.entry));
        this.alsoUnchanged = update.unchanged ?? this.alsoUnchanged;
        return this.computed(shared, update.samples, () => this.paid(update, own));
      } catch (fault) {
        // whatever the error: what a release can cause must not show in what leaves
        console.warn(`the update for ${this.round} could not be computed and counts as zeros:`, fault);
        return this.nothing();
      }
    } finally {
      for (const graph of this.loaded) await graph.release();
    }
  }

  /**
   * Zeros in the update's form, independent of the reader's data: for a device with nothing to contribute, or whose
   * update isn't ready when due.
   */
  nothing(): ComputedUpdate {
    return this.computed(zeroUpdate(this.shapes(), this.entry), ZEROS.samples, () => undefined);
  }

  private computed(shared: SharedUpdate, samples: number, paid: () => void): ComputedUpdate {
    return { shared, samples, channel: this.kind.channel, oneClick: this.oneClick, paid };
  }

  private get entry(): ModelEntry | null {
    const { manifest, release } = this.inputs;
    return manifest.model === null ? null : (release.manifest.models.get(manifest.model) ?? null);
  }

  /**
   * Splits an update into what may be shared and the gradients that stay here. Throws RangeError for an update that
   * doesn't match its declaration.
   */
  private divided(update: Update, like: SharedUpdate): readonly [SharedUpdate, UpdateTensors] {
    const [shared, own] = divide(update.tensors, this.entry);
    const shapesOf = (tensors: UpdateTensors): string =>
      [...tensors]
        .map(([name, { shape }]) => `${name} [${shape.join()}]`)
        .sort()
        .join("; ");
    if (shapesOf(shared.tensors) !== shapesOf(like.tensors))
      throw new RangeError(`task ${this.inputs.manifest.task}: computed ${shapesOf(shared.tensors)}, which differs from what it declared`);
    for (const [name, { values }] of update.tensors)
      if (!values.every(Number.isFinite)) throw new RangeError(`tensor ${name}: has values that are not finite`);
    return [shared, own];
  }

  /** The samples that the task may use, perhaps none. */
  private gathered(): SampleSource {
    const { factory, inputs, kind } = this;
    if (!kind.needsSamples) return NO_SAMPLES;
    const samples = factory.reading.samples(inputs.release.manifest.encoder);
    this.marks.push(samples.data.mark);
    const share = inputs.manifest.held_out;
    return kind.heldOut ? samples.heldOut(share) : samples.withoutHeldOut(share);
  }

  private async gradients(): Promise<GradientFn> {
    const { model } = this.inputs.manifest;
    if (this.kind.graph !== GRADIENT || model === null) return noGradients;
    const compute = gradientsOf(await this.inputs.graph(model, GRADIENT));
    return async (params, batch) => {
      await this.factory.pagesFirst();
      return compute(params, batch);
    };
  }

  /**
   * In the paying transaction: checks once more what the update was computed from, runs the task's own part, and takes
   * the step on private parameters.
   */
  private paid(update: Update, gradients: UpdateTensors): void {
    const { factory } = this;
    const { release, manifest } = this.inputs;
    if (!this.unchanged())
      throw new NotEligible("something that the update was computed from has been deleted or muted.");
    update.paid?.();
    if (manifest.model === null || !gradients.size) return;
    const moved = stepped(factory.ownOf(release, manifest.model), gradients);
    if (![...moved.values()].every(({ values }) => values.every(Number.isFinite))) return;
    const tensors = [...moved].map(([name, { shape, values }]): [string, Tensor] => [
      name,
      { dtype: "float32", shape, data: values },
    ]);
    factory.own.keep(manifest.model, release.manifest.encoder, Object.fromEntries(tensors));
  }
}
