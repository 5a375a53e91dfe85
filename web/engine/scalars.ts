// Reading many numbers at once.

import type { Tensor } from '../pkg/wgrad.js';

/** The values of tensors with one element, which are disposed of. */
export async function readScalars(tensors: Tensor[]): Promise<Float32Array> {
  const values = await Promise.all(tensors.map((tensor) => tensor.item()));
  for (const tensor of tensors) tensor.dispose();
  return Float32Array.from(values);
}
