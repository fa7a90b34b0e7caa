// Applies the reader's mute rules to articles.
import { DAY_MS, type Clock } from "../protocol/moments";
import { piecesOf, textOfBody } from "../protocol/bodies";
import type { NewsCard } from "../protocol/news";
import type { MuteRule, MuteRules, RuleField, RuleKind } from "../store/mute_rules";
import { PatternRefused, matcher, plain, type Matches } from "./mute_patterns";

/** Articles checked while the reader waits, within a second or two; the others follow in the background. */
const AT_ONCE = 20_000;

/** Adds and removes rules, and keeps track of which articles they hide. */
export class Muting {
  private compiled: { rules: string; matches: readonly (readonly [MuteRule, Matches])[] } = { rules: "", matches: [] };

  constructor(
    private readonly stored: MuteRules,
    private readonly clock: Clock,
  ) {}

  /** Stores a rule and applies it to all articles on this device. Throws PatternRefused or TooManyRules. */
  add(field: RuleField, kind: RuleKind, pattern: string): void {
    const text = pattern.split(/\s+/u).filter(Boolean).join(" ");
    matcher(kind, text);
    this.stored.put(field, kind, text, this.clock());
    this.catchUp(AT_ONCE);
  }

  /** Deletes a rule and shows the articles again that only this rule hid; null if there is no such rule. */
  remove(id: number): MuteRule | null {
    const deleted = this.stored.delete(id);
    this.catchUp(AT_ONCE);
    return deleted;
  }

  /** The rules, each with the number of stories of the last day that it hides. */
  rules(): (readonly [MuteRule, number])[] {
    this.catchUp(AT_ONCE);
    const counts = this.stored.counts(this.clock() - DAY_MS);
    return this.stored.all().map((rule) => [rule, counts.get(rule.id) ?? 0] as const);
  }

  /** Applies the rules to new and changed articles, at most about `limit`; returns how many. */
  catchUp(limit = Infinity): number {
    let done = 0;
    while (done < limit) {
      const judged = this.stored.judge((card, body) => this.judge(card, body));
      if (!judged) break;
      done += judged;
    }
    return done;
  }

  private judge(card: NewsCard, body: string): number | null {
    const rules = this.matchers();
    if (!rules.length) return null;
    const [title, publisher, address] = [plain(card.title), plain(card.publisher), plain(card.url)];
    const text = [plain(card.abstract), body ? plain(textOfBody(piecesOf(body), { pictures: true })) : ""];
    const of: Readonly<Record<RuleField, readonly string[]>> = {
      title: [title],
      text,
      publisher: [publisher],
      address: [address],
      anywhere: [title, ...text, publisher],
    };
    return rules.find(([rule, matches]) => of[rule.field].some(matches))?.[0].id ?? null;
  }

  private matchers(): readonly (readonly [MuteRule, Matches])[] {
    const all = this.stored.all();
    const rules = JSON.stringify(all);
    if (rules !== this.compiled.rules) this.compiled = { rules, matches: all.flatMap((rule) => compiledOf(rule)) };
    return this.compiled.matches;
  }
}

function compiledOf(rule: MuteRule): (readonly [MuteRule, Matches])[] {
  try {
    return [[rule, matcher(rule.kind, rule.pattern)]];
  } catch (refused) {
    if (!(refused instanceof PatternRefused)) throw refused;
    console.warn(`mute rule ${rule.id} can't be used: ${refused.message}`); // another version wrote this rule
    return [];
  }
}
