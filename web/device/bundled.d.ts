// What the bundler makes of files that are no scripts (web/bundling.mjs), besides texts.
declare module "*.toml" {
  const table: Record<string, unknown>;
  export default table;
}
declare module "*.wasm" {
  /** Address of the file, relative to the bundle's own. */
  const address: string;
  export default address;
}
