// Pages of the reader's interests (rename, mute, delete), of the mute rules (words, phrases and expressions whose
// stories never appear), and of request latency by stage, also as a file.
import { NAME_LIMIT_CHARS } from "../reading/interest_profile";
import { latencyView } from "../view_models/latency";
import { query, WORDS, type PageAnswer, type PageRenderer, type PageRequest } from "./renderer";
import { get, NotTaken, post, seeOther, type Route } from "./route";
import { chosen } from "./story_pages";
import { PATTERN_CHARS, PATTERN_KINDS, PatternRefused } from "../reading/mute_patterns";
import { RULE_FIELDS, TooManyRules } from "../store/mute_rules";

export function interestPages(renderer: PageRenderer): Route[] {
  const { device } = renderer;
  return [
    get(/^\/interests$/, async (call) => renderer.page(call, "interests", { clusters: await device.interests.clusters() })),
    post(/^\/interests\/(\d{1,15})\/name$/, async ({ parts, form }) => {
      const name = form.one("name");
      if (!name || [...name].length > NAME_LIMIT_CHARS) throw new NotTaken(WORDS.say("field_wrong", { field: "name", what: name }));
      await device.interests.rename(Number(parts[0]), name);
      return seeOther("/interests", "renamed");
    }),
    post(/^\/interests\/(\d{1,15})\/mute$/, async ({ parts, form }) => {
      const muted = chosen("muted", form.one("muted"), ["yes", "no"] as const) === "yes";
      await device.interests.mute(Number(parts[0]), muted);
      return seeOther("/interests", muted ? "muted" : "unmuted");
    }),
    post(/^\/interests\/(\d{1,15})\/forget$/, async ({ parts }) => {
      await device.interests.forget(Number(parts[0]));
      return seeOther("/interests", "forgotten");
    }),
  ];
}

export function latencyPages(renderer: PageRenderer): Route[] {
  const { timings } = renderer.device.parts.stores;
  return [
    get(/^\/latency$/, (call) => renderer.page(call, "latency", { latency: latencyView(timings) })),
    get(/^\/latency\.json$/, () => {
      const content = new TextEncoder().encode(JSON.stringify(latencyView(timings)));
      return { kind: "file", name: "ownfeed-latency.json", type: "application/json", content };
    }),
  ];
}

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
    get(/^\/rules$/, (call) => {
      const parameter = (name: string, usual: string) => call.query.get(name) ?? usual;
      const rule = {
        field: chosen("field", parameter("field", "anywhere"), RULE_FIELDS),
        kind: chosen("kind", parameter("kind", "word"), PATTERN_KINDS),
        pattern: parameter("pattern", "").slice(0, PATTERN_CHARS),
        replaces: parameter("replaces", "").replace(/[^0-9]/g, ""),
      };
      return listed(call, rule, { undo: call.query.get("undo") === "yes" });
    }),
    post(/^\/rules$/, (call) => {
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
    }),
    post(/^\/rules\/(\d{1,15})\/delete$/, ({ parts }) => {
      const deleted = muting.remove(Number(parts[0]));
      if (!deleted) return seeOther("/rules");
      const { field, kind, pattern } = deleted;
      return seeOther(`/rules?${query({ field, kind, pattern, undo: "yes" })}`);
    }),
  ];
}
