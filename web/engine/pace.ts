// How many steps to hand over at once: about a tenth of a second's, so that losses are read ten times a second at most and a
// pause takes hold soon.

const GOAL_MS = 100;
const MOST = 256;

export class Pace {
  #msPerStep = 0;
  #last = 0;

  /** Time that passed for something else is not counted. */
  restart(): void {
    this.#last = performance.now();
  }

  done(steps: number): void {
    const now = performance.now();
    const ms = (now - this.#last) / steps;
    this.#last = now;
    this.#msPerStep = this.#msPerStep === 0 ? ms : 0.7 * this.#msPerStep + 0.3 * ms;
  }

  get msPerStep(): number {
    return this.#msPerStep;
  }

  /** A power of two: as many as that are read by a plan that is known already. */
  get steps(): number {
    if (this.#msPerStep === 0) return 1;
    const steps = Math.min(MOST, GOAL_MS / this.#msPerStep);
    return steps < 1 ? 1 : 2 ** Math.floor(Math.log2(steps));
  }
}
