// Times how exported models load and run in one Chromium, beside onnxruntime-web and TensorFlow.js, in one run.
//
//   node models.mjs --models FOLDER [--rounds N] [--only WAY,..]
//
// `cargo xtask bench --web --models` calls it with the folder that tests/web/exported.rs has filled. TensorFlow.js reads what its
// converter makes, which is Python's: pip install tensorflowjs, and name the program by WGRAD_TFJS_CONVERTER if it is not in the
// PATH. Without it, TensorFlow.js is left out.
//
// Each way and model has a page of its own in each round, with empty storage; an exported module, which has one size of batch, has one
// for each batch. The results must be those of the native program. What fails, or takes longer than a minute, is refused, with a
// reason. Prints tables for docs/benchmarks.md.

import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { serve } from '../../../web/serve.mjs';
import { launch } from '../../../web/tests/driver.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.resolve(here, '../../..');
const { values: flags } = parseArgs({
  options: { models: { type: 'string' }, rounds: { type: 'string', default: '3' }, only: { type: 'string' } },
});
const rounds = Number(flags.rounds);
if (!Number.isInteger(rounds) || rounds < 1) throw new Error(`--rounds takes a whole number from 1 on, not ${flags.rounds}`);
if (flags.models === undefined) throw new Error('--models names the folder of the models; `cargo xtask bench --web --models` makes it');
const MODELS = ['mlp', 'cnn', 'transformer'];
const TITLES = {
  exported: '`export_webgpu`', wgrad: '`wgrad/models`, from ONNX', 'ort-webgpu': 'onnxruntime-web, WebGPU', 'ort-wasm': 'onnxruntime-web, wasm',
  'tfjs-webgpu': 'TensorFlow.js, WebGPU', 'tfjs-wasm': 'TensorFlow.js, wasm',
};
const BATCHES = [1, 32];
const CALLS = { warm: 5, calls: 50, most: 3000 };
/** Milliseconds after which a page is given up. */
const LIMIT = 60_000;
/** The largest difference from the native result, relative to the largest number. */
const TOLERANCE = 1e-4;

const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const packed = (file) => gzipSync(readFileSync(file), { level: 9 }).length;

const site = mkdtempSync(path.join(os.tmpdir(), 'wgrad-models-'));
const converted = path.join(site, 'tfjs');
const converter = process.env.WGRAD_TFJS_CONVERTER ?? 'tensorflowjs_converter';
const refused = {};
const convert = (name) => {
  const words = ['--input_format=tf_saved_model', '--saved_model_tags=serve', path.join(flags.models, name), path.join(converted, name)];
  const { error, status, stderr } = spawnSync(converter, words, { encoding: 'utf8' });
  if (error) return false;
  if (status !== 0) refused[`TensorFlow.js's converter, ${name}`] = stderr.trim().split('\n').at(-1);
  return true;
};
const hasConverter = MODELS.map(convert).every(Boolean);
if (!hasConverter) console.log(`TensorFlow.js is left out: there is no ${converter}`);
const known = Object.keys(TITLES).filter((way) => hasConverter || !way.startsWith('tfjs'));
const ways = flags.only === undefined ? known : flags.only.split(',');
for (const way of ways) if (!known.includes(way)) throw new Error(`--only takes some of ${known.join(', ')}, not ${way}`);

await build({
  entryPoints: [path.join(here, 'models.js')], outdir: site, bundle: true, splitting: true, format: 'esm', minify: true, target: ['es2022'],
  legalComments: 'none', logLevel: 'error',
});
writeFileSync(path.join(site, 'index.html'), '<!doctype html><title>models</title><link rel="icon" href="data:,"><script type="module" src="models.js"></script>');
const of = (name) => path.join(here, 'node_modules', name);
const server = await serve([
  ['/models/', path.resolve(flags.models)], ['/pkg/', path.join(root, 'web/pkg')], ['/ort/', path.join(of('onnxruntime-web'), 'dist')],
  ['/tfjs-wasm/', path.join(of('@tensorflow/tfjs-backend-wasm'), 'dist')], ['/', site],
], { headers: { 'Content-Security-Policy': "default-src 'self' data: blob: 'unsafe-eval' 'wasm-unsafe-eval'" } });
let browser = await launch();
const chromium = browser.version.replace(/^.*\//, 'Chromium ');

/** The inputs of each batch, and the native results. */
const cases = Object.fromEntries(MODELS.map((name) => [name, BATCHES.map((batch) => {
  const { inputs: [input], outputs: [output] } = JSON.parse(readFileSync(path.join(flags.models, `${name}-${batch}`, 'expected.json'), 'utf8'));
  const integers = name === 'transformer';
  return { input, output, integers, shape: integers ? [batch, 12] : [batch, 28, 28, 1] };
})]));

/** Fetches what the server compresses at its first request. */
async function warm() {
  const of = (at, folder, some = /\.(js|json|wasm)$/) => readdirSync(folder).filter((name) => some.test(name)).map((name) => at + name);
  const files = [
    ...of('', site), ...of('pkg/models/', path.join(root, 'web/pkg/models')), 'ort/ort-wasm-simd-threaded.wasm', 'ort/ort-wasm-simd-threaded.asyncify.wasm',
    'tfjs-wasm/tfjs-backend-wasm-simd.wasm',
  ];
  for (const file of files) await (await fetch(server.url + file, { headers: { 'Accept-Encoding': 'gzip, deflate, br, zstd' } })).arrayBuffer();
}

/** The cases are some of the model's. */
async function measure(way, name, cases) {
  const page = await browser.page();
  let late;
  try {
    await page.goto(`${server.url}index.html`);
    await page.until(() => 'measure' in globalThis, { what: 'the script' });
    const given = cases.map(({ output, ...rest }) => rest);
    const run = page.eval((...all) => globalThis.measure(...all), way, name, given, CALLS);
    const limit = new Promise((_, reject) => { late = setTimeout(() => reject(new Error(`not within ${LIMIT / 1000} s`)), LIMIT); });
    const got = await Promise.race([run, limit]);
    for (const [i, { output }] of cases.entries()) {
      const largest = Math.max(...output.map(Math.abs));
      const off = Math.max(...output.map((value, at) => Math.abs(value - got.results[i][at])));
      if (got.results[i].length !== output.length || !(off <= TOLERANCE * largest)) {
        throw new Error(`the results of ${cases[i].shape[0]} examples are off by ${off} of ${largest}`);
      }
    }
    await page.close();
    return got;
  } catch (error) {
    // The browser's process for the adapter may still be busy, or be lost.
    const old = browser;
    browser = await launch();
    await Promise.race([old.close().catch(() => {}), new Promise((done) => { setTimeout(done, 5000); })]);
    throw error;
  } finally {
    clearTimeout(late);
  }
}

const figures = {};
let adapter;
try {
  const page = await browser.page();
  await page.goto(`${server.url}index.html`);
  await page.until(() => 'adapter' in globalThis, { what: 'the script' });
  adapter = await page.eval(() => globalThis.adapter());
  await page.close();
  await warm();
  for (let round = 1; round <= rounds; round += 1) {
    for (const name of MODELS) {
      // The first way changes with each round, so that none always follows the same other one.
      for (const way of ways.map((_, i) => ways[(i + round) % ways.length])) {
        const parts = way === 'exported' ? cases[name].map((one) => [one]) : [cases[name]];
        for (const part of parts) {
          const sizes = part.map(({ shape }) => shape[0]);
          const key = `${way}, ${name}, batch ${sizes.join(' and ')}`;
          if (refused[key]) continue;
          try {
            const { loaded, first, later } = await measure(way, name, part);
            for (const [i, time] of later.entries()) (figures[`${way} ${name} ${sizes[i]}`] ??= []).push(time);
            if (sizes[0] === BATCHES[0]) (figures[`${way} ${name}`] ??= []).push([loaded, first]);
          } catch (error) {
            refused[key] = error.message.split('\n')[0];
          }
        }
      }
    }
    console.log(`round ${round} of ${rounds}, load average ${os.loadavg()[0].toFixed(1)}`);
  }
} finally {
  await browser.close();
  await server.close();
}

const git = (...words) => execFileSync('git', ['-C', root, ...words], { encoding: 'utf8' }).trim();
const version = (name) => JSON.parse(readFileSync(path.join(of(name), 'package.json'), 'utf8')).version;
const changed = git('status', '--porcelain', '--', '.', ':!docs') === '' ? '' : ' with changes';
console.log(`\n${adapter}, in ${chromium}, ${os.cpus().length} cores; wgrad ${git('rev-parse', '--short', 'HEAD')}${changed}, `
  + `onnxruntime-web ${version('onnxruntime-web')}, TensorFlow.js ${version('@tensorflow/tfjs-core')}; medians of ${rounds} rounds; ${new Date().toISOString().slice(0, 10)}.\n`);
const digits = (value) => (value >= 100 ? value.toFixed(0) : value.toPrecision(3));
const table = (title, heads, cells) => {
  console.log(`| ${[title, ...heads].join(' | ')} |`);
  console.log(`|${'---|'.repeat(heads.length + 1)}`);
  for (const way of ways) {
    const row = cells(way);
    console.log(`| ${[TITLES[way], ...row].join(' | ')} |`);
  }
  console.log('');
};
table('load + first result, ms', MODELS, (way) => MODELS.map((name) => {
  const all = figures[`${way} ${name}`];
  return all === undefined ? 'refused' : [0, 1].map((at) => digits(median(all.map((row) => row[at])))).join(' + ');
}));
const pairs = MODELS.flatMap((name) => BATCHES.map((batch) => [name, batch]));
table('later calls, ms', pairs.map(([name, batch]) => `${name}, ${batch}`), (way) => pairs.map(([name, batch]) => {
  const all = figures[`${way} ${name} ${batch}`];
  return all === undefined ? 'refused' : digits(median(all));
}));
for (const [key, why] of Object.entries(refused)) console.log(`refused: ${key}: ${why}`);
console.log('graphs without weights, bytes after gzip -9:');
for (const name of MODELS) {
  const tfjs = path.join(converted, name, 'model.json');
  console.log(`  ${name}: ONNX ${packed(path.join(flags.models, `${name}-apart.onnx`))}, TensorFlow.js ${existsSync(tfjs) ? packed(tfjs) : 'none'}`);
}
console.log('code, bytes after gzip -9:');
for (const file of ['ort.webgpu.bundle.min.mjs', 'ort-wasm-simd-threaded.asyncify.wasm', 'ort.wasm.bundle.min.mjs', 'ort-wasm-simd-threaded.wasm']) {
  console.log(`  ${file} ${packed(path.join(of('onnxruntime-web'), 'dist', file))}`);
}
for (const file of readdirSync(path.join(root, 'web/pkg/models')).filter((name) => /\.(js|wasm)$/.test(name))) {
  console.log(`  wgrad/models ${file} ${packed(path.join(root, 'web/pkg/models', file))}`);
}
rmSync(site, { recursive: true, force: true });
