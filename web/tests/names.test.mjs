// For users of TensorFlow.js: the table of docs/tensorflow-js.md, row by row; callbacks, gradients of functions, and saving
// whole models.

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { serve } from '../serve.mjs';
import { browserName, exchange, launch, root } from './driver.mjs';

const mlpLayers = JSON.parse(readFileSync(path.join(root, 'tests/data/web/losses.json'), 'utf8')).mlp.layers;

/** The tables' rows, each with its preceding lines. */
function rows() {
  const found = [];
  let [lines, code] = ['', undefined];
  for (const line of readFileSync(path.join(root, 'docs/tensorflow-js.md'), 'utf8').split('\n')) {
    if (line.startsWith('```')) {
      if (code !== undefined) lines += code;
      code = line === '```js' ? '' : undefined;
    } else if (code !== undefined) {
      code += `${line}\n`;
    } else {
      const row = /^\| (`.*`) \| `(.*)` \| `(.*)` \|$/.exec(line);
      if (row) found.push({ lines, there: row[1], here: row[2], value: JSON.parse(row[3]) });
      else if (line.startsWith('| `')) throw new Error(`a row cannot be read: ${line}`);
    }
  }
  return found;
}

/** Where two values differ; numbers may differ by single-precision rounding. */
function difference(got, want) {
  if (typeof want === 'number' && typeof got === 'number') {
    return Math.abs(got - want) <= 1e-5 * Math.max(1, Math.abs(want)) ? undefined : `${got} is not ${want}`;
  }
  if (typeof want !== 'object' || want === null || typeof got !== 'object' || got === null) {
    return Object.is(got, want) ? undefined : `${JSON.stringify(got)} is not ${JSON.stringify(want)}`;
  }
  const keys = [Object.keys(got), Object.keys(want)].map((names) => names.sort().join());
  if (keys[0] !== keys[1]) return `${JSON.stringify(got)} is not ${JSON.stringify(want)}`;
  return Object.keys(want).map((key) => difference(got[key], want[key])).find(Boolean);
}

describe(`the names of TensorFlow.js in ${browserName}`, () => {
  let server;
  let browser;
  let page;

  before(async () => {
    server = await serve([['/pkg/', path.join(root, 'web/pkg')], ['/tests/', path.join(root, 'web/tests')]]);
    browser = await launch();
    page = await open();
  });

  after(async () => {
    await browser?.close();
    await server?.close();
  });

  async function open() {
    const opened = await browser.page();
    await opened.goto(`${server.url}tests/api.html`);
    await opened.until(() => 'ready' in globalThis, { what: 'the script', timeout: 30_000 });
    await opened.eval(() => globalThis.ready);
    return opened;
  }

  it('gives what each row of the table says', async () => {
    const all = rows();
    assert.ok(all.length >= 120, `${all.length} rows`);
    const wrong = [];
    for (const lines of new Set(all.map((row) => row.lines))) {
      const group = all.filter((row) => row.lines === lines);
      // As a text: the page's policy forbids `eval`, but the driver does not use it.
      const got = await page.raw.evaluate(`(async () => {
        const { ${await page.eval(() => Object.keys(wgrad).filter((name) => !['default', 'initSync'].includes(name)).join(', '))} } = wgrad;
        const device = globalThis.device;
        const plain = async (value) => {
          if (value instanceof Variable) return plain(value.read());
          if (value instanceof Tensor) return value.array();
          if (Array.isArray(value)) return Promise.all(value.map(plain));
          if (value === undefined || value === null) return null;
          if (typeof value !== 'object') return value;
          return Object.fromEntries(await Promise.all(Object.entries(value).map(async ([key, each]) => [key, await plain(each)])));
        };
        ${lines}
        const rows = [${group.map(({ here }) => `async () => (${here})`).join(',\n')}];
        const values = [];
        for (const row of rows) {
          try { values.push({ value: await plain(await row()) }); } catch (error) { values.push({ error: String(error) }); }
        }
        return values;
      })()`);
      group.forEach(({ here, value }, i) => {
        const problem = got[i].error ?? difference(got[i].value, value);
        if (problem) wrong.push(`${here}: ${problem}`);
      });
    }
    console.log(`  ${all.length} rows`);
    assert.deepEqual(wrong, []);
  });

  it('calls callbacks in order, with their object, and waits for them', async () => {
    const got = await page.eval(async () => {
      const { Sequential, Tensor, layers } = wgrad;
      const model = new Sequential([layers.dense({ units: 1, inputShape: [2] })]);
      model.compile({ optimizer: 'sgd', loss: 'meanSquaredError' });
      const [x, y] = [Tensor.ones([4, 2]), Tensor.zeros([4, 1])];
      const told = [];
      const later = (text) => new Promise((done) => setTimeout(() => { told.push(text); done(); }, 20));
      class Listener {
        name = 'class';
        onEpochEnd(epoch, { loss }) { told.push(`${this.name} ${epoch} ${Number.isFinite(loss)}`); }
      }
      await model.fit(x, y, {
        epochs: 2, batchSize: 2, yieldEvery: 1,
        onEpochEnd: (epoch) => told.push(`option ${epoch}`),
        callbacks: [{
          onTrainBegin: () => told.push('train begins'),
          onEpochBegin: (epoch) => told.push(`epoch ${epoch} begins`),
          onEpochEnd: (epoch) => later(`waited ${epoch}`),
          onBatchBegin: (batch) => { told.push(`batch ${batch} begins`); },
          onTrainEnd: ({ loss }) => later(`train ends ${Number.isFinite(loss)}`),
        }, new Listener()],
      });
      let ends = 0;
      await model.fit(x, y, { batchSize: 1, callbacks: { onBatchEnd: (batch, { loss }) => { ends += Number.isFinite(loss) ? 1 : 100; } } });
      const refusal = async (callbacks) => {
        try { await model.fit(x, y, { callbacks }); return 'nothing'; } catch ({ name, message }) { return `${name}: ${message}`; }
      };
      return {
        told, ends, unknown: await refusal({ onEpoch: () => {} }), number: await refusal([3]), text: await refusal({ onEpochEnd: 'x' }),
        thrown: await refusal({ onTrainBegin: () => { throw new Error('mine'); } }),
        rejected: await refusal({ onTrainEnd: () => Promise.reject(new Error('late')) }),
        validation: await refusal(wgrad.earlyStopping()), accuracy: await refusal(wgrad.earlyStopping({ monitor: 'accuracy' })),
        monitor: await refusal([{ type: 'earlyStopping', monitor: 'lost' }]),
        stopped: (await model.fit(x, y, {
          epochs: 9, validationData: [x, y], callbacks: wgrad.earlyStopping({ monitor: 'val_loss', minDelta: 1e3, patience: 2 }),
        })).valLoss.length,
        after: (await model.fit(x, y)).loss.length,
      };
    });
    assert.deepEqual(got.told, [
      'train begins', 'epoch 0 begins', 'batch 0 begins', 'batch 1 begins', 'option 0', 'class 0 true', 'waited 0',
      'epoch 1 begins', 'batch 0 begins', 'batch 1 begins', 'option 1', 'class 1 true', 'waited 1', 'train ends true',
    ]);
    assert.equal(got.ends, 4);
    assert.match(got.unknown, /^TypeError: .*'onEpoch'.*onEpochEnd/);
    assert.match(got.number, /^TypeError: .*3/);
    assert.match(got.text, /^TypeError: .*onEpochEnd.*function/);
    assert.equal(got.thrown, 'Error: mine');
    assert.equal(got.rejected, 'Error: late');
    assert.match(got.validation, /^TypeError: .*valLoss.*validationData/);
    assert.match(got.accuracy, /^TypeError: .*metrics: \['accuracy'\]/);
    assert.match(got.monitor, /^TypeError: .*'monitor' is "lost".*valLoss/);
    // The first epoch is the best, and two more may follow without an improvement.
    assert.equal(got.stopped, 3);
    assert.equal(got.after, 1);
  });

  it('refuses gradients that there are none of', async () => {
    const got = await page.eval(async () => {
      const { Tensor, Variable, grad, grads, variableGrads } = wgrad;
      const a = Tensor.from([1, 2]);
      const refusal = (f) => { try { f(); return 'nothing'; } catch ({ name, message }) { return `${name}: ${message}`; } };
      const live = device.stats().buffers;
      const slope = grad((v) => v.square().mul(3).sum())(a);
      return {
        slope: await slope.array(),
        free: refusal(() => grad(() => Tensor.from(1))(a)), list: refusal(() => grad((v) => v)([a])),
        one: refusal(() => grads((v) => v)(a)), later: refusal(() => grad(async (v) => v)(a)),
        twins: refusal(() => variableGrads(() => a.sum(), [new Variable(a, 'w'), new Variable(a, 'w')])),
        none: refusal(() => variableGrads(() => a.sum())), tensor: refusal(() => variableGrads(() => a.sum(), [a])), live,
      };
    });
    assert.deepEqual(got.slope, [6, 12]);
    assert.match(got.free, /^GradientError: grad: .*argument 0/);
    assert.match(got.list, /^TypeError: grad: /);
    assert.match(got.one, /^TypeError: grads: .*a list/);
    assert.match(got.later, /^TypeError: grad: .*promise/);
    assert.match(got.twins, /^TypeError: .*'w'/);
    assert.match(got.none, /^TypeError: .*model\.variables/);
    assert.match(got.tensor, /^TypeError: .*Variable/);
  });

  it('prints tensors and tells what shapes it takes', async () => {
    const got = await page.eval(async () => {
      const { Tensor, Sequential, layers } = wgrad;
      const log = console.log;
      const said = [];
      console.log = (text) => said.push(text);
      await Tensor.from([[1, 2], [3, 4]]).print();
      console.log = log;
      const refusal = (f) => { try { f(); return 'nothing'; } catch ({ name, message }) { return `${name}: ${message}`; } };
      return {
        said, scalar: await Tensor.from(2.5).array(), empty: await Tensor.zeros([2, 0]).array(),
        pads: refusal(() => Tensor.from([1]).pad([1, 2])), parts: refusal(() => Tensor.from([1, 2]).split(0)),
        mode: refusal(() => Tensor.from([1, 2]).mirrorPad([[1, 1]], 'wrap')), order: refusal(() => Tensor.from([1]).norm('nuclear')),
        places: refusal(() => Tensor.from([1, 2]).stridedSlice([0], [1, 2])), count: refusal(() => Tensor.eye(1.5)),
        second: refusal(() => new Sequential([layers.flatten(), layers.dense({ units: 1, inputShape: [2] })])),
        shape: refusal(() => new Sequential([layers.dense({ units: 1, inputShape: 2 })])),
        json: refusal(() => Sequential.fromJSON({ layer: [] })),
        shared: await (async () => { const x = Tensor.from([7]); const y = x.clone(); x.dispose(); return y.array(); })(),
      };
    });
    assert.deepEqual(got.said, ['tf.Tensor(\n[[1. 2.]\n [3. 4.]], shape=(2, 2), dtype=float32)']);
    assert.equal(got.scalar, 2.5);
    assert.deepEqual(got.empty, [[], []]);
    assert.deepEqual(got.shared, [7]);
    assert.match(got.pads, /^TypeError: pad: .*\[1,2\].*pairs/);
    assert.match(got.parts, /^TypeError: split: 0/);
    assert.match(got.mode, /^TypeError: .*'wrap'.*reflect/);
    assert.match(got.order, /^TypeError: norm: "nuclear"/);
    assert.match(got.places, /^TypeError: stridedSlice: 1 .* 2 /);
    assert.match(got.count, /^TypeError: Tensor\.eye: rows is 1\.5/);
    assert.match(got.second, /^TypeError: .*layer 1 .*first layer/);
    assert.match(got.shape, /^TypeError: .*inputShape is 2/);
    assert.match(got.json, /^TypeError: Sequential\.fromJSON/);
  });

  it('saves models whole and goes on where they stopped', async () => {
    const got = await page.eval(async (plainLayers) => {
      const { Images, Sequential, Tensor, layers, loadModel, randomNormal, setSeed } = wgrad;
      setSeed(3);
      const { x, y } = Images.drawDigits(64, 1).batch(0, 64);
      const model = new Sequential([
        layers.conv2d({ filters: 2, kernelSize: 3, activation: 'relu', inputShape: [28, 28, 1], name: 'first' }),
        layers.flatten(), layers.batchNormalization(), layers.dense({ units: 10 }),
      ]);
      model.compile({ optimizer: { type: 'adam', learningRate: 1e-2 }, metrics: ['accuracy'] });
      const steps = async (trained, count) => {
        const losses = [];
        for (let i = 0; i < count; i += 1) losses.push((await trained.trainOnBatch(x, y)).loss);
        return losses;
      };
      await steps(model, 5);
      model.learningRate = 5e-3;
      // For a native run, which supports these layers.
      const mlp = new Sequential(plainLayers);
      mlp.compile({ optimizer: { type: 'adam', learningRate: 1e-2 } });
      await steps(mlp, 4);
      const logits = [...await mlp.call(Images.drawDigits(20, 99).batch(0, 20).x).data()];
      // The file that the browser would download.
      const made = URL.createObjectURL;
      const click = HTMLAnchorElement.prototype.click;
      const downloads = [];
      URL.createObjectURL = (blob) => { downloads.push({ blob }); return made.call(URL, blob); };
      HTMLAnchorElement.prototype.click = function () { downloads.at(-1).name = this.download; };
      const places = [await model.save('indexeddb://digits'), await model.save('opfs://kept/digits'), await model.save('downloads://digits')];
      await mlp.save('downloads://mlp');
      const whole = [...new Uint8Array(await downloads[1].blob.arrayBuffer())];
      URL.createObjectURL = made;
      HTMLAnchorElement.prototype.click = click;
      const [{ blob, name }] = downloads;
      const bytes = new Uint8Array(await blob.arrayBuffer());
      const wanted = await steps(model, 4);
      setSeed(9);
      const drawn = await randomNormal([2]).array();
      setSeed(9);
      const results = [];
      let again;
      for (const from of ['indexeddb://digits', 'opfs://kept/digits', new File([blob], 'digits.safetensors'), bytes]) {
        again = await loadModel(from);
        results.push(await steps(again, 4));
      }
      const kept = await randomNormal([2]).array();
      const refusal = async (f) => { try { await f(); return 'nothing'; } catch ({ name: kind, message }) { return `${kind}: ${message}`; } };
      const damaged = bytes.slice();
      damaged[8] = 0;
      const plain = new Sequential([layers.dense({ units: 1 })]);
      plain.call(Tensor.ones([1, 2]));
      await plain.save('opfs://plain');
      return {
        places, name, wanted, results, drawn, kept, header: new TextDecoder().decode(bytes.slice(8, 8 + new DataView(bytes.buffer).getUint32(0, true))),
        json: JSON.parse(JSON.stringify(again)), same: (await loadModel('opfs://plain')).call(Tensor.ones([1, 2])).shape, whole, logits,
        weights: await refusal(async () => loadModel(await model.save())), missing: await refusal(() => loadModel('indexeddb://nobody')),
        download: await refusal(() => loadModel('downloads://digits')), address: await refusal(() => loadModel('/tests/none.safetensors')),
        elsewhere: await refusal(() => model.save('localstorage://digits')), word: await refusal(() => model.save('digits')),
        damaged: await refusal(() => loadModel(damaged)), cut: await refusal(() => loadModel(bytes.slice(0, bytes.length - 9))),
      };
    }, mlpLayers);
    assert.deepEqual(got.places, ['indexeddb://digits', 'opfs://kept/digits', 'downloads://digits']);
    assert.equal(got.name, 'digits.safetensors');
    assert.equal(got.wanted.length, 4);
    for (const losses of got.results) {
      losses.forEach((loss, i) => assert.ok(Math.abs(loss - got.wanted[i]) <= 1e-4 * got.wanted[i], `got ${losses}\nwant ${got.wanted}`));
    }
    assert.deepEqual(got.kept, got.drawn, 'loading has moved the random generator');
    assert.match(got.header, /"model\/first\/kernel"/);
    assert.match(got.header, /"optimizer\/.*model\/first\/kernel"/);
    assert.deepEqual(got.json, {
      layers: [
        { type: 'conv2d', filters: 2, kernelSize: 3, activation: 'relu', name: 'first' }, { type: 'flatten' }, { type: 'batchNormalization' },
        { type: 'dense', units: 10 },
      ],
      inputShape: [null, 28, 28, 1], compile: { optimizer: { type: 'adam', learningRate: 1e-2 }, metrics: ['accuracy'] },
    });
    assert.deepEqual(got.same, [1, 1]);
    assert.match(got.weights, /^DataError: loadModel: the file has weights alone/);
    assert.match(got.missing, /^DataError: loadModel: there is no model at indexeddb:\/\/nobody/);
    assert.match(got.download, /^TypeError: .*digits\.safetensors.*input/);
    assert.match(got.address, /^DataError: .*404/);
    assert.match(got.elsewhere, /^TypeError: .*localstorage:\/\/digits.*indexeddb/);
    assert.match(got.word, /^TypeError: save: 'digits'/);
    assert.match(got.damaged, /^DataError: /);
    assert.match(got.cut, /^(Data|Checkpoint)Error: /);
    const file = path.join(exchange, `${browserName}.model`);
    writeFileSync(file, Buffer.from(got.whole));
    writeFileSync(`${file}.json`, JSON.stringify({ layers: mlpLayers, logits: got.logits }));
  });

  it('has left nothing on the console but the refused address', () => {
    assert.deepEqual(page.problems.filter((problem) => !/404|none\.safetensors/.test(problem)), []);
  });
});
