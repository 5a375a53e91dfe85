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

  it('models with several inputs, in the order of the model or by name', async () => {
    const all = npz('keras_files/two_inputs.npz');
    const got = await page.eval(async (x0, x1) => {
      const model = await wgrad.loadModel('/keras_files/two_inputs.keras');
      const [a, b] = [tensor(x0), tensor(x1)];
      await model.save('indexeddb://several');
      const again = await wgrad.loadModel('indexeddb://several');
      const results = [model.call([a, b]), model.call({ b, a }), await model.predict([a, b]), await model.predict({ a, b }, { batchSize: 1 }), again.call([a, new wgrad.Variable(b)])];
      const one = await wgrad.loadModel('/keras_files/attention.keras');
      const x = wgrad.randomUniform([2, 5, 8]);
      const [name] = one.inputs.map(({ name }) => name);
      const same = [one.call(x), one.call([x]), one.call({ [name]: x }), await one.predict([x])];
      return {
        results: await Promise.all(results.map(async (y) => (await plain({}, y)).y)),
        same: await Promise.all(same.map(async (y) => [...await y.data()])),
        ends: [model.inputs, model.outputs, one.inputs, (await wgrad.loadModel('/keras_files/cnn.keras')).inputs],
      };
    }, all.x0, all.x1);
    for (const result of got.results) near('two_inputs', result, all.y);
    got.same.forEach((values) => assert.deepEqual(values, got.same[0]));
    const [inputs, outputs, only, stack] = got.ends;
    assert.deepEqual(inputs, [{ name: 'a', dtype: 'float32', shape: [null, 4] }, { name: 'b', dtype: 'float32', shape: [null, 3] }]);
    assert.deepEqual(outputs, [{ name: 'out', dtype: 'float32', shape: [null, 2] }]);
    assert.deepEqual([only.length, only[0].shape, stack], [1, [null, 5, 8], []]);
  });

  it('models with several outputs, which are trained as by Keras', async () => {
    const all = npz('keras_files/two_outputs.npz');
    const got = await page.eval(async ({ x0, x1, kinds, sizes }) => {
      const [a, b, kind, size] = [x0, x1, kinds, sizes].map(tensor);
      const load = () => wgrad.loadModel('/keras_files/two_outputs.keras');
      const values = async (list) => Promise.all(list.map(async (y) => (await plain({}, y)).y));
      const options = { optimizer: { type: 'sgd', learningRate: 0.05 }, loss: { size: 'meanSquaredError', kind: 'sparseCategoricalCrossentropy' }, lossWeights: { size: 0.25 }, metrics: ['accuracy'] };
      const how = { batchSize: 4, epochs: 3, shuffle: false };
      const model = await load();
      const results = [await values(await model.predict([a, b])), await values(model.call({ b, a })), await values(await model.predict({ a, b }, { batchSize: 3 }))];
      model.compile(options);
      const seen = [];
      const history = await model.fit([a, b], { size, kind }, { ...how, validationData: [{ b, a }, [kind, size]], onEpochEnd: (epoch, logs) => { seen.push(logs); } });
      const after = await model.evaluate({ a, b }, [kind, size]);
      // The same in single steps.
      const other = await load();
      other.compile({ ...options, loss: ['sparseCategoricalCrossentropy', 'meanSquaredError'], lossWeights: [1, 0.25] });
      const half = (at) => [a, b, kind, size].map((x) => x.slice([4 * at, ...x.shape.slice(1).fill(0)], [4, ...x.shape.slice(1)]));
      const steps = [];
      for (const at of [0, 1, 0, 1, 0, 1]) {
        const [a, b, kind, size] = half(at);
        if (at) steps.push(await other.trainOnBatch([a, b], [kind, size]));
        else {
          const step = other.trainStep({ a, b }, { kind, size });
          steps.push(Object.fromEntries(await Promise.all(Object.entries(step).map(async ([name, value]) => [name, await value.item()]))));
        }
      }
      // With its optimizer, loaded again, and as a traced function.
      await model.save('indexeddb://outputs');
      const again = await wgrad.loadModel('indexeddb://outputs');
      const traced = wgrad.tfFunction((x, y) => again.trainStep(x, y));
      const losses = [];
      for (let i = 0; i < 2; i++) losses.push(await traced({ a, b }, { kind, size }).loss.item());
      // Only one output is trained; the loss is the same for all; and probabilities.
      const one = await load();
      one.compile({ optimizer: 'sgd', loss: { size: 'meanAbsoluteError' } });
      const alone = await one.fit([a, b], size, { ...how, epochs: 1, callbacks: wgrad.earlyStopping({ monitor: 'loss' }) });
      one.compile({ optimizer: 'sgd', loss: 'meanSquaredError' });
      const same = await one.evaluate([a, b], [wgrad.Tensor.zeros([8, 3]), size]);
      const stopped = await other.fit([a, b], [kind, size], { ...how, epochs: 9, validationData: [[a, b], { kind, size }], callbacks: wgrad.earlyStopping({ monitor: 'val_size_loss', minDelta: 100, patience: 1 }) });
      return { results, history, seen, after, steps, again: [await again.evaluate([a, b], [kind, size]), losses], alone, same: Object.keys(same), stopped, variables: model.variables.map(({ name }) => name) };
    }, all);
    for (const [kind, size] of got.results) {
      near('kind', kind, all.y0);
      near('size', size, all.y1);
    }
    const names = ['kind_accuracy', 'kind_loss', 'loss', 'size_loss'];
    const close = (what, value, expected) => assert.ok(Math.abs(value - expected) < 1e-4 * Math.max(1, Math.abs(expected)), `${what}: ${value}, not ${expected}`);
    for (const name of names) {
      got.history[name].forEach((value, epoch) => close(`${name} of epoch ${epoch}`, value, all[name].values[epoch]));
      close(`${name} after the training`, got.after[name], all[`after_${name}`].values[0]);
      close(`${name} of the validation`, got.history[name === 'loss' ? 'valLoss' : `val_${name}`].at(-1), got.after[name]);
      // Of an epoch of two steps.
      got.history[name].forEach((value, epoch) => close(`${name} by steps`, (got.steps[2 * epoch][name] + got.steps[2 * epoch + 1][name]) / 2, value));
    }
    assert.deepEqual(Object.keys(got.seen[2]).sort(), ['kind_accuracy', 'kind_loss', 'loss', 'size_accuracy', 'size_loss', 'valLoss', 'val_kind_accuracy', 'val_kind_loss', 'val_size_accuracy', 'val_size_loss']);
    const [kept, [first, second]] = got.again;
    close('the loss of the traced step', first, got.after.loss);
    assert.ok(second < first && kept.loss < second, JSON.stringify(got.again));
    assert.equal(got.alone.loss.length, 1);
    assert.deepEqual(got.same.sort(), ['kind_loss', 'loss', 'size_loss']);
    assert.equal(got.stopped.loss.length, 2);
    assert.deepEqual(got.variables.length, 8);
  });

  it('say what is wrong with several inputs and outputs', async () => {
    const said = await page.eval(async () => {
      const model = await wgrad.loadModel('/keras_files/two_outputs.keras');
      const zeros = (...shape) => wgrad.Tensor.zeros(shape);
      const [a, b, kind, size] = [zeros(2, 4), zeros(2, 2, 3), wgrad.Tensor.from(new Int32Array(2)), zeros(2, 1)];
      const compile = (options) => error(() => model.compile({ optimizer: 'sgd', ...options }));
      const before = await error(() => model.fit([a, b], [kind, size]));
      const fitted = async (x, y, options) => {
        model.compile({ optimizer: 'sgd', loss: ['sparseCategoricalCrossentropy', 'meanSquaredError'] });
        return error(() => model.fit(x, y, options));
      };
      return {
        before,
        one: await error(() => model.predict(a)),
        few: await error(() => model.predict([a])),
        unknown: await error(() => model.call({ a, c: b })),
        lacks: await error(() => model.call({ a })),
        shape: await error(() => model.call([a, zeros(2, 3)])),
        swapped: await error(() => model.predict([b, a])),
        dtype: await error(() => model.call([a.toInt(), b])),
        value: await error(() => model.call([a, 7])),
        named: await error(() => model.call({ a, b: 'x' })),
        none: await error(() => model.predict(undefined)),
        images: await fitted(wgrad.Images.drawDigits(4, 1)),
        axes: await fitted([a, zeros(3, 2, 3)], [kind, size]),
        targets: await fitted([a, b], [kind]),
        target: await fitted([a, b], { kind, weight: size }),
        missing: await fitted([a, b]),
        label: await fitted([a, b], [kind.add(3), size]),
        validation: await fitted([a, b], [kind, size], { validationData: [[a], [kind, size]] }),
        activations: await error(() => model.activations(a)),
        build: await error(() => model.build([null, 4])),
        losses: await compile({ loss: ['meanSquaredError'] }),
        loss: await compile({ loss: { weight: 'meanSquaredError' } }),
        nothing: await compile({ loss: {} }),
        weight: await compile({ loss: 'meanSquaredError', lossWeights: { size: 'much' } }),
      };
    });
    const two = "The model has 2 inputs: 'a' float32 \\[null, 4\\], 'b' float32 \\[null, 2, 3\\]";
    const wanted = {
      before: /^TypeError: Sequential: the model has no optimizer yet/,
      one: /^TypeError: predict: x has 1 tensor, and the model has 2 inputs: 'a' float32 \[null, 4\], 'b' float32 \[null, 2, 3\]. Give a tensor for each/,
      few: /^TypeError: predict: x has 1 tensor, and the model has 2 inputs: /,
      unknown: /^TypeError: call: x names 'c', which the model does not have. It has 2 inputs: 'a' /,
      lacks: new RegExp(`^TypeError: call: x lacks 'b'. ${two}`),
      shape: /^ShapeError: call: the input 'b' is \[2, 3\], and the model takes \[null, 2, 3\]/,
      swapped: /^ShapeError: predict: the input 'a' is \[2, 2, 3\], and the model takes \[null, 4\]/,
      dtype: /^DTypeError: .*the input 'a' is int32; it must be float32/,
      value: new RegExp(`^TypeError: call: x\\[1\\] is 7; it must be a Tensor. ${two}`),
      named: /^TypeError: call: x.b is "x"; it must be a Tensor/,
      none: /^TypeError: predict: x is undefined; it must be tensors, in a list or by name/,
      images: /^TypeError: fit: x is the Images.*; it must be tensors, in a list or by name/,
      axes: /^ShapeError: fit: x is \[2, 4\], \[3, 2, 3\] and y is \[2\], \[2, 1\]; their first axes/,
      targets: /^TypeError: fit: y has 1 tensor, and the model has 2 outputs: 'kind' float32 \[null, 3\], 'size' float32 \[null, 1\]/,
      target: /^TypeError: fit: y names 'weight'/,
      missing: /^TypeError: fit: y is missing; it must be tensors/,
      label: /^IndexError: fit: a label is 3, and the model's output \[2, 3\] has 3 classes/,
      validation: /^TypeError: fit: validationData: x has 1 tensor, and the model has 2 inputs/,
      activations: /^TypeError: activations: it is for models with one input and one output. This one has 2 inputs/,
      build: /^TypeError: build: it is for models with one input/,
      losses: /^TypeError: compile: loss has 1 parts, and the model has 2 outputs: kind, size. Give a loss for each/,
      loss: /^TypeError: compile: loss names 'weight', and the model has no such output. Its outputs are kind, size/,
      nothing: /^TypeError: compile: no output has a loss/,
      weight: /^TypeError: compile: the loss weight of 'size' is "much"; it must be a number/,
    };
    for (const [key, pattern] of Object.entries(wanted)) assert.match(said[key], pattern, key);
  });

  it('SavedModels of Keras 2 with their layers, which are trained', async () => {
    const names = ['saved_model.pb', 'keras_metadata.pb', 'variables/variables.index', 'variables/variables.data-00000-of-00001'];
    for (const name of ['sequential', 'functional']) {
      const all = arrays(`saved_model/keras_2_${name}.safetensors`);
      const got = await page.eval(async (folder, names, x) => {
        const inside = await files(folder, names);
        const below = Object.fromEntries(Object.entries(inside).map(([name, file]) => [`picked/${name}`, file]));
        // As a visitor chooses a folder.
        const picked = Object.entries(below).map(([path, file]) => Object.defineProperty(new File([file], file.name), 'webkitRelativePath', { value: path }));
        const models = [];
        for (const from of [`${folder}/`, new URL(folder, location.href), `${folder}/saved_model.pb`, inside, below, picked]) models.push(await wgrad.loadModel(from));
        const results = await Promise.all(models.map(async (model) => (await plain(model, await model.predict(tensor(x)))).y));
        const [model] = models;
        const kinds = model.summary();
        // Layers that behave differently in training, and variables of several kinds.
        const y = wgrad.Tensor.from(Int32Array.from([0, 1, 1, 0, 1]));
        model.compile({ optimizer: { type: 'adam', learningRate: 0.01 }, fromLogits: false });
        const { loss } = await model.fit(tensor(x), y, { epochs: 30, batchSize: 5 });
        await model.save('indexeddb://keras-2');
        const again = await wgrad.loadModel('indexeddb://keras-2');
        const kept = await Promise.all([model, again].map(async (model) => [...await (await model.predict(tensor(x))).data()]));
        return { results, kinds, loss, kept };
      }, `/saved_model/keras_2_${name}`, names, all.x);
      assert.equal(got.results.length, 6);
      for (const result of got.results) near(name, result, all.y);
      assert.match(got.kinds, name === 'sequential' ? /BatchNormalization/ : /Functional/);
      assert.ok(got.loss.at(-1) < got.loss[0] * 0.7, `${name}: ${got.loss}`);
      assert.deepEqual(got.kept[0], got.kept[1]);
    }
    const said = await page.eval(async () => {
      const folder = '/saved_model/keras_2_sequential';
      const all = await files(folder, ['saved_model.pb', 'keras_metadata.pb', 'variables/variables.index', 'variables/variables.data-00000-of-00001']);
      const without = (name) => error(() => wgrad.loadModel(Object.fromEntries(Object.entries(all).filter(([own]) => own !== name))));
      return {
        subclass: await error(() => wgrad.loadModel('/saved_model/keras_2_subclass/')),
        other: await error(() => wgrad.loadModel('/saved_model/cnn/')),
        metadata: await without('keras_metadata.pb'),
        shard: await without('variables/variables.data-00000-of-00001'),
        none: await error(() => wgrad.loadModel('/saved_model/none/')),
        damaged: await error(() => wgrad.loadModel({ ...all, 'keras_metadata.pb': new Uint8Array([255, 1, 2]) })),
      };
    });
    const undescribed = /^DataError: there is no file keras_metadata.pb, so its layers are not known. Load its functions with loadGraphModel, or save the model as a .keras file/;
    const wanted = {
      subclass: /^DataError: the model 'own' is a 'Own', a class of its own.*Load its functions with loadGraphModel/,
      other: undescribed,
      metadata: undescribed,
      shard: /data-00000-of-00001: the file is missing/,
      none: /^DataError: loadModel: there is no saved_model.pb at /,
      damaged: /^DataError: keras_metadata.pb is damaged/,
    };
    for (const [key, pattern] of Object.entries(wanted)) assert.match(said[key], pattern, key);
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
      ops: await error(() => wgrad.loadGraphModel('/saved_model/unknown/')),
      signature: await error(() => wgrad.loadGraphModel('/saved_model/cnn/', { signature: 'other' })),
      shape: await error(async () => (await wgrad.loadGraphModel('/saved_model/cnn/')).predict(wgrad.Tensor.zeros([2, 3]))),
      input: await error(async () => (await wgrad.loadGraphModel('/saved_model/cnn/')).predict({ y: wgrad.Tensor.zeros([2, 3]) })),
    }));
    const wanted = {
      none: /^DataError: loadGraphModel: .*none.onnx was answered with the status 404/,
      folder: /^DataError: loadGraphModel: there is no saved_model.pb at /,
      layers: /^TypeError: .*is a layers model. Load it with loadModel/,
      graph: /^TypeError: .*is a graph model. Load it with loadGraphModel/,
      keras: /^TypeError: .*cnn.keras is no graph.*loadModel loads .keras/,
      number: /^TypeError: loadGraphModel: 7 is no file/,
      bytes: /^DataError: it is no ONNX model/,
      ops: /^DataError: .*UnicodeTranscode: node/s,
      signature: /^IndexError: .*no signature "other": it has serve, serving_default/,
      shape: /^ShapeError: .*got f(loat)?32\[2, ?3\] for its input/,
      input: /^IndexError: .*lacks its input/,
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
