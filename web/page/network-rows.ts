// The layers as the page shows them: one row per layer, from the digit's pixels to the outputs.

import type { LayerResult, LayerWeights, Reading } from '../engine/protocol';

/** The maximum number of feature maps, pictures of weights, and cells shown per layer; the rest is only counted. */
const MOST = { maps: 64, pictures: 128, cells: 1024 };

/** `passed`: nothing is shown, because the numbers equal the previous ones, or are too many. */
export type Kind = 'input' | 'maps' | 'pictures' | 'cells' | 'answers' | 'passed';

export interface Row extends LayerResult {
  kind: Kind;
  /** Number of feature maps, or of units. */
  of: number;
  shown: number;
  /** The row that is the input of this one, skipping those that pass on their input; undefined for the input. */
  from: Row | undefined;
  weights: LayerWeights | undefined;
  /** How much the distance of the weights grew at the last update. */
  newly: number;
}

/** The shape in readable form. */
export const sizes = (shape: number[]): string => shape.join(' × ');

/** Whether each unit's weights form a picture of the digit's size. */
export const onPixels = (row: Row): boolean =>
  row.from?.kind === 'input' && row.shape.length === 1 && row.weights?.shape.length === 2 && row.weights.shape[0] === 784 && row.weights.values.length > 0;

function kindOf(row: Row, last: boolean): Kind {
  if (row.values.length === 0) return 'passed';
  if (last) return 'answers';
  if (row.shape.length === 3) return 'maps';
  return onPixels(row) ? 'pictures' : 'cells';
}

/** Stays the same as long as the rows do. */
export const signature = ({ layers }: Reading): string => layers.map(({ name, layer, shape }) => `${name}:${JSON.stringify(layer)}:${shape}`).join('|');

export function rowsOf({ layers }: Reading, weights: Map<string, LayerWeights>): Row[] {
  const input: Row = {
    name: 'input', layer: { type: 'flatten' }, shape: [28, 28, 1], values: new Float32Array(784), kind: 'input', of: 1, shown: 1,
    from: undefined, weights: undefined, newly: 0,
  };
  const rows = [input];
  let from = input;
  layers.forEach((result, i) => {
    const of = result.shape.at(-1)!;
    const row: Row = { ...result, kind: 'cells', of, shown: of, from, weights: weights.get(result.name), newly: 0 };
    rows.push(row);
    settle(row, i === layers.length - 1);
    if (row.kind !== 'passed') from = row;
  });
  return rows;
}

/** The weights determine whether a unit is shown as a picture. */
export function settle(row: Row, last: boolean): void {
  row.kind = kindOf(row, last);
  const most = row.kind === 'maps' ? MOST.maps : row.kind === 'pictures' ? MOST.pictures : MOST.cells;
  row.shown = Math.min(row.of, most);
}

/** Numbers in a rectangle, row by row. */
export interface Picture {
  values: ArrayLike<number>;
  width: number;
  height: number;
}

/** One channel of values `[height, width, channels]`. */
export function mapOf(row: Row, channel: number): Picture {
  const [height = 1, width = 1, channels = 1] = row.shape;
  return { width, height, values: Float32Array.from({ length: width * height }, (_, i) => row.values[i * channels + channel]!) };
}

/** A list of numbers as an approximately square rectangle. */
export function rectangle(values: ArrayLike<number>): Picture {
  const width = Math.ceil(Math.sqrt(values.length));
  const height = Math.ceil(values.length / width);
  return { width, height, values: Float32Array.from({ length: width * height }, (_, i) => values[i] ?? 0) };
}

/** The weights that connect a unit or a filter to the previous row, in the shape of its input. */
export function kernelOf(row: Row, unit: number): Picture[] {
  const { weights, from } = row;
  if (!weights || weights.values.length === 0 || !from) return [];
  const { shape, values } = weights;
  const of = shape.at(-1)!;
  if (shape.length === 4) {
    const [height, width, channels] = shape as [number, number, number];
    return Array.from({ length: Math.min(channels, MOST.maps) }, (_, channel) =>
      ({ width, height, values: Float32Array.from({ length: width * height }, (_, i) => values[(i * channels + channel) * of + unit]!) }));
  }
  const own = Float32Array.from({ length: shape[0]! }, (_, i) => values[i * of + unit]!);
  const [height = 1, width = 1, channels = 1] = from.shape;
  if (from.shape.length !== 3 || own.length !== width * height * channels) return [rectangle(own)];
  return Array.from({ length: Math.min(channels, MOST.maps) }, (_, channel) =>
    ({ width, height, values: Float32Array.from({ length: width * height }, (_, i) => own[i * channels + channel]!) }));
}
