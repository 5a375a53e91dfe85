// Runs a model with TensorFlow.js, or makes one with it. make.py calls it.
//
//   node run.mjs run FOLDER < inputs     prints the results
//   node run.mjs make FOLDER             makes a layers model

import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as tf from '@tensorflow/tfjs';

const [what, folder] = process.argv.slice(2);

/** Reads the files of a folder. */
function reader() {
  return {
    load: async () => {
      const json = JSON.parse(readFileSync(join(folder, 'model.json'), 'utf8'));
      const parts = json.weightsManifest.flatMap((group) => group.paths.map((path) => readFileSync(join(folder, path))));
      const bytes = Buffer.concat(parts);
      return {
        ...json,
        weightSpecs: json.weightsManifest.flatMap((group) => group.weights),
        weightData: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length),
      };
    },
  };
}

/** Writes a model as a browser's download has it. */
const writer = {
  save: async (model) => {
    mkdirSync(folder, { recursive: true });
    const { modelTopology, format, generatedBy, convertedBy, weightSpecs, weightData } = model;
    const weightsManifest = [{ paths: ['./model.weights.bin'], weights: weightSpecs }];
    writeFileSync(join(folder, 'model.json'), JSON.stringify({ modelTopology, format, generatedBy, convertedBy, weightsManifest }));
    writeFileSync(join(folder, 'model.weights.bin'), Buffer.from(Array.isArray(weightData) ? weightData[0] : weightData));
    return { modelArtifactsInfo: { dateSaved: new Date(), modelTopologyType: 'JSON' } };
  },
};

async function run() {
  const { format } = JSON.parse(readFileSync(join(folder, 'model.json'), 'utf8'));
  const inputs = Object.entries(JSON.parse(readFileSync(0, 'utf8'))).map(([name, { dtype, shape, values }]) => [name, tf.tensor(values, shape, dtype)]);
  const entry = (y) => ({ dtype: y.dtype, shape: y.shape, values: [...y.dataSync()] });
  if (format === 'layers-model') {
    const model = await tf.loadLayersModel(reader());
    return { y: entry(model.predict(inputs[0][1])) };
  }
  const model = await tf.loadGraphModel(reader());
  const names = Object.keys(model.modelSignature.outputs);
  const results = await model.executeAsync(Object.fromEntries(inputs), names.map((name) => model.modelSignature.outputs[name].name));
  return Object.fromEntries([results].flat().map((y, at) => [names[at], entry(y)]));
}

async function make() {
  const model = tf.sequential();
  model.add(tf.layers.embedding({ inputDim: 9, outputDim: 4, inputLength: 5 }));
  model.add(tf.layers.conv1d({ filters: 5, kernelSize: 2, activation: 'relu' }));
  model.add(tf.layers.batchNormalization());
  model.add(tf.layers.bidirectional({ layer: tf.layers.lstm({ units: 3, returnSequences: true }) }));
  model.add(tf.layers.gru({ units: 4, resetAfter: false }));
  model.add(tf.layers.layerNormalization());
  model.add(tf.layers.dense({ units: 2, kernelRegularizer: 'l1l2' }));
  let seed = 1;
  model.setWeights(model.getWeights().map((w, at) => {
    const values = tf.randomNormal(w.shape, 0, 0.5, 'float32', seed++);
    return /variance|gamma/.test(model.weights[at].name) ? values.abs().add(0.5) : values;
  }));
  await model.save(writer);
}

await tf.setBackend('cpu');
if (what === 'make') await make();
else console.log(JSON.stringify(await run()));
