// Loads an exported model and runs it in each of the ways that models.mjs compares. Libraries are imported when they are asked for.

/** The modules and wasm files that are served as they are; esbuild must not bundle them. */
const served = (path) => import(`${location.origin}${path}`);

const tensorflow = async (backend) => {
  const [tf, { loadGraphModel }] = await Promise.all([import('@tensorflow/tfjs-core'), import('@tensorflow/tfjs-converter')]);
  if (backend === 'webgpu') await import('@tensorflow/tfjs-backend-webgpu');
  else (await import('@tensorflow/tfjs-backend-wasm')).setWasmPaths('/tfjs-wasm/');
  if (!await tf.setBackend(backend)) throw new Error(`TensorFlow.js has no ${backend} here`);
  await tf.ready();
  return async (name) => {
    const model = await loadGraphModel(`/tfjs/${name}/model.json`);
    const { dtype } = model.inputs[0];
    return async (input, shape) => {
      const x = tf.tensor(input, shape, dtype);
      const y = model.predict(x);
      const values = await y.data();
      tf.dispose([x, y]);
      return values;
    };
  };
};

const onnxruntime = async (file, provider) => {
  const ort = await served(`/ort/${file}`);
  ort.env.wasm.wasmPaths = `${location.origin}/ort/`;
  return async (name) => {
    const session = await ort.InferenceSession.create(`/models/${name}.onnx`, { executionProviders: [provider] });
    return async (input, shape) => {
      const x = new ort.Tensor(input instanceof Int32Array ? 'int32' : 'float32', input, shape);
      const { y } = await session.run({ x });
      return y.data;
    };
  };
};

/** Each opens a library, and resolves with a function that loads a model by its name and the size of the batch. */
const WAYS = {
  exported: async () => async (name, batch) => {
    const { load } = await served(`/models/${name}-${batch}/model.mjs`);
    const model = await load();
    return (input) => model(input);
  },
  wgrad: async () => {
    const wgrad = await served('/pkg/models/wgrad.js');
    await wgrad.default();
    await wgrad.Device.open();
    return async (name) => {
      const model = await wgrad.loadGraphModel(`/models/${name}.onnx`);
      return async (input, shape) => {
        const x = wgrad.Tensor.from(input, shape);
        const y = model.predict(x);
        const values = await y.data();
        x.dispose();
        y.dispose();
        return values;
      };
    };
  },
  'ort-webgpu': () => onnxruntime('ort.webgpu.bundle.min.mjs', 'webgpu'),
  'ort-wasm': () => onnxruntime('ort.wasm.bundle.min.mjs', 'wasm'),
  'tfjs-webgpu': () => tensorflow('webgpu'),
  'tfjs-wasm': () => tensorflow('wasm'),
};

const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];

/**
 * Measures one way with one model; `cases` are inputs of several batches. Milliseconds: from nothing to the loaded model, to the first
 * result of the first batch, and the median of later calls of each batch, which end after `calls` or `most` milliseconds. Also the
 * first results, to be compared.
 */
globalThis.measure = async (way, name, cases, { warm, calls, most }) => {
  const arrays = cases.map(({ input, shape, integers }) => (integers ? Int32Array : Float32Array).from(input.slice(0, shape.reduce((a, b) => a * b))));
  const start = performance.now();
  const load = await WAYS[way]();
  const model = await load(name, cases[0].shape[0]);
  const loaded = performance.now();
  const results = [[...await model(arrays[0], cases[0].shape)]];
  const first = performance.now();
  const later = [];
  for (const [i, { shape }] of cases.entries()) {
    if (i > 0) results.push([...await model(arrays[i], shape)]);
    for (let n = 0; n < warm; n += 1) await model(arrays[i], shape);
    const times = [];
    for (const end = performance.now() + most; times.length < calls && (times.length < 3 || performance.now() < end);) {
      const begun = performance.now();
      await model(arrays[i], shape);
      times.push(performance.now() - begun);
    }
    later.push(median(times));
  }
  return { loaded: loaded - start, first: first - loaded, later, results };
};

/** What the page computes on. */
globalThis.adapter = async () => {
  const { info } = await navigator.gpu.requestAdapter();
  return [info.vendor, info.architecture, info.description].filter(Boolean).join(' ');
};
