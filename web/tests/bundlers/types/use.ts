// The package as seen by a strict program that declares no types itself.
import init, { Device, Sequential, Tensor, Variable, layers, tidy, valueAndGradients } from 'wgrad';
import type { History, LayerConfig, OptimizerConfig } from 'wgrad';
import wasm from 'wgrad/wgrad_bg.wasm';

const optimizer: OptimizerConfig = { type: 'adam', learningRate: 1e-3 };
const described: LayerConfig[] = [layers.flatten(), layers.dense({ units: 10 })];

export async function main(): Promise<number> {
  await init(wasm);
  const device: Device = await Device.open({ memoryLimit: 1e9 });
  const model = new Sequential(described);
  model.compile({ optimizer, metrics: ['accuracy'] });
  const history: History = await model.fit(Tensor.zeros([2, 3]), Tensor.zeros([2]), { onEpochEnd: (epoch, { loss }) => console.log(epoch, loss) });
  const w = new Variable(Tensor.from([[1]]));
  const { value } = valueAndGradients(() => w.read().square().sum(), [w]);
  using sum = tidy(() => value.add(1));
  device.flush();
  return (history.loss[0] ?? 0) + await sum.item();
}

// Mistakes are errors.
// @ts-expect-error: a layer without its size
layers.dense({});
// @ts-expect-error: a name that is not there
Tensor.zeros([1]).sinus();
// @ts-expect-error: tensors are made by functions
new Tensor();
