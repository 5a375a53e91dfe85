// The network card: each layer's output for the present digit, the weights during training, and descriptions of both.

import type { Event, LayerWeights, Reading } from '../engine/protocol';
import { byId, make } from './dom';
import { readAgain, watchReadings, type Digit } from './draw';
import { drawLarge, drawRow, gridOf, unitAt, wiped, type Grid } from './network-draw';
import { kernelOf, mapOf, onPixels, rowsOf, settle, signature, sizes, type Picture, type Row } from './network-rows';
import { brief, layerWords, movedText, shapeText, unitWords } from './network-words';
import { onScheme } from './theme';

/** Milliseconds between predictions during training; more on a slow GPU. */
const EVERY = 250;
/** The animation of a digit's way through the network: milliseconds from layer to layer, and within one. */
const FLOW = { layer: 70, within: 160 };
/** Heights: of all layers, their maximum if there is room, the minimum of one layer, and that of the enlarged picture. */
const HEIGHT = { all: 440, most: 600, least: 46, passed: 20, large: 88 };

const HINT = 'Point at any picture, or tap it, to see what it is. On the keyboard: Tab and the arrow keys.';

const card = byId('network');
const list = make('ol', { id: 'network-layers', 'aria-label': 'Layers, first to last' });
const large = make('canvas', { id: 'network-large', 'aria-hidden': 'true' });
const words = make('p', { id: 'network-words' });

/** Shown until the first digit has been predicted. */
const outline = card.querySelector('.outline');
const hint = make('p', { id: 'network-hint' }, HINT);

/** A row with its elements. */
interface Shown {
  row: Row;
  item: HTMLElement;
  canvas: HTMLCanvasElement;
  grid: Grid;
  /** The previous numbers, from which the animation starts. */
  before: Float32Array;
  /** The unit that the keyboard has selected. */
  at: number;
}

let shown: Shown[] = [];
let drawn = '';
let digit: Digit | undefined;
let probabilities: Float32Array = new Float32Array(10);
const weights = new Map<string, LayerWeights>();
let visible = false;
let training = false;
/** The selection of the pointer, or else of the keyboard; without a unit, the whole layer. */
let pointed: { row: Row; unit?: number } | undefined;
let focused: { row: Row; unit?: number } | undefined;
/** The most active unit for this digit, shown while nothing is selected. */
let loudest: { row: Row; unit: number } | undefined;

const still = matchMedia('(prefers-reduced-motion: reduce)');
const isLast = (row: Row) => shown.at(-1)?.row === row;
const nextOf = (row: Row) => shown.find((other) => other.row.from === row && other.row.kind !== 'passed')?.row;

// Animation

let begun = 0;
let frame = 0;

function mixed({ row, before }: Shown, share: number): Float32Array {
  if (share >= 1 || before.length !== row.values.length) return row.values;
  return row.values.map((value, i) => before[i]! + share * (value - before[i]!));
}

/** How far the digit has come within the `at`-th layer. */
const shareAt = (at: number, now: number) => Math.max(0, Math.min(1, (now - begun - at * FLOW.layer) / FLOW.within));

function draw(now = Infinity): void {
  const chosen = pointed ?? focused ?? loudest;
  shown.forEach((one, at) => {
    const { row, canvas, grid } = one;
    if (row.kind === 'passed') return;
    const share = shareAt(at, now);
    drawRow(canvas, row, grid, mixed(one, share), probabilities, chosen?.row === row ? chosen.unit : undefined);
  });
}

function flow(): void {
  cancelAnimationFrame(frame);
  begun = performance.now();
  const end = begun + shown.length * FLOW.layer + FLOW.within;
  shown.forEach(({ item }, at) => {
    // The line between the layers lights up as the digit passes.
    item.querySelector('.light')!.animate({ opacity: [0, 1, 0] }, { duration: 600, delay: at * FLOW.layer, easing: 'ease-out' });
  });
  const turn = (now: number) => {
    frame = now < end ? requestAnimationFrame(turn) : 0;
    draw(now < end ? now : Infinity);
  };
  frame = requestAnimationFrame(turn);
}

// Layout

function layOut(): void {
  const width = Math.floor(list.clientWidth - (list.querySelector<HTMLElement>('.layer-words')?.offsetWidth ?? 0));
  const narrow = getComputedStyle(list).getPropertyValue('--narrow').trim() === '1';
  const room = Math.max(120, narrow ? list.clientWidth - 14 : width - 26);
  const [sized, others] = [shown.filter(({ row }) => ['maps', 'pictures', 'cells'].includes(row.kind)), shown.filter(({ row }) => row.kind === 'passed').length];
  const fixed = 56 + 40 + others * HEIGHT.passed + 10 * shown.length;
  // A card next to a high one has more room.
  const all = narrow ? HEIGHT.all : Math.max(HEIGHT.all, Math.min(HEIGHT.most, list.clientHeight));
  const each = Math.max(HEIGHT.least, Math.min(250, (all - fixed) / Math.max(1, sized.length)));
  for (const one of shown) {
    if (one.row.kind === 'passed') continue;
    one.grid = gridOf(one.row, room, each);
  }
  draw();
}

function build(reading: Reading): void {
  pointed = focused = loudest = undefined;
  const rows = rowsOf(reading, weights);
  outline?.remove();
  list.replaceChildren();
  shown = rows.map((row): Shown => {
    const canvas = make('canvas');
    const name = make('span', { class: 'layer-name' }, row.name);
    const label = make('div', { class: 'layer-words' }, name, make('span', { class: 'layer-shape' }, shapeText(row)), make('span', { class: 'layer-brief' }, brief(row)));
    if (row.kind !== 'passed' && row.kind !== 'input') {
      label.append(make('span', { class: 'moved', hidden: '' }, make('span', { class: 'moved-bar' }), make('span', { class: 'moved-text' })));
    }
    const item = make('li', { class: `layer ${row.kind}`, 'data-layer': row.name, 'data-shape': row.shape.join() }, make('span', { class: 'light', 'aria-hidden': 'true' }), label, ...(row.kind === 'passed' ? [] : [canvas]));
    list.append(item);
    const one: Shown = { row, item, canvas, grid: { columns: 1, size: 1, pitch: 1, width: 1, height: 1 }, before: new Float32Array(row.values.length), at: 0 };
    listen(one, label);
    showMoved(item, row);
    return one;
  });
  shown.forEach(describe);
  layOut();
  tell();
}

/** Describes the picture for screen readers. */
function describe({ row, canvas, at }: Shown): void {
  if (row.kind === 'passed') return;
  const attributes: Record<string, string> = {
    tabindex: '0', role: 'slider', 'aria-label': `${row.name}, ${sizes(row.shape)}: ${row.kind === 'maps' ? 'feature maps' : row.kind === 'answers' ? 'answers' : row.kind === 'input' ? 'the digit' : 'units'}`,
    'aria-valuemin': '1', 'aria-valuemax': String(row.shown), 'aria-valuenow': String(at + 1), 'aria-valuetext': layerWords(row),
  };
  for (const [name, value] of Object.entries(attributes)) canvas.setAttribute(name, value);
}

function listen(one: Shown, label: HTMLElement): void {
  const { row, canvas } = one;
  const point = (to: typeof pointed) => {
    pointed = to;
    redraw();
    tell();
  };
  label.addEventListener('pointerenter', () => point({ row }));
  label.addEventListener('pointerleave', () => point(undefined));
  const unit = (event: PointerEvent) => {
    const box = canvas.getBoundingClientRect();
    return unitAt(row, one.grid, event.clientX - box.left, event.clientY - box.top);
  };
  canvas.addEventListener('pointermove', (event) => {
    const at = unit(event);
    if (pointed?.row !== row || pointed.unit !== at) point(at === undefined ? { row } : { row, unit: at });
  });
  canvas.addEventListener('pointerleave', () => point(undefined));
  const go = (to: number) => {
    one.at = Math.max(0, Math.min(row.shown - 1, to));
    focused = { row, unit: one.at };
    canvas.setAttribute('aria-valuenow', String(one.at + 1));
    canvas.setAttribute('aria-valuetext', unitWords(row, one.at, nextOf(row), probabilities));
    redraw();
    tell();
  };
  canvas.addEventListener('pointerdown', (event) => {
    const at = unit(event);
    if (at !== undefined) one.at = at;
  });
  canvas.addEventListener('click', () => go(one.at));
  canvas.addEventListener('focus', () => go(one.at));
  canvas.addEventListener('blur', () => {
    focused = undefined;
    redraw();
    tell();
  });
  canvas.addEventListener('keydown', (event) => {
    const columns = row.kind === 'answers' ? 1 : one.grid.columns;
    const to = { ArrowLeft: one.at - 1, ArrowRight: one.at + 1, ArrowUp: one.at - columns, ArrowDown: one.at + columns, Home: 0, End: row.shown - 1 }[event.key];
    if (event.key === 'Escape') canvas.blur();
    if (to === undefined) return;
    event.preventDefault();
    if (to >= 0 && to < row.shown) go(to);
  });
}

const redraw = () => {
  if (frame === 0) draw();
};

// Descriptions and enlarged pictures

function picturesOf(row: Row, unit: number): { pictures: Picture[]; ink?: boolean }[] {
  const kernel = kernelOf(row, unit);
  const own = row.kind === 'maps' ? [{ pictures: [mapOf(row, unit)] }] : [];
  if (row.kind === 'input') return [{ pictures: [mapOf(row, 0)], ink: true }];
  const same = row.kind === 'maps' && !row.weights && row.from?.shape.length === 3 && row.from.of === row.of;
  const before = same ? [{ pictures: [mapOf(row.from!, unit)], ink: row.from!.kind === 'input' }] : [];
  // The digit times the weights: the terms of the unit's sum.
  const digits = onPixels(row) && kernel[0] ? [{ pictures: [{ ...kernel[0], values: shown[0]!.row.values.map((ink, i) => ink * kernel[0]!.values[i]!) }] }] : [];
  return [...(kernel.length > 0 ? [{ pictures: kernel }] : before), ...own, ...digits];
}

/** The most active unit or feature map of the first layer with weights. */
function findLoudest(): typeof loudest {
  const row = shown.find(({ row }) => row.weights && row.kind !== 'passed')?.row;
  if (!row || !digit) return undefined;
  let best = 0;
  const sums = new Float64Array(row.shown);
  for (let i = 0; i < row.values.length; i++) if (i % row.of < row.shown) sums[i % row.of]! += row.values[i]!;
  for (let unit = 1; unit < row.shown; unit++) if (sums[unit]! > sums[best]!) best = unit;
  return { row, unit: best };
}

function tell(): void {
  const chosen = pointed ?? focused;
  const told = chosen ?? loudest;
  card.dataset.told = chosen === undefined ? '' : `${chosen.row.name}${chosen.unit === undefined ? '' : ` ${chosen.unit}`}`;
  const pictures = told?.unit === undefined ? [] : picturesOf(told.row, told.unit);
  large.hidden = pictures.length === 0;
  const side = HEIGHT.large;
  const context = wiped(large, Math.max(1, pictures.length * (side + 8) - 8), side);
  pictures.forEach(({ pictures, ink }, at) => drawLarge(context, pictures, at * (side + 8), side, ink ?? false));
  const text = told === undefined ? HINT : told.unit === undefined ? layerWords(told.row) : unitWords(told.row, told.unit, nextOf(told.row), probabilities);
  if (words.textContent !== text) words.textContent = text;
  hint.hidden = chosen !== undefined || told === undefined;
}

// Incoming data

let timer = 0;
let asked = 0;

function show(of: Digit | undefined, reading: Reading): void {
  // Not visible; updated when it becomes visible.
  if (!visible && shown.length > 0) return;
  const now = signature(reading);
  const other = of !== digit;
  digit = of;
  probabilities = reading.probabilities;
  if (now !== drawn) {
    drawn = now;
    build(reading);
  }
  const input = Float32Array.from({ length: 784 }, (_, i) => (of?.pixels[i] ?? 0) / 255);
  shown.forEach((one, at) => {
    if (frame === 0 || other) one.before = one.row.values;
    one.row.values = at === 0 ? input : reading.layers[at - 1]!.values;
  });
  card.dataset.readings = String(Number(card.dataset.readings ?? 0) + 1);
  if (other || loudest === undefined) loudest = findLoudest();
  if (other && !still.matches) flow();
  else redraw();
  tell();
  again();
}

/** During training, while the card is visible, predicts the same digit repeatedly; uses at most a third of the time. */
function again(): void {
  clearTimeout(timer);
  if (!training) return;
  const took = asked === 0 ? 0 : performance.now() - asked;
  asked = 0;
  timer = window.setTimeout(() => {
    if (!visible || document.hidden) return;
    asked = performance.now();
    readAgain();
  }, Math.max(EVERY, 2 * took));
}

function showMoved(item: HTMLElement, { weights: now, newly }: Row): void {
  const moved = item.querySelector<HTMLElement>('.moved');
  if (!moved || !now) return;
  moved.hidden = !Number.isFinite(now.moved);
  moved.dataset.moved = String(now.moved);
  moved.style.setProperty('--moved', String(Math.min(1, now.moved)));
  moved.style.setProperty('--newly', String(Math.min(1, newly)));
  moved.querySelector('.moved-text')!.textContent = `moved ${movedText(now.moved)}`;
}

function showWeights(event: Event & { kind: 'weights' }): void {
  for (const layer of event.layers) weights.set(layer.name, layer);
  let changed = false;
  for (const { row, item } of shown) {
    const now = weights.get(row.name);
    if (!now || row.kind === 'input') continue;
    row.newly = row.weights ? Math.max(0, now.moved - row.weights.moved) : 0;
    row.weights = now;
    const kind = row.kind;
    settle(row, isLast(row));
    changed ||= kind !== row.kind;
    showMoved(item, row);
  }
  card.dataset.step = String(event.step);
  loudest ??= findLoudest();
  if (changed) layOut();
  else redraw();
  tell();
}

export function setUpNetwork(): void {
  card.replaceChildren(...(outline ? [outline] : []), list, make('div', { class: 'network-told' }, large, make('div', {}, words, hint)));
  new IntersectionObserver((entries) => {
    visible = entries.at(-1)!.isIntersecting;
    if (visible) readAgain();
  }).observe(card);
  new ResizeObserver(() => layOut()).observe(list);
  onScheme(() => {
    draw();
    tell();
  });
  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) readAgain();
  });
  watchReadings({ wants: () => visible && !document.hidden, show });
}

export function showNetwork(event: Event): void {
  if (event.kind === 'weights') showWeights(event);
  if (event.kind === 'state') {
    training = event.state === 'training';
    if (training) again();
  }
  if (event.kind === 'model') {
    weights.clear();
    for (const { row } of shown) row.weights = undefined;
    loudest = undefined;
    drawn = '';
    readAgain();
  }
}
