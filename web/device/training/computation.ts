// What a round asks this device to compute: the task on the release's model, from the samples the task may use.
import { AnswerMalformed, BackendRefused, BackendUnreachable, NotEligible, ReleaseRefused } from "../errors";
import type { NoiseSource } from "../privacy/noise_sources";
import type { OneClick } from "../privacy/prices";
import {
  type Shapes,
  type SharedUpdate,
  type UpdateTensors,
  divide,
  zeroUpdate,
} from "../privacy/private_parameters";
import type { ComputedUpdate } from "../privacy/protections/protection";
import type { PrivateParameters } from "../store/parameters";
import type { BlobRef, ModelEntry } from "../wire/releases";
import { MATERIALS_LIMIT_BYTES, type RoundManifest } from "../wire/rounds";
import type { Tensor } from "../wire/tensors";
import type { Bytes } from "../wire/values";
import {
  type BoundGraph,
  type GradientFn,
  type GraphLoader,
  type Params,
  type TrainingRelease,
  gradientsOf,
  noGradients,
  paramsOf,
  stepped,
} from "./gradients";
import { type Draws, NO_SAMPLES, ReaderSamples, type SampleSource, drawsFrom } from "./samples";
import type { StoredSamples } from "./stored_samples";
import type { Tasks } from "./tasks/registry";
import { type LocalTask, type TaskInputs, type TaskKind, type Update, ZEROS } from "./tasks/task";

const GRADIENT = "gradient";

/** Makes computations from what they take besides release and round. */
export class ComputationFactory {
  /**
   * reading: the reader's feeds and clicks. own: values of the parameters that this device keeps for itself. materials:
   * fetches what a round's task needs besides the release. features: names that this program computes. source: where
   * samples are drawn from.
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
  ) {}

  /** The computation of one round on one release. samples: the reader's, as `reading` has them for its encoder. */
  async make(
    release: TrainingRelease,
    manifest: RoundManifest,
    kind: TaskKind,
    samples: ReaderSamples | null,
  ): Promise<Computation> {
    const material = (name: string): Promise<Bytes> => this.material(manifest, name);
    const loaded: BoundGraph[] = [];
    const graph = async (model: string, purpose: string): Promise<BoundGraph> => {
      const privates = release.manifest.models.get(model)?.private ?? [];
      const found = this.load(await release.graph(model, purpose), this.ownOf(release, model), privates);
      loaded.push(found);
      return found;
    };
    const given: TaskInputs = { release, manifest, reading: this.reading, material, graph, now: this.clock() };
    if (kind.needsSamples && samples === null)
      throw new NotEligible("another round was opened while it looked for one.");
    const task = await kind.make(given);
    const params: Params = manifest.model === null ? new Map() : paramsOf(await release.weights(manifest.model));
    return new Computation(this, given, kind, task, params, samples, loaded, await kind.oneClick(given));
  }

  /** Models of the release that the task can be done on; null for a task of no particular model. */
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

  /** Values of a model's private parameters, as they were learnt here. */
  ownOf(release: TrainingRelease, model: string): Params {
    return paramsOf(Object.entries(this.own.get(model, release.manifest.encoder)));
  }

  /** Throws NotEligible, which declines the round, for whatever keeps the bytes away. */
  private async material(manifest: RoundManifest, name: string): Promise<Bytes> {
    const sizeBytes = [...manifest.materials.values()].reduce((all, ref) => all + ref.size_bytes, 0);
    if (sizeBytes > MATERIALS_LIMIT_BYTES)
      throw new NotEligible(`its materials have ${sizeBytes} bytes, the limit is ${MATERIALS_LIMIT_BYTES}.`);
    const ref = manifest.materials.get(name);
    if (!ref) throw new NotEligible(`the round brings no '${name}'.`);
    try {
      return await this.materials(ref);
    } catch (trouble) {
      const known = [BackendUnreachable, BackendRefused, AnswerMalformed, ReleaseRefused];
      if (known.some((kind) => trouble instanceof kind))
        throw new NotEligible(`'${name}' of the round can't be had: ${(trouble as Error).message}`);
      throw trouble;
    }
  }
}

/** One round's task on one release: what an update will be like, and the update. */
export class Computation {
  private readonly marks;

  constructor(
    private readonly factory: ComputationFactory,
    private readonly given: TaskInputs,
    private readonly kind: TaskKind,
    private readonly task: LocalTask,
    private readonly params: Params,
    private readonly samples: ReaderSamples | null,
    private readonly loaded: readonly BoundGraph[],
    /** How far one click exchanged for another moves the update; null: as far as everything. */
    readonly oneClick: OneClick | null,
  ) {
    this.marks = [factory.reading.mark(), ...(samples ? [samples.data.mark] : [])];
  }

  /** Of the tensors of an update. */
  shapes(): Shapes {
    return this.task.shapes(this.params);
  }

  /**
   * The task's update, without what stays private; zeros in its place where it can't be computed.
   *
   * Graphs, weights, vectors and materials are the server's, and may be made so that the computation fails, gives values
   * that are not finite, or other tensors than were said, for some clicks and not for others. None of this shows in what
   * is sent or charged: such a device gives zeros, in the same form, under the same noise, at the same price. So does
   * one all of whose clicks are held out, or none of them where a task is about these. How long it computes is not
   * covered. `paid` throws NotEligible, so that nothing is paid, if clicks were deleted or muted since they were read.
   */
  async update(): Promise<ComputedUpdate> {
    const source = this.source();
    const nothing = zeroUpdate(this.shapes(), this.entry);
    let [update, shared, own]: [Update, SharedUpdate, UpdateTensors] = [ZEROS, nothing, new Map()];
    try {
      if (!(source instanceof ReaderSamples) || source.available) {
        const found = await this.task.run(this.params, source, await this.gradients(), this.factory.draws());
        [shared, own] = this.divided(found, nothing);
        update = found;
      }
    } catch (fault) {
      // whatever it is: what a release can cause may not show in what leaves
      console.warn(`the update for ${this.given.manifest.round} could not be computed and counts as zeros:`, fault);
      [update, shared, own] = [ZEROS, nothing, new Map()];
    } finally {
      for (const graph of this.loaded) await graph.release();
    }
    const { oneClick } = this;
    const paid = (): void => this.paid(update, own);
    return { shared, samples: update.samples, channel: this.kind.channel, oneClick, paid };
  }

  private get entry(): ModelEntry | null {
    const { manifest, release } = this.given;
    return manifest.model === null ? null : (release.manifest.models.get(manifest.model) ?? null);
  }

  /** What may be shared of an update, and the gradients that stay here. Throws RangeError for one that isn't as said. */
  private divided(update: Update, like: SharedUpdate): readonly [SharedUpdate, UpdateTensors] {
    const [shared, own] = divide(update.tensors, this.entry);
    const told = (tensors: UpdateTensors): string =>
      [...tensors]
        .map(([name, { shape }]) => `${name} [${shape.join()}]`)
        .sort()
        .join("; ");
    if (told(shared.tensors) !== told(like.tensors))
      throw new RangeError(`task ${this.given.manifest.task}: computed ${told(shared.tensors)}, which it did not say`);
    for (const [name, { values }] of update.tensors)
      if (!values.every(Number.isFinite)) throw new RangeError(`tensor ${name}: has values that are not finite`);
    return [shared, own];
  }

  /** The samples that the task may use, perhaps none. */
  private source(): SampleSource {
    if (!this.kind.needsSamples || this.samples === null) return NO_SAMPLES;
    const share = this.given.manifest.held_out;
    return this.kind.heldOut ? this.samples.heldOut(share) : this.samples.withoutHeldOut(share);
  }

  private async gradients(): Promise<GradientFn> {
    const { model } = this.given.manifest;
    if (this.kind.graph !== GRADIENT || model === null) return noGradients;
    return gradientsOf(await this.given.graph(model, GRADIENT));
  }

  /**
   * In the transaction that pays: a last look at what the update was computed from, the task's own, and the step on
   * private parameters.
   */
  private paid(update: Update, gradients: UpdateTensors): void {
    const { factory } = this;
    const { release, manifest } = this.given;
    if (!this.marks.every((mark) => factory.reading.holds(mark)))
      throw new NotEligible("its reader has deleted or muted clicks that this was computed from.");
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
