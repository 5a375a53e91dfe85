// The check of a GPU: TensorFlow's golden cases, the losses of the native run, and short measurements, with the full npm
// package on a separate device. Runs in a worker, or on the page's thread where workers have no WebGPU; independent of the
// page's training.

import type { Device, Tensor } from '../pkg/wgrad.js';
import { run, type Case, type Stored } from './golden.js';

type Wgrad = typeof import('../pkg/wgrad.js');

interface Cases {
  tensorflow: string;
  cases: Case[];
  tensors: Record<string, { dtype: string; shape: number[]; at: number; length: number }>;
  runs: Record<string, { seed: number; images: number; batchSize: number; learningRate: number; layers: object[]; losses: number[] }>;
}

export interface Family {
  name: string;
  passed: number;
  failed: number;
  /** The largest error relative to the case's tolerance, and the case. */
  error: number;
  worst: string;
}

export interface Figure {
  name: string;
  value: number;
  unit: string;
}

export interface CheckResult {
  adapter?: { name: string; kind: string; driver: string; text: string };
  limits: [name: string, value: number][];
  features: string[];
  tensorflow: string;
  families: Family[];
  /** The number of all cases; fewer have run if the check was stopped. */
  cases: number;
  failures: { name: string; what: string }[];
  /** The largest relative difference from the losses of the native run, per model. */
  losses: { name: string; difference: number }[];
  figures: Figure[];
  /** The error that ended the check early. */
  trouble?: string;
  stopped: boolean;
  seconds: number;
}

/** Messages during the check. */
export type CheckMessage =
  | { kind: 'hello'; gpu: boolean }
  | { kind: 'progress'; what: string; done: number; total: number }
  | { kind: 'result'; result: CheckResult };

type Tell = (what: string, done: number, total: number) => void;

const now = () => performance.now();
const textOf = (error: unknown) => (error instanceof Error ? `${error.name}: ${error.message}` : String(error));

async function fetchCases(base: string): Promise<{ cases: Cases; tensors: Record<string, Stored> }> {
  const response = await fetch(new URL('golden.bin.packed', base));
  if (!response.ok || !response.body) throw new Error(`golden.bin.packed: the server answered ${response.status}.`);
  const bytes = await new Response(response.body.pipeThrough(new DecompressionStream('deflate'))).arrayBuffer();
  const length = new DataView(bytes).getUint32(0, true);
  const cases = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length))) as Cases;
  const arrays: Record<string, new (buffer: ArrayBuffer) => ArrayLike<number>> =
    { float32: Float32Array, int32: Int32Array, uint8: Uint8Array, bool: Uint8Array };
  const tensors = Object.entries(cases.tensors).map(([name, { dtype, shape, at, length: size }]) => {
    const from = 4 + length + at;
    return [name, { dtype, shape, values: new arrays[dtype]!(bytes.slice(from, from + size)) }] as const;
  });
  return { cases, tensors: Object.fromEntries(tensors) };
}

/** Milliseconds per call of `work`: the fastest of a few rounds that take half a second together. The first call compiles. */
async function timed(device: Device, work: () => Tensor): Promise<number> {
  const round = async (count: number) => {
    const begun = now();
    const made: Tensor[] = [];
    for (let i = 0; i < count; i++) {
      made.push(work());
      device.flush();
    }
    await device.synchronize();
    const ms = (now() - begun) / count;
    for (const tensor of made) tensor.dispose();
    return ms;
  };
  await round(1);
  const once = Math.max(await round(1), 0.02);
  const count = Math.max(1, Math.min(20, Math.round(160 / once)));
  let best = once;
  for (let i = 0; i < 3 && once * count * i < 1000; i++) best = Math.min(best, await round(count));
  return best;
}

async function figures(wgrad: Wgrad, device: Device, signal: AbortSignal, tell: Tell): Promise<Figure[]> {
  const { Tensor } = wgrad;
  const found: Figure[] = [];
  const random = (length: number) => Float32Array.from({ length }, (_, i) => Math.sin(12.9898 * i) * 0.1);
  const [side, many] = [1024, 1 << 22];
  const kernels: [name: string, unit: string, work: number, make: () => { inputs: Tensor[]; run: (inputs: Tensor[]) => Tensor }][] = [
    ['product of 1024 × 1024 matrices', 'GFLOP/s', 2 * side ** 3 / 1e9, () => ({
      inputs: [Tensor.from(random(side * side), [side, side]), Tensor.from(random(side * side), [side, side])], run: ([a, b]) => a!.matmul(b!),
    })],
    ['convolution 5 × 5 of 50 images of 14 × 14 × 32 to 64', 'GFLOP/s', 2 * 50 * 14 * 14 * 64 * 25 * 32 / 1e9, () => ({
      inputs: [Tensor.from(random(50 * 14 * 14 * 32), [50, 14, 14, 32]), Tensor.from(random(25 * 32 * 64), [5, 5, 32, 64])],
      run: ([x, w]) => x!.conv2d(w!, { padding: 'same' }),
    })],
    ['sum of two arrays of 16 MB', 'GB/s', 3 * 4 * many / 1e9, () => ({
      inputs: [Tensor.from(random(many), [many]), Tensor.from(random(many), [many])], run: ([a, b]) => a!.add(b!),
    })],
    ['sum over 16 MB', 'GB/s', 4 * many / 1e9, () => ({ inputs: [Tensor.from(random(many), [many])], run: ([a]) => a!.sum() })],
  ];
  const total = kernels.length + 1;
  for (const [name, unit, work, make] of kernels) {
    if (signal.aborted) return found;
    tell(`Measuring: ${name}`, found.length, total);
    const { inputs, run: compute } = make();
    const ms = await timed(device, () => compute(inputs));
    for (const input of inputs) input.dispose();
    found.push({ name, value: work / (ms / 1000), unit });
  }
  if (signal.aborted) return found;
  tell('Measuring: training of an MLP', found.length, total);
  const { steps, free } = perceptron(wgrad);
  // The first step compiles, and the second and third have different kernels.
  await steps(4);
  const once = await steps(5) / 5;
  const count = Math.max(5, Math.min(200, Math.round(500 / once)));
  found.push({ name: 'training of the MLP, batches of 50', value: 1000 * count / await steps(count), unit: 'steps/s' });
  free();
  return found;
}

/** An MLP with its data. `steps` trains and returns the milliseconds that it took. */
function perceptron({ Images, Sequential, layers }: Wgrad): { steps: (count: number) => Promise<number>; free: () => void } {
  const images = Images.drawDigits(1000, 1);
  const model = new Sequential([layers.flatten(), layers.dense({ units: 100, activation: 'relu' }), layers.dense({ units: 10 })]);
  model.compile({ optimizer: { type: 'adam', learningRate: 1e-3 } });
  const steps = async (count: number) => {
    const begun = now();
    let last: Tensor | undefined;
    for (let i = 0; i < count; i++) {
      const { x, y } = images.batch(Uint32Array.from({ length: 50 }, (_, k) => (50 * i + k) % 1000));
      last?.dispose();
      last = model.trainStep(x, y).loss;
      x.dispose();
      y.dispose();
    }
    await last!.item();
    last!.dispose();
    return now() - begun;
  };
  const free = () => {
    model.free();
    images.free();
  };
  return { steps, free };
}

/** A visitor's waiting time: the first step on a device that has compiled nothing yet. */
async function firstStep(wgrad: Wgrad): Promise<Figure> {
  const device = await wgrad.Device.open();
  const { steps, free } = perceptron(wgrad);
  const value = await steps(1);
  free();
  device.destroy();
  return { name: 'first step of an MLP, on a fresh device', value, unit: 'ms' };
}

async function differences(wgrad: Wgrad, runs: Cases['runs'], signal: AbortSignal, tell: Tell): Promise<CheckResult['losses']> {
  const found: CheckResult['losses'] = [];
  for (const [name, { seed, images: count, batchSize, learningRate, layers, losses }] of Object.entries(runs)) {
    if (signal.aborted) break;
    tell(`Training beside the native run: ${name.toUpperCase()}`, found.length, Object.keys(runs).length);
    const images = wgrad.Images.drawDigits(count, seed);
    wgrad.setSeed(seed);
    const order = images.permutation();
    const model = new wgrad.Sequential(layers as never);
    model.compile({ optimizer: { type: 'adam', learningRate } });
    let difference = 0;
    for (const [step, wanted] of losses.entries()) {
      const { x, y } = images.batch(order.slice(step * batchSize, (step + 1) * batchSize));
      const { loss } = model.trainStep(x, y);
      difference = Math.max(difference, Math.abs(await loss.item() - wanted) / wanted);
      for (const tensor of [x, y, loss]) tensor.dispose();
    }
    found.push({ name: name.toUpperCase(), difference });
    model.free();
    images.free();
  }
  return found;
}

/** Runs the whole check; errors are part of the result. `base` is the page's address. */
export async function check(base: string, signal: AbortSignal, tell: Tell): Promise<CheckResult> {
  const begun = now();
  const result: CheckResult =
    { limits: [], features: [], tensorflow: '', families: [], cases: 0, failures: [], losses: [], figures: [], stopped: false, seconds: 0 };
  let device: Device | undefined;
  try {
    tell('Loading the library and the cases', 0, 0);
    const address = new URL('pkg/wgrad.js', base).href;
    const wgrad = await import(address) as Wgrad;
    const [{ cases, tensors }] = await Promise.all([fetchCases(base), wgrad.default()]);
    [result.tensorflow, result.cases] = [cases.tensorflow, cases.cases.length];
    tell('Measuring: the first step of an MLP', 0, 0);
    // This comes first, as the browser caches compiled kernels.
    const first = await firstStep(wgrad);
    device = await wgrad.Device.open();
    const { name, kind, driver, text } = device.adapter;
    Object.assign(result, { adapter: { name, kind, driver, text }, limits: Object.entries(device.limits), features: device.features });
    const families = new Map<string, Family>();
    for (const [i, each] of cases.cases.entries()) {
      if (signal.aborted) break;
      tell(`Case ${i + 1} of ${cases.cases.length}: ${each.op}`, i, cases.cases.length);
      let family = families.get(each.family);
      if (!family) {
        family = { name: each.family, passed: 0, failed: 0, error: 0, worst: '' };
        families.set(each.family, family);
        result.families.push(family);
      }
      let problems: string[];
      try {
        const ran = await run(wgrad, each, tensors);
        problems = ran.problems;
        if (ran.error > family.error) Object.assign(family, { error: ran.error, worst: each.name });
      } catch (error) {
        problems = [textOf(error)];
      }
      family[problems.length > 0 ? 'failed' : 'passed'] += 1;
      result.failures.push(...problems.map((what) => ({ name: each.name, what })));
    }
    if (!signal.aborted) result.losses = await differences(wgrad, cases.runs, signal, tell);
    if (!signal.aborted) result.figures = [first, ...await figures(wgrad, device, signal, tell)];
  } catch (error) {
    result.trouble = textOf(error);
  }
  device?.destroy();
  result.stopped = signal.aborted;
  result.seconds = (now() - begun) / 1000;
  return result;
}

// In a worker: the first message starts the check, the next one ends it.
if (typeof document === 'undefined') {
  const send = (message: CheckMessage) => self.postMessage(message);
  const stop = new AbortController();
  let running = false;
  self.onmessage = ({ data }: MessageEvent<{ base: string }>) => {
    if (running) return stop.abort();
    running = true;
    // Ten messages a second are enough.
    let told = 0;
    void check(data.base, stop.signal, (what, done, total) => {
      if (now() - told < 100) return;
      told = now();
      send({ kind: 'progress', what, done, total });
    }).then((result) => send({ kind: 'result', result }));
  };
  send({ kind: 'hello', gpu: Boolean(navigator.gpu) });
}
