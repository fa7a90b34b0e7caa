// The pictures that pages name: those that publishers' lists brought, and drawn ones. Nobody is asked for one.
import type { Device } from "../device";
import { dataAddress, draw } from "./art/drawing";
import { toBase64 } from "../wire/values";

const ONE = /^\/art\/([^/]+)\.svg\?(.*)$/;
const PUBLISHERS = /^\/pictures\/([^/]+)\.webp\?/;
const OF_A_PAGE = /^\/art\/page\/([^/]+)\.svg#p(\d+)$/;

export class Pictures {
  constructor(private readonly device: Device) {}

  /** An address that holds the picture; empty for one that no page of ours names. */
  at(address: string): string {
    const one = ONE.exec(address);
    if (one) {
      const asked = new URLSearchParams(one[2]);
      return dataAddress(draw(asked.get("section") ?? "", decodeURIComponent(one[1] ?? ""), asked.get("topic") ?? ""));
    }
    const story = PUBLISHERS.exec(address)?.[1];
    if (story !== undefined) return this.publishers(decodeURIComponent(story));
    const [, feedId, place] = OF_A_PAGE.exec(address) ?? [];
    const items = feedId === undefined ? [] : (this.device.parts.serving.page(decodeURIComponent(feedId))?.items ?? []);
    const card = items.find((item) => item.position === Number(place))?.card;
    return card ? dataAddress(draw(card.section, card.id, card.topic)) : "";
  }

  /** A page may be older than what is here: then the drawn one. */
  private publishers(newsId: string): string {
    const { news, pictures } = this.device.parts.stores;
    const content = pictures.content(newsId);
    if (content) return `data:image/webp;base64,${toBase64(content).replaceAll("-", "+").replaceAll("_", "/")}`;
    const [card] = news.cards([newsId]);
    return card ? dataAddress(draw(card.section, card.id, card.topic)) : "";
  }
}
