// Where the digits come from, a look at some of them, and the visitor's own files.

import type { AskName, Asks, Event } from '../engine/protocol';
import { byId, fill, say } from './dom';
import { contents } from './files';
import { readChosen } from './draw';
import * as format from './format';
import { showThumbnail, thumbnail } from './pictures';

type Ask = <K extends AskName>(kind: K, input: Asks[K]['in'], transfer?: Transferable[]) => Promise<Asks[K]['out'] | undefined>;

const SHOWN = 16;
let ask: Ask;
let from = 0;
let total = 0;
const images = new WeakMap<Element, { pixels: Uint8Array; label: number }>();

async function showSamples(): Promise<void> {
  const samples = await ask('samples', { of: 'train', from, count: SHOWN });
  if (!samples) return;
  const { pixels, labels } = samples;
  fill(byId('samples'), labels.length,
    () => {
      const element = thumbnail(() => {
        const image = images.get(element);
        if (image) readChosen(image.pixels, image.label);
      });
      return element;
    },
    (element, i) => {
      const image = pixels.subarray(784 * i, 784 * i + 784);
      images.set(element, { pixels: image, label: labels[i]! });
      showThumbnail(element, image, String(labels[i]), `Training image ${from + i + 1}, a ${labels[i]}. Read it.`);
    });
}

async function take(list: FileList | null): Promise<void> {
  const chosen = [...list ?? []];
  if (chosen.length === 0) return;
  const read = await Promise.all(chosen.map(async (file) => ({ name: file.name, bytes: await contents(file) })));
  const files = read.flatMap(({ name, bytes }) => (bytes ? [{ name, bytes }] : []));
  if (files.length === 0) return;
  const answer = await ask('files', { files }, files.map(({ bytes }) => bytes.buffer));
  if (answer && answer.missing.length > 0) say('data-source', `Taken. Still needed: ${answer.missing.map((role) => `${role}-…`).join(', ')}.`);
}

export function setUpData(how: Ask): void {
  ask = how;
  const picker = byId<HTMLInputElement>('data-files');
  picker.addEventListener('change', async () => {
    await take(picker.files);
    picker.value = '';
  });
  byId('data-forget').addEventListener('click', () => void ask('forgetFiles', {}));
  byId('samples-more').addEventListener('click', () => {
    from = total > 0 ? (from + SHOWN) % total : 0;
    void showSamples();
  });
  // Files may be dropped anywhere on the page: missing the zone would leave it for the file.
  const zone = byId('data-drop');
  let depth = 0;
  const over = (by: number) => {
    depth = Math.max(0, depth + by);
    zone.classList.toggle('over', depth > 0);
  };
  addEventListener('dragenter', () => over(1));
  addEventListener('dragleave', () => over(-1));
  addEventListener('dragover', (event) => event.preventDefault());
  addEventListener('drop', (event) => {
    event.preventDefault();
    over(-depth);
    void take(event.dataTransfer?.files ?? null);
  });
}

export function showData(event: Event & { kind: 'data' }): void {
  const { text, train, test, source } = event;
  say('data-source', `${text[0]!.toUpperCase()}${text.slice(1)}: ${format.count(train)} to train on, ${format.count(test)} to test with.`);
  byId('data-forget').hidden = source !== 'files';
  from = 0;
  total = train;
  void showSamples();
}
