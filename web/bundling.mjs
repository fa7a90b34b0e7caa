// How the browser's device is bundled, in the build and in the tests alike: the one list of esbuild's options.
//   sql, html: their text. toml: the table that Python's tomllib reads. wasm: the address of the file beside the bundle,
//   named by its content.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const HASH_CHARS = 16;
const READ_TOML = "import json,sys,tomllib; json.dump(tomllib.load(open(sys.argv[1], 'rb')), sys.stdout)";

export const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

/** `name.js` with these bytes is called `name.0123456789abcdef.js`. */
export function nameByContent(name, bytes) {
  const dot = name.lastIndexOf(".");
  return `${name.slice(0, dot)}.${sha256(bytes).slice(0, HASH_CHARS)}${name.slice(dot)}`;
}

/** Options of esbuild for one bundle whose files come to lie in `outdir`. Node's own modules are an error. */
export function bundling(outdir) {
  return {
    bundle: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    logLevel: "warning",
    // a checkout whose node_modules is a link makes the same bytes
    preserveSymlinks: true,
    loader: { ".sql": "text", ".html": "text" },
    plugins: [toml, wasmBeside(outdir)],
  };
}

const toml = {
  name: "toml",
  setup(build) {
    build.onLoad({ filter: /\.toml$/ }, ({ path }) => ({
      contents: execFileSync(process.env.PYTHON ?? "python3", ["-c", READ_TOML, path]),
      loader: "json",
    }));
  },
};

const wasmBeside = (outdir) => ({
  name: "wasm",
  setup(build) {
    build.onLoad({ filter: /\.wasm$/ }, ({ path }) => {
      const bytes = readFileSync(path);
      const name = nameByContent(basename(path), bytes);
      mkdirSync(outdir, { recursive: true });
      writeFileSync(join(outdir, name), bytes);
      return { contents: `export default ${JSON.stringify(`./${name}`)};`, loader: "js" };
    });
  },
});

// node web/bundling.mjs ENTRY OUTFILE: one bundle, as the tests run it in Node
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [entry, outfile] = process.argv.slice(2);
  await build({ ...bundling(dirname(outfile)), entryPoints: [entry], outfile });
}
