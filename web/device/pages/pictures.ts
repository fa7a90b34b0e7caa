// The pictures that pages name, drawn here: nobody is asked for one.
import type { Device } from "../device";
import { dataAddress, draw } from "./art/drawing";

const ONE = /^\/art\/([^/]+)\.svg\?(.*)$/;
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
    const [, feedId, place] = OF_A_PAGE.exec(address) ?? [];
    const items = feedId === undefined ? [] : (this.device.parts.serving.page(decodeURIComponent(feedId))?.items ?? []);
    const card = items.find((item) => item.position === Number(place))?.card;
    return card ? dataAddress(draw(card.section, card.id, card.topic)) : "";
  }
}
