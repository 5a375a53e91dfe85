// The paper to draw a digit on, and what the network reads. For the keyboard there are test images.

import type { AskName, Asks } from '../engine/protocol';
import { asMnist, path, type Point, type Stroke } from './centre';
import { byId, fill, latest, make } from './dom';
import * as format from './format';
import { drawDigit } from './pictures';
import { colour, onScheme } from './theme';

type Ask = <K extends AskName>(kind: K, input: Asks[K]['in']) => Promise<Asks[K]['out']>;

const pad = byId<HTMLCanvasElement>('pad');
const context = pad.getContext('2d', { willReadFrequently: true })!;
/** As wide as a felt pen on a paper of this size. */
const PEN = pad.width / 14;

let ask: Ask;
let strokes: Stroke[] = [];
/** What is read: a drawing as MNIST would have it, or a test image with its digit. */
let shown: { pixels: Uint8Array; label?: number } | undefined;
let nextTest = 0;

function redraw(): void {
  context.clearRect(0, 0, pad.width, pad.height);
  context.strokeStyle = colour('ink');
  context.lineWidth = PEN;
  context.lineCap = context.lineJoin = 'round';
  for (const stroke of strokes) path(context, stroke);
  if (strokes.length === 0 && shown) {
    const small = document.createElement('canvas');
    small.width = small.height = 28;
    drawDigit(small, shown.pixels);
    context.drawImage(small, 0, 0, pad.width, pad.height);
  }
  const pixels = byId<HTMLCanvasElement>('pad-pixels');
  drawDigit(pixels, shown?.pixels ?? new Uint8Array(784));
  byId('pad-hint').hidden = strokes.length > 0 || shown !== undefined;
}

function showBars(probabilities: Float32Array | undefined): number {
  let best = -1;
  probabilities?.forEach((p, i) => {
    if (best < 0 || p > probabilities[best]!) best = i;
  });
  fill(byId('bars'), 10,
    (i) => make('li', { 'data-digit': String(i) }, make('span', { class: 'digit' }, String(i)), make('span', { class: 'track' }, make('span', { class: 'amount' })), make('span', { class: 'value' })),
    (item, i) => {
      const p = probabilities?.[i];
      item.classList.toggle('best', i === best);
      item.dataset.probability = p === undefined ? '' : String(p);
      item.style.setProperty('--p', String(p ?? 0));
      item.querySelector('.value')!.textContent = p === undefined ? '' : format.percent(p, 0);
    });
  return best;
}

const guess = byId('guess');

function sayGuess(text: string, digit: number, probability: number): void {
  guess.dataset.digit = digit < 0 ? '' : String(digit);
  guess.dataset.probability = digit < 0 ? '' : String(probability);
  // Spoken only when it says something new.
  if (guess.textContent !== text) guess.textContent = text;
}

const read = latest(async () => {
  const now = shown;
  if (!now) return;
  try {
    const { probabilities } = await ask('predict', { pixels: now.pixels });
    if (now !== shown) return;
    const digit = showBars(probabilities);
    const sure = format.percent(probabilities[digit]!, 0);
    const truth = now.label === undefined ? '' : digit === now.label ? ', and it is' : `, but it is ${now.label}`;
    sayGuess(`Reads as ${digit}, ${sure} sure${truth}.`, digit, probabilities[digit]!);
  } catch {
    // While a device is replaced nothing can be read; what follows reads again.
  }
});

/** The model has changed: the same digit may be read in another way. */
export const readAgain = (): void => {
  if (shown) read(undefined);
};

function update(): void {
  const pixels = asMnist(strokes, pad.width);
  shown = pixels && { pixels };
  redraw();
  read(undefined);
}

function clear(): void {
  strokes = [];
  shown = undefined;
  redraw();
  showBars(undefined);
  sayGuess('Draw a digit, or take a test image.', -1, 0);
}

/** Shows an image that the visitor has chosen, and reads it. */
export function readChosen(pixels: Uint8Array, label: number): void {
  touched = true;
  readImage(pixels, label);
}

/** Shows an image of the data and reads it. */
function readImage(pixels: Uint8Array, label: number): void {
  strokes = [];
  shown = { pixels, label };
  redraw();
  read(undefined);
}

function at(event: PointerEvent): Point {
  const box = pad.getBoundingClientRect();
  return { x: (event.clientX - box.left) * pad.width / box.width, y: (event.clientY - box.top) * pad.height / box.height };
}

async function showTest(): Promise<void> {
  const { pixels, labels, of } = await ask('samples', { of: 'test', from: nextTest, count: 1 });
  nextTest = (nextTest + 1) % of;
  readImage(pixels, labels[0]!);
}

/** How long a test image is shown while nobody draws, in milliseconds. */
const SHOWN = 2500;
let watching = 0;
/** A visitor who has drawn or chosen something is not disturbed. */
let touched = false;

/** While the network learns and nobody draws, it reads one test image after the other. */
export function watchTests(on: boolean): void {
  if (on === watching > 0) return;
  clearInterval(watching);
  const next = () => {
    if (!touched && !document.hidden) void showTest().catch(() => {});
  };
  watching = on ? window.setInterval(next, SHOWN) : 0;
  if (on) next();
}

export function setUpDrawing(how: Ask): void {
  ask = how;
  let stroke: Stroke | undefined;
  pad.addEventListener('pointerdown', (event) => {
    if (event.button !== 0 || stroke) return;
    event.preventDefault();
    touched = true;
    pad.setPointerCapture(event.pointerId);
    if (strokes.length === 0) shown = undefined;
    stroke = [at(event)];
    strokes.push(stroke);
    update();
  });
  pad.addEventListener('pointermove', (event) => {
    if (!stroke || !pad.hasPointerCapture(event.pointerId)) return;
    const events = event.getCoalescedEvents?.() ?? [];
    stroke.push(...(events.length > 0 ? events : [event]).map(at));
    update();
  });
  const end = () => { stroke = undefined; };
  pad.addEventListener('pointerup', end);
  pad.addEventListener('pointercancel', end);
  pad.addEventListener('lostpointercapture', end);
  byId('pad-clear').addEventListener('click', () => {
    touched = true;
    clear();
  });
  byId('pad-test').addEventListener('click', async () => {
    touched = true;
    try {
      await showTest();
    } catch {
      sayGuess('There are no test images yet.', -1, 0);
    }
  });
  onScheme(redraw);
  clear();
}
