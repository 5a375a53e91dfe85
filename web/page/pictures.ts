// Digits and filters as pictures in the page's own colours.

import { make } from './dom';
import { onScheme, rgb } from './theme';

function paint(image: ImageData, at: number, [r, g, b]: readonly [number, number, number], opacity: number): void {
  image.data[4 * at] = r;
  image.data[4 * at + 1] = g;
  image.data[4 * at + 2] = b;
  image.data[4 * at + 3] = opacity;
}

/** Ink on paper: the darker a pixel, the more it hides of what lies under it. */
export function drawDigit(canvas: HTMLCanvasElement, pixels: Uint8Array): void {
  const context = canvas.getContext('2d', { willReadFrequently: true })!;
  const image = context.createImageData(28, 28);
  const ink = rgb('ink-rgb');
  for (let i = 0; i < 784; i++) paint(image, i, ink, pixels[i]!);
  context.putImageData(image, 0, 0);
}

const shown = new Map<HTMLCanvasElement, Uint8Array>();
onScheme(() => {
  for (const [canvas, pixels] of shown) {
    if (canvas.isConnected) drawDigit(canvas, pixels);
    else shown.delete(canvas);
  }
});

/** A button with a digit on it and words below. */
export function thumbnail(onClick: () => void): HTMLButtonElement {
  const element = make('button', { type: 'button', class: 'thumb' }, make('canvas', { width: '28', height: '28', 'aria-hidden': 'true' }), make('span', { 'aria-hidden': 'true' }));
  element.addEventListener('click', onClick);
  return element;
}

export function showThumbnail(element: HTMLButtonElement, pixels: Uint8Array, words: string, label: string): void {
  const canvas = element.querySelector('canvas')!;
  shown.set(canvas, pixels);
  drawDigit(canvas, pixels);
  element.querySelector('span')!.textContent = words;
  element.setAttribute('aria-label', label);
}

/** Weights: one colour for those above zero, another for those below, nothing for zero. In a grid with gaps of one cell. */
export function drawFilters(canvas: HTMLCanvasElement, count: number, side: number, columns: number, values: Uint8ClampedArray): void {
  const rows = Math.ceil(count / columns);
  const gap = Math.max(1, Math.round(side / 8));
  canvas.width = columns * (side + gap) - gap;
  canvas.height = rows * (side + gap) - gap;
  const context = canvas.getContext('2d', { willReadFrequently: true })!;
  const image = context.createImageData(canvas.width, canvas.height);
  const [above, below] = [rgb('accent-rgb'), rgb('second-rgb')];
  for (let f = 0; f < count; f++) {
    const left = (f % columns) * (side + gap);
    const top = Math.floor(f / columns) * (side + gap);
    for (let i = 0; i < side * side; i++) {
      const value = values[f * side * side + i]! - 128;
      const at = (top + Math.floor(i / side)) * canvas.width + left + (i % side);
      paint(image, at, value > 0 ? above : below, 2 * Math.abs(value));
    }
  }
  context.putImageData(image, 0, 0);
}
