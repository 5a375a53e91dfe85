// Describes the network's parts in sentences.

import * as format from './format';
import { kernelOf, onPixels, sizes, type Row } from './network-rows';

const few = new Intl.NumberFormat('en', { maximumSignificantDigits: 2 });
const number = (n: number) => (Number.isFinite(n) ? few.format(n) : 'not a finite number').replace('-', '−');

export function shapeText(row: Row): string {
  if (row.shape.length > 1) return sizes(row.shape);
  const n = format.count(row.of);
  return row.kind === 'answers' ? `${n} answers` : row.layer.type === 'dense' ? `${n} units` : n;
}

/** A short description of a layer without weights, for its label. */
export function brief(row: Row): string {
  if (row.kind === 'input') return 'the digit';
  const { layer } = row;
  switch (layer.type) {
    case 'maxPooling2d': return `largest of ${layer.poolSize} × ${layer.poolSize}`;
    case 'averagePooling2d': return `mean of ${layer.poolSize} × ${layer.poolSize}`;
    case 'activation': return layer.activation;
    default: return '';
  }
}

/** A description of a layer in one or two sentences. */
export function layerWords(row: Row): string {
  if (row.kind === 'input') return 'The digit as the network gets it: 28 × 28 numbers, 0 for paper and 1 for ink.';
  const { layer, from, of } = row;
  const before = from!.name;
  const shown = row.kind !== 'passed' && row.shown < of ? ` The first ${format.count(row.shown)} are shown.` : '';
  const large = row.kind === 'passed' && layer.type !== 'flatten' && layer.type !== 'dropout' ? ' They are too many numbers to be shown.' : '';
  const moved = row.weights ? ` Its weights have moved by ${movedText(row.weights.moved)} of their length since they began.` : '';
  switch (layer.type) {
    case 'conv2d':
      return `${format.count(of)} filters of ${layer.kernelSize} × ${layer.kernelSize} slide over ${before}; each gives a feature map of where it matches.${shown}${large}${moved}`;
    case 'maxPooling2d': return `Of each ${layer.poolSize} × ${layer.poolSize} in a feature map of ${before} only the largest number stays.${shown}${large}`;
    case 'averagePooling2d': return `Each ${layer.poolSize} × ${layer.poolSize} in a feature map of ${before} becomes its mean.${shown}${large}`;
    case 'flatten': return `The ${format.count(of)} numbers of ${before} in one row.`;
    case 'dense':
      if (row.kind === 'answers') return `One sum for each digit; softmax makes probabilities of them.${moved}`;
      return `${format.count(of)} units. Each sums up the numbers of ${before}, times its weights.${shown}${large}${moved}`;
    case 'dropout': return `While it trains, ${format.percent(layer.rate, 0)} of the numbers are left out at random, so that none is relied on. When it reads, all stay.`;
    case 'activation': return `${layer.activation} of each number of ${before}.${shown}${large}`;
    case 'layerNormalization': return `The numbers of ${before}, shifted and scaled to mean 0 and variance 1.${shown}${large}${moved}`;
  }
}

export const movedText = (moved: number): string => (Number.isFinite(moved) ? format.percent(moved, moved < 0.1 ? 1 : 0) : 'not a finite share');

/** The indices in `values` of the largest and the smallest number. */
function extremes(values: ArrayLike<number>): [largest: number, smallest: number] {
  let [largest, smallest] = [0, 0];
  for (let i = 1; i < values.length; i++) {
    if (values[i]! > values[largest]!) largest = i;
    if (values[i]! < values[smallest]!) smallest = i;
  }
  return [largest, smallest];
}

/** A description of a feature map, a unit or an output. `next` is the row that has this one as its input. */
export function unitWords(row: Row, unit: number, next: Row | undefined, probabilities: Float32Array): string {
  if (row.kind === 'input') return layerWords(row);
  const { layer, name, from } = row;
  const n = unit + 1;
  const before = from!.name;
  if (row.kind === 'maps') {
    let largest = -Infinity;
    for (let i = unit; i < row.values.length; i += row.of) largest = Math.max(largest, row.values[i]!);
    const most = ` Its largest number is ${number(largest)}.`;
    switch (layer.type) {
      case 'conv2d': {
        const filter = `${layer.kernelSize} × ${layer.kernelSize} filter`;
        const many = row.weights?.shape[2] ?? 1;
        if (kernelOf(row, unit).length === 0) return `Feature map ${n} of ${name}: green where its ${filter} matches ${before}.${most}`;
        return many === 1 ? `Feature map ${n} of ${name}: green where its ${filter}, the first picture, matches the ${from!.kind === 'input' ? 'digit' : 'map before'}.${most}`
          : `Feature map ${n} of ${name}: green where its filter matches. It looks at all ${many} maps of ${before} at once, with a ${layer.kernelSize} × ${layer.kernelSize} square of weights for each: the first picture.${most}`;
      }
      case 'maxPooling2d': return `Feature map ${n} of ${name}: the largest of each ${layer.poolSize} × ${layer.poolSize} in map ${n} of ${before}, the first picture.`;
      case 'averagePooling2d': return `Feature map ${n} of ${name}: the mean of each ${layer.poolSize} × ${layer.poolSize} in map ${n} of ${before}, the first picture.`;
      case 'activation': return `Feature map ${n} of ${name}: ${layer.activation} of map ${n} of ${before}, the first picture.`;
      default: return `Feature map ${n} of ${name}.${most}`;
    }
  }
  const value = row.values[unit]!;
  const weights = kernelOf(row, unit).length > 0;
  const look = onPixels(row) ? 'First its weights, then those under the ink, which add up to it.'
    : weights ? `The picture: its weights for the numbers of ${before}.` : `It sums up ${before} with more weights than can be shown.`;
  if (row.kind === 'answers') {
    const sure = `Answer ${unit}: ${format.percent(probabilities[unit] ?? 0, 1)} sure; ${number(value)} before softmax.`;
    if (onPixels(row)) return `${sure} First its weights: ink on green speaks for a ${unit}, ink on orange against it. Then those under the ink.`;
    if (!weights || !from || from.values.length !== row.weights!.shape[0]) return sure;
    const parts = Float32Array.from(from.values, (x, i) => x * row.weights!.values[i * row.of + unit]!);
    const [most, least] = extremes(parts);
    return `${sure} Of ${before}, unit ${most + 1} speaks most for it (${number(parts[most]!)}), unit ${least + 1} most against it (${number(parts[least]!)}). The picture: its weights.`;
  }
  if (layer.type !== 'dense') return `Unit ${n} of ${name}: ${number(value)}.`;
  const off = layer.activation === 'relu' && value === 0 ? ', as relu makes of all below 0' : '';
  let votes = '';
  const to = next?.weights;
  if (next?.kind === 'answers' && to && to.values.length === row.of * next.of) {
    const [most, least] = extremes(to.values.subarray(unit * next.of, (unit + 1) * next.of));
    votes = ` It speaks for a ${most}, and against a ${least}.`;
  }
  return `Unit ${n} of ${name}: ${number(value)}${off}. ${look}${votes}`;
}
