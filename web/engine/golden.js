// Runs golden cases on the page: values, and gradients of the sum of `upstream * y`, through the JavaScript API.
// The cases are tests/data/oracle; tests/data/README.md has their format.

/** The tensors of a safetensors file: `{shape, dtype, values}` by name. */
export function readSafetensors(bytes) {
  const view = new DataView(bytes);
  const start = 8 + Number(view.getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 8, start - 8)));
  const arrays = { F32: Float32Array, I32: Int32Array, U8: Uint8Array, BOOL: Uint8Array };
  const dtypes = { F32: 'float32', I32: 'int32', U8: 'uint8', BOOL: 'bool' };
  delete header.__metadata__;
  return Object.fromEntries(Object.entries(header).map(([name, { dtype, shape, data_offsets: [from, to] }]) => {
    const values = new arrays[dtype](bytes.slice(start + from, start + to));
    return [name, { shape, dtype: dtypes[dtype], values }];
  }));
}

const unary = (name) => (x) => x[name]();
const binary = (name) => (x, attrs, y) => x[name](y);
const reduce = (name) => (x, { axis, keepdims }) => x[name](axis ?? undefined, keepdims);
// TensorFlow's mean of integers is an integer; ours is a float32, as in TensorFlow.js.
const mean = (x, attrs) => (x.dtype === 'int32' ? reduce('mean')(x, attrs).toInt() : reduce('mean')(x, attrs));
const pool = (name) => (x, { ksize, strides, padding }) => (
  x[name]({ poolSize: pair(ksize), strides: pair(strides), padding: padding.toLowerCase() }));
const pair = (size) => (Array.isArray(size) && size.length === 4 ? size.slice(1, 3) : size);

/** The call for each op, by TensorFlow's name: (first input, attributes, other inputs). */
export const CALLS = {
  'tf.math.abs': unary('abs'), 'tf.math.negative': unary('neg'), 'tf.math.exp': unary('exp'), 'tf.math.log': unary('log'),
  'tf.math.sqrt': unary('sqrt'), 'tf.math.square': unary('square'), 'tf.math.reciprocal': unary('reciprocal'),
  'tf.math.sin': unary('sin'), 'tf.math.cos': unary('cos'), 'tf.math.tanh': unary('tanh'),
  'tf.math.sigmoid': unary('sigmoid'), 'tf.math.softplus': unary('softplus'), 'tf.nn.relu': unary('relu'),
  'tf.nn.elu': unary('elu'), 'tf.math.floor': unary('floor'), 'tf.math.ceil': unary('ceil'),
  'tf.math.round': unary('round'), 'tf.math.sign': unary('sign'), 'tf.math.logical_not': unary('not'),
  'tf.math.add': binary('add'), 'tf.math.subtract': binary('sub'), 'tf.math.multiply': binary('mul'),
  'tf.math.divide': binary('div'), 'tf.math.pow': binary('pow'), 'tf.math.floormod': binary('mod'),
  'tf.math.maximum': binary('maximum'), 'tf.math.minimum': binary('minimum'),
  'tf.math.squared_difference': binary('squaredDifference'), 'tf.math.equal': binary('equal'),
  'tf.math.not_equal': binary('notEqual'), 'tf.math.greater': binary('greater'),
  'tf.math.greater_equal': binary('greaterEqual'), 'tf.math.less': binary('less'), 'tf.math.less_equal': binary('lessEqual'),
  'tf.math.logical_and': binary('and'), 'tf.math.logical_or': binary('or'),
  'tf.where': (cond, attrs, x, y) => cond.select(x, y),
  'tf.math.reduce_sum': reduce('sum'), 'tf.math.reduce_mean': mean, 'tf.math.reduce_max': reduce('max'),
  'tf.math.reduce_min': reduce('min'), 'tf.math.reduce_prod': reduce('prod'), 'tf.math.reduce_std': reduce('std'),
  'tf.math.reduce_any': reduce('any'), 'tf.math.reduce_all': reduce('all'),
  'tf.math.argmax': (x, { axis }) => x.argmax(axis ?? 0), 'tf.math.argmin': (x, { axis }) => x.argmin(axis ?? 0),
  'tf.nn.softmax': (x, { axis }) => x.softmax(axis),
  'tf.linalg.matmul': (a, attrs, b) => a.matmul(b, { transposeA: attrs.transpose_a, transposeB: attrs.transpose_b }),
  'tf.nn.conv2d': (x, { strides, padding, dilations }, w) => (
    x.conv2d(w, { strides: pair(strides), padding: padding.toLowerCase(), dilations: pair(dilations) })),
  'tf.nn.max_pool2d': pool('maxPool2d'), 'tf.nn.avg_pool2d': pool('avgPool2d'),
  'tf.nn.sparse_softmax_cross_entropy_with_logits': (labels, attrs, logits) => logits.sparseSoftmaxCrossEntropy(labels),
  'tf.reshape': (x, { shape }) => x.reshape(shape), 'tf.transpose': (x, { perm }) => x.transpose(perm ?? undefined),
  'tf.slice': (x, { begin, size }) => x.slice(begin, size),
  'tf.gather': (x, { axis }, indices) => x.gather(indices, axis),
  'tf.gather_nd': (x, attrs, indices) => x.gatherND(indices),
  'tf.expand_dims': (x, { axis }) => x.expandDims(axis), 'tf.squeeze': (x, { axis }) => x.squeeze(axis),
  'tf.broadcast_to': (x, { shape }) => x.broadcastTo(shape), 'tf.tile': (x, { multiples }) => x.tile(multiples),
  'tf.pad': (x, { paddings, mode, constant_values: value }) => (
    mode === 'CONSTANT' ? x.pad(paddings, value) : x.mirrorPad(paddings, mode.toLowerCase())),
  'tf.reverse': (x, { axis }) => x.reverse(axis),
  'tf.math.cumsum': (x, { axis, exclusive, reverse }) => x.cumsum(axis, { exclusive, reverse }),
  'tf.math.cumprod': (x, { axis, exclusive, reverse }) => x.cumprod(axis, { exclusive, reverse }),
  'tf.sort': (x, { axis, direction }) => x.sort(axis, { descending: direction === 'DESCENDING' }),
  'tf.argsort': (x, { axis, direction }) => x.argsort(axis, { descending: direction === 'DESCENDING' }),
  'tf.norm': (x, { ord, axis }) => x.norm(ord === 'euclidean' ? ord : Number(ord === 'inf' ? Infinity : ord), axis),
  'tf.clip_by_value': (x, { min, max }) => x.clipByValue(min, max),
  'tf.nn.log_softmax': (x, { axis }) => x.logSoftmax(axis), 'tf.nn.leaky_relu': (x, { alpha }) => x.leakyRelu(alpha),
  'tf.nn.relu6': unary('relu6'), 'tf.nn.silu': unary('silu'), 'tf.math.log_sigmoid': unary('logSigmoid'),
  'tf.einsum': (x, { equation }, ...others) => x.constructor.einsum(equation, x, ...others),
};

/** Whether the API can express the case. */
export function isSayable(each) {
  // Schedules are not supported.
  const names = Object.values(each.inputs ?? {});
  // With only a condition, `where` finds indices, which is a different function.
  if (each.op === 'tf.where' && !('x' in each.inputs)) return false;
  return each.op in CALLS && each.family !== 'higher_order' && names.every((name) => typeof name === 'string')
    && typeof (each.attrs.padding ?? '') === 'string' && (each.attrs.batch_dims ?? 0) === 0
    // WGSL lets a GPU assume that there are no NaNs and infinities; the native tests cover these.
    && !each.special_values;
}

function differs(got, want, { atol, rtol }) {
  if (got.length !== want.values.length) return `${got.length} elements, not ${want.values.length}`;
  for (let i = 0; i < got.length; i += 1) {
    const [a, b] = [Number(got[i]), Number(want.values[i])];
    const fits = Object.is(a, b) || a === b || (Number.isNaN(a) && Number.isNaN(b)) || Math.abs(a - b) <= atol + rtol * Math.abs(b);
    if (!fits) return `element ${i} is ${a}, not ${b}`;
  }
  return undefined;
}

/** The error of `got` relative to the case's tolerance; 0 if nothing is tolerated and nothing differs. */
function share(got, want, { atol, rtol }) {
  let largest = 0;
  for (let i = 0; i < got.length; i += 1) {
    const [a, b] = [Number(got[i]), Number(want.values[i])];
    if (Number.isFinite(a) && Number.isFinite(b) && a !== b) largest = Math.max(largest, Math.abs(a - b) / (atol + rtol * Math.abs(b)));
  }
  return largest;
}

/** Runs one case. Returns its failures, a message each, and the largest error relative to the tolerance. */
export async function run(wgrad, each, tensors) {
  const stored = (name) => {
    const { values, shape, dtype } = tensors[name];
    return wgrad.Tensor.from(values, shape, dtype);
  };
  const inputs = Object.entries(each.inputs).map(([argument, name]) => [argument, stored(name)]);
  const [[, first], ...others] = inputs;
  const call = () => CALLS[each.op](first, each.attrs, ...others.map(([, tensor]) => tensor));
  const problems = [];
  let error = 0;
  const upstream = each.upstream?.['0'];
  let y;
  if (upstream === undefined) {
    y = call();
  } else {
    const arguments_ = Object.keys(each.grads);
    const tape = new wgrad.GradientTape();
    const sources = arguments_.map((argument) => inputs.find(([name]) => name === argument)[1]);
    sources.forEach((source) => tape.watch(source));
    y = call();
    const gradients = tape.gradient(y.mul(stored(upstream)).sum(), sources);
    for (const [i, argument] of arguments_.entries()) {
      const want = tensors[each.grads[argument]];
      const got = gradients[i] === undefined ? new Float32Array(want.values.length) : await gradients[i].data();
      const wrong = differs(got, want, each.tol);
      error = Math.max(error, share(got, want, each.tol));
      if (wrong) problems.push(`gradient of ${argument}: ${wrong}`);
    }
  }
  const want = tensors[each.outputs['0']];
  if (y.shape.join() !== want.shape.join()) problems.push(`shape [${y.shape}], not [${want.shape}]`);
  const got = await y.data();
  const wrong = differs(got, want, each.tol);
  if (wrong) problems.push(wrong);
  return { problems, error: Math.max(error, share(got, want, each.tol)) };
}
