// Draws digits in the page's colours.

import { make } from './dom';
import { onScheme, rgb } from './theme';

function paint(image: ImageData, at: number, [r, g, b]: readonly [number, number, number], opacity: number): void {
  image.data[4 * at] = r;
  image.data[4 * at + 1] = g;
  image.data[4 * at + 2] = b;
  image.data[4 * at + 3] = opacity;
}

/** Ink on paper: darker pixels hide more of the background. */
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

/** A button with a picture of a digit and a caption. */
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
