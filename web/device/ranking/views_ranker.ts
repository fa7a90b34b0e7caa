// The ranker of several views: each view's probabilities, and their mean (FL-MV-DSSM, Algorithm 2). As
// device_app/ranking/views_ranker.py, with the towers that a release brings: this device trains none of its own.
import { GraphMismatch } from "../errors";
import { type Vectors, finite } from "../vectors";
import { leftPadded } from "./padding";
import type { Fit, LocalRanker } from "./ranker";
import type { GraphSession, Graphs, Weights } from "./session";

const VIEWS = ["reading", "searches"] as const;
type View = (typeof VIEWS)[number];
/** It has no features. */
const NONE: Fit["contributions"] = new Map();
/** Names of the views' user towers in a release, of a user tower in a graph, and of the tower of news. */
const [USER_TOWERS, USER_TOWER, ITEM_TOWER] = ["user_towers.", "user_tower.", "item_tower."] as const;

/** Scores candidates by the mean over views of P(d | u), without noise. Whoever runs it sees every view. */
export class ViewsRanker implements LocalRanker {
  readonly features: readonly string[] = [];
  private searched: Vectors = { data: new Float32Array(0), rows: 0, width: 0 };

  private constructor(
    readonly name: string,
    private readonly byView: Readonly<Record<View, GraphSession>>,
  ) {}

  /** The `score` graph of one view, in which the softmax of the scores is P, for each. Throws GraphMismatch. */
  static async make(graphs: Graphs, graph: Uint8Array, weights: Weights, name: string): Promise<ViewsRanker> {
    const reading = await graphs.session(graph, ofView(weights, "reading"));
    try {
      return new ViewsRanker(name, { reading, searches: await graphs.session(graph, ofView(weights, "searches")) });
    } catch (broken) {
      await reading.release();
      throw broken;
    }
  }

  /** To be let go of with the release. */
  get sessions(): readonly GraphSession[] {
    return Object.values(this.byView);
  }

  /** Nothing: what is private here belongs to a view. */
  takeOwn(): void {}

  /** searched: vectors [n, D] of what is saved and followed, for the page that is made next. */
  takeViews(searched: () => Vectors): void {
    this.searched = searched();
  }

  /** Log of the mean probability [R]; zeros where no view knows anything. Throws GraphMismatch. */
  async fit(clicks: Vectors, candidates: Vectors): Promise<Fit> {
    const given: Readonly<Record<View, Vectors>> = { reading: clicks, searches: this.searched };
    const known = VIEWS.filter((view) => given[view].rows && candidates.rows);
    const sums = new Float64Array(candidates.rows);
    if (!known.length) return { scores: new Float32Array(candidates.rows), contributions: NONE };
    for (const view of known) {
      const shares = await this.probabilities(view, given[view], candidates);
      shares.forEach((share, at) => (sums[at] = (sums[at] as number) + share));
    }
    const scores = sums.map((sum) => Math.log(sum / known.length));
    if (finite(scores)) return { scores: Float32Array.from(scores), contributions: NONE };
    throw new GraphMismatch(`scores of ${this.name}: not finite; clicks or candidates hold NaN or huge values`);
  }

  private async probabilities(view: View, rows: Vectors, candidates: Vectors): Promise<Float64Array> {
    const { clicks, mask } = leftPadded(rows);
    const found = await this.byView[view].run({
      clicks,
      click_mask: mask,
      candidates: { dims: [1, candidates.rows, candidates.width], data: candidates.data },
    });
    const { scores } = found;
    if (scores?.data.length !== candidates.rows) throw new GraphMismatch(`scores of ${this.name}: missing, or too few`);
    const best = scores.data.reduce((most, each) => Math.max(most, each), -Infinity);
    const weights = Float64Array.from(scores.data, (each) => Math.exp(each - best));
    const whole = weights.reduce((sum, each) => sum + each, 0);
    return weights.map((each) => each / whole);
  }
}

/**
 * A release's parameters by the names of one view's graph: of the views' user towers that view's own; where the release
 * brings none, since each reader's is private, a tower like that of news, with which both begin.
 */
export function ofView<T>(shared: ReadonlyMap<string, T>, view: View): ReadonlyMap<string, T> {
  const own = `${USER_TOWERS}${view}.`;
  const found = new Map<string, T>();
  for (const [name, value] of shared) {
    if (!name.startsWith(USER_TOWERS)) found.set(name, value);
    else if (name.startsWith(own)) found.set(USER_TOWER + name.slice(own.length), value);
  }
  if ([...found.keys()].some((name) => name.startsWith(USER_TOWER))) return found;
  for (const [name, value] of [...found])
    if (name.startsWith(ITEM_TOWER)) found.set(USER_TOWER + name.slice(ITEM_TOWER.length), value);
  return found;
}
