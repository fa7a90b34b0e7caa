// What the browser's device finds in a publisher's list of builds.
import { verdictOf } from "../../web/device/protocol/releases";
import { choosePrimitives } from "../../web/device/protocol/primitives";
import { unhex } from "./given";

interface Asked {
  readonly build: string;
  readonly key: string;
  readonly answers: readonly string[];
}

export const builds = {
  /** A verdict on the build for each answer of a server. */
  async builds_verdicts({ build, key, answers }: Asked): Promise<unknown> {
    const primitives = await choosePrimitives();
    const encoded = answers.map((answer) => new TextEncoder().encode(answer));
    return Promise.all(encoded.map((answer) => verdictOf(build, answer, unhex(key), primitives)));
  },
};
