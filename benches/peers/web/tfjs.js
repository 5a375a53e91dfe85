// A training step with TensorFlow.js for bench.mjs, of the models in cases.js, from the separate packages.
import * as tf from '@tensorflow/tfjs-core';
import { layers, sequential } from '@tensorflow/tfjs-layers';
import '@tensorflow/tfjs-backend-webgpu';
import { ADAM, BATCH, CASES, RATE, batches, learn, unpacked } from './cases.js';

const image = { inputShape: [28, 28, 1] };
const models = {
  mlp: () => [layers.flatten(image), layers.dense({ units: 100, activation: 'relu' }), layers.dense({ units: 10 })],
  cnn: (compared) => [
    layers.conv2d({ ...image, filters: 32, kernelSize: 5, padding: 'same', activation: 'relu' }),
    layers.maxPooling2d({ poolSize: 2 }),
    layers.conv2d({ filters: 64, kernelSize: 5, padding: 'same', activation: 'relu' }),
    layers.maxPooling2d({ poolSize: 2 }),
    layers.flatten(),
    layers.dense({ units: 1024, activation: 'relu' }),
    ...(compared ? [] : [layers.dropout({ rate: RATE })]),
    layers.dense({ units: 10 }),
  ],
};

globalThis.open = async () => {
  if (!await tf.setBackend('webgpu')) throw new Error('TensorFlow.js found no WebGPU');
  await tf.ready();
  if (tf.getBackend() !== 'webgpu') throw new Error(`TensorFlow.js computes on ${tf.getBackend()}`);
  return `TensorFlow.js ${tf.version_core}`;
};

/** As in wgrad.js; `weights`, if given, are the initial ones. */
globalThis.prepare = async (name, weights) => {
  if (!CASES.includes(name)) throw new Error(`no case ${name}`);
  const model = sequential({ layers: models[name](weights !== undefined) });
  if (weights !== undefined) model.setWeights(weights.map(({ shape, floats }) => tf.tensor(unpacked(floats), shape)));
  const optimizer = tf.train.adam(ADAM.learningRate, ADAM.beta1, ADAM.beta2, ADAM.epsilon);
  const next = batches();
  globalThis.step = async (batch = next()) => {
    const { pixels, labels } = batch;
    const loss = tf.tidy(() => {
      const x = tf.tensor4d(pixels, [BATCH, 28, 28, 1]);
      const y = tf.oneHot(tf.tensor1d(labels, 'int32'), 10);
      return optimizer.minimize(() => tf.losses.softmaxCrossEntropy(y, model.apply(x, { training: true })), true);
    });
    const [value] = await loss.data();
    loss.dispose();
    return value;
  };  globalThis.logits = async (pixels, count) => {
    const y = tf.tidy(() => model.apply(tf.tensor4d(pixels, [count, 28, 28, 1])));
    const values = await y.data();
    y.dispose();
    return values;
  };
};
globalThis.learn = learn;
