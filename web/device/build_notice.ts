// What the reader sees of the app's build: its hash on the privacy page, and a question when the server offers another one.
// The words are templates of the page that holds the app (web/templates/reader/shell.html).
import { type Build, type BuildState, keepBuild, takeBuild } from "./pinned_build";
import type { BuildVerdict } from "./wire/builds";

/** Says of builds, by their hashes, what the publisher's signed list says. */
type LookUp = (builds: readonly string[]) => Promise<readonly BuildVerdict[]>;

export class BuildNotice {
  private state: BuildState = { installed: null, offered: null };
  private verdicts: readonly BuildVerdict[] = [];
  private question: HTMLElement | null = null;

  /** page: the own address of the page that is shown. */
  constructor(
    private readonly page: () => string,
    private readonly lookUp: LookUp,
  ) {}

  /** Install the build if none is here, and ask about another. Call it once the first page is there. */
  async watch(): Promise<void> {
    const state = await keepBuild();
    const { installed, offered } = state;
    // asked now and not when a page shows it: the server must not learn which page is open
    const builds = [installed, offered].flatMap((each) => (each === null ? [] : [each.build]));
    this.verdicts = builds.length ? await this.lookUp(builds) : [];
    this.state = state;
    if (installed !== null && offered !== null) this.question = this.asked(installed, offered);
    this.begin();
  }

  /** A page has come. */
  begin(): void {
    if (this.question !== null) document.body.prepend(this.question);
    const { installed } = this.state;
    if (this.page().split("?", 1)[0] !== "/privacy" || installed === null || document.querySelector(".own-build") !== null) return;
    const line = filled("own-build", this.verdicts[0], installed.build);
    if (line !== null) document.querySelector("main")?.append(line);
  }

  private asked(installed: Build, offered: Build): HTMLElement | null {
    const question = filled("offered-build", this.verdicts[1], installed.build, offered.build);
    question?.querySelector("[data-take]")?.addEventListener("click", () => void takeBuild(offered));
    question?.querySelector("[data-keep]")?.addEventListener("click", () => {
      question.remove();
      this.question = null;
    });
    return question;
  }
}

/** A copy of a template with the words for one verdict, and each hash in its place; null where there is no such template. */
function filled(name: string, verdict: BuildVerdict = "unknown", ...hashes: string[]): HTMLElement | null {
  const template = document.querySelector<HTMLTemplateElement>(`template#${name}`);
  const copy = template?.content.firstElementChild?.cloneNode(true);
  if (!(copy instanceof HTMLElement)) return null;
  for (const words of copy.querySelectorAll<HTMLElement>("[data-verdict]"))
    if (words.dataset["verdict"] !== verdict) words.remove();
  copy.querySelectorAll("code").forEach((place, at) => (place.textContent = hashes[at] ?? ""));
  return copy;
}
