// Draws the network's rows on canvases: feature maps, pictures of weights, cells, and the outputs.

import type { Picture, Row } from './network-rows';
import { kernelOf, mapOf, onPixels } from './network-rows';
import { colour, rgb } from './theme';

/** Squares in rows of `columns`, at a distance of `pitch`. */
export interface Grid {
  columns: number;
  size: number;
  pitch: number;
  width: number;
  height: number;
}

/** Height of an output's box. */
const BOX = 34;
/** Gaps between pictures; cells have smaller ones. */
const GAP = { pictures: 3, cells: 1 };

export const contextOf = (canvas: HTMLCanvasElement): CanvasRenderingContext2D => canvas.getContext('2d', { willReadFrequently: true })!;

/** The largest squares of which `count` fit into a rectangle. */
function squares(count: number, width: number, height: number, gap: number, most: number): Grid {
  let best: Grid | undefined;
  for (let columns = 1; columns <= count; columns++) {
    const lines = Math.ceil(count / columns);
    const size = Math.floor(Math.min((width - (columns - 1) * gap) / columns, (height - (lines - 1) * gap) / lines, most));
    if (size >= 1 && (!best || size > best.size)) {
      best = { columns, size, pitch: size + gap, width: columns * (size + gap) - gap, height: lines * (size + gap) - gap };
    }
  }
  return best ?? { columns: width, size: 1, pitch: 1, width, height: Math.ceil(count / width) };
}

/** The layout of a row in `width`, with a height of about `height`. */
export function gridOf(row: Row, width: number, height: number): Grid {
  switch (row.kind) {
    case 'input': return { columns: 1, size: 56, pitch: 56, width: 56, height: 56 };
    case 'answers': {
      const pitch = Math.floor((width + GAP.pictures) / 10);
      const size = pitch - GAP.pictures;
      return { columns: 10, size, pitch, width: 10 * pitch - GAP.pictures, height: BOX + (onPixels(row) ? size + 2 : 0) };
    }
    case 'maps': return squares(row.shown, width, height, row.shape[0]! <= 8 ? 2 : GAP.pictures, Math.max(28, Math.min(3 * row.shape[0]!, 84)));
    case 'pictures': return squares(row.shown, width, height, GAP.pictures, 56);
    default: return squares(row.shown, width, height, row.shown > 256 ? 0 : GAP.cells, 22);
  }
}

/** The unit at a position on the row's canvas. */
export function unitAt(row: Row, { columns, pitch, size }: Grid, x: number, y: number): number | undefined {
  if (row.kind === 'answers') {
    const column = Math.floor(x / pitch);
    return column >= 0 && column < 10 ? column : undefined;
  }
  const [column, line] = [Math.floor(x / pitch), Math.floor(y / pitch)];
  const unit = line * columns + column;
  return x >= 0 && y >= 0 && column < columns && x - column * pitch <= size + 3 && unit < row.shown ? unit : undefined;
}

const scratch = document.createElement('canvas');

/** Green for positive values, orange for negative ones; larger magnitudes are more intense. */
function paint(pictures: Picture[], largest: number | 'each'): void {
  const { width, height } = pictures[0]!;
  scratch.width = width * pictures.length;
  scratch.height = height;
  const image = new ImageData(scratch.width, height);
  const [above, below] = [rgb('accent-rgb'), rgb('second-rgb')];
  pictures.forEach(({ values }, at) => {
    let scale = largest === 'each' ? 1e-12 : largest;
    if (largest === 'each') for (let i = 0; i < width * height; i++) scale = Math.max(scale, Math.abs(values[i]!));
    for (let i = 0; i < width * height; i++) {
      const value = values[i]!;
      const to = 4 * (Math.floor(i / width) * scratch.width + at * width + i % width);
      const [r, g, b] = value > 0 ? above : below;
      image.data[to] = r;
      image.data[to + 1] = g;
      image.data[to + 2] = b;
      image.data[to + 3] = 255 * Math.min(1, Math.abs(value) / scale);
    }
  });
  contextOf(scratch).putImageData(image, 0, 0);
}

function place(context: CanvasRenderingContext2D, picture: Picture, at: number, x: number, y: number, width: number, height: number): void {
  // If enlarged, each number is a square; if reduced, numbers are averaged.
  context.imageSmoothingEnabled = picture.width > width * devicePixelRatio;
  context.imageSmoothingQuality = 'high';
  context.drawImage(scratch, at * picture.width, 0, picture.width, picture.height, x, y, width, height);
}

export function largestOf(values: ArrayLike<number>): number {
  let largest = 1e-12;
  for (let i = 0; i < values.length; i++) {
    const size = Math.abs(values[i]!);
    if (size > largest) largest = size;
  }
  return largest;
}

/** Sets the canvas's size in screen pixels and clears it. */
export function wiped(canvas: HTMLCanvasElement, width: number, height: number): CanvasRenderingContext2D {
  const ratio = devicePixelRatio;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    canvas.width = wide;
    canvas.height = high;
    canvas.style.setProperty('width', `${width}px`);
    canvas.style.setProperty('height', `${height}px`);
  }
  const context = contextOf(canvas);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

/** The pictures of a row of `pictures`, which change only with the weights. */
const atlases = new WeakMap<Float32Array, { scheme: string; canvas: HTMLCanvasElement }>();

function weightsAtlas(row: Row): HTMLCanvasElement {
  const { values } = row.weights!;
  const scheme = `${colour('accent-rgb')} ${colour('second-rgb')}`;
  const known = atlases.get(values);
  if (known?.scheme === scheme) return known.canvas;
  paint(Array.from({ length: row.shown }, (_, unit) => kernelOf(row, unit)[0]!), 'each');
  const canvas = document.createElement('canvas');
  canvas.width = scratch.width;
  canvas.height = scratch.height;
  contextOf(canvas).drawImage(scratch, 0, 0);
  atlases.set(values, { scheme, canvas });
  return canvas;
}

function drawWeights(context: CanvasRenderingContext2D, row: Row, { columns, pitch, size }: Grid, opacity: (unit: number) => number): void {
  // A new run has not sent weights yet.
  if (!row.weights) return;
  const atlas = weightsAtlas(row);
  context.imageSmoothingEnabled = size * devicePixelRatio < 28;
  context.imageSmoothingQuality = 'high';
  for (let unit = 0; unit < row.shown; unit++) {
    context.globalAlpha = opacity(unit);
    context.drawImage(atlas, 28 * unit, 0, 28, 28, (unit % columns) * pitch, Math.floor(unit / columns) * pitch, size, size);
  }
  context.globalAlpha = 1;
}

/** Draws a row with `values` as its numbers, which may be between those of two digits during an animation. */
export function drawRow(canvas: HTMLCanvasElement, row: Row, grid: Grid, values: Float32Array, probabilities: Float32Array, chosen: number | undefined): void {
  const { columns, pitch, size, width, height } = grid;
  const context = wiped(canvas, width, height);
  const left = (unit: number) => (unit % columns) * pitch;
  const top = (unit: number) => Math.floor(unit / columns) * pitch;
  const scale = largestOf(values);
  let box: [x: number, y: number, width: number, height: number] | undefined;
  if (row.kind === 'input' || row.kind === 'maps') {
    const pictures = Array.from({ length: row.shown }, (_, channel) => mapOf({ ...row, values }, channel));
    paint(pictures, row.kind === 'input' ? 1 : scale);
    if (row.kind === 'input') {
      // Ink keeps the ink's colour.
      const inked = contextOf(scratch);
      inked.globalCompositeOperation = 'source-in';
      inked.fillStyle = colour('ink');
      inked.fillRect(0, 0, scratch.width, scratch.height);
    }
    const filters = row.weights?.shape.length === 4 && row.weights.shape[2] === 1 && size >= 24;
    const ratio = row.shape[0]! / row.shape[1]!;
    pictures.forEach((picture, unit) => {
      context.fillStyle = colour('well');
      context.fillRect(left(unit), top(unit), size, size * Math.min(1, ratio));
      place(context, picture, unit, left(unit), top(unit), size, size * Math.min(1, ratio));
    });
    if (filters) drawFilters(context, row, grid);
  } else if (row.kind === 'pictures') {
    // An inactive unit is faded; the bar below shows the activation of the others.
    drawWeights(context, row, grid, (unit) => 0.28 + 0.72 * Math.min(1, Math.abs(values[unit]!) / scale));
    for (let unit = 0; unit < row.shown; unit++) {
      const share = values[unit]! / scale;
      context.fillStyle = colour(share < 0 ? 'second' : 'accent');
      context.fillRect(left(unit), top(unit) + size, size * Math.abs(share), 2);
    }
  } else if (row.kind === 'cells') {
    const [above, below] = [rgb('accent-rgb').join(' '), rgb('second-rgb').join(' ')];
    for (let unit = 0; unit < row.shown; unit++) {
      context.fillStyle = colour('well');
      context.fillRect(left(unit), top(unit), size, size);
      const share = values[unit]! / scale;
      context.fillStyle = `rgb(${share > 0 ? above : below} / ${Math.min(1, Math.abs(share))})`;
      context.fillRect(left(unit), top(unit), size, size);
    }
  } else {
    const begin = onPixels(row) ? size + 2 : 0;
    if (begin > 0) drawWeights(context, row, grid, () => 1);
    context.font = `600 14px ${getComputedStyle(document.body).fontFamily}`;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    for (let digit = 0; digit < 10; digit++) {
      const p = probabilities[digit] ?? 0;
      context.fillStyle = colour('well');
      context.fillRect(left(digit), begin, size, BOX);
      context.fillStyle = colour('accent');
      context.fillRect(left(digit), begin + BOX * (1 - p), size, BOX * p);
      context.fillStyle = colour(p > 0.5 ? 'accent-ink' : 'ink');
      context.fillText(String(digit), left(digit) + size / 2, begin + BOX / 2 + 0.5);
    }
    if (chosen !== undefined) box = [left(chosen), 0, size, height];
  }
  if (chosen === undefined) return;
  box ??= [left(chosen), top(chosen), size, size];
  context.strokeStyle = colour('ink');
  context.lineWidth = 1.5;
  context.strokeRect(box[0] + 0.75, box[1] + 0.75, box[2] - 1.5, box[3] - 1.5);
}

/** The first filters, each in the corner of its feature map. */
function drawFilters(context: CanvasRenderingContext2D, row: Row, { columns, pitch, size }: Grid): void {
  const pictures = Array.from({ length: row.shown }, (_, unit) => kernelOf(row, unit)[0]!);
  if (!pictures[0]) return;
  paint(pictures, 'each');
  const side = Math.max(8, Math.round(size / 3));
  pictures.forEach((picture, unit) => {
    const [x, y] = [(unit % columns) * pitch + size - side, Math.floor(unit / columns) * pitch + size - side];
    context.fillStyle = colour('card');
    context.fillRect(x - 1, y - 1, side + 1, side + 1);
    place(context, picture, unit, x, y, side, side);
  });
}

/** One or many pictures in a square of `side`. */
export function drawLarge(context: CanvasRenderingContext2D, pictures: Picture[], x: number, side: number, ink: boolean): void {
  const { columns, size, pitch } = squares(pictures.length, side, side, pictures.length > 1 ? 2 : 0, side);
  paint(pictures, ink ? 1 : Math.max(...pictures.map(({ values }) => largestOf(values))));
  if (ink) {
    const inked = contextOf(scratch);
    inked.globalCompositeOperation = 'source-in';
    inked.fillStyle = colour('ink');
    inked.fillRect(0, 0, scratch.width, scratch.height);
  }
  pictures.forEach((picture, at) => {
    const [left, top] = [x + (at % columns) * pitch, Math.floor(at / columns) * pitch];
    context.fillStyle = colour('well');
    context.fillRect(left, top, size, size);
    const shape = Math.min(size / picture.width, size / picture.height);
    const [wide, high] = [picture.width * shape, picture.height * shape];
    place(context, picture, at, left + (size - wide) / 2, top + (size - high) / 2, wide, high);
  });
}
