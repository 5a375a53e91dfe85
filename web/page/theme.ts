// The colours of the style sheet, for drawing on canvases; they follow the visitor's colour scheme.

const NAMES = ['ink', 'muted', 'line', 'accent', 'accent-soft', 'second', 'ghost', 'warn', 'card', 'well', 'accent-ink', 'ink-rgb', 'accent-rgb', 'second-rgb'] as const;
type Name = (typeof NAMES)[number];

let colours: Record<Name, string>;

function read(): void {
  const style = getComputedStyle(document.documentElement);
  colours = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()])) as Record<Name, string>;
}

export function colour(name: Name): string {
  if (!colours) read();
  return colours[name];
}

/** The three numbers of a colour whose variable ends in `-rgb`. */
export function rgb(name: 'ink-rgb' | 'accent-rgb' | 'second-rgb'): [number, number, number] {
  const [r = 0, g = 0, b = 0] = colour(name).split(/[ ,]+/).map(Number);
  return [r, g, b];
}

export function onScheme(redraw: () => void): void {
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    read();
    redraw();
  });
}
