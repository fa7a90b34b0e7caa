// Serves the pictures that pages name: those from publishers' lists, and drawn ones. Sends no request.
import type { Device } from "../device";
import { toBase64 } from "../protocol/forms";
import { artFile, type Drawn, pictureAddress, pictureName } from "./art";

const DRAWN = /^\/static\/art\/([a-z]+-\d+)\.svg$/;
const PUBLISHERS = /^\/pictures\/([^/]+)\.webp\?of=[^&]*(?:&n=(\d))?$/;

export class Pictures {
  /** Settled once the drawn pictures are here, or can't be had. */
  readonly ready: Promise<void>;
  private drawn: Drawn = {};

  /** file: gives a file of the build by its address. */
  constructor(
    private readonly device: Device,
    file: (address: string) => Promise<ArrayBuffer>,
  ) {
    this.ready = file(artFile).then(
      (bytes) => {
        this.drawn = JSON.parse(new TextDecoder().decode(bytes)) as Drawn;
      },
      (fault: unknown) => console.error("stories have no drawn pictures; it goes on:", fault),
    );
  }

  /** Whether the drawn pictures are here. */
  get loaded(): boolean {
    return Object.keys(this.drawn).length > 0;
  }

  /** An address that contains the picture's data; empty for one that no page of this app uses. */
  at(address: string): string {
    const [, story, number = "0"] = PUBLISHERS.exec(address) ?? [];
    if (story !== undefined) return this.publishers(decodeURIComponent(story), Number(number));
    return pictureAddress(this.drawn, DRAWN.exec(address)?.[1] ?? "");
  }

  /** The publisher's picture; a page may be older than the store, in which case the drawn one. */
  private publishers(newsId: string, ofText: number): string {
    const { news, pictures } = this.device.parts.stores;
    const content = pictures.content(newsId, ofText);
    if (content) return `data:image/webp;base64,${toBase64(content).replaceAll("-", "+").replaceAll("_", "/")}`;
    const [card] = news.cards([newsId]);
    return card ? pictureAddress(this.drawn, pictureName(card)) : "";
  }
}
