// A training step with jax-js for bench.mjs, of the models in cases.js; the whole step is inside one `jit`.
//
// Images and filters have the layout of jax-js's convolution, [N,C,H,W] and [O,I,H,W]. Its package of optimizers is not needed:
// Adam is a few lines, which `jit` fuses with the gradients.
import { defaultDevice, init, jit, lax, nn, numpy as np, random, tree, valueAndGrad } from '@jax-js/jax';
import { ADAM, BATCH, CASES, RATE, batches, learn, unpacked } from './cases.js';

const scalar = (value, dtype) => np.array(value, { dtype });
const dense = (x, w, b) => np.dot(x, w).add(b);
const conv = (x, w, b) => nn.relu(lax.convGeneralDilated(x, w, [1, 1], 'SAME').add(b));
const pool = (x) => lax.reduceWindow(x, np.max, [2, 2], [2, 2]);

function dropout(x, seed) {
  const kept = random.uniform(random.key(seed), x.shape).less(1 - RATE);
  return np.where(kept, x.div(1 - RATE), 0);
}

/** The shapes of each weight and its bias, and the logits of a batch. */
const models = {
  mlp: {
    shapes: [[784, 100], [100], [100, 10], [10]],
    logits: ([w1, b1, w2, b2], x) => dense(nn.relu(dense(x.reshape([-1, 784]), w1, b1)), w2, b2),
  },
  cnn: {
    shapes: [[32, 1, 5, 5], [32, 1, 1], [64, 32, 5, 5], [64, 1, 1], [3136, 1024], [1024], [1024, 10], [10]],
    logits: ([w1, b1, w2, b2, w3, b3, w4, b4], x, seed) => {
      const images = pool(conv(pool(conv(x.reshape([BATCH, 1, 28, 28]), w1, b1)), w2, b2));
      const hidden = nn.relu(dense(images.reshape([BATCH, 3136]), w3, b3));
      return dense(seed === null ? hidden : dropout(hidden, seed), w4, b4);
    },
  },
};

globalThis.open = async () => {
  if (!(await init('webgpu')).includes('webgpu')) throw new Error('jax-js found no WebGPU');
  defaultDevice('webgpu');
  return 'jax-js';
};

/** Glorot's uniform distribution; biases start at 0. */
function glorot(shape, i) {
  if (shape.length !== 2 && shape.length !== 4) return np.zeros(shape);
  const [outputs, inputs, ...window] = shape.length === 4 ? shape : [shape[1], shape[0]];
  const places = window.reduce((a, b) => a * b, 1);
  const limit = Math.sqrt(6 / (places * (inputs + outputs)));
  return random.uniform(random.key(i), shape, { minval: -limit, maxval: limit });
}

/** Converts weights of layers with the channels last to this layout. */
function converted({ shape, floats }, wanted, { channels, places }) {
  const w = np.array(unpacked(floats)).reshape(shape);
  if (shape.length === 4) return np.transpose(w, [3, 2, 0, 1]);
  // The dense layer after the flattened images.
  if (shape[0] === channels * places) {
    return np.transpose(w.reshape([places, channels, shape[1]]), [1, 0, 2]).reshape(wanted);
  }
  return w.reshape(wanted);
}

function adam(w, m, v, g, rate) {
  m = m.mul(ADAM.beta1).add(g.ref.mul(1 - ADAM.beta1));
  v = v.mul(ADAM.beta2).add(np.square(g).mul(1 - ADAM.beta2));
  return [w.sub(m.ref.mul(rate).div(np.sqrt(v.ref).add(ADAM.epsilon))), m, v];
}

/** As in tfjs.js. */
globalThis.prepare = async (name, weights) => {
  if (!CASES.includes(name)) throw new Error(`no case ${name}`);
  const { shapes, logits } = models[name];
  const loss = (w, x, y, seed) => {
    const terms = nn.logSoftmax(logits(w, x, seed)).mul(nn.oneHot(y, 10));
    return terms.sum().mul(-1 / BATCH);
  };
  const train = jit((w, m, v, t, x, y) => {
    const seed = name === 'cnn' && weights === undefined ? t.ref.astype(np.uint32) : null;
    const [value, grads] = valueAndGrad((all) => loss(all, x, y, seed))(tree.ref(w));
    t = t.add(1);
    const rate = np.sqrt(scalar(1).sub(np.power(ADAM.beta2, t.ref))).div(scalar(1).sub(np.power(ADAM.beta1, t.ref))).mul(ADAM.learningRate);
    const moved = w.map((_, i) => adam(w[i], m[i], v[i], grads[i], rate.ref));
    rate.dispose();
    return [value, [0, 1, 2].map((part) => moved.map((three) => three[part])), t];
  });
  const flattened = { channels: 64, places: 49 };
  let w = shapes.map((shape, i) => (weights === undefined ? glorot(shape, i) : converted(weights[i], shape, flattened)));
  let m = shapes.map((shape) => np.zeros(shape));
  let v = shapes.map((shape) => np.zeros(shape));
  let t = scalar(0, np.float32);
  const next = batches();
  globalThis.step = async (batch = next()) => {
    const { pixels, labels } = batch;
    let value;
    [value, [w, m, v], t] = train(w, m, v, t, np.array(pixels), np.array(labels));
    return (await value.data())[0];
  };  const read = jit((weights, x) => logits(weights, x, null));
  globalThis.logits = async (pixels) => read(tree.ref(w), np.array(pixels)).data();
};
globalThis.learn = learn;
