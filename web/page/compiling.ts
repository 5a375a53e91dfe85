// Explains why the first step takes long: the browser compiles every kernel, and drivers do more work when a kernel first runs.

import type { Event } from '../engine/protocol';
import * as format from './format';

/** A faster first step needs no explanation. */
const PATIENCE = 600;

let timer = 0;
let now: (Event & { kind: 'compiling' }) | undefined;

/** Calls `say` every half second with the progress, from the first kernel until `firstStepOver`. */
export function compiling(event: Event & { kind: 'compiling' }, software: boolean, say: (text: string) => void): void {
  now = event;
  if (timer > 0) return;
  const begun = performance.now();
  timer = window.setInterval(() => {
    const { done, total, name } = now!;
    const what = done < total ? `compiling kernel ${done + 1} of ${total}${name ? ` (${name.slice(0, 40).replaceAll('_', ' ')})` : ''}`
      : `${total} kernels are compiled and run for the first time`;
    say(`First step: ${what}${software ? ' on the processor' : ''}; ${format.time(performance.now() - begun)} so far.`);
  }, PATIENCE);
}

export function firstStepOver(): void {
  clearInterval(timer);
  timer = 0;
}
