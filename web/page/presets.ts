// "Try this": settings with an interesting effect, and what to look for.

import { DEFAULTS, type Settings } from '../engine/settings';
import { button, byId } from './dom';
import { change, currentSettings } from './form';

interface Preset {
  id: string;
  title: string;
  /** What to watch. */
  text: string;
  /** Each preset has its own seed and therefore its own run: starting it again replaces no other run. */
  settings: Partial<Settings>;
}

const NO_HIDDEN: Settings['layers'] = [{ type: 'flatten' }, { type: 'dense', units: 10, activation: 'linear' }];

const PRESETS: Preset[] = [
  {
    id: 'large-rate', title: 'Learning rate too large',
    text: 'Each step is so long that it jumps over the goal: the loss leaps up and never settles. Lower the learning rate to 0.001 meanwhile, and see it recover.',
    settings: { model: 'mlp', optimizer: 'adam', lr: 0.3, seed: 11 },
  },
  {
    id: 'no-hidden', title: 'No hidden layer',
    text: 'Every pixel votes for each digit, once and for all: ten pictures of weights. It learns fast, and stops getting better early: some digits need a second thought.',
    settings: { model: 'custom', layers: NO_HIDDEN, seed: 12 },
  },
  {
    id: 'tiny-batch', title: 'Tiny batch',
    text: 'Four images a step tell little of all the others: the thin line jumps, and the thick one falls all the same. The steps are quick, but a GPU has hardly anything to do in them.',
    settings: { model: 'mlp', batch: 4, seed: 13 },
  },
  {
    id: 'cnn', title: 'CNN against MLP',
    text: 'Small filters slide over the picture and find the same stroke anywhere. Each step is far more work, and after as many steps fewer test images are misread. The grey line is the run before.',
    settings: { model: 'cnn', seed: 14 },
  },
  {
    id: 'own', title: 'Your own',
    text: 'Add, move and remove layers under Set up: the network starts afresh with each change. The last layer has to give the ten digits.',
    settings: { model: 'custom' },
  },
];

const sameLayers = (a: Settings['layers'], b: Settings['layers'] | undefined) => JSON.stringify(a) === JSON.stringify(b);

/** The settings that presets change; the visitor's other settings stay, including custom layers. */
type Decided = Pick<Settings, 'model' | 'layers' | 'optimizer' | 'lr' | 'batch' | 'seed'>;

function wanted({ id, settings }: Preset, mine: Settings | undefined): Decided {
  const { layers: before, seed: now } = currentSettings();
  const { model, optimizer, lr, batch } = { ...DEFAULTS, ...settings };
  const layers = settings.layers ?? (id === 'own' && sameLayers(before, NO_HIDDEN) ? DEFAULTS.layers : before);
  return structuredClone({ model, layers, optimizer, lr, batch, seed: settings.seed ?? mine?.seed ?? now });
}

function isChosen({ id, settings }: Preset, now: Settings): boolean {
  if (id === 'own') return now.model === 'custom' && !sameLayers(now.layers, NO_HIDDEN);
  const { model, optimizer, lr, batch } = { ...DEFAULTS, ...settings };
  return model === now.model && optimizer === now.optimizer && lr === now.lr && batch === now.batch
    && (!settings.layers || sameLayers(now.layers, settings.layers));
}

/** Whether the run belongs to a preset. */
const isPresets = ({ seed }: Settings) => PRESETS.some(({ settings }) => settings.seed === seed);

/**
 * `start` trains with the chosen settings, from the beginning if necessary: the previous run stays in the curves for
 * comparison.
 */
export function setUpPresets(start: (afresh: boolean) => void): void {
  const note = byId('preset-note');
  const invitation = note.textContent;
  let mine: Settings | undefined;
  const buttons = PRESETS.map((preset) => button(preset.title, () => {
    const now = currentSettings();
    if (!isPresets(now)) mine = structuredClone(now);
    change(wanted(preset, mine));
    if (preset.id === 'own') {
      byId('builder').scrollIntoView({ block: 'nearest' });
      byId<HTMLInputElement>('model-custom').focus({ preventScroll: true });
    }
    start(preset.settings.seed !== undefined);
  }, { class: 'chip', 'data-preset': preset.id }));
  const back = button('Back to your run', () => change(structuredClone(mine!)), { id: 'preset-back', class: 'chip' });
  byId('preset-list').replaceChildren(...buttons, back);
  const mark = () => {
    const settings = currentSettings();
    const chosen = PRESETS.findIndex((preset) => isChosen(preset, settings));
    for (const [i, element] of buttons.entries()) element.setAttribute('aria-pressed', String(i === chosen));
    note.textContent = PRESETS[chosen]?.text ?? invitation;
    back.hidden = !mine || !isPresets(settings);
  };
  addEventListener('settings', mark);
  mark();
}
