// A training step by TensorFlow.js, for bench.mjs: the same layers, batches and optimizer as in wgrad.js.
import * as tf from '@tensorflow/tfjs';
import '@tensorflow/tfjs-backend-webgpu';
import { BATCH, CASES, batches } from './cases.js';

const { layers } = tf;
const image = { inputShape: [28, 28, 1] };
const models = {
  mlp: () => [layers.flatten(image), layers.dense({ units: 100, activation: 'relu' }), layers.dense({ units: 10 })],
  cnn: () => [
    layers.conv2d({ ...image, filters: 32, kernelSize: 5, padding: 'same', activation: 'relu' }),
    layers.maxPooling2d({ poolSize: 2 }),
    layers.conv2d({ filters: 64, kernelSize: 5, padding: 'same', activation: 'relu' }),
    layers.maxPooling2d({ poolSize: 2 }),
    layers.flatten(),
    layers.dense({ units: 1024, activation: 'relu' }),
    layers.dropout({ rate: 0.4 }),
    layers.dense({ units: 10 }),
  ],
};

globalThis.open = async () => {
  if (!await tf.setBackend('webgpu')) throw new Error('TensorFlow.js found no WebGPU');
  await tf.ready();
  if (tf.getBackend() !== 'webgpu') throw new Error(`TensorFlow.js computes on ${tf.getBackend()}`);
  return `TensorFlow.js ${tf.version.tfjs}`;
};

globalThis.prepare = (name) => {
  if (!CASES.includes(name)) throw new Error(`no case ${name}`);
  const model = tf.sequential({ layers: models[name]() });
  const optimizer = tf.train.adam(1e-3);
  const next = batches();
  globalThis.step = async () => {
    const { pixels, labels } = next();
    const loss = tf.tidy(() => {
      const x = tf.tensor4d(pixels, [BATCH, 28, 28, 1]);
      const y = tf.oneHot(tf.tensor1d(labels, 'int32'), 10);
      return optimizer.minimize(() => tf.losses.softmaxCrossEntropy(y, model.apply(x, { training: true })), true);
    });
    const [value] = await loss.data();
    loss.dispose();
    return value;
  };
};
