// The drawing area for a digit, and the network's prediction. Keyboard users can choose test images.

import type { AskName, Asks, Reading } from '../engine/protocol';
import { asMnist, path, type Point, type Stroke } from './centre';
import { byId, fill, latest, make } from './dom';
import * as format from './format';
import { drawDigit } from './pictures';
import { colour, onScheme } from './theme';

type Ask = <K extends AskName>(kind: K, input: Asks[K]['in']) => Promise<Asks[K]['out']>;

const pad = byId<HTMLCanvasElement>('pad');
const context = pad.getContext('2d', { willReadFrequently: true })!;
/** The width of a felt pen on paper of this size. */
const PEN = pad.width / 14;

let ask: Ask;
let strokes: Stroke[] = [];
/** A drawing in MNIST's form, or a test image with its label. */
export interface Digit {
  pixels: Uint8Array;
  label?: number;
}

let shown: Digit | undefined;
/** A test image that replaces `shown` once its prediction is there: picture and prediction change together. */
let coming: Digit | undefined;

/** Also receives the layers' outputs for the digit, or for blank paper if `wants` returns true. */
interface Watcher {
  wants(): boolean;
  show(digit: Digit | undefined, reading: Reading): void;
}
let watcher: Watcher | undefined;
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
  // Updated only if it changes, so that it is announced once.
  if (guess.textContent !== text) guess.textContent = text;
}

const wanted = () => coming ?? shown;
let reading = false;

const read = latest(async () => {
  const now = wanted();
  if (!now && !watcher?.wants()) return;
  let told: Reading | undefined;
  reading = true;
  try {
    told = await ask('read', { pixels: now?.pixels ?? new Uint8Array(784) });
  } catch {
    // While a device is being replaced nothing can be predicted; the prediction is repeated afterwards.
  }
  reading = false;
  if (now !== wanted()) return;
  if (now && now === coming) {
    [shown, coming, strokes] = [now, undefined, []];
    redraw();
    if (!told) forgetReading();
  }
  if (!told) return;
  if (now) {
    const { probabilities } = told;
    const digit = showBars(probabilities);
    const sure = format.percent(probabilities[digit]!, 0);
    const truth = now.label === undefined ? '' : digit === now.label ? ', and it is' : `, but it is ${now.label}`;
    sayGuess(`Reads as ${digit}, ${sure} sure${truth}.`, digit, probabilities[digit]!);
  }
  watcher?.show(now, told);
});

/** The model has changed, or more outputs are needed: predicts the same digit again. */
export const readAgain = (): void => {
  if (wanted() || watcher) read(undefined);
};

/** `who` receives each prediction from now on. */
export function watchReadings(who: Watcher): void {
  watcher = who;
  readAgain();
}

function forgetReading(): void {
  showBars(undefined);
  sayGuess('Draw a digit, or take a test image.', -1, 0);
}

function update(): void {
  const pixels = asMnist(strokes, pad.width);
  coming = undefined;
  shown = pixels && { pixels };
  redraw();
  read(undefined);
}

function clear(): void {
  strokes = [];
  shown = coming = undefined;
  redraw();
  forgetReading();
  readAgain();
}

/** Shows an image that the visitor has chosen, and predicts it. */
export function readChosen(pixels: Uint8Array, label: number): void {
  touched = true;
  readImage(pixels, label);
}

/**
 * Predicts an image of the data, then shows it; on blank paper it is shown at once, as no other digit's prediction is there.
 */
function readImage(pixels: Uint8Array, label: number): void {
  if (shown) coming = { pixels, label };
  else {
    shown = { pixels, label };
    redraw();
  }
  read(undefined);
}

function at(event: PointerEvent): Point {
  const box = pad.getBoundingClientRect();
  return { x: (event.clientX - box.left) * pad.width / box.width, y: (event.clientY - box.top) * pad.height / box.height };
}

async function showTest(unless = () => false): Promise<void> {
  const { pixels, labels, of } = await ask('samples', { of: 'test', from: nextTest, count: 1 });
  if (unless()) return;
  nextTest = (nextTest + 1) % of;
  readImage(pixels, labels[0]!);
}

/** How long a test image is shown while the visitor does not draw, in milliseconds. */
const SHOWN = 2500;
let watching = 0;
/** The demonstration stops once a visitor has drawn or chosen something. */
let touched = false;

/** During training, shows predictions of test images one after the other until the visitor draws. */
export function watchTests(on: boolean): void {
  if (on === watching > 0) return;
  clearInterval(watching);
  const next = () => {
    if (!touched && !reading && !document.hidden) void showTest(() => touched).catch(() => {});
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
