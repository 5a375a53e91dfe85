// Messages: one of each kind at a time, with what can be done.

import type { Fault } from '../engine/protocol';
import { button, byId, make } from './dom';

export interface Action {
  text: string;
  run: () => void;
}
type Kind = Fault['kind'] | 'info' | 'settings';

const TITLES: Record<Kind, string> = {
  'no-webgpu': 'No WebGPU here', 'no-adapter': 'No GPU was found', lost: 'The GPU was lost', memory: 'Not enough memory',
  file: 'A file cannot be used', panic: 'A defect in the library', model: 'The model does not fit', error: 'Something went wrong',
  info: '', settings: 'The address',
};
/** Good news; all others are read out at once. */
const CALM: Kind[] = ['info'];

export function notice(kind: Kind, text: string, ...actions: Action[]): void {
  const close = (): void => element.remove();
  const title = TITLES[kind];
  const element = make('div', { class: 'notice', 'data-kind': kind, role: CALM.includes(kind) ? 'status' : 'alert' },
    make('p', {}, ...(title ? [make('strong', {}, `${title}. `)] : []), text),
    ...actions.map(({ text, run }) => button(text, () => {
      close();
      run();
    }, { class: 'action' })),
    button('×', close, { class: 'close icon', 'aria-label': 'Close this message' }));
  clearNotice(kind);
  byId('notices').append(element);
}

export function clearNotice(kind: Kind): void {
  byId('notices').querySelector(`[data-kind="${kind}"]`)?.remove();
}

/** Which browsers have WebGPU changes; how to look for it does not. */
export function noWebGpu(): string {
  if (!isSecureContext) return 'Browsers offer WebGPU only to secure pages. Open this one by https, or from localhost.';
  return 'This browser does not offer WebGPU, so nothing can be trained here. Chrome and Edge have it from version 113 on, Safari from 26, '
    + 'Firefox from 141 on Windows and 145 on macOS. On Linux it may have to be switched on: chrome://flags/#enable-unsafe-webgpu in Chrome, '
    + 'dom.webgpu.enabled under about:config in Firefox.';
}

export const NO_ADAPTER = 'The browser has WebGPU, but offers no adapter. Switch on “graphics acceleration” in its settings, bring the '
  + 'graphics driver up to date, and look at chrome://gpu or about:support for the reason. On Linux, chrome://flags/#enable-vulkan may help.';
