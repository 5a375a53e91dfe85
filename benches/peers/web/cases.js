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

/** The numbers of weights that another page has packed. */
export const unpacked = (floats) => new Float32Array(Uint8Array.fromBase64(floats).buffer);
