// If there is no GPU to train on: advice for this browser, and a recording that plays meanwhile.

import type { Event, Fault } from '../engine/protocol';
import { Player, fetchRecording } from '../engine/recorded';
import { advise, here, withoutAdapter, withoutWebGpu } from './advice';
import * as format from './format';
import { Link } from './link';
import { notice } from './notices';

/** Test images that the recorded network predicts at every evaluation. */
const TESTS = 500;

/** Shows the advice, and returns the connection to a recorded training in the engine's place. `engine` still draws digits. */
export async function without(fault: Fault, engine: Link | undefined, listeners: ((event: Event) => void)[]): Promise<Link> {
  notice(fault.kind, fault.kind === 'no-adapter' ? withoutAdapter(here()) : withoutWebGpu(here(), isSecureContext));
  const samples = ({ of, from, count }: { of: 'train' | 'test'; from: number; count: number }) => {
    if (!engine) throw new Error('There are no images.');
    return engine.ask('samples', { of, from, count });
  };
  const tests = await samples({ of: 'test', from: 0, count: TESTS }).catch(() => undefined);
  const recording = await fetchRecording(document.baseURI);
  const player = new Player(recording, (message) => queueMicrotask(() => link.take(message)), tests, samples);
  const link: Link = new Link((request) => void player.receive(request), () => {}, listeners);
  const where = recording.adapter ? `, on ${recording.adapter}` : '';
  advise('advice', 'This is a recording.', `A small network learnt in ${format.count(recording.steps)} steps, in ${recording.browser.replace(/\/(\d+).*/, ' $1')}${where}, on ${recording.date}. `
    + 'Draw a digit: its weights were recorded, and they read it here, without a GPU.');
  return link;
}
