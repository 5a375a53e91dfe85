// The visitor's own model: a list of layers to add, remove, move and adjust.

import { LAYERS, newLayer, readField, type Field, type Layer } from '../engine/settings';
import { button, byId, make } from './dom';

let layers: Layer[] = [];
let errors = 0;
let changed: (layers: Layer[]) => void = () => {};

const list = byId('layers');

function input(layer: Layer, field: Field): HTMLElement {
  const values = layer as unknown as Record<string, string | number>;
  if (field.kind === 'choice') {
    const options = field.choices.map((choice) => make('option', { value: choice }, choice));
    const select = make('select', { name: field.name }, ...options);
    select.value = String(values[field.name]);
    select.addEventListener('change', () => {
      values[field.name] = select.value;
      changed(layers);
    });
    return make('label', {}, `${field.label} `, select);
  }
  const box = make('input', { name: field.name, inputmode: 'decimal', autocomplete: 'off', value: String(values[field.name]) });
  const label = make('label', {}, `${field.label} `, box);
  let error: HTMLElement | undefined;
  box.addEventListener('change', () => {
    const value = readField(field, box.value);
    const fits = value !== undefined;
    error?.remove();
    error = undefined;
    box.removeAttribute('aria-invalid');
    box.removeAttribute('aria-describedby');
    if (!fits) {
      // Each field has its own message: the browser's bubble would take the focus and disappear.
      errors += 1;
      error = make('span', { class: 'refused', id: `layer-error-${errors}`, role: 'alert' },
        `A ${field.kind === 'whole' ? 'whole ' : ''}number from ${field.min} to ${field.max}; “${box.value}” is not.`);
      box.setAttribute('aria-invalid', 'true');
      box.setAttribute('aria-describedby', error.id);
      label.after(error);
      return;
    }
    values[field.name] = value;
    changed(layers);
  });
  return label;
}

/** Shows the layers in their new order; the button that was pressed keeps the focus. */
function arrange(next: Layer[], focus?: { at: number; button: string }): void {
  layers = next;
  show(layers);
  if (focus) {
    const item = list.children[Math.min(focus.at, list.children.length - 1)];
    const wanted = item?.querySelector<HTMLButtonElement>(focus.button);
    (wanted?.disabled ? item?.querySelector<HTMLButtonElement>('button:not(:disabled)') : wanted)?.focus();
  }
  changed(layers);
}

function item(layer: Layer, at: number): HTMLElement {
  const { label, fields } = LAYERS[layer.type];
  const named = `${label}, layer ${at + 1}`;
  const move = (by: number, button: string) => () => {
    const next = [...layers];
    next.splice(at + by, 0, ...next.splice(at, 1));
    arrange(next, { at: at + by, button });
  };
  const up = button('↑', move(-1, '.up'), { class: 'up icon', 'aria-label': `Move up: ${named}` });
  const down = button('↓', move(1, '.down'), { class: 'down icon', 'aria-label': `Move down: ${named}` });
  const remove = button('×', () => arrange(layers.filter((_, i) => i !== at), { at, button: '.remove' }),
    { class: 'remove icon', 'aria-label': `Remove: ${named}` });
  up.disabled = at === 0;
  down.disabled = at === layers.length - 1;
  remove.disabled = layers.length === 1;
  return make('li', { 'data-index': String(at), 'data-type': layer.type },
    make('div', { class: 'layer-head' }, make('strong', {}, label), up, down, remove),
    ...(fields.length > 0 ? [make('div', { class: 'layer-fields' }, ...fields.map((field) => input(layer, field)))] : []));
}

/** Shows these layers without reporting a change. */
export function showLayers(next: Layer[]): void {
  // A field that is being edited keeps its text and the focus.
  if (JSON.stringify(next) !== JSON.stringify(layers)) show(next);
}

function show(next: Layer[]): void {
  layers = next;
  list.replaceChildren(...layers.map(item));
}

export function setUpBuilder(start: Layer[], onChange: (layers: Layer[]) => void): void {
  changed = onChange;
  show(start);
  const types = byId<HTMLSelectElement>('add-layer-type');
  types.append(...Object.entries(LAYERS).map(([type, { label }]) => make('option', { value: type }, label)));
  types.value = 'dense';
  byId('add-layer').addEventListener('click', () => {
    const layer = newLayer(types.value as Layer['type']);
    // The last layer outputs the ten digits, so a new one goes before it.
    arrange([...layers.slice(0, -1), layer, ...layers.slice(-1)]);
  });
}
