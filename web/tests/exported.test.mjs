// Models that need no library (`export_webgpu`): they run alone, with the results of the functions that were exported.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { serve } from '../serve.mjs';
import { browserName, exchange, launch, root } from './driver.mjs';

const folder = path.join(exchange, 'exported');
const models = ['mlp', 'cnn', 'transformer', 'dtypes'];
const expected = (name) => JSON.parse(readFileSync(path.join(folder, name, 'expected.json'), 'utf8'));

describe(`exported models in ${browserName}`, () => {
  let server;
  let browser;
  let page;
  // Files that the server damages, by the ends of their paths.
  let damaged = {};

  before(async () => {
    const instead = (name, response) => {
      const end = Object.keys(damaged).find((one) => name.endsWith(one));
      if (end) response.end(damaged[end]);
      return end !== undefined;
    };
    server = await serve([['/exported/', folder], ['/tests/', path.join(root, 'web/tests')]], { instead });
    browser = await launch();
    page = await browser.page();
    // A page without the library.
    await page.goto(`${server.url}tests/exported.html`);
  });

  after(async () => {
    await browser?.close();
    await server?.close();
  });

  for (const name of models) {
    it(`runs ${name}`, async () => {
      const { inputs, outputs } = expected(name);
      const got = await page.eval(async (which, given) => {
        const { load } = await import(`/exported/${which}/model.mjs`);
        const model = await load();
        const listed = (results) => (model.outputs.length === 1 ? [results] : results).map((result) => [result.constructor.name, [...result]]);
        const from = (value, at) => {
          const { dtype } = model.inputs[at];
          return dtype === 'float32' ? Float32Array.from(value) : dtype === 'int32' ? Int32Array.from(value) : Uint8Array.from(value);
        };
        const arrays = given.map(from);
        const first = listed(await model(arrays));
        // Plain numbers, and calls that do not wait for each other.
        const zeros = model(arrays.map((array) => [...array].fill(0)));
        const [, again] = await Promise.all([zeros, model(given)]);
        model.destroy();
        return { first, again: listed(again), inputs: model.inputs };
      }, name, inputs);
      assert.deepEqual(got.again, got.first);
      assert.equal(got.first.length, outputs.length);
      for (const [at, [type, numbers]] of got.first.entries()) {
        assert.equal(numbers.length, outputs[at].length);
        for (const [i, number] of numbers.entries()) {
          const want = outputs[at][i];
          const off = Math.abs(number - want);
          assert.ok(type === 'Float32Array' ? off <= 1e-5 * Math.max(1, Math.abs(want)) : off === 0, `${name}: ${number} and ${want}`);
        }
      }
    });
  }

  it('takes and leaves buffers on the page\'s own device, also in a worker', async () => {
    const { inputs: [pixels], outputs: [want] } = expected('mlp');
    const run = async (given) => {
      const { load } = await import('/exported/mlp/model.mjs');
      const adapter = await navigator.gpu.requestAdapter();
      const device = await adapter.requestDevice();
      const model = await load('/exported/mlp', { device });
      const { STORAGE, COPY_SRC, COPY_DST, MAP_READ } = GPUBufferUsage;
      const buffer = (usage, size) => device.createBuffer({ size, usage });
      const read = async (from) => {
        const host = buffer(MAP_READ | COPY_DST, from.size);
        const encoder = device.createCommandEncoder();
        encoder.copyBufferToBuffer(from, 0, host, 0, from.size);
        device.queue.submit([encoder.finish()]);
        await host.mapAsync(GPUMapMode.READ);
        return [...new Float32Array(host.getMappedRange())];
      };
      const found = [];
      // Bound directly, and copied.
      for (const usage of [STORAGE, COPY_SRC]) {
        const input = buffer(usage | COPY_DST, 4 * given.length);
        device.queue.writeBuffer(input, 0, Float32Array.from(given));
        found.push(await read(await model(input, { outputs: 'buffers' })));
        found.push([...await model([input])]);
      }
      return found;
    };
    const inWorker = (source, given) => new Promise((resolve, reject) => {
      const worker = new Worker('/tests/exported.worker.js', { type: 'module' });
      worker.onmessage = ({ data }) => (data.failure ? reject(new Error(data.failure)) : resolve(data.found));
      worker.onerror = ({ message }) => reject(new Error(message));
      worker.postMessage({ given });
    });
    const found = await page.eval(run, pixels);
    assert.equal(found.length, 4);
    for (const numbers of found) {
      want.forEach((number, i) => assert.ok(Math.abs(numbers[i] - number) <= 1e-5 * Math.max(1, Math.abs(number)), `${numbers[i]} and ${number}`));
    }
    const worked = await page.eval(inWorker, '', pixels);
    want.forEach((number, i) => assert.ok(Math.abs(worked[i] - number) <= 1e-5 * Math.max(1, Math.abs(number)), `${worked[i]} and ${number}`));
  });

  it('says what is wrong with inputs', async () => {
    const texts = await page.eval(async () => {
      const { load } = await import('/exported/mlp/model.mjs');
      const [one, two] = [await load(), await load('/exported/dtypes/')];
      const text = async (call) => {
        try {
          await call();
          return 'nothing';
        } catch (error) {
          return `${error.name}: ${error.message}`;
        }
      };
      const small = one.device.createBuffer({ size: 16, usage: GPUBufferUsage.STORAGE });
      const said = [
        () => one(new Float32Array(3)), () => one(new Float64Array(20 * 784)), () => one('seven'), () => one(['a']), () => one(small),
        () => two(new Float32Array(2)), () => two([new Float32Array(2)]), () => one([1], { outputs: 'tensors' }), () => one(),
      ];
      const texts = [];
      for (const call of said) texts.push(await text(call));
      one.destroy();
      texts.push(await text(() => one(new Float32Array(20 * 784))));
      // The other model has its own device.
      texts.push(await text(() => two([[1, 2], [true, false, 1]])));
      return texts;
    });
    const pixels = 'input 0 is float32\\[20, 28, 28, 1\\]';
    const wanted = [
      new RegExp(`^TypeError: model: ${pixels}; it got 3 elements, not 15680`), new RegExp(`${pixels}; it got Float64Array; pass a Float32Array`),
      /got String; pass/, /an array with a string in it/, /a buffer of 16 bytes, which should have 62720/,
      /takes float32\[2\] and bool\[3\], in an array; it got object/, /it got 1 values/, /outputs is 'tensors'/, /it got undefined/,
      /it was destroyed. Load it again/, /^nothing$/,
    ];
    wanted.forEach((pattern, at) => assert.match(texts[at], pattern));
    assert.equal(texts.length, wanted.length);
  });

  it('says what is wrong with files', async () => {
    const text = () => page.eval(async () => {
      const { load } = await import('/exported/mlp/model.mjs');
      try {
        await load();
        return 'nothing';
      } catch (error) {
        return error.message;
      }
    });
    const weights = readFileSync(path.join(folder, 'mlp/model.safetensors'));
    const plan = JSON.parse(readFileSync(path.join(folder, 'mlp/model.json'), 'utf8'));
    const long = Buffer.from(weights);
    long.writeBigUInt64LE(1n << 40n);
    const cases = [
      ['model.json', '{"format": ', /model.json of .* is damaged/], ['model.json', '{}', /has the format undefined undefined/],
      ['model.safetensors', weights.subarray(0, 5), /it has 5 bytes/], ['model.safetensors', weights.subarray(0, weights.length - 4), /in bytes .* of/],
      ['model.safetensors', long, /its header should have/],
      ['model.json', JSON.stringify({ ...plan, limits: { maxBufferSize: 2 ** 50 } }), /needs maxBufferSize/],
      ['model.json', JSON.stringify({ ...plan, features: ['no-such-feature'] }), /needs no-such-feature, which the adapter lacks/],
      ['model.json', JSON.stringify({ ...plan, weights: [{ ...plan.weights[0], name: 'other' }] }), /lacks 'other'/],
      ['model.json', JSON.stringify({ ...plan, weights: [{ ...plan.weights[0], shape: [3] }] }), /in model.json. Export the model again/],
    ];
    for (const [name, contents, pattern] of cases) {
      damaged = { [`mlp/${name}`]: contents };
      assert.match(await text(), pattern);
    }
    damaged = {};
    assert.equal(await text(), 'nothing');
    const missing = await page.eval(async () => {
      const { load } = await import('/exported/mlp/model.mjs');
      return load('/exported/nowhere').catch((error) => error.message);
    });
    assert.match(missing, /answered 404 .*Copy the whole folder/);
  });

  it('is small and has types', () => {
    const size = (name, file) => statSync(path.join(folder, name, file)).size;
    for (const name of models) {
      const [module, json, weights] = ['model.mjs', 'model.json', 'model.safetensors'].map((file) => size(name, file));
      console.log(`  ${name}: module ${module} B, plan ${json} B, weights ${weights} B`);
      assert.ok(module < 15_000);
    }
    const scratch = mkdtempSync(path.join(os.tmpdir(), 'wgrad-exported-'));
    try {
      const compilerOptions = {
        target: 'ES2022', module: 'ESNext', moduleResolution: 'Bundler', lib: ['ES2022', 'DOM'], types: [], strict: true, noEmit: true, skipLibCheck: false,
      };
      for (const name of ['mlp', 'dtypes']) {
        writeFileSync(path.join(scratch, `${name}.d.mts`), readFileSync(path.join(folder, name, 'model.d.ts')));
      }
      writeFileSync(path.join(scratch, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['usage.ts'] }));
      writeFileSync(path.join(scratch, 'usage.ts'), `
        import { load } from './mlp.mjs';
        import * as dtypes from './dtypes.mjs';
        const model = await load();
        const logits: Float32Array = await model(new Float32Array(4));
        const buffer: GPUBuffer = await model([[1, 2]], { outputs: 'buffers' });
        const [e, whole]: [Float32Array, Int32Array, ...unknown[]] = await (await dtypes.load('/x'))([[1, 2], [true]]);
        // @ts-expect-error
        await (await dtypes.load())([1]);
        // @ts-expect-error
        await model('seven');
        console.log(logits, buffer, e, whole, model.inputs[0].shape[0]);
      `);
      const { status, stdout, stderr } = spawnSync(
        process.execPath, [path.join(root, 'web/node_modules/typescript/bin/tsc'), '-p', scratch], { encoding: 'utf8' },
      );
      assert.equal(status, 0, `${stdout}\n${stderr}`);
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
  });

  it('leaves no error in the page', () => {
    // Of the damaged files: the browser itself reports the one that is missing.
    assert.deepEqual(page.problems.filter((problem) => !/404/.test(`${problem}`)), []);
  });
});
