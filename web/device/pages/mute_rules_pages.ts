// The mute rules: words, phrases and expressions whose stories never appear.
import { PATTERN_CHARS, PATTERN_KINDS, PatternRefused } from "../reading/mute_patterns";
import { RULE_FIELDS, TooManyRules } from "../store/mute_rules";
import { WORDS, query, type PageAnswer, type PageRenderer, type PageRequest } from "./renderer";
import { type Route, seeOther } from "./route";
import { chosen } from "./story_pages";

export function muteRulesPages(renderer: PageRenderer): Route[] {
  const { muting } = renderer.device;

  const listed = (call: PageRequest, rule: Record<string, string>, { undo = false, problem = null as string | null } = {}): PageAnswer =>
    renderer.page(
      call,
      "mute_rules",
      { rules: muting.rules(), fields: WORDS.table("rule_fields"), kinds: WORDS.table("rule_kinds"), rule, undo, problem },
      problem ? 422 : 200,
    );

  return [
    {
      method: "GET",
      path: /^\/rules$/,
      answer(call) {
        const asked = (name: string, usual: string) => call.query.get(name) ?? usual;
        const rule = {
          field: chosen("field", asked("field", "anywhere"), RULE_FIELDS),
          kind: chosen("kind", asked("kind", "word"), PATTERN_KINDS),
          pattern: asked("pattern", "").slice(0, PATTERN_CHARS),
          replaces: asked("replaces", "").replace(/[^0-9]/g, ""),
        };
        return listed(call, rule, { undo: call.query.get("undo") === "yes" });
      },
    },
    {
      method: "POST",
      path: /^\/rules$/,
      answer(call) {
        const { form } = call;
        const field = chosen("field", form.one("field"), RULE_FIELDS);
        const kind = chosen("kind", form.one("kind"), PATTERN_KINDS);
        const [pattern, replaces] = [form.one("pattern").slice(0, PATTERN_CHARS), form.one("replaces").replace(/[^0-9]/g, "")];
        try {
          muting.add(field, kind, pattern);
        } catch (refused) {
          if (!(refused instanceof PatternRefused || refused instanceof TooManyRules)) throw refused;
          const problem = WORDS.say("rule_refused", { pattern, why: refused.message });
          return listed(call, { field, kind, pattern, replaces }, { problem });
        }
        const same = pattern.split(/\s+/u).filter(Boolean).join(" ");
        const stays = muting.rules().some(
          ([rule]) => rule.id === Number(replaces) && rule.field === field && rule.kind === kind && rule.pattern === same,
        );
        if (replaces && !stays) muting.remove(Number(replaces));
        return seeOther("/rules", "rule_added");
      },
    },
    {
      method: "POST",
      path: /^\/rules\/(\d{1,15})\/delete$/,
      answer({ parts }) {
        const gone = muting.remove(Number(parts[0]));
        if (!gone) return seeOther("/rules");
        const { field, kind, pattern } = gone;
        return seeOther(`/rules?${query({ field, kind, pattern, undo: "yes" })}`);
      },
    },
  ];
}
