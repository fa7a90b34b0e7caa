// The multi-view ranker: each view's probabilities, and their mean (FL-MV-DSSM, Algorithm 2). Like
// device_app/ranking/views_ranker.py, with the release's towers: this device trains none of its own.
import { GraphMismatch } from "../errors";
import { type Vectors, finite } from "../vectors";
import { leftPadded } from "./padding";
import type { Fit, LocalRanker } from "./ranker";
import type { GraphSession, Graphs, Weights } from "./session";

const VIEWS = ["reading", "searches"] as const;
type View = (typeof VIEWS)[number];
/** An empty result: a ranker of views has no features. */
const NONE: Fit["contributions"] = new Map();
/** Name prefixes of the views' user towers in a release, and of user tower and item tower in a graph. */
const [USER_TOWERS, USER_TOWER, ITEM_TOWER] = ["user_towers.", "user_tower.", "item_tower."] as const;

/** Scores candidates by the mean over views of P(d | u), without noise. Whoever runs it sees every view. */
export class ViewsRanker implements LocalRanker {
  readonly features: readonly string[] = [];
  private searched: Vectors = { data: new Float32Array(0), rows: 0, width: 0 };

  private constructor(
    readonly name: string,
    private readonly byView: Readonly<Record<View, GraphSession>>,
  ) {}

  /**
   * Makes one session per view with its `score` graph, in which the softmax of the scores is P. Throws GraphMismatch.
   */
  static async make(graphs: Graphs, graph: Uint8Array, weights: Weights, name: string): Promise<ViewsRanker> {
    const reading = await graphs.session(graph, ofView(weights, "reading"));
    try {
      return new ViewsRanker(name, { reading, searches: await graphs.session(graph, ofView(weights, "searches")) });
    } catch (broken) {
      await reading.release();
      throw broken;
    }
  }

  /** Released together with the release. */
  get sessions(): readonly GraphSession[] {
    return Object.values(this.byView);
  }

  /** Does nothing: private parameters belong to a view here. */
  takeOwn(): void {}

  /** searched: vectors [n, D] of what is saved and followed, for the next page. */
  takeViews(searched: () => Vectors): void {
    this.searched = searched();
  }

  /** Log of the mean probability [R]; zeros if no view has data. Throws GraphMismatch. */
  async fit(clicks: Vectors, candidates: Vectors): Promise<Fit> {
    const views: Readonly<Record<View, Vectors>> = { reading: clicks, searches: this.searched };
    const known = VIEWS.filter((view) => views[view].rows && candidates.rows);
    const sums = new Float64Array(candidates.rows);
    if (!known.length) return { scores: new Float32Array(candidates.rows), contributions: NONE };
    for (const view of known) {
      const shares = await this.probabilities(view, views[view], candidates);
      shares.forEach((share, at) => (sums[at] = (sums[at] as number) + share));
    }
    const scores = sums.map((sum) => Math.log(sum / known.length));
    if (finite(scores)) return { scores: Float32Array.from(scores), contributions: NONE };
    throw new GraphMismatch(`scores of ${this.name}: not finite; clicks or candidates contain NaN or huge values`);
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
 * A release's parameters under the names of one view's graph: that view's user tower; if the release has none, because
 * each reader's is private, a copy of the item tower, with which both are initialised.
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
