// Bundles the page and the engine into dist/, a folder of static files for any host and any path.
//
//   node build.mjs [--check] [--mnist FOLDER] [--address URL] [--source URL] [--package URL] [--no-minify]
//
// It needs pkg/ and page-pkg/ from `cargo xtask web`: the full package and the page's part of it. `--mnist` copies MNIST's four
// files; without it, files that are already in dist/data/mnist are kept. `--check` fails if a visitor's download exceeds the
// limit. `--address` is the page's future address, for link previews; `--source` and `--package` are the addresses of the
// source and the npm package, for the links at the top. By default the source is the package's `repository`, if it has one, and
// the package its document.

import { build } from 'esbuild';
import { execFile } from 'node:child_process';
import { cp, mkdir, readFile, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { documents } from './documents.mjs';
import { packedCases } from './golden.mjs';

// The limit for everything that the page loads before it trains; docs/benchmarks.md lists the parts.
const LIMIT = 385_000;
const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const exists = (path) => stat(path).then(() => true, () => false);
const { values: flags } = parseArgs({
  options: { check: { type: 'boolean' }, mnist: { type: 'string' }, address: { type: 'string' }, source: { type: 'string' }, package: { type: 'string' }, 'no-minify': { type: 'boolean' } },
});

const [pkg, pagePkg, dist] = [here('pkg'), here('page-pkg'), here('dist')];
for (const file of [pkg, join(pkg, 'models'), pagePkg].flatMap((folder) => ['wgrad.js', 'wgrad_bg.wasm'].map((name) => join(folder, name)))) {
  if (!await exists(file)) {
    console.error(`${file} is missing: build the library first, with \`cargo xtask web\`.`);
    process.exit(1);
  }
}

// Data files are large and stay; everything else is rebuilt.
await mkdir(dist, { recursive: true });
for (const name of await readdir(dist)) if (name !== 'data') await rm(join(dist, name), { recursive: true });

const bindings = {
  name: 'bindings',
  setup: ({ onLoad }) => onLoad({ filter: /page-pkg.wgrad\.js$/ }, async ({ path }) => ({ contents: await renamed(await readFile(path, 'utf8')) })),
};
const common = { bundle: true, format: 'esm', target: ['es2022'], minify: !flags['no-minify'], legalComments: 'none', logLevel: 'warning' };
/** Page and engine are bundled separately: they share no code and communicate by messages. Lazy imports become separate files. */
const bundle = (name, entry, options = {}) => build({
  ...common, ...options, entryPoints: { [name]: here(entry) }, outdir: dist, splitting: true, chunkNames: '[name]-[hash]', metafile: true,
});
// The files of the GPU check, and the package that the examples import. They are loaded on request only.
const [golden] = await Promise.all([
  packedCases(),
  build({ ...common, entryPoints: { check: here('engine/check.ts') }, outdir: dist }),
  ...['', 'models'].flatMap((folder) => [
    build({ ...common, bundle: false, entryPoints: { wgrad: join(pkg, folder, 'wgrad.js') }, outdir: join(dist, 'pkg', folder) }),
    cp(join(pkg, folder, 'wgrad_bg.wasm'), join(dist, 'pkg', folder, 'wgrad_bg.wasm')),
  ]),
]);
await writeFile(join(dist, 'golden.bin.packed'), golden.bytes);
const define = { CHECK: JSON.stringify({ bytes: await checkBytes(), cases: golden.cases, version: await version() }) };
const [page, engine] = await Promise.all([
  bundle('main', 'page/main.ts', { define }),
  // Private fields of the bindings, which no other code names.
  bundle('engine', 'engine/engine.ts', { plugins: [bindings], mangleProps: /^__(wbg_ptr|destroy_into_raw|wrap)$|^_wbg_cb_unref$/ }),
  build({ ...common, entryPoints: { main: here('page/main.css'), later: here('page/later.css'), article: here('page/article.css') }, outdir: dist }),
]);
await cp(join(pagePkg, 'wgrad_bg.wasm.packed'), join(dist, 'wgrad_bg.wasm.packed'));
await cp(here('recording/recording.bin.packed'), join(dist, 'recording.bin.packed'));
await html();
for (const [from, to] of [['preview.png', 'preview.png'], ['page/icon.svg', 'icon.svg']]) await cp(here(from), join(dist, to));
if (await exists(here('examples'))) await cp(here('examples'), join(dist, 'examples'), { recursive: true });
await documents(here('..'), join(dist, 'docs'));
await licences();
await data();
await sizes();

/** An address that may appear in the document. */
function link(flag, address) {
  if (!URL.canParse(address) || !/^https?:$/.test(new URL(address).protocol)) {
    console.error(`${flag} is ${address}; it takes an address that begins with https://`);
    process.exit(1);
  }
  return new URL(address).href.replaceAll('&', '&amp;').replaceAll('"', '%22');
}

async function checkBytes() {
  const files = ['check.js', 'golden.bin.packed', 'pkg/wgrad.js', 'pkg/wgrad_bg.wasm'];
  return (await Promise.all(files.map((name) => stat(join(dist, name))))).reduce((sum, { size }) => sum + size, 0);
}

/** The package's version, with the commit if available. */
async function version() {
  const { version } = JSON.parse(await readFile(join(pkg, 'package.json'), 'utf8'));
  const commit = await promisify(execFile)('git', ['rev-parse', '--short', 'HEAD'], { cwd: here('.') }).then(({ stdout }) => ` (${stdout.trim()})`, () => '');
  return version + commit;
}

/** Files that `name` imports at its start, including itself, which is first. */
function imported({ metafile: { outputs } }, name) {
  const files = new Map(Object.entries(outputs).map(([file, output]) => [basename(file), output]));
  const found = new Set([name]);
  for (const file of found) {
    for (const { kind, path } of files.get(file).imports) if (kind === 'import-statement') found.add(basename(path));
  }
  return [...found];
}

/** The document; it makes the browser fetch early what the scripts will need. */
async function html() {
  const text = await readFile(here('index.html'), 'utf8');
  const parts = imported(page, 'main.js').slice(1);
  const script = '<script type="module" src="main.js">';
  if (!text.includes(script)) throw new Error(`index.html lacks ${script}`);
  const links = parts.map((name) => `<link rel="modulepreload" href="${name}">\n`).join('');
  let document = text.replace(script, `${links}${script}`);
  const replace = (old, now) => {
    if (!document.includes(old)) throw new Error(`index.html lacks ${old}`);
    document = document.replace(old, () => now);
  };
  // Previews of links need absolute addresses.
  if (flags.address) {
    const address = new URL(flags.address.replace(/\/?$/, '/')).href;
    document = document.replace('content="preview.png"', `content="${address}preview.png"`)
      .replace('<meta property="og:type"', `<link rel="canonical" href="${address}">\n<meta property="og:url" content="${address}">\n<meta property="og:type"`);
  }
  const { repository } = JSON.parse(await readFile(join(pkg, 'package.json'), 'utf8'));
  const source = flags.source ?? (typeof repository === 'string' ? repository : repository?.url)?.replace(/^git\+|\.git$/g, '');
  if (source) replace('</nav>\n</header>', ` <a href="${link('--source', source)}">Source</a></nav>\n</header>`);
  if (flags.package) replace('<a href="docs/web.html">', `<a href="${link('--package', flags.package)}">`);
  await writeFile(join(dist, 'index.html'), document);
}

/**
 * The page's bindings with the short names of its wasm's imports and exports: wasm-bindgen's own names end in hashes, and two
 * hundred of them are kilobytes that do not compress. Each name must be where it is expected, or the page would fail at its
 * start.
 */
async function renamed(text) {
  const file = join(pagePkg, 'names.json');
  if (!await exists(file)) return text; // wasm-opt, which assigns them, was missing
  const { imports, exports } = JSON.parse(await readFile(file, 'utf8'));
  const [{ module }] = WebAssembly.Module.imports(new WebAssembly.Module(await readFile(join(pagePkg, 'wgrad_bg.wasm'))));
  const replace = (old, short) => {
    const parts = text.split(old);
    if (parts.length !== 2) throw new Error(`The bindings hold '${old}' ${parts.length - 1} times, not once: wasm-bindgen writes them in another way now.`);
    text = parts.join(short);
  };
  for (const [, old, short] of imports) replace(` ${old}: function(`, ` ${short}(`);
  for (const old of new Set(imports.map(([old]) => old))) replace(`"${old}": `, `"${module}": `);
  const known = new Map(exports);
  return text.replace(/\bwasm\.(\w+)/g, (_, name) => {
    if (!known.has(name)) throw new Error(`The bindings use '${name}', which the wasm does not export.`);
    return `wasm.${known.get(name)}`;
  });
}

/** The licences of third-party code in the bundles. */
async function licences() {
  const texts = await Promise.all(['uplot', 'idb-keyval'].map(async (name) => {
    const folder = here(`node_modules/${name}`);
    const file = (await readdir(folder)).find((file) => /^licen[cs]e/i.test(file));
    if (!file) throw new Error(`${name} has no licence file.`);
    return `${name}\n\n${await readFile(join(folder, file), 'utf8')}`;
  }));
  // And of the wasm. Packages of older builds do not have this file.
  const compiled = join(pkg, 'THIRD-PARTY-LICENSES.txt');
  if (flags.check || await exists(compiled)) texts.push(await readFile(compiled, 'utf8'));
  await writeFile(join(dist, 'LICENSES.txt'), texts.join('\n\n'));
}

/** A list of the available data files: the page requests no others. */
async function data() {
  const folder = join(dist, 'data', 'mnist');
  await mkdir(folder, { recursive: true });
  const known = (name) => /^(train|t10k)-(images-idx3|labels-idx1)-ubyte(\.gz)?$/.test(name);
  if (flags.mnist) {
    for (const name of (await readdir(flags.mnist)).filter(known)) {
      await cp(join(flags.mnist, name), join(folder, name), { force: true });
    }
  }
  const names = (await readdir(folder)).filter(known).sort();
  const files = await Promise.all(names.map(async (name) => ({ name, bytes: (await stat(join(folder, name))).size })));
  await writeFile(join(folder, 'index.json'), `${JSON.stringify({ files }, null, 2)}\n`);
}

async function sizes() {
  // Files that are already compressed are sent unchanged.
  const packed = async (name) => {
    const bytes = await readFile(join(dist, name));
    return { bytes: bytes.length, packed: name.endsWith('.packed') ? bytes.length : gzipSync(bytes, { level: 9 }).length };
  };
  const list = async (names) => {
    let total = 0;
    for (const name of names) {
      const size = await packed(name);
      total += size.packed;
      console.log(`  ${name.padEnd(24)} ${String(size.packed).padStart(8)} B  (${size.bytes} unpacked)`);
    }
    return total;
  };
  const first = ['index.html', 'main.css', ...imported(page, 'main.js'), ...imported(engine, 'engine.js'), 'wgrad_bg.wasm.packed'];
  console.log('what a visitor downloads before the first step, packed by gzip -9');
  const total = await list(first);
  console.log(`  ${'total'.padEnd(24)} ${String(total).padStart(8)} B  (limit ${LIMIT})`);
  console.log('what follows once it is over, or where it is asked for');
  await list((await readdir(dist)).filter((name) => /\.(js|css|json|packed)$/.test(name) && name !== 'article.css' && !first.includes(name)).sort());
  if (flags.check && total > LIMIT) {
    console.error(`The page is ${total - LIMIT} B too large.`);
    process.exit(1);
  }
}
