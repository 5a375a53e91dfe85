// The outputs of each layer for a digit, and the layers' present weights: the data of the network card.

import { Tensor, type Sequential } from '../page-pkg/wgrad.js';
import type { LayerResult, LayerWeights, Reading } from './protocol';
import type { Layer } from './settings';

/** Outputs and kernels with more numbers than this are described by their shape only, as they could not be displayed. */
const MOST = 1 << 19;
/** Layers whose output equals their input. */
const SAME: readonly Layer['type'][] = ['flatten', 'dropout'];

const sizeOf = (shape: number[]) => shape.reduce((a, b) => a * b, 1);

/** Names as the library assigns them: `dense`, `max_pooling2d`, `dense_1`. */
function names(layers: Layer[]): string[] {
  const counts: Record<string, number> = {};
  return layers.map(({ type }) => {
    const name = type.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    const count = counts[name] ?? 0;
    counts[name] = count + 1;
    return count === 0 ? name : `${name}_${count}`;
  });
}

/** The numbers of many tensors, read at once, as parts of one list. Disposes of the tensors. */
async function readAll(tensors: Tensor[]): Promise<Float32Array[]> {
  const sizes = tensors.map((tensor) => sizeOf(tensor.shape));
  const read = Tensor.items(tensors);
  for (const tensor of tensors) tensor.dispose();
  const all = await read;
  let at = 0;
  return sizes.map((size) => all.subarray(at, at += size));
}

function softmax(logits: Float32Array): Float32Array {
  const largest = Math.max(...logits);
  const powers = logits.map((x) => Math.exp(x - largest));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((x) => x / sum);
}

/** The output of each of a model's `layers` for an image of 28 by 28. */
export async function read(model: Sequential, layers: Layer[], pixels: Uint8Array): Promise<Reading> {
  const x = Tensor.from(Float32Array.from(pixels, (p) => p / 255), [1, 28, 28, 1]);
  const results = model.activations(x);
  x.dispose();
  const shapes = results.map((result) => result.shape.slice(1));
  const shown = results.map((_, i) => i === results.length - 1 || (!SAME.includes(layers[i]!.type) && sizeOf(shapes[i]!) <= MOST));
  results.forEach((result, i) => shown[i] || result.dispose());
  const values = await readAll(results.filter((_, i) => shown[i]));
  const probabilities = softmax(values.at(-1)!);
  const called = names(layers);
  let next = 0;
  const told = layers.map((layer, i): LayerResult =>
    ({ name: called[i]!, layer, shape: shapes[i]!, values: shown[i] ? values[next++]! : new Float32Array() }));
  return { probabilities, layers: told };
}

/**
 * The kernel of each layer that has one, and the distance of all its weights from those in `start`, relative to the length of
 * `start`.
 */
export async function weights(model: Sequential, start: Tensor[]): Promise<LayerWeights[]> {
  const variables = model.variables.map((variable) => {
    const [layer = '', part = ''] = variable.name.split('/');
    const shape = variable.shape;
    const value = part === 'kernel' && sizeOf(shape) <= MOST ? variable.read() : undefined;
    variable.free();
    return { layer, part, shape, value };
  });
  const kernels = variables.flatMap(({ value }) => (value ? [value] : []));
  const sums = model.moved(start);
  const read = await readAll([...sums, ...kernels]);
  const found = new Map<string, LayerWeights & { far: number; long: number }>();
  let next = sums.length;
  variables.forEach(({ layer, part, shape, value }, i) => {
    const at = found.get(layer) ?? { name: layer, shape: [], values: new Float32Array(), moved: 0, far: 0, long: 0 };
    found.set(layer, at);
    at.far += read[2 * i]![0]!;
    at.long += read[2 * i + 1]![0]!;
    if (part === 'kernel') at.shape = shape;
    if (value) at.values = read[next++]!;
  });
  return [...found.values()].map(({ name, shape, values, far, long }) => ({ name, shape, values, moved: long > 0 ? Math.sqrt(far / long) : 0 }));
}
