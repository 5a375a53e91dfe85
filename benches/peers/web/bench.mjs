// Measures wgrad beside TensorFlow.js on one adapter, in one Chromium, in one run.
//
//   node bench.mjs [--json FILE] [--rounds N] [--quick]
//
// Both libraries have a page each. A round is some steps of one, then as many of the other; each step uploads its batch and
// reads its loss. A ratio is how many times as fast (or, for bytes, as small) wgrad is, the median over all rounds.

import { readFileSync, writeFileSync, mkdtempSync, cpSync, rmSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
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
  options: { json: { type: 'string' }, rounds: { type: 'string', default: '5' }, quick: { type: 'boolean' } },
});
const rounds = flags.quick ? 1 : Number(flags.rounds);
const LIBRARIES = ['wgrad', 'tfjs'];
/** Steps of a round and of the warm-up: TensorFlow.js's CNN takes seconds a step on a driver that computes on the processor. */
const STEPS = { mlp: { warm: 20, each: flags.quick ? 10 : 40 }, cnn: { warm: 1, each: 1 } };
const NAMES = { mlp: 'MLP 784-100-10, batch 50', cnn: 'CNN of 3.3 M parameters, batch 50' };

const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
};
const packed = (file) => gzipSync(readFileSync(file), { level: 9 }).length;

const site = mkdtempSync(path.join(os.tmpdir(), 'wgrad-bench-'));
await build({
  entryPoints: LIBRARIES.map((name) => path.join(here, `${name}.js`)), outdir: site, bundle: true, format: 'esm', minify: true,
  target: ['es2022'], legalComments: 'none', logLevel: 'error',
});
cpSync(path.join(root, 'web/pkg/wgrad_bg.wasm'), path.join(site, 'wgrad_bg.wasm'));
for (const name of LIBRARIES) {
  const page = `<!doctype html><title>${name}</title><link rel="icon" href="data:,"><script type="module" src="${name}.js"></script>`;
  writeFileSync(path.join(site, `${name}.html`), page);
}
// TensorFlow.js asks for the shape of code that a strict policy forbids.
const policy = { 'Content-Security-Policy': "default-src 'self' data: 'unsafe-eval'" };
const server = await serve([['/', site]], { headers: policy });
const browser = await launch();
const chromium = browser.version.replace(/^.*\//, 'Chromium ');

/** Opens a library's page, which has fetched its scripts but done nothing. */
async function visit(name) {
  const page = await browser.page();
  await page.goto(`${server.url}${name}.html`);
  await page.until(() => 'prepare' in globalThis, { what: `the scripts of ${name}` });
  return page;
}

/** Milliseconds from the navigation to the loss of the first step. */
async function firstStep(name, model) {
  const page = await visit(name);
  const [ms, loss] = await page.eval(async (chosen) => {
    await globalThis.open();
    globalThis.prepare(chosen);
    const value = await globalThis.step();
    return [performance.now(), value];
  }, model);
  if (!(loss > 1 && loss < 5)) throw new Error(`${name}'s first loss is ${loss}`);
  await page.close();
  return ms;
}

const run = (page, steps) => page.eval(async (count) => {
  const start = performance.now();
  let loss;
  for (let i = 0; i < count; i += 1) loss = await globalThis.step();
  return { perSecond: 1000 * count / (performance.now() - start), loss };
}, steps);

const results = [];
const put = (name, unit, wgrad, tfjs, ratio) => {
  results.push({ case: name, unit, wgrad, tfjs, ratio });
  console.log(`${name.padEnd(52)} ${wgrad.toPrecision(3).padStart(9)} ${tfjs.toPrecision(3).padStart(9)}  ${ratio.toPrecision(3).padStart(6)}  ${unit}`);
};
let adapter;
try {
  console.log(`${''.padEnd(52)} ${'wgrad'.padStart(9)} ${'tfjs'.padStart(9)}  ${'ratio'.padStart(6)}`);
  for (const model of ['mlp', 'cnn']) {
    const pages = {};
    for (const name of LIBRARIES) {
      pages[name] = await visit(name);
      const text = await pages[name].eval(() => globalThis.open());
      if (name === 'wgrad') adapter = text;
      await pages[name].eval((chosen) => globalThis.prepare(chosen), model);
      await run(pages[name], STEPS[model].warm);
    }
    const speeds = { wgrad: [], tfjs: [] };
    for (let round = 0; round < rounds; round += 1) {
      // Who begins changes, so that neither always finds the machine as the other left it.
      for (const name of round % 2 ? [...LIBRARIES].reverse() : LIBRARIES) {
        const { perSecond, loss } = await run(pages[name], STEPS[model].each);
        if (!Number.isFinite(loss)) throw new Error(`${name}'s loss is ${loss}`);
        speeds[name].push(perSecond);
      }
    }
    const ratio = median(speeds.wgrad.map((speed, i) => speed / speeds.tfjs[i]));
    put(NAMES[model], 'steps/s', median(speeds.wgrad), median(speeds.tfjs), ratio);
    for (const page of Object.values(pages)) await page.close();
  }
  const first = { wgrad: [], tfjs: [] };
  for (let round = 0; round < rounds; round += 1) {
    for (const name of round % 2 ? [...LIBRARIES].reverse() : LIBRARIES) first[name].push(await firstStep(name, 'mlp') / 1000);
  }
  put('MLP, from navigation to the first step', 's', median(first.wgrad), median(first.tfjs), median(first.tfjs.map((s, i) => s / first.wgrad[i])));
  const sizes = {
    wgrad: packed(path.join(site, 'wgrad.js')) + packed(path.join(site, 'wgrad_bg.wasm')), tfjs: packed(path.join(site, 'tfjs.js')),
  };
  put('download: library and model, gzip', 'kB', sizes.wgrad / 1000, sizes.tfjs / 1000, sizes.tfjs / sizes.wgrad);
} finally {
  await browser.close();
  await server.close();
  rmSync(site, { recursive: true, force: true });
}

if (flags.json !== undefined) writeFileSync(path.resolve(root, flags.json), `${JSON.stringify(results, null, 2)}\n`);
if (!flags.quick) report();

/** The commit that was measured. The table that this program writes is no change to it. */
function commit() {
  const git = (...words) => execFileSync('git', ['-C', root, ...words], { encoding: 'utf8' }).trim();
  try {
    const changed = git('status', '--porcelain', '--', '.', ':!docs') !== '';
    return `wgrad ${git('rev-parse', '--short', 'HEAD')}${changed ? ' with changes' : ''}`;
  } catch {
    return 'wgrad of an unknown commit';
  }
}

/** Puts the table into docs/benchmarks.md, between its markers. */
function report() {
  const file = path.join(root, 'docs/benchmarks.md');
  const text = readFileSync(file, 'utf8');
  const [begin, end] = ['<!-- web: begin, written by cargo xtask bench --web -->', '<!-- web: end -->'];
  const [from, to] = [text.indexOf(begin), text.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`docs/benchmarks.md lacks the line ${begin} or ${end}`);
  const { version } = JSON.parse(readFileSync(path.join(here, 'node_modules/@tensorflow/tfjs/package.json'), 'utf8'));
  const rows = results.map((row) => `| ${row.case} | ${row.unit} | ${row.wgrad.toPrecision(3)} | ${row.tfjs.toPrecision(3)} | ${row.ratio.toPrecision(3)} |`);
  const table = [
    begin, '', `${adapter}, in ${chromium}, ${os.cpus().length} cores; ${commit()}, TensorFlow.js ${version} on its WebGPU backend; `
    + `${rounds} rounds; ${new Date().toISOString().slice(0, 10)}.`, '',
    '| case | unit | wgrad | TensorFlow.js | ratio |', '|---|---|---|---|---|', ...rows, '', '',
  ].join('\n');
  writeFileSync(file, text.slice(0, from) + table + text.slice(to));
}
