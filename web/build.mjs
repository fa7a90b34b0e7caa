// Builds the browser's device into web/static/device: files named by their content hash, and manifest.json.
//
//   node web/build.mjs [FOLDER]
//
// The service worker holds the page's HTML and the hashes of all other files, so its own SHA-256 identifies the build.
// Compressible files are stored only as gzip (made with Zopfli) and served that way, which keeps the wheel small.
import { mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, extname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import zopfli from "@gfx/zopfli";
import { build } from "esbuild";
import { Environment } from "minijinja-js";
import { SMALL, bundling, nameByContent, sha256 } from "./bundling.mjs";

const WEB = dirname(fileURLToPath(import.meta.url));
const OUT = resolve(process.argv[2] ?? join(WEB, "static", "device"));
const FILES_PATH = "/reader/files/";
const TYPES = {
  ".js": "text/javascript",
  ".css": "text/css",
  ".wasm": "application/wasm",
  ".json": "application/json",
  ".sqlite": "application/vnd.sqlite3",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".webmanifest": "application/manifest+json",
  ".html": "text/html; charset=utf-8",
  ".txt": "text/plain; charset=utf-8",
};
const STORED_AS_THEY_ARE = new Set([".png"]);
const ICONS = ["icon.svg", "icon-192.png", "icon-512.png", "icon-maskable-512.png"];

// Larger files are compressed with zlib: Zopfli takes about a second per half megabyte.
const ZOPFLI_LIMIT_BYTES = 2_000_000;
const ZOPFLI = { numiterations: 5 };

const files = {};

async function compressed(bytes) {
  if (bytes.length > ZOPFLI_LIMIT_BYTES) return gzipSync(bytes, { level: 9 });
  return zopfli.gzipAsync(bytes, ZOPFLI);
}

async function keep(name, bytes, named = nameByContent(name, bytes)) {
  const compresses = !STORED_AS_THEY_ARE.has(extname(name));
  files[named] = { sha256: sha256(bytes), bytes: bytes.length, type: TYPES[extname(name)], gzip: compresses };
  writeFileSync(join(OUT, compresses ? `${named}.gz` : named), compresses ? await compressed(bytes) : bytes);
  return named;
}

const inputs = new Set();

async function bundled(entry, options = {}) {
  const made = await build({
    ...bundling(OUT, (more) => more.forEach((each) => inputs.add(each))),
    ...SMALL,
    absWorkingDir: WEB,
    entryPoints: [join(WEB, entry)],
    metafile: true,
    write: false,
    ...options,
  });
  for (const each of Object.keys(made.metafile.inputs)) inputs.add(each);
  return made.outputFiles[0].contents;
}

/** Full licence texts of the packages in the bundles. */
function licences() {
  const packages = new Set([...inputs].map((path) => /node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(path)?.[1]).filter(Boolean));
  return [...packages].sort().map((name) => {
    const folder = join(WEB, "node_modules", name);
    const { version, license, author } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
    const by = typeof author === "string" ? author : (author?.name ?? "");
    const text = file ? readFileSync(join(folder, file), "utf8") : `${license}. ${by}`;
    return `${name} ${version} (${license})\n\n${text.trim()}\n`;
  }).join("\n----\n\n");
}

/** The web app manifest of the reader's app, whose pages are fragments of a single address. */
function webManifest(icons) {
  const known = JSON.parse(readFileSync(join(WEB, "static", "ownfeed.webmanifest"), "utf8"));
  const here = "/reader/";
  return {
    ...known,
    id: here,
    start_url: here,
    scope: here,
    icons: known.icons.map((icon) => ({ ...icon, src: FILES_PATH + icons[icon.src] })),
    shortcuts: known.shortcuts.map((one) => ({ ...one, url: `${here}#${one.url}` })),
  };
}

rmSync(OUT, { recursive: true, force: true });
mkdirSync(OUT, { recursive: true });

const worker = await keep("worker.js", await bundled("device/worker.ts"));
const app = await keep("app.js", await bundled("device/app.ts"));
const look = await keep("look.js", await bundled("static/js/look.js", { format: "iife" }));
const style = await keep("pages.css", await bundled("static/css/pages.css"));
// what bundles have laid beside themselves, named already
for (const name of readdirSync(OUT).filter((each) => /\.(?:wasm|js|sqlite|json)$/.test(each))) {
  await keep(name, readFileSync(join(OUT, name)), name);
  rmSync(join(OUT, name));
}
const icons = {};
for (const name of ICONS) icons[name] = await keep(name, readFileSync(join(WEB, "static", name)));
const manifest = await keep("reader.webmanifest", Buffer.from(JSON.stringify(webManifest(icons))));
const licenceTexts = await keep("licences.txt", Buffer.from(licences()));

const templates = new Environment();
templates.addTemplate("shell.html", readFileSync(join(WEB, "templates", "reader", "shell.html"), "utf8"));
const at = (name) => FILES_PATH + name;
const shell = templates.renderTemplate("shell.html", {
  app: at(app), worker: at(worker), look: at(look), style: at(style), manifest: at(manifest),
  icon: at(icons["icon.svg"]), touch_icon: at(icons["icon-192.png"]),
});
const headers = JSON.parse(readFileSync(join(WEB, "reader_headers.json"), "utf8"));
const hashes = Object.entries(files).map(([name, file]) => ({ name, sha256: file.sha256, type: file.type }));
const installed = { shell, headers, files: hashes };
const serviceWorkerBytes = await bundled("device/service_worker.ts", {
  format: "iife",
  define: { INSTALLED: JSON.stringify(installed) },
});
const serviceWorker = await keep("service_worker.js", serviceWorkerBytes);

const manifestFile = {
  build: sha256(serviceWorkerBytes),
  script: serviceWorker,
  entries: { app, worker, style, manifest, licences: licenceTexts },
  headers,
  shell,
  files,
};
writeFileSync(join(OUT, "manifest.json"), `${JSON.stringify(manifestFile, null, 1)}\n`);
const all = Object.keys(files).length;
console.log(`The browser's device: ${all} files in ${relative(process.cwd(), OUT) || "."}, build ${manifestFile.build.slice(0, 16)}`);
