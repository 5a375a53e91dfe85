// The settings: from the address to the form, and changes from the form to the address and the engine.

import { NUMBERS, readNumber, readSettings, settingsText, type NumberName, type Settings } from '../engine/settings';
import { byId, say } from './dom';

let settings: Settings;

export const currentSettings = (): Settings => structuredClone(settings);

/** Parameters that are not settings (such as `worker`) stay in the address. */
function addressWith(settings: Settings): URL {
  const url = new URL(location.href);
  const own = new URLSearchParams(settingsText(settings));
  url.searchParams.delete('layers');
  for (const [name, value] of own) url.searchParams.set(name, value);
  return url;
}

const refusals = new Map<HTMLInputElement, string>();

/** Shows below the fields why they were refused; '' removes the message. */
function refuse(input: HTMLInputElement, why: string): void {
  refusals.delete(input);
  if (why) {
    refusals.set(input, why);
    input.setAttribute('aria-invalid', 'true');
  } else input.removeAttribute('aria-invalid');
  // The field may already refer to an explanation of its label.
  const others = (input.getAttribute('aria-describedby') ?? '').split(' ').filter((id) => id && id !== 'settings-error');
  const ids = [...(why ? ['settings-error'] : []), ...others];
  if (ids.length > 0) input.setAttribute('aria-describedby', ids.join(' '));
  else input.removeAttribute('aria-describedby');
  say('settings-error', [...refusals.values()].join(' '));
}

function show(): void {
  byId<HTMLInputElement>(`model-${settings.model}`).checked = true;
  byId('builder').hidden = settings.model !== 'custom';
  byId<HTMLSelectElement>('optimizer').value = settings.optimizer;
  byId<HTMLSelectElement>('data-select').value = settings.data;
  for (const name of Object.keys(NUMBERS) as NumberName[]) {
    const input = byId<HTMLInputElement>(name);
    input.value = String(settings[name]);
    refuse(input, '');
  }
}

/** Applies these settings as if the visitor had made them, without notifying the engine. */
export function adopt(next: Settings): void {
  settings = next;
  show();
  history.replaceState(null, '', addressWith(settings));
  dispatchEvent(new Event('settings'));
}

let apply: (settings: Settings) => void = () => {};

/** Changes settings like a visitor: form, address and engine follow. */
export function change(part: Partial<Settings>): void {
  adopt({ ...settings, ...part });
  apply(currentSettings());
}

/** `onChange` is called for every change. Returns messages about invalid settings in the address. */
export function setUpForm(onChange: (settings: Settings) => void): string[] {
  apply = onChange;
  const read = readSettings(new URLSearchParams(location.search));
  settings = read.settings;
  show();
  for (const model of ['mlp', 'cnn', 'custom'] as const) byId(`model-${model}`).addEventListener('change', () => change({ model }));
  const choice = (id: string, name: 'optimizer' | 'data') => byId(id).addEventListener('change', (event) =>
    change({ [name]: (event.target as HTMLSelectElement).value } as Partial<Settings>));
  choice('optimizer', 'optimizer');
  choice('data-select', 'data');
  for (const name of Object.keys(NUMBERS) as NumberName[]) {
    const input = byId<HTMLInputElement>(name);
    input.addEventListener('change', () => {
      const value = readNumber(name, input.value);
      refuse(input, typeof value === 'number' ? '' : value);
      if (typeof value === 'number') change({ [name]: value });
    });
  }
  const copy = byId('copy-link');
  copy.addEventListener('click', async () => {
    const url = addressWith(settings);
    for (const name of ['worker', 'start']) url.searchParams.delete(name);
    try {
      await navigator.clipboard.writeText(url.href);
      say('copy-link', 'Copied');
    } catch {
      history.replaceState(null, '', url);
      say('copy-link', 'The link is in the address bar');
    }
    setTimeout(() => say('copy-link', 'Copy link to these settings'), 2000);
  });
  return read.refused;
}
