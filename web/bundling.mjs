// How the browser's device is bundled, in the build and in the tests alike: the one list of esbuild's options.
//   sql: its text. html: the text of a template, without what it would not write. toml: the table that Python's tomllib
//   reads. FOLDER?pictures: the address of a JSON file with the texts of its SVG files, by name. wasm: the address of the file beside the bundle, named by its content. NAME.ts?address: the address of a
//   worker's own bundle, NAME.ts?made: of the database that the module makes; both come to lie there as well.
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";

const HASH_CHARS = 16;
const SQLITE = join(dirname(fileURLToPath(import.meta.url)), "node_modules/@sqlite.org/sqlite-wasm/dist/sqlite3.wasm");
const READ_TOML = "import json,sys,tomllib; json.dump(tomllib.load(open(sys.argv[1], 'rb')), sys.stdout)";

export const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

/** Adds the content hash to a file name: `name.js` becomes `name.0123456789abcdef.js`. */
export function nameByContent(name, bytes) {
  const dot = name.lastIndexOf(".");
  return `${name.slice(0, dot)}.${sha256(bytes).slice(0, HASH_CHARS)}${name.slice(dot)}`;
}

/** Minifies and drops comments: licences.txt has the full licences. */
export const SMALL = { minify: true, legalComments: "none" };

/**
 * Returns esbuild's options for one bundle whose files go to `outdir`. Importing one of Node's modules is an error.
 * noted: called with the inputs of the bundles that are built beside it.
 */
export function bundling(outdir, noted = () => undefined) {
  return {
    bundle: true,
    format: "esm",
    platform: "browser",
    target: "es2022",
    logLevel: "warning",
    // a checkout whose node_modules is a symbolic link must produce the same bytes
    preserveSymlinks: true,
    loader: { ".sql": "text" },
    plugins: [toml, template, picturesBeside(outdir), sqlite, wasmBeside(outdir), modulesBeside(outdir, noted)],
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

const picturesBeside = (outdir) => ({
  name: "pictures",
  setup(build) {
    const suffix = "?pictures";
    build.onResolve({ filter: /\?pictures$/ }, ({ path, resolveDir }) => ({
      path: join(resolveDir, path.slice(0, -suffix.length)),
      namespace: "pictures",
    }));
    build.onLoad({ filter: /.*/, namespace: "pictures" }, ({ path }) => {
      const names = readdirSync(path).filter((name) => name.endsWith(".svg")).sort();
      const texts = names.map((name) => [name.slice(0, -".svg".length), readFileSync(join(path, name), "utf8").trim()]);
      const bytes = Buffer.from(JSON.stringify(Object.fromEntries(texts)));
      const name = nameByContent(`${basename(path)}.json`, bytes);
      mkdirSync(outdir, { recursive: true });
      writeFileSync(join(outdir, name), bytes);
      return { contents: `export default ${JSON.stringify(`./${name}`)};`, loader: "js" };
    });
  },
});

/**
 * Strips a template's comments but keeps their marks, which remove the surrounding white space. Also strips the
 * indentation of statements, which the renderer would remove (`lstripBlocks`).
 */
const template = {
  name: "template",
  setup(build) {
    build.onLoad({ filter: /\.html$/ }, ({ path }) => ({
      contents: readFileSync(path, "utf8")
        .replace(/^\{#-[^]*?-#\}\s*/, "")
        .replace(/\{#(-?)[^]*?(-?)#\}/g, "{#$1 $2#}")
        .replace(/^[ \t]+(?=\{%[^+])/gm, ""),
      loader: "text",
    }));
  },
};

/**
 * Where SQLite's script checks whether a file system is disabled, for those that store/database.ts disables; and where
 * unused parts begin: JavaScript tables and a database driven by messages.
 */
const SWITCHED_OFF = [
  "if (sqlite3.config.disable?.vfs?.kvvfs) return;",
  'if (sqlite3.config.disable?.vfs?.opfs && sqlite3.config.disable.vfs["opfs-vfs"]) return;',
  "if (!sqlite3.opfs || sqlite3.config.disable?.vfs?.opfs) return;",
  'if (!sqlite3.opfs || sqlite3.config.disable?.vfs?.["opfs-wl"]) return;',
  "if (!sqlite3.wasm.exports.sqlite3_declare_vtab) return;",
];
const NEVER_CALLED = "sqlite3.initWorker1API = function() {";
const PROMISES = /\/\/#region src\/bin\/sqlite3-worker1-promiser\.mjs[^]*?\/\/#endregion/;

/** Cuts the script off at these places in the build, so that readers don't download the unused code. */
const sqlite = {
  name: "sqlite",
  setup(build) {
    build.onLoad({ filter: /sqlite-wasm\/dist\/index\.mjs$/ }, ({ path }) => {
      let contents = readFileSync(path, "utf8");
      const instead = (place, by) => {
        if (contents.split(place).length !== 2) throw new Error(`${path} has another text than ${place}`);
        contents = contents.replace(place, by);
      };
      for (const question of SWITCHED_OFF) instead(question, "return;");
      instead(NEVER_CALLED, `${NEVER_CALLED} return;`);
      instead(PROMISES, "const sqlite3_worker1_promiser_default = null;");
      return { contents, loader: "js" };
    });
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

// emits the same bytes beside a bundle for readers and beside one for the tests, so that both find them
const modulesBeside = (outdir, noted) => ({
  name: "modules",
  setup(outer) {
    const beside = (suffix, named) => {
      outer.onResolve({ filter: new RegExp(`\\.ts\\?${suffix}$`) }, ({ path, resolveDir }) => ({
        path: join(resolveDir, path.slice(0, -suffix.length - 1)),
        namespace: suffix,
      }));
      outer.onLoad({ filter: /.*/, namespace: suffix }, async ({ path }) => {
        const made = await build({ ...bundling(outdir, noted), ...SMALL, entryPoints: [path], metafile: true, write: false });
        noted(Object.keys(made.metafile.inputs));
        const [extension, contents] = await named(made.outputFiles[0].contents);
        const name = nameByContent(basename(path).replace(/\.ts$/, extension), contents);
        mkdirSync(outdir, { recursive: true });
        writeFileSync(join(outdir, name), contents);
        return { contents: `export default ${JSON.stringify(`./${name}`)};`, loader: "js" };
      });
    };
    beside("address", (script) => [".js", script]);
    beside("made", async (script) => [".sqlite", await database(script)]);
  },
});

/** Runs store/first_database.ts here and returns the database that it makes. */
async function database(script) {
  const folder = mkdtempSync(join(tmpdir(), "ownfeed-build-"));
  try {
    const path = join(folder, "made.mjs");
    writeFileSync(path, script);
    const { firstDatabase } = await import(pathToFileURL(path));
    return await firstDatabase(new Uint8Array(readFileSync(SQLITE)));
  } finally {
    rmSync(folder, { recursive: true });
  }
}

// node web/bundling.mjs ENTRY OUTFILE: makes one bundle, as the tests run it in Node
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [entry, outfile] = process.argv.slice(2);
  await build({ ...bundling(dirname(outfile)), entryPoints: [entry], outfile });
}
