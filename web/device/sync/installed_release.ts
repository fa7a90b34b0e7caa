// The release in use: its manifest, graphs and weights, all checked when it was installed.
import { GraphMismatch, NoRelease, ReleaseRefused } from "../errors";
import { FEATURES } from "../ranking/ranker";
import type { GroupModels } from "../ranking/groups";
import { type Graphs, type Weights, costsOf } from "../ranking/session";
import { ofView } from "../ranking/views_ranker";
import type { Blobs } from "../store/blobs";
import type { InstalledReleases } from "../store/releases";
import { type Vectors, finite, vectors } from "../vectors";
import type { BlobRef, ModelEntry, ReleaseManifest } from "../protocol/releases";
import { TensorError, load, unpack } from "../protocol/tensors";
import type { Bytes } from "../protocol/forms";

const NEEDED_OF_RECALL = ["context", "decompose"] as const;
const NEEDED_OF_RANKER = ["score"] as const;
const NAME = /^[A-Za-z0-9_.]{1,120}$/;

/** A release's public vectors: prototypes [K, D] by K. */
export interface PublicVectors {
  readonly prototypes: ReadonlyMap<number, Vectors>;
}

/** Reads graphs as bytes and weights as float32 tensors by parameter name, each once. */
export class Release {
  private readonly read = new Map<string, Weights>();

  constructor(
    readonly manifest: ReleaseManifest,
    private readonly blobs: Blobs,
  ) {}

  /** The release's name, as 'r7'. */
  get id(): string {
    return this.manifest.release;
  }

  /** An ONNX graph. Throws ReleaseRefused if the release has none or its file is damaged. */
  async graph(model: string, purpose: string): Promise<Bytes> {
    const ref = this.entry(model).graphs.get(purpose);
    if (!ref) throw new ReleaseRefused(this.id, `model ${model} has no '${purpose}' graph`);
    return this.content(ref);
  }

  /** Parameters by name, float32; empty for a model without any. Throws ReleaseRefused. */
  async weights(model: string): Promise<Weights> {
    const known = this.read.get(model);
    if (known) return known;
    const ref = this.entry(model).weights;
    const found = ref ? this.parameters(model, await this.content(ref)) : new Map();
    this.read.set(model, found);
    return found;
  }

  /** The models of a ranker's groups, and how a device finds its own. Throws ReleaseRefused. */
  async groups(model: string): Promise<GroupModels> {
    const { groups } = this.entry(model);
    if (!groups) throw new ReleaseRefused(this.id, `model ${model} has no groups`);
    const { size } = groups;
    const { dimensions } = this.manifest;
    const shared = await this.weights(model);
    const like = async (ref: BlobRef, lead: readonly number[]): Promise<Weights> => {
      const found = this.parameters(model, await this.content(ref));
      const shapesOf = (all: Weights, before: readonly number[]): string =>
        [...all].map(([name, { shape }]) => `${name} ${[...before, ...shape].join()}`).sort().join("; ");
      if (shapesOf(found, []) !== shapesOf(shared, lead))
        throw new ReleaseRefused(this.id, `groups of ${model}: the weights are not those of ${size} groups of this model`);
      return found;
    };
    const centroids = (ref: BlobRef): Promise<Vectors> => this.rows(ref, "centroids", size, dimensions);
    return {
      size,
      weights: await like(groups.weights, [size]),
      vectors: await like(groups.vectors, []),
      nextVectors: await like(groups.next_vectors, []),
      centroids: await centroids(groups.centroids),
      nextCentroids: await centroids(groups.next_centroids),
    };
  }

  /** The prototypes of every codebook. Throws ReleaseRefused. */
  async spaces(): Promise<PublicVectors> {
    const { recall, dimensions } = this.manifest;
    const prototypes = new Map<number, Vectors>();
    for (const { size, prototypes: ref } of recall.codebooks)
      prototypes.set(size, await this.rows(ref, "prototypes", size, dimensions));
    return { prototypes };
  }

  /**
   * Checks that everything serving needs is here, fits together and loads: the default ranker and the recall model have
   * their graphs, reports would be noisy, weights are finite float32, a release may contain each graph, and ONNX
   * Runtime loads those that serving runs and finds every parameter they declare. Throws ReleaseRefused.
   */
  async check(graphs: Graphs): Promise<void> {
    const { manifest } = this;
    if (manifest.recall.score_noise <= 0)
      throw new ReleaseRefused(this.id, "score_noise is 0: its reports would carry no noise");
    await this.spaces();
    const ranker = manifest.default_ranker;
    const unknown = [...this.entry(ranker).features].sort().find((name) => !FEATURES.has(name));
    if (unknown) throw new ReleaseRefused(this.id, `its ranker needs the feature '${unknown}', unknown to this program`);
    for (const [model, role, purposes] of [
      ["recall", "recall", NEEDED_OF_RECALL],
      [ranker, "ranker", NEEDED_OF_RANKER],
    ] as const) {
      const entry = this.entry(model);
      if (entry.role !== role) throw new ReleaseRefused(this.id, `model ${model} is not a ${role} model`);
      for (const purpose of purposes) await this.tried(graphs, model, entry, purpose);
    }
    await this.checkParts(["recall", ranker]);
  }

  /** Checks the models used only in rounds, as far as possible without running them: weights and graphs. */
  checkRest(): Promise<void> {
    const serving = ["recall", this.manifest.default_ranker];
    return this.checkParts([...this.manifest.models.keys()].filter((model) => !serving.includes(model)));
  }

  private async checkParts(models: readonly string[]): Promise<void> {
    for (const model of models) {
      const { graphs: all, groups } = this.entry(model);
      await this.weights(model);
      if (groups) await this.groups(model);
      const checked = [...all.keys()].map(async (purpose) => {
        const graph = await this.graph(model, purpose);
        await this.unlessBroken(model, purpose, () => costsOf(graph));
      });
      await Promise.all(checked);
    }
  }

  private async tried(graphs: Graphs, model: string, entry: ModelEntry, purpose: string): Promise<void> {
    const [graph, weights] = [await this.graph(model, purpose), ofView(await this.weights(model), "reading")];
    await this.unlessBroken(model, purpose, async () => (await graphs.session(graph, weights, entry.private)).release());
  }

  private async unlessBroken(model: string, purpose: string, work: () => unknown): Promise<void> {
    try {
      await work();
    } catch (broken) {
      if (!(broken instanceof GraphMismatch)) throw broken;
      throw new ReleaseRefused(this.id, `graph '${purpose}' of ${model}: ${broken.message}`);
    }
  }

  private entry(model: string): ModelEntry {
    const found = this.manifest.models.get(model);
    if (!found) throw new ReleaseRefused(this.id, `it has no model '${model}'`);
    return found;
  }

  private async content(ref: BlobRef): Promise<Bytes> {
    const content = await this.blobs.read(ref.sha256);
    if (content) return content;
    const why = `blob ${ref.sha256.slice(0, 12)} is missing or damaged; the next sync fetches it again`;
    throw new ReleaseRefused(this.id, why);
  }

  private async rows(ref: BlobRef, name: string, rows: number, dimensions: number): Promise<Vectors> {
    try {
      const found = unpack(await this.content(ref), { [name]: { dtype: "float32", shape: [rows, dimensions] } }, ref.size_bytes);
      return vectors(found[name]?.data as Float32Array, dimensions);
    } catch (broken) {
      if (!(broken instanceof TensorError)) throw broken;
      throw new ReleaseRefused(this.id, `${name} [${rows}, D]: ${broken.message}`);
    }
  }

  private parameters(model: string, blob: Bytes): Weights {
    try {
      const tensors = load(blob);
      for (const [name, tensor] of tensors) {
        if (!NAME.test(name)) throw new TensorError(`'${name}' is not a parameter name`);
        if (tensor.dtype !== "float32" || !finite(tensor.data as Float32Array))
          throw new TensorError(`${name} is not finite float32`);
      }
      return tensors;
    } catch (broken) {
      if (!(broken instanceof TensorError)) throw broken;
      throw new ReleaseRefused(this.id, `weights of ${model}: ${broken.message}`);
    }
  }
}

/** The current release; throws NoRelease on a device that never synced. */
export function currentRelease(store: InstalledReleases): Release {
  const kept = store.current();
  if (!kept) throw new NoRelease();
  return new Release(kept.manifest, store.blobs);
}

