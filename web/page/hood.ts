// Under the hood: the adapter with its limits, and what can be done to the device.

import type { Adapter, AskName, Asks } from '../engine/protocol';
import { byId, make, say } from './dom';
import * as format from './format';

type Attempt = <K extends AskName>(kind: K, input: Asks[K]['in']) => Promise<Asks[K]['out'] | undefined>;

export function setUpHood(attempt: Attempt): void {
  byId('tune').addEventListener('click', async () => {
    say('device-note', 'Measuring…');
    const tuned = await attempt('tune', {});
    say('device-note', tuned ? tuned.text : 'Nothing was tuned.');
  });
}

export function showAdapter(adapter: Adapter): void {
  say('adapter', adapter.text);
  byId('limits').replaceChildren(
    ...adapter.limits.map(([name, value]) => make('div', {}, make('dt', {}, name), make('dd', {}, format.count(value)))),
    make('div', {}, make('dt', {}, 'features'), make('dd', {}, adapter.features.join(', ') || 'none')));
  say('device-note', 'Tuning keeps what it finds in this browser. Losing the device shows how the page recovers.');
}
