/**
 * The bytes of a file: of the npm packages by its path there, which the product fetches from its own origin, or by its
 * `file:` URL.
 */
export type Wasm = (file: string) => Uint8Array<ArrayBuffer>;

export const SQLITE = "@sqlite.org/sqlite-wasm/dist/sqlite3.wasm";
export const MINIJINJA = "minijinja-js/dist/web/minijinja_js_bg.wasm";
export const ORT = "onnxruntime-web/dist/ort-wasm-simd-threaded.wasm";
