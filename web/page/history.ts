// The numbers of the run so far, for the curves and the figures.

import type { Event } from '../engine/protocol';

let losses = new Float32Array(1024);
let accuracies = new Float32Array(1024);
let length = 0;
let tests: [step: number, accuracy: number][] = [];
/** The steps at which epochs ended. */
let ends: number[] = [];

/** The previous run, for comparison; undefined if there was none of sufficient length. */
let before: { losses: Float32Array; accuracies: Float32Array } | undefined;
/** Shorter runs are not worth comparing. */
const WORTH = 20;

function push(from: number, newLosses: Float32Array, newAccuracies: Float32Array): void {
  length = from + newLosses.length;
  if (length > losses.length) {
    const [a, b] = [losses, accuracies];
    losses = new Float32Array(2 * length);
    accuracies = new Float32Array(2 * length);
    losses.set(a);
    accuracies.set(b);
  }
  losses.set(newLosses, from);
  accuracies.set(newAccuracies, from);
}

const goesOn = (next: Float32Array) => next.length >= WORTH && next.every((loss, i) => i >= length || Object.is(loss, losses[i]));

/** Adds the data of an event; returns whether the curves have changed. */
export function note(event: Event): boolean {
  switch (event.kind) {
    case 'curves':
      // The engine of a replaced device reports the same run.
      if (length >= WORTH && !goesOn(event.losses)) before = { losses: losses.slice(0, length), accuracies: accuracies.slice(0, length) };
      length = 0;
      push(0, event.losses, event.accuracies);
      tests = [...event.tests];
      ends = [...event.ends];
      return true;
    case 'points':
      push(event.from, event.losses, event.accuracies);
      ends.push(...event.ends);
      return true;
    case 'evaluation':
      // A point that was measured again replaces the old one.
      tests = [...tests.filter(([step]) => step !== event.step), [event.step, event.accuracy]];
      return true;
    default:
      return false;
  }
}

/** Losses and accuracies of all steps, the accuracies on test images, the ends of epochs, and the previous run. Do not modify. */
export const soFar = () => ({ losses: losses.subarray(0, length), accuracies: accuracies.subarray(0, length), tests, ends, before });

/** The mean of the last steps, as single batches vary; undefined before the first. */
export function recent(): { loss: number; accuracy: number } | undefined {
  if (length === 0) return undefined;
  const from = Math.max(0, length - 20);
  const mean = (values: Float32Array) => values.subarray(from, length).reduce((sum, value) => sum + value, 0) / (length - from);
  return { loss: mean(losses), accuracy: mean(accuracies) };
}

export function lossOf(step: number): number {
  return losses[step - 1]!;
}
