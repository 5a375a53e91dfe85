// Evaluates a model on test images without changing it.

import type { Images, Sequential } from '../page-pkg/wgrad.js';
import type { Digits, Event } from './protocol';
import { giveWay } from './time';

const BATCH = 250;
/** As many as fit on a page. */
const MISREAD = 48;

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

/** Evaluates the first `count` images; undefined if `cancelled` returns true meanwhile. */
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
  // The most confident mistakes are the most informative.
  const worst = misread.sort((a, b) => b.sure - a.sure).slice(0, MISREAD);
  return {
    accuracy: right / count, count, of: images.length, confusion,
    misread: {
      ...digits(images, worst.map(({ at }) => at)),
      guesses: Uint8Array.from(worst, ({ guess }) => guess), sure: Float32Array.from(worst, ({ sure }) => sure),
    },
  };
}
