// Reading many numbers at once.

import { Tensor } from '../page-pkg/wgrad.js';

/** The values of tensors with one element, which are disposed of. One read for all of them. */
export async function readScalars(tensors: Tensor[]): Promise<Float32Array> {
  const flat = tensors.map((tensor) => tensor.reshape([1]));
  const joined = Tensor.concat(flat, 0);
  const read = joined.data();
  for (const tensor of [...tensors, ...flat, joined]) tensor.dispose();
  return await read as Float32Array;
}
