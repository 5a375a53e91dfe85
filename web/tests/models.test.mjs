// Models of other programs in a browser (the module wgrad/models): their results are those of the programs that wrote them.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pageMounts, serve } from '../serve.mjs';
import { browserName, launch, root } from './driver.mjs';

const data = path.join(root, 'tests/data');

/** The arrays in a safetensors file, as plain values. */
function arrays(file) {
  const bytes = readFileSync(path.join(data, file));
  const length = Number(bytes.readBigUInt64LE(0));
  const header = JSON.parse(bytes.toString('utf8', 8, 8 + length));
  delete header.__metadata__;
  return Object.fromEntries(Object.entries(header).map(([name, { dtype, shape, data_offsets: [from, to] }]) => {
    const part = new Uint8Array(bytes.subarray(8 + length + from, 8 + length + to)).buffer;
    const values = { F32: Float32Array, I32: Int32Array, I64: BigInt64Array, BOOL: Uint8Array }[dtype];
    return [name, { shape, dtype, values: [...new values(part)].map(Number) }];
  }));
}

/** The arrays of NumPy's archive, whose members are not compressed. */
function npz(file) {
  const bytes = readFileSync(path.join(data, file));
  const found = {};
  for (let at = 0; bytes.readUInt32LE(at) === 0x04034b50;) {
    const [nameLength, extra] = [bytes.readUInt16LE(at + 26), bytes.readUInt16LE(at + 28)];
    const name = bytes.toString('utf8', at + 30, at + 30 + nameLength);
    const start = at + 30 + nameLength + extra;
    const head = start + 10 + bytes.readUInt16LE(start + 8);
    const text = bytes.toString('latin1', start + 10, head);
    const shape = /'shape': \(([^)]*)\)/.exec(text)[1].split(',').filter((size) => size.trim()).map(Number);
    const [array, dtype] = text.includes('<f4') ? [Float32Array, 'F32'] : text.includes('<i4') ? [Int32Array, 'I32'] : [BigInt64Array, 'I64'];
    const count = shape.reduce((all, size) => all * size, 1);
    const end = head + count * array.BYTES_PER_ELEMENT;
    found[name.replace('.npy', '')] = { shape, dtype, values: [...new array(new Uint8Array(bytes.subarray(head, end)).buffer)].map(Number) };
    at = end;
  }
  return found;
}

const part = (all, prefix) => Object.fromEntries(Object.entries(all).filter(([name]) => name.startsWith(prefix)).map(([name, array]) => [name.slice(prefix.length), array]));

function near(what, actual, expected, tolerance = 1e-4) {
  assert.deepEqual(actual.shape, expected.shape, what);
  const largest = Math.max(1, ...expected.values.map(Math.abs));
  actual.values.forEach((value, i) => assert.ok(Math.abs(value - expected.values[i]) <= tolerance * largest, `${what}: element ${i} is ${value}, not ${expected.values[i]}`));
}

describe(`models of other programs in ${browserName}`, () => {
  let server;
  let browser;
  let page;

  before(async () => {
    const folders = ['saved_model', 'onnx', 'tfjs', 'keras_files'].map((name) => [`/${name}/`, path.join(data, name)]);
    const own = ['pkg', 'tests'].map((name) => [`/${name}/`, path.join(root, 'web', name)]);
    server = await serve([...folders, ...own, ...pageMounts()]);
    browser = await launch();
    page = await browser.page();
    await page.goto(`${server.url}tests/models.html`);
    await page.until(() => 'ready' in globalThis, { what: 'the script', timeout: 60_000 });
    await page.eval(() => globalThis.ready);
  });

  after(async () => {
    await browser?.close();
    await server?.close();
  });

  /** Loads a graph model from the web, and compares its results, twice by a plan and once by waiting. */
  async function compare(address, cases, { waits = false } = {}) {
    const all = arrays(cases);
    const got = await page.eval(async (address, inputs, waits) => {
      const model = await wgrad.loadGraphModel(address);
      const given = Object.fromEntries(Object.entries(inputs).map(([name, value]) => [name, tensor(value)]));
      const found = [];
      if (!waits) for (let i = 0; i < 2; i++) found.push(await plain(model, model.predict(given)));
      found.push(await plain(model, await model.predictAsync(given)));
      return { found, refused: waits ? await error(() => model.predict(given)) : '', inputs: model.inputs, format: model.format };
    }, address, part(all, 'in.'), waits);
    for (const results of got.found) {
      assert.deepEqual(Object.keys(results).sort(), Object.keys(part(all, 'out.')).sort());
      for (const [name, result] of Object.entries(results)) near(`${address}: ${name}`, result, all[`out.${name}`]);
    }
    return got;
  }

  for (const name of ['cnn', 'transformer', 'ops']) {
    it(`SavedModel ${name}`, async () => {
      const { format } = await compare(`/saved_model/${name}/`, `saved_model/${name}.safetensors`);
      assert.equal(format, 'SavedModel');
    });
  }

  it('SavedModels with branches, loops and sizes by values, which predictAsync waits for', async () => {
    for (const name of ['cond', 'loop', 'dynamic']) {
      const { refused } = await compare(`/saved_model/${name}`, `saved_model/${name}.safetensors`, { waits: true });
      assert.match(refused, /a page cannot wait.*predictAsync/, name);
    }
  });

  for (const name of ['mlp', 'cnn', 'recurrent']) {
    it(`ONNX ${name}`, async () => {
      const { format } = await compare(`/onnx/${name}.onnx`, `onnx/${name}.safetensors`);
      assert.equal(format, 'ONNX');
    });
  }

  it('graph models of TensorFlow.js', async () => {
    await compare('/tfjs/graph_pictures/model.json', 'tfjs/graph_pictures.safetensors');
    await compare('/tfjs/graph_uint8/model.json', 'tfjs/graph_uint8.safetensors');
    await compare('/tfjs/graph_control/model.json', 'tfjs/graph_control.safetensors', { waits: true });
  });

  it('a graph of TensorFlow 1', async () => {
    const all = arrays('saved_model/tensorflow_1.safetensors');
    const y = await page.eval(async (x) => {
      const model = await wgrad.loadGraphModel('/saved_model/frozen.pb', { inputs: ['x'], outputs: ['y'] });
      return (await plain(model, model.predict(tensor(x)))).y;
    }, all['in.x']);
    near('frozen.pb', y, all['out.y']);
    const refused = await page.eval(() => error(() => wgrad.loadGraphModel('/saved_model/frozen.pb')));
    assert.match(refused, /^TypeError: .*Name the nodes/);
  });

  it('strings and tables', async () => {
    const results = await page.eval(async () => {
      const model = await wgrad.loadGraphModel('/saved_model/tables/');
      return plain(model, await model.predictAsync(['blue', 'red', 'pink']));
    });
    assert.deepEqual([results.word, results.place.values], [['blau', 'rot', '?'], [2, 0, -1]]);
  });

  it('Keras files and layers models of TensorFlow.js', async () => {
    for (const name of ['cnn', 'sequence', 'attention']) {
      const all = npz(`keras_files/${name}.npz`);
      const { x0: x, y } = all;
      const got = await page.eval(async (name, x) => {
        const model = await wgrad.loadModel(`/keras_files/${name}.keras`);
        // Kept in the page's storage, with Keras's layers, and loaded again.
        await model.save('indexeddb://of-keras');
        const again = await wgrad.loadModel('indexeddb://of-keras');
        return Promise.all([model, again].map(async (model) => (await plain(model, model.call(tensor(x)))).y));
      }, name, x);
      for (const result of got) near(name, result, y);
    }
    const old = npz('keras_files/nested.npz');
    near('nested_legacy.h5', await page.eval(async (x) => {
      const model = await wgrad.loadModel('/keras_files/nested_legacy.h5');
      return (await plain(model, model.call(tensor(x)))).y;
    }, old.x0), old.y);
    for (const name of ['layers_functional', 'layers_sequential']) {
      const all = arrays(`tfjs/${name}.safetensors`);
      const y = await page.eval(async (name, x) => {
        const model = await wgrad.loadModel(`/tfjs/${name}/model.json`);
        return (await plain(model, model.call(tensor(x)))).y;
      }, name, Object.values(part(all, 'in.'))[0]);
      near(name, y, all['out.y']);
    }
  });

  it('files in memory, with the names of their folder', async () => {
    const all = arrays('tfjs/graph_pictures.safetensors');
    const found = await page.eval(async (x) => {
      const tfjs = await files('/tfjs/graph_pictures', ['model.json', 'group1-shard1of2.bin', 'group1-shard2of2.bin']);
      const saved = await files('/saved_model/cnn', ['saved_model.pb', 'variables/variables.index', 'variables/variables.data-00000-of-00001']);
      const below = Object.fromEntries(Object.entries(saved).map(([name, file]) => [`pictures/${name}`, file]));
      const listed = await wgrad.loadGraphModel(Object.values(tfjs));
      const onnx = await (await fetch('/onnx/cnn.onnx')).arrayBuffer();
      return {
        y: (await plain(listed, listed.predict(tensor(x)))).output_0,
        formats: [(await wgrad.loadGraphModel(below)).format, (await wgrad.loadGraphModel(new Uint8Array(onnx))).format],
        lacks: await error(() => wgrad.loadGraphModel({ 'model.json': tfjs['model.json'] })),
      };
    }, all['in.keras_tensor']);
    near('a list of files', found.y, all['out.output_0']);
    assert.deepEqual(found.formats, ['SavedModel', 'ONNX']);
    assert.match(found.lacks, /^DataError: .*group1-shard1of2.bin.* is missing/);
  });

  it('are trained further, alone and with layers after them', async () => {
    const losses = await page.eval(async () => {
      wgrad.setSeed(4);
      // The brightness tells the class.
      const labels = Int32Array.from({ length: 24 }, (_, i) => i % 3);
      const y = wgrad.Tensor.from(labels);
      const x = wgrad.randomUniform([24, 12, 12, 3]).add(wgrad.Tensor.from(Float32Array.from(labels), [24, 1, 1, 1]));
      const graph = await wgrad.loadGraphModel('/tfjs/graph_pictures/model.json');
      const model = graph.toSequential([wgrad.layers.dense({ units: 3 })]);
      model.compile({ optimizer: { type: 'adam', learningRate: 0.02 } });
      const { loss } = await model.fit(x, y, { epochs: 15, batchSize: 8 });
      // Probabilities of five classes, and the tape.
      const before = await graph.variables[0].read().data();
      const alone = graph.toSequential();
      alone.compile({ optimizer: 'sgd', fromLogits: false, metrics: ['accuracy'] });
      const own = await alone.fit(x, y, { epochs: 2, batchSize: 8 });
      const { gradients } = wgrad.valueAndGradients(() => graph.predict(x).square().sum(), graph.variables);
      gradients.forEach((gradient, i) => gradient && graph.variables[i].assignSub(gradient.mul(0.01)));
      const after = await graph.variables[0].read().data();
      return { loss, own: own.loss, moved: before.some((value, i) => value !== after[i]), count: gradients.filter(Boolean).length, json: await error(() => model.toJSON()) };
    });
    assert.ok(losses.loss.at(-1) < losses.loss[0] * 0.8, JSON.stringify(losses));
    assert.ok(losses.own.every(Number.isFinite) && losses.moved && losses.count > 10, JSON.stringify(losses));
    assert.match(losses.json, /^TypeError: toJSON: the model has a loaded graph/);
  });

  it('say what is wrong with them', async () => {
    const said = await page.eval(async () => ({
      none: await error(() => wgrad.loadGraphModel('/onnx/none.onnx')),
      folder: await error(() => wgrad.loadGraphModel('/onnx/')),
      layers: await error(() => wgrad.loadGraphModel('/tfjs/layers_sequential/model.json')),
      graph: await error(() => wgrad.loadModel('/tfjs/graph_uint8/model.json')),
      keras: await error(() => wgrad.loadGraphModel('/keras_files/cnn.keras')),
      number: await error(() => wgrad.loadGraphModel(7)),
      bytes: await error(() => wgrad.loadGraphModel(new Uint8Array([255, 1, 2]))),
      ops: await error(() => wgrad.loadGraphModel('/saved_model/text/')),
      signature: await error(() => wgrad.loadGraphModel('/saved_model/cnn/', { signature: 'other' })),
      shape: await error(async () => (await wgrad.loadGraphModel('/saved_model/cnn/')).predict(wgrad.Tensor.zeros([2, 3]))),
      input: await error(async () => (await wgrad.loadGraphModel('/saved_model/cnn/')).predict({ y: wgrad.Tensor.zeros([2, 3]) })),
      several: await error(async () => (await wgrad.loadModel('/keras_files/two_inputs.keras'))),
    }));
    const wanted = {
      none: /^DataError: loadGraphModel: .*none.onnx was answered with the status 404/,
      folder: /^DataError: loadGraphModel: there is no saved_model.pb at /,
      layers: /^TypeError: .*is a layers model. Load it with loadModel/,
      graph: /^TypeError: .*is a graph model. Load it with loadGraphModel/,
      keras: /^TypeError: .*cnn.keras is no graph.*loadModel loads .keras/,
      number: /^TypeError: loadGraphModel: 7 is no file/,
      bytes: /^DataError: it is no ONNX model/,
      ops: /^DataError: .*StringLower: node/s,
      signature: /^IndexError: .*no signature "other": it has serve, serving_default/,
      shape: /^ShapeError: .*got f(loat)?32\[2, ?3\] for its input/,
      input: /^IndexError: .*lacks its input/,
      several: /^TypeError: loadModel: the model has 2 inputs and 1 outputs/,
    };
    for (const [key, pattern] of Object.entries(wanted)) assert.match(said[key], pattern, key);
  });

  it('are dropped on the example page, which runs them and trains them', async () => {
    const own = await browser.page();
    await own.goto(`${server.url}examples/models.html`);
    const says = (pattern) => own.until((source) => {
      const text = document.querySelector('#out').textContent;
      return (new RegExp(source).test(text) || /Error: /.test(text)) && text;
    }, { what: `a line like ${pattern}`, timeout: 120_000 }, pattern.source);
    await says(/press Load/);
    await own.click('#load');
    assert.match(await says(/results: digit/), /ONNX, loaded in \d+ ms, [\d,]+ weights\ninputs: +image float32 \[\?, 28, 28, 1\]/);
    await own.click('#run');
    assert.match(await says(/third run[^]*digit: /), /digit: ([\d.e-]+ ){9}/);
    await own.click('#read');
    const right = async (times) => Number([...(await says(new RegExp(`(of 300 are right[^]*){${times}}`))).matchAll(/(\d+) of 300/g)].at(-1)[1]);
    const before = await right(1);
    await own.click('#train');
    const after = await right(2);
    console.log(`  ${before} of 300 drawn digits, then ${after}`);
    assert.ok(before > 60 && after > 200 && after > before, `${before}, then ${after}`);
    await own.screenshot('models');
    // A drop, and one that is no model.
    const drop = (files) => own.eval(async (files) => {
      const transfer = new DataTransfer();
      for (const name of files) transfer.items.add(new File([await (await fetch(`/${name}`)).arrayBuffer()], name.split('/').at(-1)));
      document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }));
    }, files);
    await drop(['tfjs/layers_sequential/model.json', 'tfjs/layers_sequential/model.weights.bin']);
    assert.match(await says(/Keras, loaded/), /gru_GRU1/);
    await drop(['onnx/mlp.onnx']);
    assert.match(await says(/Error: /), /"mlp.data" is missing/);
    await own.close?.();
  });
});
