// Story texts as the browser's device reads and shows them.
import { textOf } from "../../web/device/feed/item";
import { BodyError, readBody, textOfBody } from "../../web/device/protocol/bodies";
import { storyHtml } from "../../web/device/pages/story_text";

/** For each text: whether it is in the vocabulary, its ending, its words, and its HTML without and with pictures. */
function shown(bodies: readonly string[]): unknown {
  return bodies.map((body) => {
    const { pieces, ending } = textOf(body, "An abstract.");
    const here = (number: number) => ({ address: `/pictures/x.${number}.webp?of=1`, width: 10, height: 20 });
    const home = (url: string) => url.startsWith("https://home.example/");
    const words = textOfBody(pieces, { pictures: true });
    return [isRead(body), ending, words, storyHtml(pieces, () => null, home), storyHtml(pieces, here, home)];
  });
}

function isRead(body: string): boolean {
  try {
    readBody(body);
    return true;
  } catch (outside) {
    if (outside instanceof BodyError) return false;
    throw outside;
  }
}

export const bodies = { bodies_shown: shown };
