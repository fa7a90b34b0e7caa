// Types of the non-script files that the bundler imports (web/bundling.mjs).
declare module "*.toml" {
  const table: Record<string, unknown>;
  export default table;
}
declare module "*?pictures" {
  /** Address of a JSON file, relative to the bundle's own: each SVG file's text, by its name without the ending. */
  const address: string;
  export default address;
}
declare module "*.wasm" {
  /** Address of the file, relative to the bundle. */
  const address: string;
  export default address;
}
declare module "*.ts?address" {
  /** Address of the module's worker bundle, relative to this bundle. */
  const address: string;
  export default address;
}
declare module "*.ts?made" {
  /** Address of the file that the module makes, relative to the bundle. */
  const address: string;
  export default address;
}
declare module "*.sql" {
  const text: string;
  export default text;
}
declare module "*.html" {
  const text: string;
  export default text;
}
