// The visitor's settings, and their form in the page's address. Independent of the library and the page.

export type Activation = 'linear' | 'relu' | 'sigmoid' | 'tanh';
export type Padding = 'same' | 'valid';
export type Layer =
  | { type: 'flatten' }
  | { type: 'dense'; units: number; activation: Activation }
  | { type: 'conv2d'; filters: number; kernelSize: number; strides: number; padding: Padding; activation: Activation }
  | { type: 'maxPooling2d' | 'averagePooling2d'; poolSize: number; strides: number; padding: Padding }
  | { type: 'layerNormalization'; epsilon: number }
  | { type: 'dropout'; rate: number }
  | { type: 'activation'; activation: Activation };

export type Model = 'mlp' | 'cnn' | 'custom';
export type Optimizer = 'adam' | 'sgd' | 'momentum';

export interface Settings {
  model: Model;
  /** Layers of the visitor's own model; `layersOf` defines those of the other two. */
  layers: Layer[];
  optimizer: Optimizer;
  lr: number;
  batch: number;
  seed: number;
  /** Pause after this many steps; 0 means never. */
  stop: number;
  data: 'auto' | 'drawn';
}

const ACTIVATIONS: readonly Activation[] = ['linear', 'relu', 'sigmoid', 'tanh'];

/** A parameter of a layer: its name and its permitted values. */
export type Field =
  | { name: string; label: string; kind: 'whole' | 'real'; start: number; min: number; max: number }
  | { name: string; label: string; kind: 'choice'; start: string; choices: readonly string[] };

const whole = (name: string, label: string, start: number, max: number): Field =>
  ({ name, label, kind: 'whole', start, min: 1, max });
const activation: Field = { name: 'activation', label: 'activation', kind: 'choice', start: 'relu', choices: ACTIVATIONS };
const padding = (start: Padding): Field =>
  ({ name: 'padding', label: 'padding', kind: 'choice', start, choices: ['same', 'valid'] });
const pooling = [whole('poolSize', 'size', 2, 28), whole('strides', 'stride', 2, 28), padding('valid')];

/** Every kind of layer with its parameters, in the order in which the address lists them. */
export const LAYERS: Record<Layer['type'], { label: string; fields: readonly Field[] }> = {
  conv2d: {
    label: 'Conv2D',
    fields: [whole('filters', 'filters', 16, 512), whole('kernelSize', 'kernel', 3, 28), whole('strides', 'stride', 1, 28),
      padding('same'), activation],
  },
  maxPooling2d: { label: 'MaxPooling2D', fields: pooling },
  averagePooling2d: { label: 'AveragePooling2D', fields: pooling },
  flatten: { label: 'Flatten', fields: [] },
  dense: { label: 'Dense', fields: [whole('units', 'units', 64, 4096), activation] },
  layerNormalization: { label: 'LayerNormalization', fields: [{ name: 'epsilon', label: 'epsilon', kind: 'real', start: 0.001, min: 0, max: 1 }] },
  dropout: { label: 'Dropout', fields: [{ name: 'rate', label: 'rate', kind: 'real', start: 0.4, min: 0, max: 0.95 }] },
  activation: { label: 'Activation', fields: [activation] },
};

const MLP: Layer[] = [
  { type: 'flatten' },
  { type: 'dense', units: 100, activation: 'relu' },
  { type: 'dense', units: 10, activation: 'linear' },
];
const CNN: Layer[] = [
  { type: 'conv2d', filters: 32, kernelSize: 5, strides: 1, padding: 'same', activation: 'relu' },
  { type: 'maxPooling2d', poolSize: 2, strides: 2, padding: 'valid' },
  { type: 'conv2d', filters: 64, kernelSize: 5, strides: 1, padding: 'same', activation: 'relu' },
  { type: 'maxPooling2d', poolSize: 2, strides: 2, padding: 'valid' },
  { type: 'flatten' },
  { type: 'dense', units: 1024, activation: 'relu' },
  { type: 'dropout', rate: 0.4 },
  { type: 'dense', units: 10, activation: 'linear' },
];
const OWN: Layer[] = [
  { type: 'conv2d', filters: 8, kernelSize: 3, strides: 1, padding: 'same', activation: 'relu' },
  { type: 'maxPooling2d', poolSize: 2, strides: 2, padding: 'valid' },
  { type: 'flatten' },
  { type: 'dense', units: 32, activation: 'relu' },
  { type: 'dense', units: 10, activation: 'linear' },
];

/** Long enough to learn the digits, but limited: a page left open does not use the GPU for ever. */
export const STOP = 3000;

export const DEFAULTS: Settings =
  { model: 'mlp', layers: OWN, optimizer: 'adam', lr: 0.001, batch: 50, seed: 1, stop: STOP, data: 'auto' };

export function layersOf(settings: Settings): Layer[] {
  return settings.model === 'mlp' ? MLP : settings.model === 'cnn' ? CNN : settings.layers;
}

export function newLayer(type: Layer['type']): Layer {
  const values = LAYERS[type].fields.map((field) => [field.name, field.start]);
  return { type, ...Object.fromEntries(values) } as Layer;
}

/** The permitted range of each number; `label` begins the message that refuses it. */
export const NUMBERS = {
  lr: { label: 'The learning rate', min: 1e-8, max: 10, whole: false },
  batch: { label: 'The batch size', min: 1, max: 4096, whole: true },
  seed: { label: 'The seed', min: 0, max: 4294967295, whole: true },
  stop: { label: 'Stop after', min: 0, max: 10000000, whole: true },
} as const;
export type NumberName = keyof typeof NUMBERS;

/** The number that a visitor typed, or a message why it is refused. */
export function readNumber(name: NumberName, text: string): number | string {
  const { label, min, max, whole } = NUMBERS[name];
  const value = Number(text.trim().replace(',', '.'));
  if (text.trim() !== '' && value >= min && value <= max && (!whole || Number.isInteger(value))) return value;
  return `${label} has to be a ${whole ? 'whole ' : ''}number from ${min} to ${max}; “${text}” is not.`;
}

/** A layer's parameter as it was typed; undefined if it is invalid. */
export function readField(field: Field, text: string): number | string | undefined {
  if (field.kind === 'choice') return field.choices.includes(text) ? text : undefined;
  const value = Number(text.replace(',', '.'));
  const fits = text.trim() !== '' && value >= field.min && value <= field.max && (field.kind === 'real' || Number.isInteger(value));
  // With so few digits there is no exponent, whose minus sign would separate layers.
  return fits ? Math.round(1e4 * value) / 1e4 : undefined;
}

/** `flatten-dense_100_relu-dense_10_linear`: characters that need no escaping in an address. */
export function layersText(layers: Layer[]): string {
  return layers.map((layer) => {
    const values = layer as unknown as Record<string, string | number>;
    return [layer.type, ...LAYERS[layer.type].fields.map((field) => values[field.name])].join('_');
  }).join('-');
}

function readLayers(text: string): Layer[] | undefined {
  const layers: Layer[] = [];
  for (const word of text.split('-')) {
    const [type = '', ...values] = word.split('_');
    if (!Object.hasOwn(LAYERS, type)) return undefined;
    const layer = newLayer(type as Layer['type']) as unknown as Record<string, unknown>;
    const fields = LAYERS[type as Layer['type']].fields;
    if (values.length > fields.length) return undefined;
    for (const [i, value] of values.entries()) {
      const read = readField(fields[i]!, value);
      if (read === undefined) return undefined;
      layer[fields[i]!.name] = read;
    }
    layers.push(layer as unknown as Layer);
  }
  return layers.length <= 64 ? layers : undefined;
}

/** Identifies a run's weights: its layers and its seed. Everything else may change during the run. */
export const runKey = (settings: Settings) => `${layersText(layersOf(settings))} seed ${settings.seed}`;

/** All settings as the query string of an address. */
export function settingsText(settings: Settings): string {
  const { model, layers, optimizer, lr, batch, seed, stop, data } = settings;
  const query = new URLSearchParams({ model });
  if (model === 'custom') query.set('layers', layersText(layers));
  for (const [name, value] of Object.entries({ optimizer, lr, batch, seed, stop, data })) query.set(name, String(value));
  return query.toString();
}

/** The settings in an address, and a message for each invalid one. Missing settings have their defaults. */
export function readSettings(query: URLSearchParams): { settings: Settings; refused: string[] } {
  const settings: Settings = structuredClone(DEFAULTS);
  const refused: string[] = [];
  const choose = <T extends string>(name: string, choices: readonly T[], set: (value: T) => void) => {
    const text = query.get(name);
    if (text === null) return;
    const choice = choices.find((known) => known === text);
    if (choice) set(choice);
    else refused.push(`“${text}” is no ${name}; there are ${choices.join(', ')}.`);
  };
  choose('model', ['mlp', 'cnn', 'custom'], (value) => { settings.model = value; });
  choose('optimizer', ['adam', 'sgd', 'momentum'], (value) => { settings.optimizer = value; });
  choose('data', ['auto', 'drawn'], (value) => { settings.data = value; });
  for (const name of Object.keys(NUMBERS) as NumberName[]) {
    const text = query.get(name);
    if (text === null) continue;
    const value = readNumber(name, text);
    if (typeof value === 'number') settings[name] = value;
    else refused.push(value);
  }
  const layers = query.get('layers');
  if (layers !== null) {
    const read = readLayers(layers);
    if (read) settings.layers = read;
    else refused.push('The layers in the address cannot be read.');
  }
  return { settings, refused };
}
