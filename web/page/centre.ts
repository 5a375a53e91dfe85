// Converts a drawn digit to MNIST's form: scaled into a box of 20 by 20 pixels with its proportions kept, and placed on 28 by
// 28 pixels with its centre of mass in the middle. The strokes themselves are scaled and drawn again, which is sharper than
// shrinking a picture of them.

export interface Point {
  x: number;
  y: number;
}
export type Stroke = Point[];

const SIDE = 28;
const BOX = 20;
/** Each pixel is the mean of this many by this many. */
const FINE = 4;
/** The approximate width of MNIST's pens, in its pixels. */
const PEN = 2.3;
/** The largest scale, so that a dot does not become a disc. */
const LARGEST = 1 / 3;

const canvas = document.createElement('canvas');
canvas.width = canvas.height = SIDE * FINE;
const context = canvas.getContext('2d', { willReadFrequently: true })!;

export function path(context: CanvasRenderingContext2D, stroke: Stroke): void {
  context.beginPath();
  const [first, ...rest] = stroke;
  if (!first) return;
  context.moveTo(first.x, first.y);
  for (const [i, point] of rest.entries()) {
    const next = rest[i + 1];
    // Curves through the midpoints between samples: a hand moves more smoothly than its samples.
    if (next) context.quadraticCurveTo(point.x, point.y, (point.x + next.x) / 2, (point.y + next.y) / 2);
    else context.lineTo(point.x, point.y);
  }
  if (rest.length === 0) context.lineTo(first.x, first.y + 0.01);
  context.stroke();
}

function render(strokes: Stroke[], scale: number, left: number, top: number): Uint8Array {
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, canvas.width, canvas.height);
  context.setTransform(FINE * scale, 0, 0, FINE * scale, FINE * left, FINE * top);
  context.lineCap = context.lineJoin = 'round';
  context.lineWidth = PEN / scale;
  for (const stroke of strokes) path(context, stroke);
  const fine = context.getImageData(0, 0, canvas.width, canvas.height).data;
  const pixels = new Uint8Array(SIDE * SIDE);
  for (let y = 0; y < SIDE; y++) {
    for (let x = 0; x < SIDE; x++) {
      let sum = 0;
      for (let j = 0; j < FINE; j++) {
        for (let i = 0; i < FINE; i++) sum += fine[4 * ((y * FINE + j) * canvas.width + x * FINE + i) + 3]!;
      }
      pixels[y * SIDE + x] = Math.round(sum / (FINE * FINE));
    }
  }
  return pixels;
}

function centreOfMass(pixels: Uint8Array): Point {
  let [mass, x, y] = [0, 0, 0];
  for (const [i, ink] of pixels.entries()) {
    mass += ink;
    x += ink * ((i % SIDE) + 0.5);
    y += ink * (Math.floor(i / SIDE) + 0.5);
  }
  return mass > 0 ? { x: x / mass, y: y / mass } : { x: SIDE / 2, y: SIDE / 2 };
}

/** 784 pixels, 255 for ink; undefined if there is no ink. `paper` is the width of the drawing area. */
export function asMnist(strokes: Stroke[], paper: number): Uint8Array | undefined {
  const points = strokes.flat();
  if (points.length === 0) return undefined;
  let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
  for (const { x, y } of points) {
    left = Math.min(left, x);
    top = Math.min(top, y);
    right = Math.max(right, x);
    bottom = Math.max(bottom, y);
  }
  // The pen's width is part of the digit.
  const scale = Math.min((BOX - PEN) / Math.max(right - left, bottom - top, 1), (BOX / paper) / LARGEST);
  const x = SIDE / 2 - scale * (left + right) / 2;
  const y = SIDE / 2 - scale * (top + bottom) / 2;
  const centre = centreOfMass(render(strokes, scale, x, y));
  return render(strokes, scale, x + SIDE / 2 - centre.x, y + SIDE / 2 - centre.y);
}
