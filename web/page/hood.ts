// Under the hood: the adapter with its limits, and actions on the device.

import type { Adapter, AskName, Asks, TunedOp } from '../engine/protocol';
import { byId, make, say } from './dom';
import * as format from './format';

type Attempt = <K extends AskName>(kind: K, input: Asks[K]['in']) => Promise<Asks[K]['out'] | undefined>;

export function setUpHood(attempt: Attempt): void {
  const button = byId('tune');
  button.addEventListener('click', async () => {
    if (button.hasAttribute('aria-busy')) return;
    button.setAttribute('aria-busy', 'true');
    say('tune-note', 'Measuring, for some seconds each…');
    const tuned = await attempt('tune', {});
    button.removeAttribute('aria-busy');
    if (tuned) showTuned(tuned.ops);
    else say('tune-note', 'Nothing was tuned.');
  });
}

export function showAdapter(adapter: Adapter): void {
  say('adapter', adapter.name || 'An adapter without a name');
  say('adapter-note', `${adapter.name ? '' : 'This browser does not tell what it is called. '}${adapter.software
    ? 'It is software: the processor computes, in the place of a GPU.' : 'What the browser calls the GPU that it lends to this page.'}`);
  byId('limits').replaceChildren(
    ...adapter.limits.map(([name, value]) => make('div', {}, make('dt', {}, name), make('dd', {}, format.count(value)))),
    make('div', {}, make('dt', {}, 'features'), make('dd', {}, adapter.features.join(', ') || 'none')));
}

// Tuning results

/** The page's names of ops; the library uses TensorFlow's names. */
const OPS: Record<string, string> = {
  MatMul: 'Product', Conv2D: 'Convolution', Conv2DBackpropInput: 'Convolution, gradient of its images',
  Conv2DBackpropFilter: 'Convolution, gradient of its filters',
};

interface Described {
  title: string;
  shapes: string;
  rest: string;
}

/** Parses the library's description, such as `MatMul a transposed, f32[50, 784] f32[50, 100]`. */
function described(op: string): Described {
  const shapes = [...op.matchAll(/ [a-z]+\d+(\[[^\]]*\])/g)];
  const words = shapes.length > 0 ? op.slice(0, shapes[0]!.index) : op;
  const name = /^\w+/.exec(words)?.[0] ?? '';
  const rest = words.slice(name.length).replace(/strides \[1, 1\], |, dilations \[1, 1\]/g, '').replace(/,$/, '').trim();
  return { title: OPS[name] ?? name, shapes: shapes.map(([, shape]) => shape).join(' × '), rest };
}

const timeOf = ({ variants }: TunedOp, name: string) => variants.find((variant) => variant.name === name)?.time;
const micros = (time: number | undefined) => (time === undefined ? '–' : format.time(time / 1000));

/** How many times as fast the chosen variant is as the first, which is used without tuning; 1 if it is the same. */
function gain(op: TunedOp): number {
  const [before, after] = [op.variants[0]?.time, timeOf(op, op.chosen)];
  return before && after ? before / after : 1;
}

function tried({ variants, chosen }: TunedOp): HTMLElement {
  const ways = [...variants].sort((a, b) => (a.time ?? Infinity) - (b.time ?? Infinity));
  const slowest = Math.max(...ways.map(({ time = 0 }) => time), 1e-9);
  const list = make('ol', { class: 'ways' }, ...ways.map(({ name, time, wrong }) => {
    const says = wrong ? 'gives another result here, so it is not used' : time === undefined ? 'set aside at once: far slower' : micros(time);
    const item = make('li', name === chosen ? { class: 'best' } : {}, make('span', {}, name), make('span', { class: 'track' },
      make('span', { class: 'amount' })), make('span', { class: 'value' }, says));
    item.style.setProperty('--p', String((time ?? 0) / slowest));
    return item;
  }));
  return make('details', {}, make('summary', {}, `${variants.length} ways`), list);
}

function showTuned(ops: TunedOp[]): void {
  const place = byId('tuned');
  place.hidden = ops.length === 0;
  if (ops.length === 0) {
    say('tune-note', 'There was nothing to measure: every product and convolution that has run is measured already, or nothing has run yet.');
    return;
  }
  const quicker = ops.filter((op) => gain(op) > 1.02);
  const best = Math.max(...ops.map(gain));
  say('tune-note', `${ops.length === 1 ? 'One product or convolution was' : `${ops.length} products and convolutions were`} measured. ${quicker.length === 0
    ? 'What was taken without measuring is the quickest way for each.'
    : `${quicker.length} of them run quicker from now on, the best by ${best.toFixed(2)} times.`}`);
  const heads = ['Computed', 'Chosen', 'Time', 'Without tuning', 'Time', 'Quicker', 'Tried'];
  const number = (text: string) => make('td', { class: 'number' }, text);
  const row = (op: TunedOp) => {
    const { title, shapes, rest } = described(op.op);
    const first = op.variants[0]?.name ?? '';
    return make('tr', {},
      make('th', { scope: 'row' }, title, make('span', { class: 'ops' }, [shapes, rest].filter(Boolean).join(', '))),
      make('td', {}, op.chosen), number(micros(timeOf(op, op.chosen))), make('td', {}, first === op.chosen ? 'the same' : first),
      number(micros(timeOf(op, first))), number(`${gain(op).toFixed(2)} ×`), make('td', {}, tried(op)));
  };
  place.replaceChildren(make('table', {},
    make('thead', {}, make('tr', {}, ...heads.map((head) => make('th', { scope: 'col' }, head)))),
    make('tbody', {}, ...[...ops].sort((a, b) => (timeOf(b, b.chosen) ?? 0) - (timeOf(a, a.chosen) ?? 0)).map(row))));
}
