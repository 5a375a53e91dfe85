// The run so far, as numbers: what the curves draw and the figures tell.

import type { Event } from '../engine/protocol';

let losses = new Float32Array(1024);
let accuracies = new Float32Array(1024);
let length = 0;
let tests: [step: number, accuracy: number][] = [];
/** The step at which each epoch was over. */
let ends: number[] = [];

/** The run before this one, to compare with; undefined if there was none worth it. */
let before: { losses: Float32Array; accuracies: Float32Array } | undefined;
/** A run of fewer steps shows nothing. */
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

/** Takes in what an event tells of the run; true if the curves have changed. */
export function note(event: Event): boolean {
  switch (event.kind) {
    case 'curves':
      // What a device's successor tells is the same run.
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

/** Losses and accuracies of all steps, the accuracies on test images, the epochs' ends, and the run before. Only to be looked at. */
export const soFar = () => ({ losses: losses.subarray(0, length), accuracies: accuracies.subarray(0, length), tests, ends, before });

/** The mean of the last steps, for one batch alone jumps; undefined before the first. */
export function recent(): { loss: number; accuracy: number } | undefined {
  if (length === 0) return undefined;
  const from = Math.max(0, length - 20);
  const mean = (values: Float32Array) => values.subarray(from, length).reduce((sum, value) => sum + value, 0) / (length - from);
  return { loss: mean(losses), accuracy: mean(accuracies) };
}

export function lossOf(step: number): number {
  return losses[step - 1]!;
}
