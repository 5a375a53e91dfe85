// Compares wgrad with TensorFlow.js and jax-js on one adapter, in one Chromium, in one run.
//
//   node bench.mjs [--json FILE] [--rounds N] [--quick] [--model mlp|cnn]
//
// With --quick or --model, docs/benchmarks.md is not changed.
//
// Each library has a page. First all train from the same weights, and their losses must agree. A round then runs some steps of
// each library, one after another; each step uploads its batch and reads its loss. A ratio is how many times as fast (or, for
// bytes, as small) wgrad is, the median over all rounds.

import { readFileSync, writeFileSync, mkdtempSync, cpSync, rmSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { build } from 'esbuild';
import { DIGITS } from './cases.js';
import { serve } from '../../../web/serve.mjs';
import { launch } from '../../../web/tests/driver.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.resolve(here, '../../..');
const { values: flags } = parseArgs({
  options: { json: { type: 'string' }, rounds: { type: 'string', default: '5' }, quick: { type: 'boolean' }, model: { type: 'string' } },
});
const rounds = flags.quick ? 1 : Number(flags.rounds);
if (!Number.isInteger(rounds) || rounds < 1) throw new Error(`--rounds takes a whole number from 1 on, not ${flags.rounds}`);
const MODELS = ['mlp', 'cnn'].filter((name) => flags.model === undefined || name === flags.model);
if (!MODELS.length) throw new Error(`--model takes mlp or cnn, not ${flags.model}`);
const PEERS = ['tfjs', 'jax'];
const LIBRARIES = ['wgrad', ...PEERS];
/** TensorFlow.js a second time, from its union package. */
const WHOLE = 'tfjs-whole';
const TITLES = { wgrad: 'wgrad', tfjs: 'TensorFlow.js', jax: 'jax-js' };
/**
 * The numbers of steps for comparing, for the warm-up and in a round. The other libraries need seconds per step of the CNN on a
 * software driver.
 */
const STEPS = { mlp: { compared: 5, warm: 20, each: flags.quick ? 10 : 40 }, cnn: { compared: 3, warm: 1, each: 1 } };
const NAMES = { mlp: 'MLP 784-100-10, batch 50', cnn: 'CNN of 3.3 M parameters, batch 50' };
/** The largest relative difference of two losses that counts as rounding, which training steps amplify. */
const TOLERANCE = 1e-2;

const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};
const packed = (file) => gzipSync(readFileSync(file), { level: 9 }).length;

const site = mkdtempSync(path.join(os.tmpdir(), 'wgrad-bench-'));
for (const name of [...LIBRARIES, WHOLE]) {
  const folder = path.join(site, name);
  await build({
    entryPoints: [path.join(here, `${name}.js`)], outdir: folder, bundle: true, splitting: true, format: 'esm', minify: true,
    target: ['es2022'], legalComments: 'none', logLevel: 'error',
  });
  const page = `<!doctype html><title>${name}</title><link rel="icon" href="data:,"><script type="module" src="${name}.js"></script>`;
  writeFileSync(path.join(folder, 'index.html'), page);
}
cpSync(path.join(root, 'web/pkg/wgrad_bg.wasm'), path.join(site, 'wgrad/wgrad_bg.wasm'));
// TensorFlow.js evaluates code, which a strict policy forbids; jax-js creates its own workers.
const policy = { 'Content-Security-Policy': "default-src 'self' data: blob: 'unsafe-eval'" };
const server = await serve([['/', site]], { headers: policy });
const browser = await launch();
const chromium = browser.version.replace(/^.*\//, 'Chromium ');

/** Opens a library's page, which has loaded its scripts but done nothing else. */
async function visit(name) {
  const page = await browser.page();
  await page.goto(`${server.url}${name}/index.html`);
  await page.until(() => 'prepare' in globalThis, { what: `the scripts of ${name}` });
  return page;
}

/** Milliseconds from the navigation to the loss of the first step, and the files that the page has loaded by then. */
async function firstStep(name, model) {
  const page = await visit(name);
  const { ms, loss, urls } = await page.eval(async (chosen) => {
    await globalThis.open();
    await globalThis.prepare(chosen);
    const value = await globalThis.step();
    const end = performance.now();
    return { ms: end, loss: value, urls: performance.getEntriesByType('resource').map((entry) => entry.name) };
  }, model);
  if (!(loss > 1 && loss < 5)) throw new Error(`${name}'s first loss is ${loss}`);
  await page.close();
  const fetched = urls.filter((url) => url.startsWith(server.url)).map((url) => path.join(site, url.slice(server.url.length)));
  return { ms, fetched: [...new Set(fetched)] };
}

/**
 * Seconds from the navigation until a library has learned the digits, and the number of steps. wgrad generates its `weights`
 * itself.
 */
async function learned(name, weights) {
  const page = await visit(name);
  const { ms, steps, share } = await page.eval(async (given) => {
    await globalThis.open();
    await globalThis.prepare('mlp', given);
    const got = await globalThis.learn();
    return { ms: performance.now(), ...got };
  }, name === 'wgrad' ? undefined : weights);
  if (!(share >= DIGITS.wanted)) throw new Error(`${name} reads ${share} of the digits`);
  await page.close();
  return { seconds: ms / 1000, steps };
}

/** Stores the digits that all libraries learn next to their pages, and returns the common initial weights. */
async function drawDigits() {
  const page = await visit('wgrad');
  await page.eval(() => globalThis.open());
  writeFileSync(path.join(site, 'digits.bin'), Buffer.from(await page.eval(() => globalThis.drawn()), 'base64'));
  const weights = await page.eval(() => globalThis.prepare('mlp', true));
  await page.close();
  return weights;
}

const run = (page, steps) => page.eval(async (count) => {
  const start = performance.now();
  const losses = [];
  for (let i = 0; i < count; i += 1) losses.push(await globalThis.step());
  return { perSecond: 1000 * count / (performance.now() - start), losses };
}, steps);

/** The first library changes with each round, so that none always follows the same other one. */
const order = (names, round) => names.map((_, i) => names[(i + round) % names.length]);

/** Fails unless all libraries compute the same losses in the first steps from wgrad's weights. */
async function compare(model) {
  let weights;
  const losses = {};
  for (const name of LIBRARIES) {
    const page = await visit(name);
    await page.eval(() => globalThis.open());
    const made = await page.eval((chosen, given) => globalThis.prepare(chosen, given), model, weights ?? true);
    weights ??= made;
    losses[name] = (await run(page, STEPS[model].compared)).losses;
    await page.close();
    losses[name].forEach((loss, i) => {
      if (!(Math.abs(loss - losses.wgrad[i]) <= TOLERANCE * losses.wgrad[i])) {
        throw new Error(`${model}, step ${i + 1}: ${name}'s loss is ${loss}, wgrad's ${losses.wgrad[i]}`);
      }
    });
    if (!(losses[name].at(-1) < losses[name][0])) throw new Error(`${name}'s losses do not fall: ${losses[name].join(', ')}`);
  }
  for (const name of LIBRARIES) console.log(`losses, ${model}, ${name.padEnd(6)} ${losses[name].map((loss) => loss.toFixed(5)).join(' ')}`);
}

const results = [];
const digits = (value) => (value === undefined ? '' : value.toPrecision(3));
/** Adds a row: each library's median, and the medians of the ratios; `rising` if larger numbers are better. */
function put(name, unit, figures, rising) {
  const row = { case: name, unit };
  for (const library of LIBRARIES) if (figures[library]) row[library] = median(figures[library]);
  for (const peer of PEERS.filter((known) => figures[known])) {
    const ratios = figures[peer].map((figure, i) => (rising ? figures.wgrad[i] / figure : figure / figures.wgrad[i]));
    row[`ratio_${peer}`] = median(ratios);
  }
  results.push(row);
  console.log(`${name.padEnd(52)} ${cells(row).map((text) => text.padStart(9)).join(' ')}  ${unit}`);
}
const cells = (row) => [row.wgrad, ...PEERS.flatMap((peer) => [row[peer], row[`ratio_${peer}`]])].map(digits);

let adapter;
try {
  for (const model of MODELS) await compare(model);
  console.log(`${''.padEnd(52)} ${['wgrad', ...PEERS.flatMap((peer) => [peer, 'ratio'])].map((text) => text.padStart(9)).join(' ')}`);
  for (const model of MODELS) {
    const pages = {};
    for (const name of LIBRARIES) {
      pages[name] = await visit(name);
      const text = await pages[name].eval(() => globalThis.open());
      if (name === 'wgrad') adapter = text;
      await pages[name].eval((chosen) => globalThis.prepare(chosen), model);
      await run(pages[name], STEPS[model].warm);
    }
    const speeds = Object.fromEntries(LIBRARIES.map((name) => [name, []]));
    for (let round = 0; round < rounds; round += 1) {
      for (const name of order(LIBRARIES, round)) {
        const { perSecond, losses } = await run(pages[name], STEPS[model].each);
        if (!losses.every(Number.isFinite)) throw new Error(`${name}'s losses are ${losses.join(', ')}`);
        speeds[name].push(perSecond);
      }
    }
    put(NAMES[model], 'steps/s', speeds, true);
    for (const page of Object.values(pages)) await page.close();
  }
  if (MODELS.includes('mlp')) {
    const names = [...LIBRARIES, WHOLE];
    const first = Object.fromEntries(names.map((name) => [name, []]));
    const sizes = {};
    for (let round = 0; round < rounds; round += 1) {
      for (const name of order(names, round)) {
        const { ms, fetched } = await firstStep(name, 'mlp');
        first[name].push(ms / 1000);
        sizes[name] = [fetched.map(packed).reduce((sum, bytes) => sum + bytes, 0) / 1000];
      }
    }
    const whole = (figures) => ({ wgrad: figures.wgrad, tfjs: figures[WHOLE] });
    put('MLP, from navigation to the first step', 's', first, false);
    put('the same, union package', 's', whole(first), false);
    put('download: library and model, gzip', 'kB', sizes, false);
    put('the same, union package', 'kB', whole(sizes), false);
    const weights = await drawDigits();
    const learning = Object.fromEntries(LIBRARIES.map((name) => [name, []]));
    const steps = Object.fromEntries(LIBRARIES.map((name) => [name, []]));
    for (let round = 0; round < rounds; round += 1) {
      for (const name of order(LIBRARIES, round)) {
        const got = await learned(name, weights);
        learning[name].push(got.seconds);
        steps[name].push(got.steps);
      }
    }
    put('MLP, from navigation to 90 % of drawn digits', 's', learning, false);
    put('the same, steps of training', 'steps', steps, false);
  }
  if (MODELS.includes('cnn')) {
    const firstCnn = Object.fromEntries(LIBRARIES.map((name) => [name, []]));
    for (let round = 0; round < rounds; round += 1) {
      for (const name of order(LIBRARIES, round)) firstCnn[name].push((await firstStep(name, 'cnn')).ms / 1000);
    }
    put('CNN, from navigation to the first step', 's', firstCnn, false);
  }
} finally {
  await browser.close();
  await server.close();
  rmSync(site, { recursive: true, force: true });
}

if (flags.json !== undefined) writeFileSync(path.resolve(root, flags.json), `${JSON.stringify(results, null, 2)}\n`);
if (!flags.quick && flags.model === undefined) report();

/** The measured commit. The table that this program writes does not count as a change. */
function commit() {
  const git = (...words) => execFileSync('git', ['-C', root, ...words], { encoding: 'utf8' }).trim();
  try {
    const changed = git('status', '--porcelain', '--', '.', ':!docs') !== '';
    return `wgrad ${git('rev-parse', '--short', 'HEAD')}${changed ? ' with changes' : ''}`;
  } catch {
    return 'wgrad of an unknown commit';
  }
}

/** Writes the table to docs/benchmarks.md, between its markers. */
function report() {
  const file = path.join(root, 'docs/benchmarks.md');
  const text = readFileSync(file, 'utf8');
  const [begin, end] = ['<!-- web: begin, written by cargo xtask bench --web -->', '<!-- web: end -->'];
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`docs/benchmarks.md lacks the line ${begin} or ${end}`);
  const version = (name) => JSON.parse(readFileSync(path.join(here, 'node_modules', name, 'package.json'), 'utf8')).version;
  const heads = ['case', 'unit', TITLES.wgrad, ...PEERS.flatMap((peer) => [TITLES[peer], 'ratio'])];
  const lines = [heads, heads.map(() => '---'), ...results.map((row) => [row.case, row.unit, ...cells(row)])];
  const table = [
    begin, '', `${adapter}, in ${chromium}, ${os.cpus().length} cores; ${commit()}, TensorFlow.js ${version('@tensorflow/tfjs')} `
    + `and jax-js ${version('@jax-js/jax')} on their WebGPU backends; ${rounds} rounds; ${new Date().toISOString().slice(0, 10)}.`, '',
    ...lines.map((cellsOfLine) => `| ${cellsOfLine.join(' | ')} |`), '', '',
  ].join('\n');
  writeFileSync(file, text.slice(0, from) + table + text.slice(to));
}
