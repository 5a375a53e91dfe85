// Typical mistakes of a new user. Each line runs on a page; `errors.test.mjs` has the expected messages.

/** The calls, and the objects that they use. */
export function mistakes({ Tensor, Variable, Sequential, layers, Images, GradientTape, Checkpoint, Device, tidy, tfFunction, valueAndGradients, setSeed, onPanic, randomNormal, randomUniform }, device) {
  const x = Tensor.ones([2, 2]);
  const wide = Tensor.ones([3, 3]);
  const ints = Tensor.from(new Int32Array(4), [2, 2]);
  const labels = Tensor.from(new Int32Array(2));
  const v = new Variable(Tensor.ones([2, 2]), 'w');
  const model = new Sequential([layers.flatten(), layers.dense({ units: 3 })]);
  const ready = new Sequential([layers.flatten(), layers.dense({ units: 3 })]);
  ready.compile({ optimizer: 'adam' });
  const images = Images.drawDigits(4, 1);
  const checkpoint = new Checkpoint();
  const gone = Tensor.ones([2]);
  gone.dispose();
  const freed = Tensor.ones([2]);
  freed.free();
  const lost = new Variable(Tensor.ones([2]), 'lost');
  lost.free();
  const adam = (options) => model.compile({ optimizer: { type: 'adam', ...options } });
  const dense = (options) => layers.dense({ units: 3, ...options });
  const step = (optimizer) => {
    const fresh = new Sequential([layers.dense({ units: 3 })]);
    fresh.compile({ optimizer });
    fresh.trainStep(x, labels);
  };
  const made = (...list) => new Sequential(list).build([null, 4]);
  return [
    // Operands and arguments of ops.
    () => x.add(), () => x.add(null), () => x.add('3'), () => x.add([1, 2]), () => x.add({}), () => x.add(wide), () => x.add(ints),
    () => x.add(3n), () => x.add(Promise.resolve(1)), () => x.add(() => 1), () => x.add(Tensor), () => x.add(new Float32Array(4)), () => x.add(gone), () => x.add(freed), () => x.add(lost),
    () => gone.add(1), () => freed.add(1), () => lost.add(1), () => gone.shape, () => freed.shape, () => gone.data(), () => freed.data(), () => lost.data(), () => lost.read(), () => freed.item(),
    () => x.matmul(5), () => x.matmul(), () => x.matmul(Tensor.ones([4])), () => x.matmul(wide), () => x.matmul(x, { transpose: true }), () => x.matmul(x, true), () => x.matmul(x, [true]), () => x.matmul(x, wide),
    () => x.sum(7), () => x.sum('a'), () => x.sum(0, 1), () => x.sum(0.5), () => x.sum(NaN), () => x.softmax('a'), () => x.softmax(1.5), () => x.argmax(9), () => x.mean([0, 0]),
    () => x.reshape(4), () => x.reshape([3]), () => x.reshape([-1, -1]), () => x.reshape(), () => x.reshape([2.5, 1]), () => x.transpose([0]), () => x.transpose(1, 0),
    () => x.cast('float'), () => x.cast(), () => x.cast('float64'), () => x.cast(Float32Array), () => x.slice([0], [1]), () => x.slice([0, 0], [5, 5]), () => x.slice(0, 1), () => x.slice([-1, 0], [1, 1]),
    () => x.gather([0]), () => x.gather(Tensor.ones([1])), () => x.oneHot(2), () => ints.oneHot(-1), () => ints.oneHot(), () => ints.oneHot(2.5),
    () => x.conv2d(x), () => x.conv2d(5), () => x.maxPool2d(), () => x.maxPool2d({ size: 2 }), () => Tensor.ones([1, 4, 4, 1]).maxPool2d({ poolSize: 0 }), () => Tensor.ones([1, 4, 4, 1]).maxPool2d({ poolSize: 9 }),
    () => x.conv2d(Tensor.ones([1, 1, 2, 2]), { padding: 'SAME' }), () => Tensor.ones([1, 4, 4, 2]).conv2d(Tensor.ones([3, 3, 1, 2])), () => Tensor.ones([1, 4, 4, 1]).conv2d(Tensor.ones([5, 5, 1, 2])),
    () => x.item(), () => x.select(x, x), () => x.select(1, 2), () => x.cumsum(0, { exclusive: 1 }), () => x.and(x), () => x.bitwiseAnd(1), () => ints.add(0.5), () => ints.mul(1.5), () => ints.sqrt(), () => ints.softmax(), () => x.sparseSoftmaxCrossEntropy(x), () => x.sparseSoftmaxCrossEntropy(Tensor.from(new Int32Array(5))), () => x.not(), () => x.invert(), () => x.less('a'),
    // Making tensors.
    () => Tensor.from(), () => Tensor.from('abc'), () => Tensor.from([[1], [1, 2]]), () => Tensor.from([1, [2]]), () => Tensor.from([1, 2], [3]), () => Tensor.from([1, 2], 2), () => Tensor.from([1.5], undefined, 'int32'), () => Tensor.from([300], [1], 'uint8'),
    () => Tensor.from([1], [1], 'int64'), () => Tensor.from(new BigInt64Array(2)), () => Tensor.from(new ArrayBuffer(8)), () => Tensor.from(x), () => Tensor.from([undefined]), () => Tensor.from(new Float32Array(4), [2, 3]), () => Tensor.from([1, 2], [2], 5), () => Tensor.from({ a: 1 }), () => Tensor.from(new Map()), () => Tensor.from(null), () => Tensor.from([1], [-1]),
    () => Tensor.zeros(), () => Tensor.zeros([2], 'int32'), () => x.relu(1), () => x.softmax(1, true), () => new Checkpoint(5), () => model.summary(80), () => device.trim(1), () => x.data('sync'), () => Tensor.zeros(2, 3), () => Tensor.zeros([2.5]), () => Tensor.zeros([-1]), () => Tensor.zeros(['a']), () => Tensor.zeros([1e5, 1e5]).data(), () => Tensor.zeros([1e6, 1e6]).data(), () => Tensor.zeros([4e9, 4e9, 4e9]), () => Tensor.zeros(new Float32Array(2)), () => Tensor.full([2], 'a'), () => Tensor.full([2]), () => Tensor.ones(x),
    () => Tensor.concat(x, 0), () => Tensor.concat([], 0), () => Tensor.concat([x]), () => Tensor.concat([x, wide], 0), () => Tensor.concat([x, 5], 0), () => Tensor.concat([x, x], 5), () => Tensor.concat([x, gone], 0), () => Tensor.items([1]), () => Tensor.items(), () => Tensor.items([ints.sum()]),
    () => new Tensor([1]), () => Tensor([1]), () => x * 2, () => x < 3, () => Tensor.prototype.add.call({}, 1), () => (0, x.add)(1), () => randomNormal(3), () => randomNormal([2], 'a'), () => randomUniform([2], 0, '1'), () => setSeed(1.5), () => setSeed(), () => setSeed('a'), () => setSeed(-1),
    // Variables.
    () => new Variable(), () => new Variable([1, 2]), () => new Variable(x, 5), () => new Variable(gone), () => new Variable(v), () => v.assign(5), () => v.assign(wide), () => v.assign(ints), () => v.assignAdd('a'), () => v.assignAdd(wide), () => v.assign(v), () => v.add('a'), () => v.add(wide), () => v * 2, () => new Variable(ints).assignAdd(0.5),
    // Tapes.
    () => tfFunction(5), () => tfFunction(async () => x)(), () => tfFunction((a) => a)(v), () => tfFunction((a) => a)(new Map()), () => tfFunction(() => new Date())(), () => tfFunction(() => x)(1, 2, 3, 4, 5, 6, 7), () => tfFunction((a) => a.matmul(wide))(x),
    () => valueAndGradients(async () => x, [v]), () => valueAndGradients(() => 5, [v]), () => valueAndGradients(() => {}, [v]), () => valueAndGradients(5, [v]), () => valueAndGradients(() => v.sum(), v), () => valueAndGradients(() => v.sum()), () => valueAndGradients(() => v.sum(), [5]), () => valueAndGradients(() => v.mul(1), [ints]), () => valueAndGradients(() => [v.sum()], [v]), () => valueAndGradients(() => v.argmax(), [v]),
    () => tidy(async () => x), () => tidy(5), () => tidy(), () => new GradientTape({ persist: true }), () => new GradientTape(true), () => new GradientTape({ persistent: 1 }), () => new GradientTape().watch(5), () => new GradientTape().watch(ints), () => new GradientTape().gradient(5, [v]), () => new GradientTape().gradient(v.sum(), v), () => { const tape = new GradientTape(); tape.stop(); tape.gradient(v.sum(), [v]); },
    // Layers and models.
    () => new Sequential(), () => new Sequential(5), () => new Sequential(['dens']), () => new Sequential([layers.dense]), () => new Sequential([{ type: 'dense' }]), () => new Sequential([{ type: 'dense', units: 0 }]), () => new Sequential([null]), () => new Sequential([[dense()]]), () => new Sequential([model]),
    () => layers.dense({ unit: 3 }), () => layers.dense(), () => layers.dense(3), () => layers.dense({ units: '3' }), () => layers.dense({ units: -3 }), () => dense({ activation: 'rely' }), () => dense({ activation: 5 }), () => dense({ kernelInitializer: 'x' }), () => dense({ useBias: 1 }), () => dense({ name: 5 }), () => dense({ type: 'conv2d' }), () => dense({ inputDim: 3 }), () => layers.dense([3]), () => layers.dense(x),
    () => layers.conv2d({ filters: 3 }), () => layers.conv2d({ filters: 3, kernelSize: [1, 2, 3] }), () => layers.conv2d({ filters: 3, kernelSize: 3, strides: 0 }), () => layers.dropout({ rate: 5 }), () => made(layers.dropout({ rate: NaN })), () => layers.dropout({}), () => layers.dropout(0.5), () => layers.activation({ activation: 'swishy' }), () => layers.activation('relu'), () => layers.batchNormalization({ axis: 'a' }), () => layers.batchNormalization({ axis: 1.5 }), () => layers.embedding({ inputDim: 0, outputDim: 1 }), () => made(layers.leakyReLU({ negativeSlope: -1 })), () => layers.layerNormalization({ axis: 1.5 }), () => layers.maxPooling2d({ pool: 2 }), () => layers.maxPooling2d(2), () => new layers(), () => layers.dance({}),
    () => made(layers.conv2d({ filters: 1, kernelSize: 3 })), () => made(dense({ name: 'a' }), dense({ name: 'a' })), () => new Sequential([layers.conv2d({ filters: 1, kernelSize: 3 })]).call(x), () => new Sequential([dense()]).call(Tensor.ones([4])), () => new Sequential([layers.embedding({ inputDim: 3, outputDim: 2 })]).call(x), () => made(layers.dropout({ rate: 0.5 }), layers.maxPooling2d()), () => new Sequential([dense()]).call(ints),
    () => model.compile(), () => model.compile('adam'), () => model.compile({}), () => model.compile({ optimizer: 'adamm' }), () => model.compile({ optimizer: 'adam', loss: 'mse' }), () => model.compile({ optimizer: 'adam', loss: (a, b) => a.sub(b) }), () => model.compile({ optimizer: 'adam', metric: ['accuracy'] }), () => model.compile({ optimizer: 'adam', metrics: 'accuracy' }), () => model.compile({ optimizer: 'adam', metrics: ['acc'] }),
    () => adam({ lr: 1 }), () => adam({ learningRate: '1' }), () => adam({ learningRate: -1 }), () => adam({ learningRate: NaN }), () => adam({ gradientAccumulationSteps: 0 }), () => adam({ clipnorm: 'a' }), () => model.compile({ optimizer: { learningRate: 1 } }), () => step({ type: 'sgd', momentum: 3 }), () => step({ type: 'adam', beta1: 2 }), () => step({ type: 'adam', clipnorm: -1 }), () => step({ type: 'adam', clipnorm: 1, clipvalue: 1 }), () => step({ type: 'adam', gradientAccumulationSteps: 1 }), () => step({ type: 'adam', epsilon: -1 }),
    () => model.learningRate, () => { ready.learningRate = 'x'; }, () => { ready.learningRate = NaN; }, () => { model.learningRate = 1; }, () => model.build(5), () => model.build([]), () => model.build(['a', 3]), () => model.build([null, null, 3]), () => new Sequential([dense()]).build([null]), () => model.load(), () => model.load('a'), () => model.load(new Uint8Array(0)), () => model.load(new Uint8Array(20)), () => model.load(new ArrayBuffer(9)), () => model.load(null),
    () => model.call(), () => model.call([1, 2]), () => model.call(x, 1), () => model.call(v), () => model.call(gone), () => model.call(freed), () => model.call(images), () => ready.trainStep(x), () => ready.trainStep(x, [0, 1]), () => model.trainStep(x, labels), () => ready.trainStep(x, wide), () => ready.trainOnBatch(x, [1]), () => ready.trainOnBatch(), () => ready.trainStep(x, Tensor.ones([5])),
    // Promises.
    () => ready.fit(), () => ready.fit(x), () => ready.fit([1], [1]), () => ready.fit(x, [0, 1]), () => ready.fit(x, wide), () => ready.fit(images, { epochs: 2 }), () => ready.fit(images, images.labels), () => ready.fit(images, null, 5), () => ready.fit(images, null, { epoch: 3 }), () => ready.fit(images, null, { epochs: 0 }), () => ready.fit(images, null, { epochs: '3' }), () => ready.fit(images, null, { batchSize: 0 }), () => ready.fit(images, null, { batchSize: 2.5 }), () => ready.fit(images, null, { onEpochEnd: 'a' }), () => ready.fit(images, null, { signal: 5 }), () => ready.fit(images, null, { signal: new AbortController() }), () => ready.fit(images, null, { shuffle: 'yes' }), () => ready.fit(images, null, { validationData: x }), () => ready.fit(images, null, { validationData: [x] }), () => ready.fit(images, null, { validationData: 5 }), () => ready.fit(images, null, [images]),
    () => new Sequential([dense()]).fit(images), () => new Sequential([dense()]).evaluate(images), () => ready.fit(Tensor.ones([]), Tensor.ones([])), () => ready.fit(Tensor.zeros([0, 2]), Tensor.zeros([0])), () => ready.fit(x, gone), () => ready.fit(freed, labels), () => ready.fit(images, null, { onEpochEnd: () => { throw new Error('mine'); } }),
    () => model.evaluate(images), () => ready.evaluate(), () => ready.evaluate(x), () => ready.evaluate(images, null, { batch: 1 }), () => ready.evaluate(images, { batchSize: 1 }), () => ready.predict(), () => ready.predict([1]), () => ready.predict(x, 5), () => ready.predict(x, { batchSize: 'a' }), () => ready.predict(gone), () => Device.open({ memory: 5 }), () => Device.open(5), () => Device.open({ memoryLimit: -1 }), () => Device.open({ memoryLimit: 'a' }), () => new Device(), () => Device(), () => device.profile().finish.call(5), () => device.setMemoryLimit('a'), () => device.setMemoryLimit(1.5), () => device.setFusion(1), () => device.setFindings(5), () => onPanic(5), () => onPanic(),
    // Images and files.
    () => new Images(), () => Images.drawDigits(), () => Images.drawDigits(-2, NaN), () => Images.drawDigits(1e9, 1), () => Images.drawDigits('4', 1), () => images.batch('a'), () => images.batch(0, 9), () => images.batch(2, 1), () => images.batch([9]), () => images.batch([0.5]), () => images.batch(new Uint32Array([9])), () => images.image(9), () => images.image(), () => images.image('a'), () => images.batches(), () => images.batches(0), () => images.batches('a'), () => Images.fromIdx(), () => Images.fromIdx('a', 'b'), () => Images.fromIdx(new Uint8Array(0), new Uint8Array(0)), () => Images.fromIdx(new ArrayBuffer(1), new Uint8Array(0)), () => Images.fromIdx(new Uint8Array([0x1f, 0x8b, 8, 0]), new Uint8Array(8)),
    () => checkpoint.withModel(), () => checkpoint.withModel('a', {}), () => checkpoint.withModel(model), () => checkpoint.withVariable('a', x), () => checkpoint.save(), () => checkpoint.save(5), () => checkpoint.save('ckpt'), () => checkpoint.save('ftp://a/b'), () => checkpoint.restore(), () => checkpoint.restore('opfs://none/ckpt'), () => checkpoint.restore({}), () => checkpoint.restore(5), () => checkpoint.restore({ index: 1, data: 2 }), () => checkpoint.restore({ index: new Uint8Array(3), data: new Uint8Array(3) }), () => Checkpoint.latest(), () => Checkpoint.latest('a'), () => Checkpoint.latest('indexeddb://a/b'),
  ];
}

/** The outcome of each: it throws (`THROWS`), its promise is rejected (`REJECTS`), or it returns a value (`GIVES`). */
export async function tried(cases) {
  const found = [];
  for (const call of cases) {
    const line = String(call).replace(/^\(\) => /, '');
    const tell = (how, error) => found.push({ line, how, name: error?.name, message: String(error?.message ?? error), error: error instanceof Error });
    try {
      const given = call();
      if (given instanceof Promise) await given.then((value) => tell('GIVES', String(value)), (error) => tell('REJECTS', error));
      else tell('GIVES', String(given));
    } catch (error) {
      tell('THROWS', error);
    }
  }
  return found;
}
