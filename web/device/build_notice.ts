// What the reader sees of the app's build: its hash on the privacy page, and a question when the server offers another one.
// The words are templates of the page that holds the app (web/templates/reader/shell.html).
import { type Build, type BuildState, keepBuild, takeBuild } from "./pinned_build";

export class BuildNotice {
  private state: BuildState = { installed: null, offered: null };
  private question: HTMLElement | null = null;

  /** page: the own address of the page that is shown. */
  constructor(private readonly page: () => string) {}

  /** Install the build if none is here, and ask about another. Call it once the first page is there. */
  async watch(): Promise<void> {
    this.state = await keepBuild();
    const { installed, offered } = this.state;
    if (installed !== null && offered !== null) this.question = this.asked(installed, offered);
    this.begin();
  }

  /** A page has come. */
  begin(): void {
    if (this.question !== null) document.body.prepend(this.question);
    const { installed } = this.state;
    if (this.page().split("?", 1)[0] !== "/privacy" || installed === null || document.querySelector(".own-build") !== null) return;
    const line = filled("own-build", installed.build);
    if (line !== null) document.querySelector("main")?.append(line);
  }

  private asked(installed: Build, offered: Build): HTMLElement | null {
    const question = filled("offered-build", installed.build, offered.build);
    question?.querySelector("[data-take]")?.addEventListener("click", () => void takeBuild(offered));
    question?.querySelector("[data-keep]")?.addEventListener("click", () => {
      question.remove();
      this.question = null;
    });
    return question;
  }
}

/** A copy of a template with each hash in its place, in order; null where the page has no such template. */
function filled(name: string, ...hashes: string[]): HTMLElement | null {
  const template = document.querySelector<HTMLTemplateElement>(`template#${name}`);
  const copy = template?.content.firstElementChild?.cloneNode(true);
  if (!(copy instanceof HTMLElement)) return null;
  copy.querySelectorAll("code").forEach((place, at) => (place.textContent = hashes[at] ?? ""));
  return copy;
}
