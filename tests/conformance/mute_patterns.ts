// How the browser's device matches mute patterns.
import { PatternRefused, matcher, plain, type PatternKind } from "../../web/device/reading/mute_patterns";

type Asked = readonly [kind: PatternKind, pattern: string, texts: readonly string[]];

/** For each pattern: which of its texts match, or why it is refused. */
function matched(asked: readonly Asked[]): (readonly boolean[] | string)[] {
  return asked.map(([kind, pattern, texts]) => {
    try {
      const matches = matcher(kind, pattern);
      return texts.map((text) => matches(plain(text)));
    } catch (refused) {
      if (!(refused instanceof PatternRefused)) throw refused;
      return refused.message;
    }
  });
}

export const mutePatterns = { mute_patterns: matched };
