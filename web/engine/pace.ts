// How many steps to submit at once: about a tenth of a second's worth, so that losses are read at most ten times a second and a
// pause takes effect soon.

const GOAL_MS = 100;
const MOST = 256;

export class Pace {
  #msPerStep = 0;
  #last = 0;

  /** Excludes time that passed for something else. */
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

  /** A power of two, so that the plan that reads this many losses is reused. */
  get steps(): number {
    if (this.#msPerStep === 0) return 1;
    const steps = Math.min(MOST, GOAL_MS / this.#msPerStep);
    return steps < 1 ? 1 : 2 ** Math.floor(Math.log2(steps));
  }
}
