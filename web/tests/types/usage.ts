// Permitted and forbidden code in TypeScript. `types.test.mjs` compiles it; it is never run.
import init, { Device, Images, Sequential, Tensor, Variable, grad, layers, randomNormal, setSeed, tfFunction, tidy, valueAndGradients } from 'wgrad';
import type { DType, Float, TensorJson } from 'wgrad';

/** Fails to compile unless both types are the same. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends (<T>() => T extends B ? 1 : 2) ? true : false;
const same = <A, B>(_: Same<A, B>): void => {};

export async function main(some: DType, list: number[], nested: number[][][]): Promise<void> {
  await init();
  const device = await Device.open({ memoryLimit: 1 << 30 });
  device.trim();
  // @ts-expect-error There is no such option.
  await Device.open({ memory: 1 });
  setSeed(1);

  const x = Tensor.from([[1, 2], [3, 4]]);
  const numbers: Float32Array = await x.data();
  const product: Float32Array = await x.matmul(x).add(1).relu().sum(0).data();
  const zeros: Float32Array = await Tensor.zeros([2]).reshape([1, 2]).data();
  same<typeof x, Tensor<'float32'>>(true);
  same<typeof x.dtype, 'float32'>(true);

  const places: Int32Array = await x.argmax(-1).data();
  const truths: Uint8Array = await x.greater(1).and(true).data();
  const pixels: Uint8Array = await Tensor.from(new Uint8ClampedArray(4), [2, 2]).data();
  const integers: Int32Array = await Tensor.from([1, 2], [2], 'int32').data();
  const cast: Uint32Array = await x.cast('uint32').mul(2).data();
  const halves: Float32Array = await x.cast('float16').data();
  const flags: Uint8Array = await Tensor.from([[true], [false]]).data();
  const deep: Float32Array = await Tensor.from(nested).data();
  const flat: Float32Array = await Tensor.from(list, null, undefined).data();
  // @ts-expect-error Integers are read into another array.
  const wrong: Float32Array = await x.argmax(-1).data();
  const known = Tensor.from(list, [1], some);
  const either: Float32Array | Int32Array | Uint32Array | Uint8Array = await known.data();
  // @ts-expect-error The dtype is not known.
  const one: Float32Array = await known.data();
  // @ts-expect-error There is no such dtype.
  x.cast('float64');

  const w = new Variable(Tensor.zeros([2, 2]), 'w');
  const weights: Float32Array = await w.data();
  const scaled: Float32Array = await w.matmul(x).square().sum().data();
  const joined: Float32Array = await Tensor.concat([x, w], 0).data();
  const stacked: Float32Array = await Tensor.stack([x, x]).data();
  const parts: Float32Array | undefined = await x.split(2)[0]?.data();
  const best = x.topk(1);
  const [tops, where]: [Float32Array, Int32Array] = [await best.values.data(), await best.indices.data()];
  const filled: Int32Array = await Tensor.fill([2], 3, 'int32').data();
  const slope: Float32Array = await grad((at) => at.square().sum())(x).data();
  w.assignSub(x.mul(0.1));
  const json: TensorJson = w.toJSON();
  // @ts-expect-error A variable is freed with its model.
  w.dispose();
  const { value, gradients } = valueAndGradients(() => w.sub(x).square().mean(), [w]);
  const loss: number = await value.item();
  const gradient: Float32Array | undefined = await gradients[0]?.data();
  same<typeof value, Tensor<'float32'>>(true);
  // @ts-expect-error The function must return a tensor synchronously.
  valueAndGradients(async () => w.sum(), [w]);

  const doubled = tfFunction((at: Tensor<'float32'>, by: number) => ({ sum: at.mul(by).sum() }));
  same<ReturnType<typeof doubled>, { sum: Tensor<'float32'> }>(true);
  const traces: number = doubled.tracingCount();
  // @ts-expect-error The function must return tensors synchronously.
  tfFunction(async () => w.sum());

  const kept: Tensor<'float32'> = tidy(() => x.exp().sum());
  const model = new Sequential([layers.flatten(), layers.dense({ units: 10 })]);
  // @ts-expect-error There is no such option.
  layers.dense({ unit: 3 });
  model.compile({ optimizer: { type: 'adam', learningRate: 1e-3 }, metrics: ['accuracy'] });
  const images = Images.drawDigits(10, 1);
  const batch = images.batch(0, 5);
  const labels: Int32Array = await batch.y.data();
  const logits: Float32Array = await model.call(batch.x).softmax().data();
  const step = model.trainStep(batch.x, batch.y);
  const losses: Float32Array = await Tensor.items([step.loss]);
  await model.fit(images, null, { epochs: 1, batchSize: 5 });
  await model.fit(batch.x, batch.y, { validationData: [batch.x, batch.y] });
  const predicted: Float32Array = await (await model.predict(images)).data();
  const kernel: Float32Array | undefined = await model.variables[0]?.data();
  const noise: Tensor<Float> = randomNormal([2]);
  // Any tensor is accepted where the dtype does not matter.
  const all: Tensor[] = [x, integersOf(x), noise, w.read()];
  void [numbers, product, zeros, places, truths, pixels, integers, cast, halves, flags, deep, flat, wrong, either, one, weights, scaled, joined, stacked, parts, tops, where, filled, slope, json, loss, gradient, kept, labels, logits, losses, predicted, kernel, all];
}

function integersOf(x: Tensor): Tensor<'int32'> {
  return x.cast('int32');
}
