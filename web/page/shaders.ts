// The kernels of a training step: a table, the WGSL of the selected one, and times if the browser has timestamps.

import type { Adapter, Kernel } from '../engine/protocol';
import { byId, fill, make, say } from './dom';
import * as format from './format';

let kernels: Kernel[] = [];
let chosen = 0;

const WORDS = /(\/\/[^\n]*)|\b(fn|var|let|const|struct|return|if|else|for|switch|case|default|alias|override|enable|break|continue)\b|(@\w+)|\b(vec[234]|mat\dx\d|array|ptr|atomic|[fiu]32|f16|bool)\b|\b(\d[\w.]*)\b/g;
const KINDS = [undefined, 'comment', 'keyword', 'attribute', 'type', 'number'];

/** The text with its tokens in spans for the style sheet. */
function coloured(wgsl: string): (Node | string)[] {
  const parts: (Node | string)[] = [];
  let end = 0;
  for (const match of wgsl.matchAll(WORDS)) {
    const kind = KINDS[match.findIndex((group, i) => i > 0 && group !== undefined)];
    parts.push(wgsl.slice(end, match.index), make('span', { class: `w-${kind}` }, match[0]));
    end = match.index + match[0].length;
  }
  parts.push(wgsl.slice(end));
  return parts;
}

/** Whether the card is visible: a hidden text need not be coloured. */
let seen = false;
let written = { wgsl: '', seen };

function write(): void {
  const wgsl = kernels[chosen]?.wgsl ?? '';
  if (wgsl === written.wgsl && (written.seen || !seen)) return;
  written = { wgsl, seen };
  byId('wgsl').replaceChildren(...(seen ? coloured(wgsl) : [wgsl]));
}

function choose(i: number): void {
  chosen = i;
  const kernel = kernels[i];
  write();
  byId<HTMLButtonElement>('wgsl-copy').disabled = !kernel;
  for (const [at, row] of [...byId<HTMLTableElement>('kernels').tBodies[0]!.rows].entries()) {
    row.classList.toggle('chosen', at === i);
    row.querySelector('button')!.setAttribute('aria-pressed', String(at === i));
  }
}

function row(i: number): HTMLTableRowElement {
  const button = make('button', { type: 'button', class: 'link' });
  button.addEventListener('click', () => {
    choose(i);
    byId('wgsl').parentElement!.scrollTop = 0;
  });
  const cell = () => make('td', { class: 'number' });
  return make('tr', { 'data-index': String(i) }, make('td', {}, String(i + 1)),
    make('td', {}, button, make('span', { class: 'ops' })), make('td', { class: 'result' }), cell(), cell(), cell());
}

export function showKernels(list: Kernel[]): void {
  const same = list.length === kernels.length;
  kernels = list;
  const slowest = Math.max(...list.map(({ time = 0 }) => time), 1e-9);
  fill(byId<HTMLTableElement>('kernels').tBodies[0]!, list.length, row, (row, i) => {
    const { name, ops, result, bytes, flops, time } = list[i]!;
    row.querySelector('button')!.textContent = name;
    const made = row.querySelector<HTMLElement>('.ops')!;
    made.textContent = made.title = ops;
    const texts = [result, format.bytes(bytes), flops === undefined ? '' : format.flops(flops), time === undefined ? '' : format.time(time / 1000)];
    for (const [at, text] of texts.entries()) row.cells[at + 2]!.textContent = text;
    row.cells[5]!.style.setProperty('--share', String((time ?? 0) / slowest));
  });
  choose(same ? Math.min(chosen, list.length - 1) : 0);
  showPlan(list);
  if (list.length > 0) {
    say('shaders-note', 'One training step as the GPU runs it, in this order, forward and backward. What the tape recorded was made into fewer kernels: neighbours in one row are fused. Choose a kernel to read its shader.');
  }
}

/** The step as a whole. */
function showPlan(list: Kernel[]): void {
  byId('plan').hidden = list.length === 0;
  const sum = (of: (kernel: Kernel) => number) => list.reduce((total, kernel) => total + of(kernel), 0);
  say('plan-kernels', String(list.length));
  say('plan-ops', format.count(sum(({ ops }) => ops.split(', ').length)));
  say('plan-bytes', format.bytes(sum(({ bytes }) => bytes)));
  say('plan-flops', `${format.flops(sum(({ flops = 0 }) => flops))}flop`.replace(/(\d)flop/, '$1 flop'));
  const time = sum(({ time = 0 }) => time);
  say('plan-time', time > 0 ? format.time(time / 1000) : 'not measured');
}

export function noKernels(): void {
  kernels = [];
  showPlan([]);
  byId<HTMLTableElement>('kernels').tBodies[0]!.replaceChildren();
  choose(-1);
  say('shaders-note', 'Every kernel of a training step, forward and backward, is generated from the tape. They are listed after the first step.');
}

export function setUpShaders(measure: () => Promise<{ kernels: Kernel[]; total: number } | undefined>): void {
  new IntersectionObserver(([entry]) => {
    seen = entry?.isIntersecting ?? true;
    write();
  }, { rootMargin: '300px' }).observe(byId('kernels').closest('section')!);
  const measureButton = byId<HTMLButtonElement>('measure');
  measureButton.addEventListener('click', async () => {
    measureButton.setAttribute('aria-busy', 'true');
    const measured = await measure();
    measureButton.removeAttribute('aria-busy');
    if (!measured) return;
    showKernels(measured.kernels);
    const timed = measured.kernels.some(({ time }) => time !== undefined && time > 0);
    say('shaders-note', timed
      ? `One step took ${format.time(measured.total / 1000)} in ${measured.kernels.length} kernels on the GPU. Browsers round these times (Chrome to 0.1 ms, unless it was started with --enable-webgpu-developer-features).`
      : 'The browser rounded all times to zero: its clock is too coarse for kernels this quick. Chrome gives finer times when started with --enable-webgpu-developer-features.');
  });
  byId('wgsl-copy').addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(kernels[chosen]?.wgsl ?? '');
      say('wgsl-copy', 'Copied');
    } catch {
      // Not every page may use the clipboard; the visitor can copy selected text.
      getSelection()?.selectAllChildren(byId('wgsl'));
      say('wgsl-copy', 'Selected');
    }
    setTimeout(() => say('wgsl-copy', 'Copy WGSL'), 1500);
  });
}

let timestamps = true;

export function showTimestamps(adapter: Adapter): void {
  timestamps = adapter.timestamps;
}

export function canMeasure(ready: boolean): void {
  const button = byId<HTMLButtonElement>('measure');
  button.disabled = !ready || !timestamps;
  button.title = timestamps ? 'Trains one step with a timestamp around every kernel'
    : 'This browser gives no timestamps on this adapter (WebGPU’s timestamp-query)';
  if (!timestamps) say('measure', 'No timestamps here');
}
