// What all libraries train: the models, the batches and the optimizer's numbers.

export const BATCH = 50;
export const CASES = ['mlp', 'cnn'];
/** Adam as in Keras. */
export const ADAM = { learningRate: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-7 };
/** Of the CNN's dropout. */
export const RATE = 0.4;
const BATCHES = 8;

/** Batches in turn: a bright bar whose place tells the label, in noise that a formula gives; so the losses can fall. */
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

/** So many drawn digits are learned, in batches as they come, and so many others asked for, until 9 of 10 are read right. */
export const DIGITS = { train: 10_000, test: 500, seed: 1, wanted: 0.9, every: 20, most: 2000 };

/** The file of drawn digits that bench.mjs has made: the pixels of all images, then their labels, a byte each. */
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

/** Trains on the digits until enough of the others are read right; resolves with the steps and the share. */
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

/** The numbers of weights that another page has packed. */
export const unpacked = (floats) => new Float32Array(Uint8Array.fromBase64(floats).buffer);
