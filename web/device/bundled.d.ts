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
declare module "*.ts?address" {
  /** Address of the worker that the module is, relative to the bundle's own. */
  const address: string;
  export default address;
}
declare module "*.ts?made" {
  /** Address of the file that the module makes, relative to the bundle's own. */
  const address: string;
  export default address;
}
