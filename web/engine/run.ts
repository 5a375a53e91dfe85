// One training run: a model, its optimizer, the order of the images, and the curves so far.

import { Sequential, Tensor, setSeed, type Images, type OptimizerConfig } from '../page-pkg/wgrad.js';
import { layersOf, type Settings } from './settings';
import type { Kept, Seen } from './store';

/** A list of floats that grows. */
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
  /** The step at which each pass through the data was over. */
  readonly ends: number[] = [];
  seen: Seen = {};
  /** Steps handed to the device; their losses may still be on the way. */
  submitted = 0;
  settings: Settings;
  /** The weights with which the seed begins. */
  readonly start: Tensor[];
  #model: Sequential;
  /** Weights as the seed gives them, and no step yet. */
  #untouched = true;
  #images: Images;
  #order: Uint32Array;
  #at = 0;
  /** Passes through the data before the one that `#order` is of. */
  #passes = 0;
  readonly #passed: () => void;

  /** `passed` is called at the end of each pass through the images, and may put other images in their place. */
  constructor(settings: Settings, images: Images, passed: () => void = () => {}) {
    this.settings = settings;
    this.#images = images;
    this.#passed = passed;
    [this.#model, this.#order] = this.#make();
    this.#compile();
    // As if training, so that dropout draws as many random numbers as it will: then what is shown before the first step are
    // the weights from which that starts.
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
   * A model whose layers have no size yet, and an order of the images. Random numbers are drawn in the order in which a native
   * program draws them that shuffles first and whose layers size themselves in the first step: so the same seed trains the
   * same way there.
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

  /** Goes on from weights of an earlier run of the same settings. The optimizer starts from scratch, and so does the shuffling. */
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

  /** Learning rate, batch size and the like; the weights stay. */
  adjust(settings: Settings): void {
    const before = this.settings;
    this.settings = settings;
    if (settings.optimizer !== before.optimizer) this.#compile();
    else if (settings.lr !== before.lr) this.#model.learningRate = settings.lr;
  }

  /** A begun pass through other images counts by its share. */
  useImages(images: Images): void {
    if (images === this.#images) return;
    this.#passes = this.epochs;
    this.#images = images;
    this.#shuffle();
  }

  /** How often the images were gone through; a begun pass counts by its share. */
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

  /** Hands one step to the device and reads nothing. */
  trainStep(): { loss: Tensor; accuracy: Tensor } {
    if (this.#untouched) {
      // The layers of the first model have sized themselves already, outside of a step.
      this.#model.free();
      [this.#model, this.#order] = this.#make();
      this.#compile();
      this.#untouched = false;
    }
    if (this.#at >= this.#order.length) {
      const before = this.#images;
      this.#passed();
      // Other images come shuffled.
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
