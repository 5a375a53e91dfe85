// A strict program with models of Keras that have several inputs and outputs; lines marked as errors must be errors.
import { Tensor, Variable, earlyStopping, loadModel, type Logs } from 'wgrad/models';

const model = await loadModel('shop.keras');
const x = Tensor.zeros([2, 4]);
const one: Tensor<'float32' | 'float16'> = await model.predict(x);
const [first] = await model.predict<Tensor[]>([x, new Variable(x)]);
const named: Tensor[] = model.call<Tensor[]>({ a: x, b: x }, true);
const shapes: (number | null)[] | undefined = model.inputs[0]?.shape;
model.compile({ optimizer: 'adam', loss: { kind: 'huber' }, lossWeights: [1, 2] });
model.compile({ optimizer: 'adam', loss: ['huber', 'poisson'], lossWeights: { kind: 0.5 } });
const history = await model.fit({ a: x, b: x }, [x, x], {
  validationData: [[x, x], { kind: x }], callbacks: earlyStopping({ monitor: 'val_kind_loss' }),
  onEpochEnd: (_, logs: Logs) => { const loss: number | undefined = logs.kind_loss; console.log(loss, logs.valLoss); },
});
const series: number[] | undefined = history.kind_accuracy;
const measured: number | undefined = (await model.evaluate([x, x], [x, x])).kind_loss;
const step: Tensor | undefined = model.trainStep([x, x], { kind: x }).kind_loss;
console.log(one, first, named, shapes, series, measured, step);

// @ts-expect-error: there is no such loss
model.compile({ optimizer: 'adam', loss: { kind: 'mean' } });
// @ts-expect-error: numbers are no tensors
model.call([1, 2]);
// @ts-expect-error: no metric is called so
console.log(history.kind);
