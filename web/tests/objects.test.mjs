// Tensors, variables and devices as JavaScript objects: their string conversions, a variable's arithmetic, several devices at
// once.

import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { serve } from '../serve.mjs';
import { browserName, isChromium, launch, root } from './driver.mjs';

describe(`objects of the package in ${browserName}`, () => {
  let server;
  let browser;
  let page;

  before(async () => {
    server = await serve([['/pkg/', path.join(root, 'web/pkg')], ['/tests/', path.join(root, 'web/tests')]]);
    browser = await launch();
    page = await browser.page();
    await page.goto(`${server.url}tests/api.html`);
    await page.until(() => 'ready' in globalThis, { what: 'the script', timeout: 30_000 });
    await page.eval(() => globalThis.ready);
  });

  after(async () => {
    await browser?.close();
    await server?.close();
  });

  it('has texts that say shape and dtype, and how to read', async () => {
    const got = await page.eval(() => {
      const { Tensor, Variable, Images, Sequential, layers, Checkpoint } = wgrad;
      const before = device.stats().reads;
      const x = Tensor.from([[1, 2], [3, 4]]);
      const v = new Variable(Tensor.from(new Int32Array(3)), 'steps');
      const gone = Tensor.ones([1]);
      gone.dispose();
      const freed = new Variable(x);
      freed.free();
      let number;
      try {
        number = x * 2;
      } catch (error) {
        number = `${error.name}: ${error.message}`;
      }
      const found = {
        tensor: `${x}`, joined: 'x is ' + x, json: JSON.stringify({ x }), variable: String(v), variableJson: JSON.parse(JSON.stringify(v)),
        gone: `${gone}`, goneJson: JSON.stringify(gone), freed: `${freed} ${JSON.stringify(freed)}`, number,
        device: `${device}`, deviceJson: JSON.parse(JSON.stringify(device)), adapter: device.adapter.text,
        images: `${Images.drawDigits(3, 1)}`, model: `${new Sequential([layers.flatten(), layers.dense({ units: 2 })])}`, checkpoint: `${new Checkpoint()}`,
      };
      return { ...found, reads: device.stats().reads - before };
    });
    assert.equal(got.tensor, 'Tensor float32 [2, 2] (values: await data())');
    assert.equal(got.joined, `x is ${got.tensor}`);
    assert.equal(got.json, '{"x":{"type":"Tensor","dtype":"float32","shape":[2,2],"values":"await data()"}}');
    assert.equal(got.variable, "Variable 'steps' int32 [3] (values: await data())");
    assert.deepEqual(got.variableJson, { type: 'Variable', name: 'steps', dtype: 'int32', shape: [3], values: 'await data()' });
    assert.equal(got.gone, 'Tensor that was disposed of');
    assert.equal(got.goneJson, '{"type":"Tensor","disposed":true}');
    assert.equal(got.freed, 'Variable that was disposed of {"type":"Variable","disposed":true}');
    assert.match(got.number, /^TypeError: Tensor float32 \[2, 2\] is not a number: .*x\.mul\(2\)/);
    assert.equal(got.device, `Device ${got.adapter}`);
    assert.equal(got.deviceJson.adapter.text, got.adapter);
    assert.ok(got.deviceJson.limits.maxBufferSize > 0);
    assert.deepEqual([got.images, got.model, got.checkpoint], ['Images (3)', 'Sequential (flatten, dense)', 'Checkpoint']);
    assert.equal(got.reads, 0, 'a text read something back');
  });

  it('shows dtype and shape in a console', { skip: !isChromium && 'WebDriver BiDi gives no previews' }, async () => {
    const client = await page.raw.createCDPSession();
    await client.send('Runtime.enable');
    const logged = new Promise((done) => client.on('Runtime.consoleAPICalled', ({ args }) => { if (args[0]?.preview?.description === 'Tensor') done(args[0].preview); }));
    await page.eval(() => console.log(wgrad.Tensor.from(new Int32Array(6), [2, 3])));
    const { properties } = await logged;
    assert.equal(properties.find(({ name }) => name === 'text')?.value, 'int32 [2, 3]', JSON.stringify(properties));
    await client.detach();
  });

  it('begins the stack of an error where the program called', { skip: !isChromium && 'Firefox 128 has no Error.captureStackTrace' }, async () => {
    const first = await page.eval(async () => {
      const { Tensor, Variable, layers, Sequential } = wgrad;
      const x = Tensor.ones([2, 3]);
      const v = new Variable(x);
      const model = new Sequential([layers.dense({ units: 2 })]);
      const frame = (error) => `${error.name}: ${String(error.stack).split('\n').find((line) => line.startsWith('    at '))}`;
      const caught = async (call) => {
        try { await call(); } catch (error) { return frame(error); }
        return 'nothing was thrown';
      };
      const found = {};
      found.guard = await caught(function callerOfGuard() { x.matmul(3); });
      found.shape = await caught(function callerOfShape() { x.matmul(x); });
      found.fixed = await caught(function callerOfFixed() { Tensor.concat([x, Tensor.ones([1])], 0); });
      found.variable = await caught(function callerOfVariable() { v.reshape([7]); });
      found.later = await caught(async function callerOfLater() { await x.item(); });
      found.refused = await caught(async function callerOfRefused() { await model.predict(3); });
      found.own = await caught(async function callerOfOwn() {
        model.compile({ optimizer: 'sgd', loss: 'meanSquaredError' });
        await model.fit(x, Tensor.ones([2, 2]), { onBatchEnd: function mine() { throw new Error('mine'); } });
      });
      return found;
    });
    for (const [call, at] of Object.entries(first)) {
      const caller = call === 'own' ? 'mine' : `callerOf${call[0].toUpperCase()}${call.slice(1)}`;
      assert.match(at, new RegExp(`Error: +at (async |Object\\.)?${caller}\\b`), call);
    }
  });

  it('takes truth values where types allow them, and tensors alone where they do not', async () => {
    const got = await page.eval(async () => {
      const { Tensor } = wgrad;
      const [a, b] = [Tensor.from([1, 2]), Tensor.from([3, 4])];
      const ints = Tensor.from(new Int32Array([5, 6]));
      const text = (call) => {
        try { return String(call()); } catch (error) { return `${error.name}: ${error.message}`; }
      };
      return {
        first: [...await Tensor.where(true, a, b).data()], second: [...await Tensor.where(false, a, b).data()],
        truths: [...await Tensor.where(Tensor.from([true, false]), false, true).data()], dtype: Tensor.where(true, true, false).dtype,
        whole: Tensor.where(true, ints, 7).dtype, mean: await ints.mean().item(), meanOf: ints.mean().dtype, share: await Tensor.from([true, false]).mean().item(),
        product: text(() => a.matmul(3)), dot: text(() => a.dot([1, 2])),
      };
    });
    assert.deepEqual([got.first, got.second, got.truths, got.dtype, got.whole], [[1, 2], [3, 4], [0, 1], 'bool', 'int32']);
    assert.deepEqual([got.mean, got.meanOf, got.share], [5.5, 'float32', 0.5]);
    assert.match(got.product, /^TypeError: Tensor\.matmul: other is 3; it must be a Tensor or a Variable/);
    assert.match(got.dot, /^TypeError: Tensor\.dot: other is \[1,2\]; it must be a Tensor or a Variable; Tensor\.from/);
  });

  it('gives a variable the arithmetic of a tensor', async () => {
    const got = await page.eval(async () => {
      const { Tensor, Variable, valueAndGradients } = wgrad;
      const lacking = (Class) => Object.getOwnPropertyNames(Class.prototype).filter((name) => !name.startsWith('_'));
      const missing = lacking(Tensor).filter((name) => !lacking(Variable).includes(name));
      const w = new Variable(Tensor.from([[1, 2], [3, 4]]), 'w');
      const x = Tensor.from([[1], [10]]);
      const values = {
        data: [...await w.data()], size: w.size, add: [...await w.add(1).data()], matmul: [...await w.matmul(x).data()],
        sum: await w.sum().item(), mixed: [...await w.mul(w).sub(w).data()], text: await w.toStringAsync(), cast: w.cast('int32').dtype,
      };
      const { value, gradients } = valueAndGradients(() => w.square().sum(), [w]);
      const before = device.stats().liveBytes;
      for (let i = 0; i < 100; i += 1) w.relu().dispose();
      device.flush();
      return { missing, ...values, value: await value.item(), gradient: [...await gradients[0].data()], grown: device.stats().liveBytes - before };
    });
    assert.deepEqual(got.missing, ['dispose']);
    assert.deepEqual(got.data, [1, 2, 3, 4]);
    assert.equal(got.size, 4);
    assert.deepEqual(got.add, [2, 3, 4, 5]);
    assert.deepEqual(got.matmul, [21, 43]);
    assert.equal(got.sum, 10);
    assert.deepEqual(got.mixed, [0, 2, 6, 12]);
    assert.match(got.text, /shape=\(2, 2\)/);
    assert.equal(got.cast, 'int32');
    assert.equal(got.value, 30);
    assert.deepEqual(got.gradient, [2, 4, 6, 8]);
    assert.ok(got.grown <= 4096, `${got.grown} bytes were left behind`);
  });

  it('takes every typed array', async () => {
    const got = await page.eval(async () => {
      const { Tensor } = wgrad;
      const found = {};
      for (const Kind of [Float32Array, Float64Array, Int8Array, Int16Array, Int32Array, Uint8Array, Uint8ClampedArray, Uint16Array, Uint32Array]) {
        const x = Tensor.from(Kind.from([1, 2, 100, 7]), [2, 2]);
        found[Kind.name] = [x.dtype, ...await x.data()];
      }
      const cast = Tensor.from(Uint8Array.from([1, 2]), [2], 'float32');
      return { found, cast: [cast.dtype, ...await cast.data()] };
    });
    const dtypes = {
      Float32Array: 'float32', Float64Array: 'float32', Int8Array: 'int32', Int16Array: 'int32', Int32Array: 'int32', Uint8Array: 'uint8', Uint8ClampedArray: 'uint8',
      Uint16Array: 'int32', Uint32Array: 'uint32',
    };
    for (const [kind, dtype] of Object.entries(dtypes)) assert.deepEqual(got.found[kind], [dtype, 1, 2, 100, 7], kind);
    assert.deepEqual(got.cast, ['float32', 1, 2]);
  });

  it('goes on with a fit while another device is opened', async () => {
    const got = await page.eval(async () => {
      const { Device, Images, Sequential, Tensor, layers, setSeed } = wgrad;
      const train = Images.drawDigits(600, 5);
      const run = async (between) => {
        setSeed(3);
        const model = new Sequential([layers.flatten(), layers.dense({ units: 10 })]);
        model.compile({ optimizer: { type: 'adam', learningRate: 1e-2 }, metrics: ['accuracy'] });
        const { loss } = await model.fit(train, null, { epochs: 4, batchSize: 50, yieldEvery: 1, onEpochEnd: between, validationData: Images.drawDigits(50, 6) });
        const evaluated = await model.evaluate(Images.drawDigits(50, 7));
        const predicted = await model.predict(Images.drawDigits(3, 8));
        const more = await model.fit(train, null, { batchSize: 50 });
        return { loss, evaluated, predicted: [...await predicted.data()], more: more.loss };
      };
      const alone = await run(() => {});
      let opened;
      // One is opened while batches are being made, one exists when the next epoch begins.
      const beside = await run((epoch) => {
        if (epoch === 0) opened = Device.open();
        if (epoch === 1) return opened.then(() => {});
      });
      const other = await opened;
      const fresh = Tensor.ones([3]);
      const sum = await fresh.sum().item();
      // The new tensors are on the new device, and mixing them with old ones is an error that mentions this.
      let mixed;
      try {
        const model = new Sequential([layers.dense({ units: 2 })]);
        model.build([null, 3]);
        await Device.open();
        model.call(Tensor.ones([1, 3]));
        mixed = 'nothing was thrown';
      } catch (error) {
        mixed = `${error.name} ${error.fault}: ${error.message}`;
      }
      return { alone, beside, sum, used: other.stats().kernels > 0, mixed };
    });
    assert.deepEqual(got.beside, got.alone, 'another device changed what is learnt');
    assert.equal(got.sum, 3);
    assert.ok(got.used, 'new tensors are not made on the new device');
    assert.match(got.mixed, /^DeviceError mismatch: .*Tensor\.from\(await x\.data\(\), x\.shape\)/);
  });

  it('has nothing left on the console', () => {
    assert.deepEqual(page.problems, []);
  });
});
