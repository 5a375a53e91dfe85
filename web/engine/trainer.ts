// The training loop. It submits steps ahead of the device, never waits idly, and reads losses many at a time; in between it
// evaluates test images, reads weights and stores them.

import { Tensor, type Device } from '../page-pkg/wgrad.js';
import { weights } from './activations';
import type { Data } from './data';
import { kernelsOf } from './kernels';
import * as look from './look';
import { Pace } from './pace';
import type { Send } from './protocol';
import type { Run } from './run';
import { giveWay } from './time';

/** Minimum milliseconds between updates of the figures, reads of the weights, evaluations, and storing the weights. */
const EVERY = { figures: 250, weights: 1000, evaluation: 4000, keep: 5000 };

function startingNow() {
  const now = performance.now();
  return { figures: now, weights: now, evaluation: now, keep: now };
}

/** The maximum shares of the time for reading weights, evaluating, and storing weights. */
const SHARE = { weights: 0.04, evaluation: 0.1, keep: 0.1 };
/** The duration of an evaluation, unless the device is fast enough for all images. */
const EVALUATION_MS = 600;
/** The first step also creates the optimizer's slots; from this step on, all steps have the same kernels. */
const TELL = 3;

export class Trainer {
  readonly #send: Send;
  readonly #keep: () => Promise<void>;
  readonly device: Device;
  readonly run: Run;
  data: Data;
  #going = false;
  #cancelled = false;
  #told = 0;
  readonly #pace = new Pace();
  /** The first step compiles, so its time does not count for the pace. */
  #warm = false;
  #last = startingNow();
  #cost = { weights: 0, evaluation: 0, keep: 0 };
  #count = 500;
  /** The step evaluated last; untrained weights are not evaluated. */
  #evaluated = 0;
  #evaluations = 0;
  #keeps = 0;
  #looks = 0;
  #begun: { start: number; navigation: number } | undefined;

  constructor(device: Device, run: Run, data: Data, send: Send, keep: () => Promise<void>) {
    [this.device, this.run, this.data, this.#send, this.#keep] = [device, run, data, send, keep];
    this.#evaluated = run.seen.evaluation?.step ?? 0;
  }

  /** Makes `train` or `look` end soon. */
  stop(): void {
    this.#going = false;
    this.#cancelled = true;
  }

  /** The first step's time is measured from this moment, and from the page's navigation. */
  expectFirstStep(navigation: number): void {
    if (this.run.step === 0) this.#begun = { start: Date.now(), navigation };
  }

  get #stopsAt(): number {
    return this.run.settings.stop || Infinity;
  }

  get finished(): boolean {
    return this.run.step >= this.#stopsAt;
  }

  /** Trains until `stop`, until the settings' limit, or for `most` steps. */
  async train(most = Infinity): Promise<void> {
    this.#going = true;
    const end = Math.min(this.run.submitted + most, most === Infinity ? this.#stopsAt : Infinity);
    let reading: Promise<void> | undefined;
    this.#pace.restart();
    try {
      while (this.#going && this.run.submitted < end) {
        const steps = Math.min(this.#pace.steps, end - this.run.submitted);
        const next = await this.#submit(steps);
        await reading;
        reading = next.read;
        if (!this.#warm) {
          await reading;
          this.#warm = true;
          this.#last = startingNow();
          this.#pace.restart();
        }
        if (this.#due()) {
          await reading;
          await this.#look();
          this.#pace.restart();
        }
      }
    } finally {
      this.#going = false;
      await reading;
    }
    this.#figures();
  }

  async #submit(steps: number): Promise<{ read: Promise<void> }> {
    const from = this.run.submitted;
    const results: Tensor[] = [];
    for (let i = 0; i < steps; i++) {
      const { loss, accuracy } = this.run.trainStep();
      if (this.#told < TELL) this.#tellKernels();
      results.push(loss, accuracy);
      await giveWay();
    }
    const read = this.#read(from, results);
    // The error is handled where the promise is awaited later; this only avoids a report of an unhandled rejection.
    read.catch(() => {});
    return { read };
  }

  #tellKernels(): void {
    this.#told += 1;
    if (this.#told !== 1 && this.#told !== TELL) return;
    const kernels = kernelsOf(this.device);
    this.run.seen.kernels = kernels;
    this.#send({ kind: 'kernels', kernels });
  }

  async #read(from: number, results: Tensor[]): Promise<void> {
    const read = Tensor.items(results);
    for (const result of results) result.dispose();
    const values = await read;
    const losses = values.filter((_, i) => i % 2 === 0);
    const accuracies = values.filter((_, i) => i % 2 === 1);
    this.record(losses, accuracies);
    if (this.#warm) this.#pace.done(losses.length);
    if (from === 0 && this.#begun) {
      const now = Date.now();
      this.#send({ kind: 'first-step', afterStart: now - this.#begun.start, afterNavigation: now - this.#begun.navigation });
      this.#begun = undefined;
    }
    if (performance.now() - this.#last.figures > EVERY.figures) this.#figures();
  }

  record(losses: Float32Array, accuracies: Float32Array): void {
    const from = this.run.step;
    const ends = this.run.ends.filter((step) => step > from && step <= from + losses.length);
    this.#send({ kind: 'points', from, losses, accuracies, epochs: this.run.epochs, ends });
    this.run.losses.push(losses);
    this.run.accuracies.push(accuracies);
  }

  #before: { step: number; kernels: number; submits: number } | undefined;

  #figures(): void {
    this.#last.figures = performance.now();
    const { liveBytes, peakBytes, kernels, submits } = this.device.stats();
    const { submitted: step, settings } = this.run;
    const before = this.#before;
    const steps = step - (before?.step ?? step);
    this.#before = { step, kernels, submits };
    const ms = this.#pace.msPerStep;
    this.#send({
      kind: 'figures', step: this.run.step, stepMs: ms, imagesPerSecond: ms > 0 ? 1000 * settings.batch / ms : 0, liveBytes, peakBytes,
      kernels: before && steps > 0 ? (kernels - before.kernels) / steps : 0,
      submits: before && steps > 0 ? (submits - before.submits) / steps : 0,
    });
  }

  #dueAt(name: 'weights' | 'evaluation' | 'keep'): number {
    return this.#last[name] + Math.max(EVERY[name], this.#cost[name] / SHARE[name]);
  }

  #due(): boolean {
    const now = performance.now();
    return now > this.#dueAt('weights') || now > this.#dueAt('evaluation') || now > this.#dueAt('keep');
  }

  async #look(): Promise<void> {
    if (performance.now() > this.#dueAt('weights')) await this.#weights();
    if (this.#going && performance.now() > this.#dueAt('evaluation')) await this.#evaluate(this.#count, () => !this.#going);
    if (this.#going && performance.now() > this.#dueAt('keep')) await this.keep();
    // The time of other work in between does not count for a step.
    this.#before = undefined;
  }

  /** Updates what the page shows once training has stopped. Evaluates `all` test images, or as many as are fast. */
  async look(all = false): Promise<void> {
    this.#cancelled = false;
    await this.#weights();
    if (!this.#cancelled) await this.keep();
    if (!this.#cancelled && (all || this.#evaluated !== this.run.step)) {
      await this.#evaluate(all ? this.data.test.length : this.#count, () => this.#cancelled);
      await this.keep();
    }
    this.#before = undefined;
  }

  /** The weights were changed by other means than training: earlier results are invalid. */
  weightsChanged(): void {
    this.#evaluated = -1;
  }

  useData(data: Data): void {
    this.data = data;
    this.run.useImages(data.train);
    if (this.#evaluated > 0) this.#evaluated = -1;
  }

  async #weights(): Promise<void> {
    const begun = performance.now();
    try {
      const layers = await weights(this.run.model, this.run.start);
      this.#send({ kind: 'weights', step: this.run.step, layers });
    } catch {
      // Pictures are not worth ending a training. If the device is lost or full, the next step reports it.
    }
    this.#last.weights = performance.now();
    this.#cost.weights = this.#looks === 0 ? 0 : this.#last.weights - begun;
    this.#looks += 1;
  }

  async #evaluate(wanted: number, cancelled: () => boolean): Promise<void> {
    const begun = performance.now();
    const count = Math.min(wanted, this.data.test.length);
    const step = this.run.step;
    const result = await look.evaluate(this.run.model, this.data.test, count, cancelled);
    if (!result) return;
    const ms = performance.now() - begun;
    // The first of each kind compiles kernels, so its time is no measure for the next.
    this.#cost.evaluation = this.#evaluations === 0 ? 0 : ms;
    this.#evaluations += 1;
    this.#last.evaluation = performance.now();
    this.#evaluated = step;
    this.run.tested(step, result.accuracy);
    const evaluation = { kind: 'evaluation', step, data: this.data.source, ...result } as const;
    this.run.seen.evaluation = evaluation;
    this.#send(evaluation);
    // The number of images only grows: a figure from a changing set of images would jump.
    const quick = 250 * Math.floor(EVALUATION_MS / (ms / count) / 250);
    this.#count = Math.max(this.#count, Math.min(quick, this.data.test.length));
  }

  async keep(): Promise<void> {
    const begun = performance.now();
    await this.#keep();
    this.#last.keep = performance.now();
    this.#cost.keep = this.#keeps === 0 ? 0 : this.#last.keep - begun;
    this.#keeps += 1;
  }
}
