// Records a training for browsers without WebGPU: `node record.mjs`, after `cargo xtask web`.
//
// Trains with the page's engine in the browser that WGRAD_BROWSER names, and writes recording/recording.bin.packed: a small
// MLP's weights at some steps, with 8 bits each, and the loss and accuracy of every step. The page plays it and computes with
// the weights.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { deflateSync } from 'node:zlib';
import { readSafetensors } from './engine/golden.js';
import { pageMounts, serve } from './serve.mjs';
import { launch } from './tests/driver.mjs';

/** Steps at which the weights are recorded; between them they are interpolated linearly. */
const MOMENTS = [0, 5, 15, 30, 60, 100, 160, 250, 400, 650, 1000, 1500];
const SETTINGS = {
  model: 'custom', optimizer: 'adam', lr: 0.005, batch: 50, seed: 1, stop: 0, data: 'drawn',
  layers: [{ type: 'flatten' }, { type: 'dense', units: 16, activation: 'relu' }, { type: 'dense', units: 10, activation: 'linear' }],
};
/** The integer that represents the largest weight. */
const LEVELS = 40;

const server = await serve(pageMounts());
const browser = await launch();
const page = await browser.page();
await page.goto(`${server.url}?start=0&data=drawn`);
await page.state('ready');
const { moments, losses, accuracies, epochs, adapter } = await page.eval(async (settings, steps) => {
  const response = await fetch('wgrad_bg.wasm.packed');
  const unpacked = response.body.pipeThrough(new DecompressionStream('deflate'));
  const module = await WebAssembly.compile(await new Response(unpacked).arrayBuffer());
  const { connect } = await import(new URL('engine.js', document.baseURI).href);
  const events = [];
  const waiting = new Map();
  const receive = connect((message) => {
    if (message.kind === 'reply') waiting.get(message.id)(message);
    else events.push(message);
  });
  let id = 0;
  const ask = (kind, input = {}) => new Promise((resolve, reject) => {
    id += 1;
    waiting.set(id, (reply) => (reply.ok ? resolve(reply.value) : reject(new Error(reply.fault.text))));
    receive({ kind, id, ...input });
  });
  const steps_ = () => events.filter(({ kind }) => kind === 'points').reduce((sum, { losses }) => sum + losses.length, 0);
  await ask('open', { settings, module, base: document.baseURI, begun: Date.now(), resume: false, memory: 0 });
  const moments = [];
  for (const step of steps) {
    if (step > 0) {
      await ask('configure', { settings: { ...settings, stop: step } });
      await ask('start');
      while (events.filter(({ kind }) => kind === 'state').at(-1).state !== 'finished' || steps_() < step) await new Promise((done) => setTimeout(done, 20));
    }
    const { bytes } = await ask('save');
    moments.push([...bytes]);
  }
  const points = events.filter(({ kind }) => kind === 'points');
  return {
    moments, losses: points.flatMap((each) => [...each.losses]), accuracies: points.flatMap((each) => [...each.accuracies]),
    epochs: points.at(-1).epochs, adapter: events.find(({ kind }) => kind === 'adapter').adapter.name,
  };
}, SETTINGS, MOMENTS);
const version = browser.version;
await browser.close();
await server.close();

const weights = moments.map((bytes) => readSafetensors(Uint8Array.from(bytes).buffer));
const tensors = Object.keys(weights[0]).sort().map((name) => {
  const { shape } = weights[0][name];
  const largest = Math.max(...weights.map((all) => all[name].values.reduce((most, value) => Math.max(most, Math.abs(value)), 0)));
  return { name, shape, scale: largest / LEVELS };
});
// For each tensor the numbers at the first step, then the differences between consecutive steps.
const parts = tensors.map(({ name, scale }) => {
  let before = new Int8Array(weights[0][name].values.length);
  return Buffer.concat(weights.map((all) => {
    const now = Int8Array.from(all[name].values, (value) => Math.round(value / scale));
    const change = now.map((value, i) => value - before[i]);
    before = now;
    return Buffer.from(change.buffer);
  }));
});
const commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: fileURLToPath(new URL('.', import.meta.url)) }).toString().trim();
const header = Buffer.from(JSON.stringify({
  settings: SETTINGS, moments: MOMENTS, tensors, steps: losses.length, epochs, browser: version, adapter, commit, date: new Date().toISOString().slice(0, 10),
}));
const length = Buffer.alloc(4);
length.writeUInt32LE(header.length);
// In thousandths, which is finer than a drawn curve.
const curves = [losses.map((loss) => Math.min(65_535, Math.round(1000 * loss))), accuracies.map((accuracy) => Math.round(1000 * accuracy))];
const bytes = Buffer.concat([length, header, ...parts, ...curves.map((curve) => Buffer.from(Uint16Array.from(curve).buffer))]);
const packed = deflateSync(bytes, { level: 9 });
writeFileSync(fileURLToPath(new URL('recording/recording.bin.packed', import.meta.url)), packed);
console.log(`${losses.length} steps, loss ${losses.at(-1)}, accuracy of the last 20 batches ${accuracies.slice(-20).reduce((a, b) => a + b, 0) / 20}; ${packed.length} B (${bytes.length} unpacked)`);
