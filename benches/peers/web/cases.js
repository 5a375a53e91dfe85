// The training of all libraries: the models, the batches and the optimizer's parameters.

export const BATCH = 50;
export const CASES = ['mlp', 'cnn'];
/** Adam with Keras's defaults. */
export const ADAM = { learningRate: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-7 };
/** The CNN's dropout rate. */
export const RATE = 0.4;
const BATCHES = 8;

/**
 * Batches in a cycle: a bright bar whose position determines the label, in noise from a formula, so that the losses can fall.
 */
export function batches() {
  const made = Array.from({ length: BATCHES }, (_, batch) => {
    const pixels = new Float32Array(BATCH * 784);
    const labels = Int32Array.from({ length: BATCH }, (_, i) => (batch * 7 + i) % 10);
    for (let i = 0; i < pixels.length; i += 1) {
      const noise = (Math.imul(batch * pixels.length + i, 2654435761) >>> 8) / 2 ** 24;
      const row = Math.floor((i % 784) / 28);
      pixels[i] = Math.floor(row / 2.8) === labels[Math.floor(i / 784)] ? 1 : 0.3 * noise;
    }
    return { pixels, labels };
  });
  let at = 0;
  return () => made[at++ % BATCHES];
}

/** The numbers of drawn digits to train on and to test with; training ends when 9 of 10 test digits are recognized. */
export const DIGITS = { train: 10_000, test: 500, seed: 1, wanted: 0.9, every: 20, most: 2000 };

/** The file of drawn digits that bench.mjs writes: the pixels of all images, then their labels, one byte each. */
export async function digits() {
  const response = await fetch('../digits.bin');
  const bytes = new Uint8Array(await response.arrayBuffer());
  const count = DIGITS.train + DIGITS.test;
  if (!response.ok || bytes.length !== count * 785) throw new Error(`digits.bin: ${response.status}, ${bytes.length} bytes`);
  const part = (begin, end) => ({
    pixels: Float32Array.from(bytes.subarray(begin * 784, end * 784), (pixel) => pixel / 255),
    labels: Int32Array.from(bytes.subarray(count * 784 + begin, count * 784 + end)),
  });
  const batch = (i) => part(i * BATCH % DIGITS.train, i * BATCH % DIGITS.train + BATCH);
  return { batch, test: part(DIGITS.train, count) };
}

/** Trains on the digits until enough test digits are recognized; resolves with the number of steps and the accuracy. */
export async function learn() {
  const { batch, test } = await digits();
  for (let made = 0; made < DIGITS.most;) {
    for (let i = 0; i < DIGITS.every; i += 1) await globalThis.step(batch(made++));
    const logits = await globalThis.logits(test.pixels, DIGITS.test);
    let right = 0;
    for (let i = 0; i < DIGITS.test; i += 1) {
      const row = logits.subarray(10 * i, 10 * i + 10);
      right += row.indexOf(Math.max(...row)) === test.labels[i] ? 1 : 0;
    }
    if (right / DIGITS.test >= DIGITS.wanted) return { steps: made, share: right / DIGITS.test };
  }
  throw new Error(`not ${DIGITS.wanted} after ${DIGITS.most} steps`);
}

/** The weights that another page has encoded in Base64. */
export const unpacked = (floats) => new Float32Array(Uint8Array.fromBase64(floats).buffer);
