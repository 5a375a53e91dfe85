// The npm package: its contents, its types, tools that check packages, and bundlers that include it.
//
// Each folder of `bundlers` is a project with the package installed, built by the commands in docs/web.md.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { promisify } from 'node:util';
import { serve } from '../serve.mjs';
import { browserName, isChromium, launch, root } from './driver.mjs';

const run = promisify(execFile);
const pkg = path.join(root, 'web/pkg');
const bundlers = path.join(root, 'web/tests/bundlers');
const tools = path.join(bundlers, 'node_modules');
const windows = process.platform === 'win32';
const program = (name) => path.join(tools, '.bin', windows ? `${name}.cmd` : name);

/** Runs a program of `bundlers`; if it fails, the error contains its output. */
async function tool(name, args, options = {}) {
  try {
    return (await run(program(name), args, { maxBuffer: 1 << 26, shell: windows, ...options })).stdout;
  } catch (error) {
    throw new Error(`${name} ${args.join(' ')} failed:\n${error.stdout}\n${error.stderr}`);
  }
}

/** The examples of a document as one program: each continues from the previous one. */
function documented(document) {
  // This one has both modules.
  const [module, file] = document === 'web.md' ? ['wgrad/models', 'models/wgrad.d.ts'] : ['wgrad', 'wgrad.d.ts'];
  const types = readFileSync(path.join(pkg, file), 'utf8');
  // A function with overloads is one name.
  const exported = [...types.matchAll(/^export (?:class|function) (\w+)/gm)].map(([, name]) => name);
  const names = [...new Set(exported)].filter((name) => name !== 'initSync');
  const text = readFileSync(path.join(root, 'docs', document), 'utf8');
  // Blocks of code, and the rows of tables whose middle column is code.
  const examples = [...text.matchAll(/^```js\n(.*?)^```$|^\| `[^\n]*` \| `([^\n]*)` \| `[^\n]*` \|$/gms)].map(([, block, row]) => block ?? `await (${row});\n`);
  assert.ok(examples.length >= 8, `${document}: ${examples.length} examples`);
  return [
    `import init, { ${names.join(', ')} } from '${module}';`,
    // Variables that the reader has.
    'declare const imagesFile: Uint8Array, labelsFile: Uint8Array, kept: Uint8Array, stop: AbortController, input: HTMLInputElement;',
    document === 'web.md' ? '' : 'declare const device: Device;',
    // Lines shown as errors must be errors.
    ...examples.map((code) => code.replace(/^import .*$/gm, '').replace(/^.*\/\/ TypeError: /gm, '// @ts-expect-error\n$&')),
  ].join('\n');
}

describe(`the npm package in ${browserName}`, () => {
  let folder;
  let packed;
  let browser;

  before(async () => {
    folder = mkdtempSync(path.join(os.tmpdir(), 'wgrad-package-'));
    const { stdout } = await run('npm', ['pack', '--json', '--pack-destination', folder], { cwd: pkg, shell: windows });
    [packed] = Object.values(JSON.parse(stdout));
    await run('tar', ['-xzf', path.join(folder, packed.filename), '-C', folder]);
    browser = await launch();
  });

  after(async () => {
    await browser?.close();
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  });

  /** A copy of a project with the package installed. */
  function project(name) {
    const at = path.join(folder, 'projects', name);
    mkdirSync(path.join(at, 'node_modules'), { recursive: true });
    cpSync(path.join(bundlers, name), at, { recursive: true });
    cpSync(path.join(folder, 'package'), path.join(at, 'node_modules/wgrad'), { recursive: true });
    return at;
  }

  /** Opens a page, waits for its sum, and requires an empty console. */
  async function opens(url) {
    const page = await browser.page();
    try {
      await page.goto(url);
      await page.until(() => 'result' in globalThis, { what: `the script of ${url}`, timeout: 60_000 });
      assert.equal(await page.eval(() => globalThis.result), 6.5);
      assert.deepEqual(page.problems, []);
    } finally {
      await page.close();
    }
  }

  async function opensFiles(at) {
    const server = await serve([['/', at]]);
    try {
      await opens(server.url);
    } finally {
      await server.close();
    }
  }

  it('holds the module, its types, the wasm and all licences, and nothing else', () => {
    assert.deepEqual(packed.files.map(({ path: name }) => name).sort(), [
      'LICENSE-APACHE', 'LICENSE-MIT', 'README.md', 'THIRD-PARTY-LICENSES.txt', 'models/wgrad.d.ts', 'models/wgrad.js', 'models/wgrad_bg.wasm', 'models/wgrad_bg.wasm.d.ts',
      'package.json', 'tensorflow-js.md',
      'wgrad.d.ts', 'wgrad.js', 'wgrad_bg.wasm', 'wgrad_bg.wasm.d.ts',
    ]);
    const licences = readFileSync(path.join(folder, 'package/THIRD-PARTY-LICENSES.txt'), 'utf8');
    for (const crate of ['wgpu', 'js-sys', 'wasm-bindgen', 'ndarray', 'half']) {
      assert.match(licences, new RegExp(`^${crate} \\d\\S*  \\(`, 'm'), `no licence of ${crate}`);
    }
  });

  it('is found right by publint and by arethetypeswrong', { skip: !isChromium && 'once is enough: no browser is in it' }, async () => {
    const linted = await tool('publint', ['run', '--strict', pkg]);
    assert.match(linted, /All good!/);
    const typed = JSON.parse(await tool('attw', [
      path.join(folder, packed.filename), '--profile', 'esm-only', '--format', 'json',
    ]));
    assert.equal(typed.analysis.types.kind, 'included');
    const found = Object.values(typed.problems ?? {}).flat().filter(({ kind }) => kind !== 'CJSResolvesToESM');
    assert.deepEqual(found, []);
  });

  it('has types without the wasm in them, right for strict programs', { skip: !isChromium && 'once is enough: no browser is in it' }, async () => {
    for (const file of ['wgrad.d.ts', 'models/wgrad.d.ts']) {
      const types = readFileSync(path.join(folder, 'package', file), 'utf8');
      for (const raw of [/r" /, /InitOutput/, /__w/, /[:>] any\b/, /^\s*_\w+\(/m]) assert.equal(types.match(raw)?.[0], undefined);
    }
    const at = project('types');
    await tool('tsc', ['--project', at]);
    for (const name of ['web', 'tensorflow-js']) writeFileSync(path.join(at, `${name}.ts`), documented(`${name}.md`));
    await tool('tsc', ['--project', path.join(at, 'docs.json')]);
  });

  it('works as plain files', () => opensFiles(project('plain')));

  it('is taken along by esbuild, with the wasm copied', async () => {
    const at = project('esbuild');
    await tool('esbuild', ['main.js', '--bundle', '--format=esm', '--outdir=dist'], { cwd: at });
    cpSync(path.join(at, 'node_modules/wgrad/wgrad_bg.wasm'), path.join(at, 'dist/wgrad_bg.wasm'));
    cpSync(path.join(at, 'index.html'), path.join(at, 'dist/index.html'));
    await opensFiles(path.join(at, 'dist'));
  });

  it('is taken along by esbuild, with the wasm imported', async () => {
    const at = project('esbuild-import');
    await tool('esbuild', ['main.js', '--bundle', '--format=esm', '--outdir=dist', '--loader:.wasm=file'], { cwd: at });
    cpSync(path.join(at, 'index.html'), path.join(at, 'dist/index.html'));
    await opensFiles(path.join(at, 'dist'));
  });

  it('is taken along by webpack', async () => {
    const at = project('webpack');
    await tool('webpack', ['--mode', 'production'], { cwd: at, env: { ...process.env, NODE_PATH: tools } });
    cpSync(path.join(at, 'index.html'), path.join(at, 'dist/index.html'));
    assert.ok(readdirSync(path.join(at, 'dist')).some((name) => name.endsWith('.wasm')));
    await opensFiles(path.join(at, 'dist'));
  });

  it('is taken along by Vite', async () => {
    const at = project('vite');
    await tool('vite', ['build', '--logLevel', 'warn'], { cwd: at });
    await opensFiles(path.join(at, 'dist'));
  });

  it('is served by Vite while one develops', async () => {
    const at = project('vite');
    const vite = spawn(program('vite'), ['--host', 'localhost', '--port', '0'], { cwd: at, shell: windows });
    try {
      let said = '';
      const url = await new Promise((resolve, reject) => {
        const hear = (text) => {
          said += text;
          // Its output is coloured.
          const found = /http:\/\/localhost:\d+\//.exec(said.replace(/\x1b\[\d+m/g, ''));
          if (found) resolve(found[0]);
        };
        vite.stdout.on('data', hear);
        vite.stderr.on('data', hear);
        vite.once('exit', (code) => reject(new Error(`vite ended with ${code}: ${said}`)));
      });
      await opens(url);
    } finally {
      vite.kill();
    }
  });
});
