// A network of two layers learns drawn digits, and recognizes about 80 % of unseen ones.
import init, { Device, Images, Sequential, layers, onPanic, setSeed } from '../pkg/wgrad.js';

const out = document.getElementById('out');
const bar = document.getElementById('bar');
const say = (text) => { out.textContent += text + '\n'; };

async function main() {
  await init();
  onPanic((message) => say(message));
  const device = await Device.open();
  out.textContent = '';
  say(`running on ${device.adapter.text}`);
  device.lost.then((reason) => say(`The GPU is lost (${reason}). Load the page again.`));

  setSeed(1);
  const train = Images.drawDigits(4000, 1);
  const test = Images.drawDigits(500, 2);

  const model = new Sequential([
    layers.flatten(),
    layers.dense({ units: 100, activation: 'relu' }),
    layers.dense({ units: 10 }),               // logits: the loss has the softmax in it
  ]);
  model.compile({ optimizer: { type: 'adam', learningRate: 1e-3 }, metrics: ['accuracy'] });
  model.build([null, 28, 28, 1]);
  say(model.summary());

  const stop = new AbortController();
  document.getElementById('stop').addEventListener('click', () => stop.abort());
  const epochs = 3, batchSize = 50, steps = epochs * train.length / batchSize;
  let done = 0;
  await model.fit(train, null, {
    epochs,
    batchSize,
    validationData: test,
    signal: stop.signal,
    onBatchEnd: () => { bar.value = ++done / steps; },
    onEpochEnd: (epoch, logs) => say(
      `epoch ${epoch + 1}  loss ${logs.loss.toFixed(3)}  accuracy ${logs.accuracy.toFixed(3)}` +
      (logs.valAccuracy === undefined ? '' : `  on unseen digits ${logs.valAccuracy.toFixed(3)}`)),
  });

  const { x, y } = test.batch(0, 10);
  const read = model.call(x).argmax();
  say(`shown ${[...await y.data()].join(' ')}\nread  ${[...await read.data()].join(' ')}`);

  const weights = await model.save();          // a safetensors file; `model.load(weights)` loads it
  say(`weights: ${weights.length} bytes`);
}

main().catch((error) => say(`${error.name}: ${error.message}`));
