// Maps addresses to pages, as on the Python device. Addresses are relative to the device's root.
import { hasErased } from "../link";
import { BackendUnreachable, DeviceError, NewsNotHere } from "../errors";
import { WireError } from "../protocol/forms";
import { feedPages, listPages } from "./feed_pages";
import { WORDS, type PageAnswer, type PageRenderer, type PageRequest } from "./renderer";
import { FormFields, NotTaken, Nowhere, seeOther, type Asked, type Route } from "./route";
import { interestPages, latencyPages, muteRulesPages } from "./interest_pages";
import { privacyPages } from "./privacy_pages";
import { searchPages } from "./search_pages";
import { settingsPages } from "./settings_pages";
import { storyPages } from "./story_pages";
import { trainingPages } from "./training_pages";

/** Answers addresses; errors become a page that says what happened and how to go back. */
export class Pages {
  private readonly routes: readonly Route[];

  constructor(private readonly renderer: PageRenderer) {
    const reading = [feedPages, listPages, storyPages, searchPages, interestPages];
    const own = [privacyPages, settingsPages, trainingPages, latencyPages, muteRulesPages];
    this.routes = [...reading, ...own].flatMap((pages) => pages(renderer));
  }

  /** Whether this browser has promised to keep stored data. */
  set persisted(promised: boolean) {
    this.renderer.lasts = promised ? "promised" : "refused";
  }

  /** Answers an address; never shows data that the reader erased in the meantime. */
  async answer(request: Asked): Promise<PageAnswer> {
    const { serving } = this.renderer.device.parts;
    const { erasures } = serving;
    const answer = await this.answered(request);
    return serving.erasures === erasures || hasErased(answer) ? answer : seeOther("/welcome");
  }

  private async answered(question: Asked): Promise<PageAnswer> {
    const { pathname, searchParams } = new URL(question.address, "http://device.invalid");
    const request = { path: pathname, query: searchParams };
    const method = question.form === null ? "GET" : "POST";
    try {
      for (const route of this.routes) {
        const found = route.method === method && route.path.exec(pathname);
        if (!found) continue;
        const parts = found.slice(1).map((part) => decodeURIComponent(part ?? ""));
        const call = { ...request, parts, form: new FormFields(question.form ?? []), followed: question.followed };
        const answer = await route.answer(call);
        return question.quietly && answer.kind === "see_other" ? { kind: "done" } : answer;
      }
      throw new Nowhere();
    } catch (failed) {
      return this.problem(request, failed);
    }
  }

  private problem(request: PageRequest, failed: unknown): PageAnswer {
    const say = (status: number, title: string, words: string) =>
      this.renderer.problem(request, status, WORDS.say(title), words);
    if (failed instanceof Nowhere || failed instanceof URIError) return say(404, "nowhere_title", WORDS.say("nowhere"));
    if (failed instanceof NewsNotHere) return say(404, "story_gone_title", failed.message);
    if (failed instanceof BackendUnreachable) return say(503, "not_now_title", WORDS.say("unanswered"));
    if (failed instanceof DeviceError) return say(503, "not_now_title", failed.message);
    if (failed instanceof WireError || failed instanceof NotTaken) return say(422, "not_taken_title", failed.message);
    console.error(failed);
    return say(500, "fault_title", WORDS.say("fault"));
  }
}
