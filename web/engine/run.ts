// A training run: a model, its optimizer, the order of the images, and the curves so far.

import { Sequential, Tensor, setSeed, type Images, type OptimizerConfig } from '../page-pkg/wgrad.js';
import { layersOf, type Settings } from './settings';
import type { Kept, Seen } from './store';

/** A growing list of floats. */
export class Curve {
  #values = new Float32Array(1024);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(values: Float32Array): void {
    const length = this.#length + values.length;
    if (length > this.#values.length) {
      const grown = new Float32Array(2 * length);
      grown.set(this.values());
      this.#values = grown;
    }
    this.#values.set(values, this.#length);
    this.#length = length;
  }

  values(): Float32Array {
    return this.#values.slice(0, this.#length);
  }
}

class ModelError extends Error {
  override name = 'ShapeError';
}

function optimizerOf({ optimizer, lr }: Settings): OptimizerConfig {
  if (optimizer === 'adam') return { type: 'adam', learningRate: lr };
  return { type: 'sgd', learningRate: lr, momentum: optimizer === 'momentum' ? 0.9 : 0 };
}

export class Run {
  readonly losses = new Curve();
  readonly accuracies = new Curve();
  /** Accuracies on test images. */
  tests: [step: number, accuracy: number][] = [];
  /** The steps at which epochs ended. */
  readonly ends: number[] = [];
  seen: Seen = {};
  /** Submitted steps; their losses may not have been read yet. */
  submitted = 0;
  settings: Settings;
  /** The initial weights, determined by the seed. */
  readonly start: Tensor[];
  #model: Sequential;
  /** The weights are still those of the seed, before the first step. */
  #untouched = true;
  #images: Images;
  #order: Uint32Array;
  #at = 0;
  /** Epochs before the one of `#order`. */
  #passes = 0;
  readonly #passed: () => void;

  /** `passed` is called at the end of each epoch, and may replace the images. */
  constructor(settings: Settings, images: Images, passed: () => void = () => {}) {
    this.settings = settings;
    this.#images = images;
    this.#passed = passed;
    [this.#model, this.#order] = this.#make();
    this.#compile();
    // With `training`, so that dropout draws as many random numbers as it will in a step: then the weights shown before the
    // first step are the ones that it starts from.
    const blank = Tensor.from(new Float32Array(784 * settings.batch), [settings.batch, 28, 28, 1]);
    const logits = this.#model.call(blank, true);
    const shape = logits.shape;
    blank.dispose();
    logits.dispose();
    if (shape.length !== 2 || shape[1] !== 10) {
      throw new ModelError(`The last layer gives [batch, ${shape.slice(1).join(', ')}], but ten digits need [batch, 10]. `
        + 'End with Flatten, if there is none yet, and Dense with 10 units.');
    }
    if (this.#model.countParams() === 0) {
      throw new ModelError('The model has no weights to train. Add a Dense or a Conv2D layer.');
    }
    this.start = this.#model.variables.map((variable) => {
      const value = variable.read();
      variable.free();
      return value;
    });
  }

  /**
   * Returns a model whose layers are not built yet, and an order of the images. Random numbers are drawn in the same order as
   * in a native program that shuffles first and whose layers are built in the first step: so the same seed leads to the same
   * training there.
   */
  #make(): [Sequential, Uint32Array] {
    setSeed(this.settings.seed);
    return [new Sequential(layersOf(this.settings)), this.#images.permutation()];
  }

  get model(): Sequential {
    return this.#model;
  }

  #compile(): void {
    this.#model.compile({ optimizer: optimizerOf(this.settings), loss: 'sparseCategoricalCrossentropy', metrics: ['accuracy'] });
  }

  /** Steps whose losses have been read. */
  get step(): number {
    return this.losses.length;
  }

  /** Continues with weights of an earlier run with the same settings. The optimizer and the shuffling start again. */
  restore(kept: Kept): void {
    this.load(kept.weights);
    this.losses.push(kept.losses);
    this.accuracies.push(kept.accuracies);
    this.tests.push(...kept.tests);
    this.ends.push(...kept.ends);
    this.seen = kept.seen;
    this.submitted = kept.step;
    this.#passes = kept.epochs;
    setSeed(this.settings.seed + kept.step);
    this.#shuffle();
  }

  load(weights: Uint8Array): void {
    this.#model.load(weights);
    this.#untouched = false;
  }

  async keep(): Promise<Kept> {
    const [step, epochs] = [this.submitted, this.epochs];
    const weights = await this.#model.save();
    const [losses, accuracies] = [this.losses.values(), this.accuracies.values()];
    return { step, weights, losses, accuracies, tests: [...this.tests], epochs, ends: [...this.ends], seen: { ...this.seen }, when: Date.now() };
  }

  /** Applies learning rate, batch size and similar settings; the weights stay. */
  adjust(settings: Settings): void {
    const before = this.settings;
    this.settings = settings;
    if (settings.optimizer !== before.optimizer) this.#compile();
    else if (settings.lr !== before.lr) this.#model.learningRate = settings.lr;
  }

  /** Replaces the images; an unfinished epoch counts as a fraction. */
  useImages(images: Images): void {
    if (images === this.#images) return;
    this.#passes = this.epochs;
    this.#images = images;
    this.#shuffle();
  }

  /** The number of epochs; an unfinished one counts as a fraction. */
  get epochs(): number {
    return this.#passes + Math.min(1, this.#at / this.#order.length);
  }

  tested(step: number, accuracy: number): void {
    this.tests = [...this.tests.filter(([other]) => other !== step), [step, accuracy]];
  }

  #shuffle(): void {
    this.#order = this.#images.permutation();
    this.#at = 0;
  }

  /** Submits one step and reads nothing. */
  trainStep(): { loss: Tensor; accuracy: Tensor } {
    if (this.#untouched) {
      // The first model's layers have already been built outside of a step.
      this.#model.free();
      [this.#model, this.#order] = this.#make();
      this.#compile();
      this.#untouched = false;
    }
    if (this.#at >= this.#order.length) {
      const before = this.#images;
      this.#passed();
      // New images are already shuffled.
      if (this.#images === before) {
        this.#passes += 1;
        this.#shuffle();
      }
    }
    const indices = this.#order.slice(this.#at, this.#at + this.settings.batch);
    const { x, y } = this.#images.batch(indices);
    try {
      const { loss, accuracy } = this.#model.trainStep(x, y);
      this.#at += indices.length;
      this.submitted += 1;
      if (Math.floor(this.epochs + 1e-9) > this.ends.length) this.ends.push(this.submitted);
      return { loss, accuracy: accuracy! };
    } finally {
      x.dispose();
      y.dispose();
    }
  }

  dispose(): void {
    for (const value of this.start) value.dispose();
    this.#model.free();
  }
}
