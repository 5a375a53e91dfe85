// Loads a model that another program wrote, runs it, and trains it further.
import init, { Device, GraphModel, Images, Tensor, loadGraphModel, loadModel, onPanic, randomUniform, setSeed, tidy } from '../pkg/models/wgrad.js';

const at = (id) => document.getElementById(id);
const out = at('out');
const say = (text) => { out.textContent += text + '\n'; out.scrollTop = out.scrollHeight; };
/** The model that was loaded last: a GraphModel, or a Sequential. */
let model;

/** Loads files, the data of a drop, or a web address: layers if the file has them, otherwise a graph. */
async function load(from) {
  try {
    return await loadGraphModel(from);
  } catch (error) {
    if (error.name === 'TypeError' && error.message.includes('loadModel')) return loadModel(from);
    throw error;
  }
}

const shape = ({ shape }) => (shape ? `[${shape.map((size) => size ?? '?').join(', ')}]` : 'any shape');
const describe = (list) => list.map((tensor) => `${tensor.name} ${tensor.dtype} ${shape(tensor)}`).join('\n         ');

async function open(from) {
  out.textContent = '';
  model = undefined;
  enable();
  const start = performance.now();
  model = await load(from);
  const time = `loaded in ${(performance.now() - start).toFixed(0)} ms`;
  if (model instanceof GraphModel) {
    say(`${model.format}, ${time}, ${model.countParams().toLocaleString('en')} weights`);
    if (model.signatures.length > 1) say(`signatures: ${model.signatures.join(', ')}`);
    say(`inputs:  ${describe(model.inputs)}\nresults: ${describe(model.outputs)}`);
  } else {
    say(`Keras, ${time}\n${model.summary()}`);
  }
  enable();
}

/** Random values for each input; sizes that may vary are 1. */
async function run() {
  const inputs = {};
  for (const { name, dtype, shape } of model.inputs) {
    if (dtype === 'string') throw new Error(`The input ${name} takes text, which this page does not have.`);
    const sizes = (shape ?? [1]).map((size) => size ?? 1);
    const x = randomUniform(sizes);
    inputs[name] = dtype.startsWith('float') ? x : dtype === 'bool' ? x.greater(0.5) : x.mul(5).toInt();
  }
  for (const times of ['first', 'second', 'third']) {
    const start = performance.now();
    const results = await model.predictAsync(inputs);
    const all = results instanceof Tensor ? [[model.outputs[0].name, results]] : Object.entries(results);
    const values = await Promise.all(all.map(([, y]) => (y instanceof Tensor ? y.data() : y)));
    say(`${times} run: ${(performance.now() - start).toFixed(1)} ms`);
    if (times === 'third') all.forEach(([name], i) => say(`${name}: ${[...values[i]].slice(0, 10).map((value) => (typeof value === 'number' ? Number(value.toPrecision(4)) : value)).join(' ')}${values[i].length > 10 ? ' …' : ''}`));
  }
}

/** The shape in which the model takes digits, if it does: 784 numbers in, ten out. */
function digits() {
  const size = (shape) => (shape ?? []).slice(1).reduce((all, n) => all * n, 1);
  if (!(model instanceof GraphModel)) return [28, 28, 1];
  const [input, result] = [model.inputs, model.outputs].map((list) => (list.length === 1 ? list[0] : undefined));
  if (input?.dtype !== 'float32' || size(input.shape) !== 784 || size(result?.shape) !== 10) return undefined;
  return input.shape.slice(1);
}

function enable() {
  at('run').disabled = !(model instanceof GraphModel);
  at('read').disabled = at('train').disabled = !model || !digits();
}

const unseen = () => Images.drawDigits(300, 7);

/** Ten digits as the model reads them, and how many of 300 it reads right. */
async function read(predict) {
  const { x, y } = unseen().batch(0, 300);
  const guesses = predict(x.reshape([300, ...digits()])).argmax();
  const [shown, guessed] = [await y.data(), await guesses.data()];
  say(`shown ${[...shown.slice(0, 10)].join(' ')}\nread  ${[...guessed.slice(0, 10)].join(' ')}`);
  say(`${shown.filter((label, i) => label === guessed[i]).length} of 300 are right`);
}

/** Trains all weights of the model on digits that it has not seen. */
async function train() {
  const trained = model instanceof GraphModel ? model.toSequential() : model;
  const { x, y } = Images.drawDigits(2000, 3).batch(0, 2000);
  const first = tidy(() => trained.call(x.reshape([2000, ...digits()])).sum(-1));
  const sums = await first.data();
  // Models often end with a softmax, whose results add up to 1.
  const fromLogits = !sums.every((sum) => Math.abs(sum - 1) < 1e-3);
  trained.compile({ optimizer: { type: 'adam', learningRate: 1e-3 }, metrics: ['accuracy'], fromLogits });
  await trained.fit(x.reshape([2000, ...digits()]), y, {
    epochs: 3,
    batchSize: 50,
    onEpochEnd: (epoch, logs) => say(`epoch ${epoch + 1}  loss ${logs.loss.toFixed(3)}  accuracy ${logs.accuracy.toFixed(3)}`),
  });
  await read((x) => trained.call(x));
}

const predict = (x) => (model instanceof GraphModel ? model.predict(x) : model.call(x));
/** Starts at once: what was dropped can be read only until the event ends. */
const attempt = (action) => (async () => action())().catch((error) => say(`${error.name}: ${error.message}`));

async function main() {
  await init();
  onPanic((message) => say(message));
  const device = await Device.open();
  out.textContent = '';
  say(`running on ${device.adapter.text}\nDrop a model on this page, or press Load.`);
  device.lost.then((reason) => say(`The GPU is lost (${reason}). Load the page again.`));
  setSeed(1);
  addEventListener('dragover', (event) => event.preventDefault());
  addEventListener('drop', (event) => {
    event.preventDefault();
    const folders = [...event.dataTransfer.items].some((item) => item.webkitGetAsEntry?.()?.isDirectory);
    attempt(() => open(folders ? event.dataTransfer : [...event.dataTransfer.files]));
  });
  for (const id of ['files', 'folder']) at(id).addEventListener('change', ({ target }) => attempt(() => open([...target.files])));
  at('web').addEventListener('submit', (event) => {
    event.preventDefault();
    attempt(() => open(at('address').value));
  });
  at('run').addEventListener('click', () => attempt(run));
  at('read').addEventListener('click', () => attempt(() => read(predict)));
  at('train').addEventListener('click', () => attempt(train));
}

main().catch((error) => say(`${error.name}: ${error.message}`));
