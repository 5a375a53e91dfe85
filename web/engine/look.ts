// Looking at a model without changing it: how it does on test images, what its first layer has learnt, what it reads.

import { Tensor, type Images, type Sequential } from '../page-pkg/wgrad.js';
import type { Digits, Event } from './protocol';
import { giveWay } from './time';

const BATCH = 250;
/** As many as fit on a page. */
const MISREAD = 48;
const FILTERS = 64;

export const range = (from: number, to: number) => Uint32Array.from({ length: to - from }, (_, i) => from + i);

export function digits(images: Images, indices: ArrayLike<number>): Digits {
  const pixels = new Uint8Array(indices.length * 784);
  const labels = new Uint8Array(indices.length);
  const all = images.labels;
  for (let i = 0; i < indices.length; i++) {
    pixels.set(images.image(indices[i]!), i * 784);
    labels[i] = all[indices[i]!]!;
  }
  return { pixels, labels };
}

/** Reads the first `count` images; undefined if `cancelled` says so on the way. */
export async function evaluate(
  model: Sequential, images: Images, count: number, cancelled: () => boolean,
): Promise<Omit<Event & { kind: 'evaluation' }, 'kind' | 'step' | 'data'> | undefined> {
  const labels = images.labels;
  const confusion = new Uint32Array(100);
  const misread: { at: number; guess: number; sure: number }[] = [];
  let right = 0;
  for (let from = 0; from < count; from += BATCH) {
    if (cancelled()) return undefined;
    const { x, y } = images.batch(range(from, Math.min(from + BATCH, count)));
    const logits = model.call(x, false);
    const probabilities = logits.softmax();
    const read = probabilities.data();
    for (const tensor of [x, y, logits, probabilities]) tensor.dispose();
    const all = await read;
    for (let i = 0; i < all.length / 10; i++) {
      let guess = 0;
      for (let digit = 1; digit < 10; digit++) if (all[10 * i + digit]! > all[10 * i + guess]!) guess = digit;
      const label = labels[from + i]!;
      confusion[label * 10 + guess]! += 1;
      if (label === guess) right += 1;
      else misread.push({ at: from + i, guess, sure: all[10 * i + guess]! });
    }
    await giveWay();
  }
  // The surest mistakes tell most.
  const worst = misread.sort((a, b) => b.sure - a.sure).slice(0, MISREAD);
  return {
    accuracy: right / count, count, of: images.length, confusion,
    misread: {
      ...digits(images, worst.map(({ at }) => at)),
      guesses: Uint8Array.from(worst, ({ guess }) => guess), sure: Float32Array.from(worst, ({ sure }) => sure),
    },
  };
}

/** The weights that look at pixels directly, each scaled to its own largest; 128 is zero. Undefined if they are no pictures. */
export async function filters(model: Sequential): Promise<Omit<Event & { kind: 'filters' }, 'kind'> | undefined> {
  const [first, ...others] = model.variables;
  for (const other of others) other.free();
  if (!first) return undefined;
  const shape = first.shape;
  const of = shape[shape.length - 1]!;
  const side = shape.length === 2 ? Math.sqrt(shape[0]!) : shape[0]!;
  if (!Number.isInteger(side) || side < 2 || (shape.length === 4 && shape[2] !== 1)) return undefined;
  const count = Math.min(of, FILTERS);
  const size = side * side;
  const layer = first.name;
  const weights = first.read();
  first.free();
  const read = weights.data();
  weights.dispose();
  const all = await read;
  const values = new Uint8ClampedArray(count * size);
  for (let f = 0; f < count; f++) {
    let largest = 1e-12;
    for (let i = 0; i < size; i++) largest = Math.max(largest, Math.abs(all[i * of + f]!));
    for (let i = 0; i < size; i++) values[f * size + i] = 128 + 127 * all[i * of + f]! / largest;
  }
  return { count, height: side, width: side, of, layer, values };
}

/** The probability of each digit for one image of 28 by 28. */
export async function predict(model: Sequential, pixels: Uint8Array): Promise<Float32Array> {
  const x = Tensor.from(Float32Array.from(pixels, (p) => p / 255), [1, 28, 28, 1]);
  const logits = model.call(x, false);
  const probabilities = logits.softmax();
  const read = probabilities.data();
  for (const tensor of [x, logits, probabilities]) tensor.dispose();
  return await read as Float32Array;
}
