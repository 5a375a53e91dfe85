// A training step by wgrad, for bench.mjs: the same layers, batches and optimizer as in tfjs.js.
import init, * as wgrad from '../../../web/pkg/wgrad.js';
import { BATCH, CASES, batches } from './cases.js';

const layers = {
  mlp: [{ type: 'flatten' }, { type: 'dense', units: 100, activation: 'relu' }, { type: 'dense', units: 10 }],
  cnn: [
    { type: 'conv2d', filters: 32, kernelSize: 5, padding: 'same', activation: 'relu' },
    { type: 'maxPooling2d', poolSize: 2 },
    { type: 'conv2d', filters: 64, kernelSize: 5, padding: 'same', activation: 'relu' },
    { type: 'maxPooling2d', poolSize: 2 },
    { type: 'flatten' },
    { type: 'dense', units: 1024, activation: 'relu' },
    { type: 'dropout', rate: 0.4 },
    { type: 'dense', units: 10 },
  ],
};

globalThis.open = async () => {
  await init();
  globalThis.device = await wgrad.Device.open();
  return device.adapter.text;
};

/** Prepares a case; `step` then trains on the next batch and returns the loss. */
globalThis.prepare = (name) => {
  if (!CASES.includes(name)) throw new Error(`no case ${name}`);
  wgrad.setSeed(1);
  const model = new wgrad.Sequential(layers[name]);
  model.compile({ optimizer: { type: 'adam', learningRate: 1e-3 } });
  const next = batches();
  globalThis.step = async () => {
    const { pixels, labels } = next();
    const x = wgrad.Tensor.from(pixels, [BATCH, 28, 28, 1]);
    const y = wgrad.Tensor.from(labels, [BATCH]);
    const { loss } = model.trainStep(x, y);
    const value = await loss.item();
    for (const tensor of [x, y, loss]) tensor.dispose();
    return value;
  };
};
