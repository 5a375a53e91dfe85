// What keeps the first step waiting: the browser compiles every kernel, and drivers do more at a kernel's first run.

import type { Event } from '../engine/protocol';
import * as format from './format';

/** A step that is quicker than this tells nothing of it. */
const PATIENCE = 600;

let timer = 0;
let now: (Event & { kind: 'compiling' }) | undefined;

/** Calls `say` every half a second with what is under way, from the first kernel until `firstStepOver`. */
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
