// Messages: one per subject at a time, with the possible actions, within the visitor's view.

import type { Fault } from '../engine/protocol';
import { button, byId, make } from './dom';

export interface Action {
  text: string;
  run: () => void;
  /** The only way to continue: the message cannot be closed. */
  only?: boolean;
}
type Kind = Fault['kind'] | 'info' | 'settings';

/** The subject and title of each kind. A new message replaces an older one on the same subject. */
const KINDS: Record<Kind, [subject: string, title: string]> = {
  'no-webgpu': ['device', 'No WebGPU here'], 'no-adapter': ['device', 'No GPU was found'], lost: ['device', 'The GPU was lost'],
  memory: ['device', 'Not enough memory'], panic: ['device', 'A defect in the library'],
  error: ['training', 'Something went wrong'], model: ['training', 'The model does not fit'], info: ['run', ''], settings: ['settings', 'The address'],
  file: ['data', 'A file cannot be used'], weights: ['weights', 'The weights cannot be used'],
};
/** Good news; all other kinds are announced at once. */
const CALM: Kind[] = ['info'];

const bar = byId('controls');
const top = byId('notices');
// Elements focused by the keyboard must not be hidden under the bar.
new ResizeObserver(() => document.documentElement.style.setProperty('--bar', `${bar.offsetHeight}px`)).observe(bar);

/** The card of the subject, if it is in view; else below the controls, which are always in view. */
function place(subject: string): HTMLElement {
  const card = document.getElementById(`h-${subject}`)?.closest<HTMLElement>('.card');
  if (!card) return top;
  const { top: from, bottom: to } = card.getBoundingClientRect();
  return to > bar.getBoundingClientRect().bottom + 40 && from < innerHeight - 40 ? card : top;
}

export function notice(kind: Kind, text: string, ...actions: Action[]): void {
  const close = (): void => element.remove();
  const [subject, title] = KINDS[kind];
  const element = make('div', { class: 'notice', 'data-kind': kind, 'data-subject': subject, role: CALM.includes(kind) ? 'status' : 'alert' },
    make('p', {}, ...(title ? [make('strong', {}, `${title}. `)] : []), text),
    ...actions.map(({ text, run }) => button(text, () => {
      close();
      run();
    }, { class: 'action' })),
    ...(actions.some(({ only }) => only) ? [] : [button('×', close, { class: 'close icon', 'aria-label': 'Close this message' })]));
  document.querySelector(`.notice[data-subject="${subject}"]`)?.remove();
  place(subject).append(element);
}

export function clearNotice(...kinds: Kind[]): void {
  for (const kind of kinds) document.querySelector(`.notice[data-kind="${kind}"]`)?.remove();
}
