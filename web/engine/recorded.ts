// Replaces the engine with a recorded training if there is no WebGPU: the same requests and events. The recording has the
// weights of a small MLP at some steps (record.mjs makes it); predictions of that network are computed here, in JavaScript.

import type { Digits, Event, LayerWeights, Reading, Request, Send, State } from './protocol';
import { layersOf, type Settings } from './settings';

export interface Recording {
  settings: Settings;
  /** Steps at which the weights were recorded. */
  moments: number[];
  /** Weights are integers times `scale`. */
  tensors: { name: string; shape: number[]; scale: number }[];
  steps: number;
  epochs: number;
  browser: string;
  adapter: string;
  commit: string;
  date: string;
  /** By tensor and moment. */
  numbers: Int16Array[][];
  losses: Float32Array;
  accuracies: Float32Array;
}

/** Steps per second, slow enough to watch; a GPU is faster. */
const SPEED = 30;
const EVERY = { tick: 100, weights: 500, evaluation: 3000 };
const MISREAD = 48;
/** The recorded layers that have weights. */
const NAMES = ['dense', 'dense_1'];

export async function fetchRecording(base: string): Promise<Recording> {
  const response = await fetch(new URL('recording.bin.packed', base));
  if (!response.ok || !response.body) throw new Error(`recording.bin.packed: the server answered ${response.status}.`);
  return unpack(await new Response(response.body.pipeThrough(new DecompressionStream('deflate'))).arrayBuffer());
}

function unpack(bytes: ArrayBuffer): Recording {
  const length = new DataView(bytes).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length))) as Omit<Recording, 'numbers' | 'losses' | 'accuracies'>;
  let at = 4 + length;
  const take = (size: number) => bytes.slice(at, at += size);
  const numbers = header.tensors.map(({ shape }) => {
    const size = shape.reduce((a, b) => a * b, 1);
    let before = new Int16Array(size);
    return header.moments.map(() => {
      const change = new Int8Array(take(size));
      before = before.map((value, i) => value + change[i]!);
      return before;
    });
  });
  const curve = () => Float32Array.from(new Uint16Array(take(2 * header.steps)), (thousandths) => thousandths / 1000);
  return { ...header, numbers, losses: curve(), accuracies: curve() };
}

interface Layer {
  kernel: Float32Array;
  bias: Float32Array;
  inputs: number;
  outputs: number;
}

/** The layers' weights after this many steps. */
export function layersAt({ moments, tensors, numbers }: Recording, step: number): Layer[] {
  const next = Math.max(1, moments.findIndex((moment) => moment >= step));
  const [from, to] = [moments[next - 1]!, moments[next]!];
  const share = (step - from) / (to - from);
  const values = (name: string) => {
    const at = tensors.findIndex((tensor) => tensor.name === name);
    const [before, after, scale] = [numbers[at]![next - 1]!, numbers[at]![next]!, tensors[at]!.scale];
    return Float32Array.from(before, (value, i) => scale * (value + share * (after[i]! - value)));
  };
  return NAMES.map((name) => {
    const [inputs, outputs] = tensors.find((tensor) => tensor.name === `${name}/kernel`)!.shape as [number, number];
    return { kernel: values(`${name}/kernel`), bias: values(`${name}/bias`), inputs, outputs };
  });
}

/** The layers' outputs for an image: hidden units, and logits. */
export function forward(layers: Layer[], pixels: Uint8Array): Float32Array[] {
  let x = Float32Array.from(pixels, (pixel) => pixel / 255);
  return layers.map(({ kernel, bias, inputs, outputs }, at) => {
    const y = Float32Array.from(bias);
    for (let i = 0; i < inputs; i++) {
      const value = x[i]!;
      if (value !== 0) for (let o = 0; o < outputs; o++) y[o]! += value * kernel[i * outputs + o]!;
    }
    x = at < layers.length - 1 ? y.map((value) => Math.max(0, value)) : y;
    return x;
  });
}

export function softmax(logits: Float32Array): Float32Array {
  const largest = Math.max(...logits);
  const powers = logits.map((x) => Math.exp(x - largest));
  const sum = powers.reduce((a, b) => a + b, 0);
  return powers.map((x) => x / sum);
}

const best = (values: Float32Array) => values.reduce((most, value, i) => (value > values[most]! ? i : most), 0);

/** `tests` are images that the recorded network was not trained on; `samples` returns more. */
export class Player {
  readonly #recording: Recording;
  readonly #send: Send;
  readonly #tests: Digits | undefined;
  readonly #samples: (request: Request & { kind: 'samples' }) => Promise<unknown>;
  #step = 0;
  #timer: ReturnType<typeof setInterval> | undefined;
  #evaluations: [step: number, accuracy: number][] = [];
  #last = { weights: 0, evaluation: 0 };
  /** Steps to play, as a fraction. */
  #due = 0;

  constructor(recording: Recording, send: Send, tests: Digits | undefined, samples: (request: Request & { kind: 'samples' }) => Promise<unknown>) {
    [this.#recording, this.#send, this.#tests, this.#samples] = [recording, send, tests, samples];
  }

  async receive(request: Request): Promise<void> {
    try {
      this.#send({ kind: 'reply', id: request.id, ok: true, value: await this.#answer(request) });
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      this.#send({ kind: 'reply', id: request.id, ok: false, fault: { kind: 'error', text, goesOn: true } });
    }
  }

  #answer(request: Request): unknown {
    switch (request.kind) {
      case 'open': return this.#begin();
      case 'reset':
        this.#stop();
        return this.#begin();
      case 'start':
        if (this.#step >= this.#recording.steps) this.#begin();
        return this.#play();
      case 'pause': return this.#rest();
      case 'step':
        this.#advance(1);
        return this.#rest();
      case 'read': return this.#read(request.pixels);
      case 'samples': return this.#samples(request);
      case 'evaluate': return this.#evaluate();
      // A recording has no settings.
      case 'configure': return undefined;
      default: throw new Error('This is a recording: that needs WebGPU.');
    }
  }

  #layers(): Layer[] {
    return layersAt(this.#recording, this.#step);
  }

  #begin(): void {
    const { tensors } = this.#recording;
    this.#step = this.#due = 0;
    this.#evaluations = [];
    const params = tensors.reduce((sum, { shape }) => sum + shape.reduce((a, b) => a * b, 1), 0);
    const summary = tensors.map(({ name, shape }) => `${name} [${shape.join(', ')}]`).join('\n');
    this.#send({ kind: 'model', summary, params, step: 0, restored: false, wasTraining: false });
    this.#send({ kind: 'curves', losses: new Float32Array(), accuracies: new Float32Array(), tests: [], epochs: 0, ends: [] });
    this.#weights();
    this.#state('ready');
  }

  #state(state: State): void {
    this.#send({ kind: 'state', state });
  }

  #play(): void {
    if (this.#timer !== undefined) return;
    this.#state('training');
    let before = performance.now();
    this.#timer = setInterval(() => {
      const now = performance.now();
      // A tab that was hidden continues where it was.
      this.#due += Math.min(now - before, 2 * EVERY.tick) * SPEED / 1000;
      before = now;
      const steps = Math.floor(this.#due);
      this.#due -= steps;
      if (steps > 0) this.#advance(steps);
      if (now > this.#last.weights + EVERY.weights) this.#weights();
      if (now > this.#last.evaluation + EVERY.evaluation) this.#evaluate();
      if (this.#step >= this.#recording.steps) this.#rest();
    }, EVERY.tick);
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  #rest(): void {
    this.#stop();
    this.#state(this.#step >= this.#recording.steps ? 'finished' : this.#step > 0 ? 'paused' : 'ready');
    this.#weights();
    if (this.#step > 0) this.#evaluate();
  }

  #advance(steps: number): void {
    const { losses, accuracies, epochs, steps: all } = this.#recording;
    const from = this.#step;
    const to = Math.min(all, from + steps);
    if (to === from) return;
    this.#step = to;
    const passes = (step: number) => Math.floor(epochs * step / all + 1e-9);
    const ends = Array.from({ length: to - from }, (_, i) => from + i + 1).filter((step) => passes(step) > passes(step - 1));
    this.#send({ kind: 'points', from, losses: losses.slice(from, to), accuracies: accuracies.slice(from, to), epochs: epochs * to / all, ends });
  }

  #read(pixels: Uint8Array): Reading {
    const results = forward(this.#layers(), pixels);
    const [flatten, ...dense] = layersOf(this.#recording.settings);
    return {
      probabilities: softmax(results.at(-1)!),
      layers: [
        { name: 'flatten', layer: flatten!, shape: [784], values: new Float32Array() },
        ...results.map((values, i) => ({ name: NAMES[i]!, layer: dense[i]!, shape: [values.length], values })),
      ],
    };
  }

  /** The weights and how far they have moved, in the engine's format. */
  #weights(): void {
    this.#last.weights = performance.now();
    const start = layersAt(this.#recording, 0);
    const layers = this.#layers().map(({ kernel, bias, inputs, outputs }, i): LayerWeights => {
      let [far, long] = [0, 0];
      for (const [now, before] of [[kernel, start[i]!.kernel], [bias, start[i]!.bias]] as const) {
        now.forEach((weight, at) => {
          far += (weight - before[at]!) ** 2;
          long += before[at]! ** 2;
        });
      }
      return { name: NAMES[i]!, shape: [inputs, outputs], values: kernel, moved: Math.sqrt(far / long) };
    });
    this.#send({ kind: 'weights', step: this.#step, layers });
  }

  #evaluate(): void {
    this.#last.evaluation = performance.now();
    if (!this.#tests) return;
    const { pixels, labels } = this.#tests;
    const layers = this.#layers();
    const confusion = new Uint32Array(100);
    const misread: { i: number; guess: number; sure: number }[] = [];
    let right = 0;
    const image = (i: number) => pixels.subarray(784 * i, 784 * (i + 1));
    labels.forEach((label, i) => {
      const read = softmax(forward(layers, image(i)).at(-1)!);
      const guess = best(read);
      confusion[10 * label + guess]! += 1;
      if (guess === label) right += 1;
      else misread.push({ i, guess, sure: read[guess]! });
    });
    const surest = misread.sort((a, b) => b.sure - a.sure).slice(0, MISREAD);
    const wrong = new Uint8Array(784 * surest.length);
    surest.forEach(({ i }, at) => wrong.set(image(i), 784 * at));
    const accuracy = right / labels.length;
    this.#evaluations.push([this.#step, accuracy]);
    const event: Event = {
      kind: 'evaluation', step: this.#step, data: 'drawn', accuracy, count: labels.length, of: labels.length, confusion,
      misread: {
        pixels: wrong, labels: Uint8Array.from(surest, ({ i }) => labels[i]!), guesses: Uint8Array.from(surest, ({ guess }) => guess),
        sure: Float32Array.from(surest, ({ sure }) => sure),
      },
    };
    this.#send(event);
  }
}
