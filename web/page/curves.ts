// Loss and accuracy per step, as charts, as a table and as a file.

import uPlot from 'uplot';
import { byId, fill, make } from './dom';
import { download } from './files';
import * as format from './format';
import { recent, soFar } from './history';
import { colour, onScheme } from './theme';

/** A screen cannot show more points than this: longer runs are drawn as means of several steps. */
const POINTS = 400;
/** Milliseconds between drawings. */
const EVERY = 200;
/** The smoothing factor of the smooth line, per step. */
const SMOOTH = 0.92;
const ROWS = 100;

type Column = (number | null)[];

/** Means over equal intervals, and the smooth line at the end of each. */
function stretches(values: Float32Array): { x: number[]; means: Column; smooth: Column } {
  const { length } = values;
  const size = Math.max(1, Math.ceil(length / POINTS));
  const [x, means, smooth]: [number[], Column, Column] = [[], [], []];
  let mean = 0;
  let weight = 0;
  for (let from = 0; from < length; from += size) {
    const end = Math.min(from + size, length);
    let sum = 0;
    for (let i = from; i < end; i++) {
      const value = values[i]!;
      sum += value;
      if (Number.isFinite(value)) {
        mean = SMOOTH * mean + (1 - SMOOTH) * value;
        weight = SMOOTH * weight + (1 - SMOOTH);
      }
    }
    const average = sum / (end - from);
    x.push(end);
    means.push(Number.isFinite(average) ? average : null);
    smooth.push(weight > 0 ? mean / weight : null);
  }
  return { x, means, smooth };
}

const font = () => `11px ${getComputedStyle(document.body).fontFamily}`;
const axis = (label: string, values: (n: number) => string, size: number): uPlot.Axis => ({
  stroke: () => colour('muted'), font: font(), labelFont: font(), label, labelSize: 15, labelGap: 0, size, gap: 4,
  grid: { stroke: () => colour('line'), width: 1 }, ticks: { show: false },
  values: (_, splits) => splits.map((n) => (n === null ? '' : values(n))),
});

/**
 * Canvases made by `work` are drawn by the processor. The GPU is busy computing, and a page that also draws with it would
 * freeze until there is a gap.
 */
function onOrdinaryCanvas<T>(work: () => T): T {
  const { getContext } = HTMLCanvasElement.prototype;
  HTMLCanvasElement.prototype.getContext = function ordinary(this: HTMLCanvasElement) {
    return (getContext as (kind: '2d', options: object) => unknown).call(this, '2d', { willReadFrequently: true });
  } as typeof getContext;
  try {
    return work();
  } finally {
    HTMLCanvasElement.prototype.getContext = getContext;
  }
}

/** Pixels between the marks of two epochs. */
const APART = 36;

/** Marks the ends of epochs, as many as there is room for. */
function marks(plot: uPlot): void {
  const { ctx, bbox: { left, top, height } } = plot;
  const ratio = uPlot.pxRatio;
  ctx.save();
  ctx.font = `${10 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
  ctx.fillStyle = ctx.strokeStyle = colour('muted');
  ctx.lineWidth = ratio;
  ctx.setLineDash([2 * ratio, 4 * ratio]);
  ctx.textAlign = 'right';
  let last = left;
  for (const [i, step] of soFar().ends.entries()) {
    const x = Math.round(plot.valToPos(step, 'x', true));
    const word = last === left ? `epoch ${i + 1}` : String(i + 1);
    if (x - last < (last === left ? 20 + APART : APART) * ratio) continue;
    last = x;
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.stroke();
    // Above the plot: inside it, the text would cover a high curve.
    ctx.fillText(word, x, top - 4 * ratio);
  }
  ctx.restore();
}

function chart(id: string, name: string, y: uPlot.Scale, values: (n: number) => string, series: uPlot.Series[]): uPlot {
  const parent = byId(id);
  const options: uPlot.Options = {
    width: Math.max(120, parent.clientWidth), height: Math.max(120, parent.clientHeight),
    scales: { x: { time: false, range: (_, __, max) => [0, Math.max(20, max || 0)] }, y },
    axes: [axis('Step', (n) => (Number.isInteger(n) ? format.count(n) : ''), 24), axis(name, values, 44)],
    legend: { show: false }, cursor: { drag: { x: false, y: false }, y: false, points: { size: 6 } },
    // The last label of the steps extends to the right of its mark.
    padding: [16, 24, 0, 0], hooks: { draw: [marks] }, series: [{}, ...series],
  };
  const plot = onOrdinaryCanvas(() => new uPlot(options, [[], ...series.map(() => [])] as uPlot.AlignedData, parent));
  new ResizeObserver(() => {
    const [width, height] = [parent.clientWidth, parent.clientHeight];
    if (width > 0 && (width !== plot.width || height !== plot.height)) plot.setSize({ width, height });
  }).observe(parent);
  return plot;
}

const thin = (): uPlot.Series => ({ stroke: () => colour('accent-soft'), width: 1, points: { show: false } });
const thick = (): uPlot.Series => ({ stroke: () => colour('accent'), width: 2, points: { show: false }, spanGaps: true });
const dots = (): uPlot.Series => ({
  stroke: () => colour('second'), width: 2, spanGaps: true,
  points: { show: true, size: 6, stroke: () => colour('second'), fill: () => colour('card') },
});

function lines(values: Float32Array): uPlot.AlignedData {
  const { x, means, smooth } = stretches(values);
  return [x, means, smooth] as uPlot.AlignedData;
}

/** The previous run: its smooth line only. */
function ghost(values: Float32Array = new Float32Array(0)): uPlot.AlignedData {
  const { x, smooth } = stretches(values);
  return [x, smooth] as uPlot.AlignedData;
}

const grey = (): uPlot.Series => ({ stroke: () => colour('ghost'), width: 1.5, points: { show: false }, spanGaps: true });

let lossChart: uPlot;
let accuracyChart: uPlot;
let drawn = 0;
let planned = 0;

function draw(): void {
  planned = 0;
  drawn = performance.now();
  const { losses, accuracies, tests, before } = soFar();
  lossChart.setData(uPlot.join([ghost(before?.losses), lines(losses)]));
  const test = [tests.map(([step]) => step), tests.map(([, share]) => share)] as uPlot.AlignedData;
  accuracyChart.setData(uPlot.join([ghost(before?.accuracies), lines(accuracies), test]));
  byId('curves-before').hidden = !before;
  const mean = recent();
  const at = mean ? `: ${format.loss(mean.loss)} after ${format.count(losses.length)} steps` : '';
  byId('loss-chart').setAttribute('aria-label', `Loss by step${at}`);
  byId('accuracy-chart').setAttribute('aria-label', `Accuracy by step${mean ? `: ${format.percent(mean.accuracy)} after ${format.count(losses.length)} steps` : ''}`);
  if (byId<HTMLDetailsElement>('curve-numbers').open) table();
}

/** Schedules a redraw of the curves. */
export function drawCurves(): void {
  planned ||= window.setTimeout(() => requestAnimationFrame(draw), Math.max(0, EVERY - (performance.now() - drawn)));
}

/** The newest steps first. */
function table(): void {
  const body = byId('curve-table').querySelector('tbody')!;
  const { losses, accuracies } = soFar();
  const { length } = losses;
  fill(body, Math.min(ROWS, length), () => make('tr', {}, make('td'), make('td'), make('td')), (row, i) => {
    const at = length - 1 - i;
    const texts = [format.count(at + 1), format.loss(losses[at]!), format.percent(accuracies[at]!)];
    for (const [cell, text] of texts.entries()) row.cells[cell]!.textContent = text;
  });
}

function csv(): string {
  const { losses, accuracies } = soFar();
  const rows = Array.from(losses, (_, i) => `${i + 1},${losses[i]},${accuracies[i]}`);
  return `step,loss,accuracy\n${rows.join('\n')}\n`;
}

export function setUpCurves(): void {
  lossChart = chart('loss-chart', 'Loss', { range: (_, __, max) => [0, max > 0 ? max * 1.05 : 2.5] }, (n) => `${n}`, [grey(), thin(), thick()]);
  accuracyChart = chart('accuracy-chart', 'Accuracy', { range: [0, 1] }, (n) => `${Math.round(100 * n)} %`, [grey(), thin(), thick(), dots()]);
  onScheme(() => {
    lossChart.redraw();
    accuracyChart.redraw();
  });
  byId('curve-csv').addEventListener('click', () => download('wgrad-curves.csv', csv(), 'text/csv'));
  byId('curve-numbers').addEventListener('toggle', table);
}
