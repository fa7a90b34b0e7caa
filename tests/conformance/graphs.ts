// Which graphs the browser's device opens.
import { OnnxRuntime } from "../../web/device/ranking/onnx_runtime";
import { Graphs } from "../../web/device/ranking/session";
import { checkGraph, GraphRefused } from "../../web/device/protocol/graph_check";
import { unbase64 } from "./given";

interface Asked {
  readonly graphs: readonly string[];
  readonly sizes: Readonly<Record<string, number>>;
}

export const graphs = {
  /** For each graph: why it is refused, or the bytes and multiply-adds of a run with axes of these sizes. */
  graphs_checked({ graphs: all, sizes }: Asked): unknown {
    const axes = new Map(Object.entries(sizes).map(([axis, size]) => [axis, size]));
    return all.map((each) => {
      try {
        return checkGraph(unbase64(each)).of(axes).map(String);
      } catch (refused) {
        if (refused instanceof GraphRefused) return refused.message;
        throw refused;
      }
    });
  },

  /** For each graph: the device's message when loading it; ONNX Runtime's wasm throws if it is requested. */
  async graphs_loaded(all: readonly string[]): Promise<unknown> {
    const reached = (): never => {
      throw new Error("ONNX Runtime was reached");
    };
    const said: [string, string][] = [];
    for (const each of all) {
      const told = await new Graphs(new OnnxRuntime(reached)).session(unbase64(each), new Map()).then(
        () => ["", "loaded"] as [string, string],
        (fault: Error): [string, string] => [fault.constructor.name, fault.message],
      );
      said.push(told);
    }
    return said;
  },

  /** The message for a run of a graph on inputs of these shapes. */
  graphs_run({ graph, shapes }: { graph: string; shapes: readonly Record<string, number[]>[] }): unknown {
    const costs = checkGraph(unbase64(graph));
    return shapes.map((each) => {
      try {
        costs.require(each);
        return "";
      } catch (refused) {
        if (refused instanceof GraphRefused) return refused.message;
        throw refused;
      }
    });
  },
};
