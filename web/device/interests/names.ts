// What the reader said of interests, kept in the store: names and mutes, each with the clicked news it was said of.
import type { Preferences } from "../store/preferences";
import type { KeptInterest } from "./profile";

const PREFERENCE = "interests";
export const NAME_LIMIT_CHARS = 60;
type InterestRow = { id: number; name: string | null; muted: boolean; news: string[] };

/** Named and muted interests of this reader, few enough to be one preference. */
export class InterestNames {
  constructor(private readonly preferences: Preferences) {}

  /** All of them, oldest first. */
  kept(): KeptInterest[] {
    const rows = (this.preferences.get(PREFERENCE) ?? []) as InterestRow[];
    return rows.map((row) => ({ interestId: row.id, name: row.name, muted: row.muted, newsIds: new Set(row.news) }));
  }

  /** Clicked news of muted interests. */
  muted(): Set<string> {
    return new Set(this.kept().filter((one) => one.muted).flatMap((one) => [...one.newsIds]));
  }

  /** Call the interest that holds these news so; a blank name gives it its own label back. Throws RangeError. */
  name(newsIds: Iterable<string>, name: string): void {
    const plain = name.split(/\s+/).filter(Boolean).join(" ");
    const length = [...plain].length;
    if (length > NAME_LIMIT_CHARS) throw new RangeError(`name: ${length} characters, limit ${NAME_LIMIT_CHARS}`);
    this.say(new Set(newsIds), (held) => ({ name: plain || null, muted: held?.muted ?? false }));
  }

  /** Leave these news out of reports and ranking, or take them in again. */
  mute(newsIds: Iterable<string>, muted: boolean): void {
    this.say(new Set(newsIds), (held) => ({ name: held?.name ?? null, muted }));
  }

  /** Drop what was said of these news. */
  forget(newsIds: Iterable<string>): void {
    const gone = new Set(newsIds);
    this.keep(this.kept().map((one) => without(one, gone)));
  }

  /** One interest a piece of news: whatever held these news before gives them up to the one said of now. */
  private say(news: Set<string>, said: (held: KeptInterest | null) => Pick<KeptInterest, "name" | "muted">): void {
    if (!news.size) return;
    const kept = this.kept();
    const shared = (one: KeptInterest): number => [...one.newsIds].filter((id) => news.has(id)).length;
    let held: KeptInterest | null = null;
    for (const one of kept) if (shared(one) > (held ? shared(held) : 0)) held = one;
    const interestId = held?.interestId ?? Math.max(0, ...kept.map((one) => one.interestId)) + 1;
    const others = kept.filter((one) => one.interestId !== interestId).map((one) => without(one, news));
    this.keep([...others, { interestId, newsIds: news, ...said(held) }]);
  }

  private keep(interests: readonly KeptInterest[]): void {
    const rows = interests
      .filter((one) => one.newsIds.size && (one.muted || one.name))
      .sort((one, other) => one.interestId - other.interestId)
      .map((one): InterestRow => ({ id: one.interestId, name: one.name, muted: one.muted, news: [...one.newsIds].sort() }));
    this.preferences.set(PREFERENCE, rows.length ? rows : null);
  }
}

function without(interest: KeptInterest, gone: ReadonlySet<string>): KeptInterest {
  return { ...interest, newsIds: new Set([...interest.newsIds].filter((id) => !gone.has(id))) };
}
