// A training step with wgrad for bench.mjs, of the models in cases.js.
import init, * as wgrad from '../../../web/pkg/wgrad.js';
import { ADAM, BATCH, CASES, DIGITS, RATE, batches, learn } from './cases.js';

const dropout = { type: 'dropout', rate: RATE };
const layers = {
  mlp: [{ type: 'flatten' }, { type: 'dense', units: 100, activation: 'relu' }, { type: 'dense', units: 10 }],
  cnn: [
    { type: 'conv2d', filters: 32, kernelSize: 5, padding: 'same', activation: 'relu' },
    { type: 'maxPooling2d', poolSize: 2 },
    { type: 'conv2d', filters: 64, kernelSize: 5, padding: 'same', activation: 'relu' },
    { type: 'maxPooling2d', poolSize: 2 },
    { type: 'flatten' },
    { type: 'dense', units: 1024, activation: 'relu' },
    dropout,
    { type: 'dense', units: 10 },
  ],
};

globalThis.open = async () => {
  await init();
  globalThis.device = await wgrad.Device.open();
  return device.adapter.text;
};

/** Prepares a case; `step` then trains on the next batch and returns the loss. If `compared`, the model has no dropout, and its
 * initial weights are returned. */
globalThis.prepare = async (name, compared = false) => {
  if (!CASES.includes(name)) throw new Error(`no case ${name}`);
  wgrad.setSeed(1);
  const model = new wgrad.Sequential(layers[name].filter((layer) => !compared || layer !== dropout));
  model.compile({ optimizer: { type: 'adam', learningRate: ADAM.learningRate } });
  const next = batches();
  globalThis.step = async (batch = next()) => {
    const { pixels, labels } = batch;
    const x = wgrad.Tensor.from(pixels, [BATCH, 28, 28, 1]);
    const y = wgrad.Tensor.from(labels, [BATCH]);
    const { loss } = model.trainStep(x, y);
    const value = await loss.item();
    for (const tensor of [x, y, loss]) tensor.dispose();
    return value;
  };
  globalThis.logits = async (pixels, count) => {
    const x = wgrad.Tensor.from(pixels, [count, 28, 28, 1]);
    const y = model.call(x);
    const values = await y.data();
    for (const tensor of [x, y]) tensor.dispose();
    return values;
  };
  if (!compared) return undefined;
  model.build([null, 28, 28, 1]);
  return weights(await model.save());
};

globalThis.learn = learn;

/** Drawn digits for all libraries, in the format that cases.js reads, in Base64. */
globalThis.drawn = () => {
  const images = wgrad.Images.drawDigits(DIGITS.train + DIGITS.test, DIGITS.seed);
  const bytes = new Uint8Array(images.length * 785);
  for (let i = 0; i < images.length; i += 1) bytes.set(images.image(i), i * 784);
  bytes.set(images.labels, images.length * 784);
  return bytes.toBase64();
};

/** The contents of a safetensors file: names, shapes and floats in Base64, in the order of the layers. */
function weights(file) {
  const length = Number(new DataView(file.buffer, file.byteOffset).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(file.subarray(8, 8 + length)));
  delete header.__metadata__;
  return Object.entries(header).map(([name, { shape, data_offsets: [begin, end] }]) => {
    return { name, shape, floats: file.slice(8 + length + begin, 8 + length + end).toBase64() };
  });
}
