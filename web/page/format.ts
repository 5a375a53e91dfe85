// Numbers formatted for readers.

const few = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

export const count = (n: number) => whole.format(n);
export const loss = (n: number) => (Number.isFinite(n) ? n.toFixed(4) : 'not finite');
export const percent = (share: number, digits = 1) => `${(100 * share).toFixed(digits)} %`;

function scaled(n: number, units: readonly string[], step: number): string {
  let at = 0;
  while (n >= step && at < units.length - 1) {
    n /= step;
    at += 1;
  }
  return `${few.format(n)} ${units[at]}`;
}

export const bytes = (n: number) => scaled(n, ['B', 'kB', 'MB', 'GB'], 1000);
export const flops = (n: number) => scaled(n, ['', 'k', 'M', 'G'], 1000).trim();
export const time = (ms: number) => (ms < 1 ? `${few.format(1000 * ms)} µs` : ms < 1000 ? `${few.format(ms)} ms` : `${few.format(ms / 1000)} s`);
export const rate = (n: number) => (n >= 100 ? whole.format(n) : few.format(n));
/** Epochs: with tenths below ten. */
export const epochs = (n: number) => (n < 10 ? n.toFixed(1) : whole.format(Math.floor(n)));
