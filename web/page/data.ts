// The source of the digits, some samples, and the visitor's own files.

import type { AskName, Asks, Event } from '../engine/protocol';
import { byId, fill, say } from './dom';
import { contents } from './files';
import { readChosen } from './draw';
import * as format from './format';
import { clearNotice, notice } from './notices';
import { showThumbnail, thumbnail } from './pictures';

type Ask = <K extends AskName>(kind: K, input: Asks[K]['in'], transfer?: Transferable[]) => Promise<Asks[K]['out'] | undefined>;

const SHOWN = 16;
/** Twice the decompressed size of MNIST's largest file. */
const MOST = 100e6;
/** The maximum number of messages shown at once. */
const REASONS = 4;
let ask: Ask;
let from = 0;
let total = 0;
/** Whether the data is the visitor's, and whether some of their files are still missing. */
let own = false;
let waiting = false;
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

async function take(chosen: File[], folders: string[] = []): Promise<void> {
  if (chosen.length + folders.length === 0) return;
  const refused: string[] = folders.map((name) => `${name} is a folder: drop the files that are in it.`);
  const files: { name: string; bytes: Uint8Array<ArrayBuffer> }[] = [];
  for (const file of chosen) {
    const bytes = await contents(file, MOST, 'MNIST’s files');
    if (typeof bytes === 'string') refused.push(bytes);
    else files.push({ name: file.name, bytes });
  }
  clearNotice('file');
  const answer = files.length > 0 ? await ask('files', { files }, files.map(({ bytes }) => bytes.buffer)) : undefined;
  refused.push(...answer?.refused ?? []);
  if (refused.length === 0) return;
  const others = refused.length - REASONS;
  notice('file', `${refused.slice(0, REASONS).join(' ')}${others > 0 ? ` And ${others} others.` : ''}`);
}

/** Shows which of the visitor's files are there and which are missing. */
export function showFiles({ taken, missing }: Event & { kind: 'files' }): void {
  const have = taken.map(({ name, role, count }) => `${name} (${format.count(count)} ${role.split('-')[1]})`).join(', ');
  say('files-note', taken.length > 0 ? `Taken: ${have}. Still needed: ${missing.map((role) => `${role}-…`).join(', ')}.` : '');
  waiting = taken.length > 0;
  byId('data-forget').hidden = !waiting && !own;
}

export function setUpData(how: Ask): void {
  ask = how;
  const picker = byId<HTMLInputElement>('data-files');
  picker.addEventListener('change', async () => {
    const chosen = [...picker.files ?? []];
    // Allows choosing the same file again.
    picker.value = '';
    await take(chosen);
  });
  byId('data-forget').addEventListener('click', () => void ask('forgetFiles', {}));
  byId('samples-more').addEventListener('click', () => {
    from = total > 0 ? (from + SHOWN) % total : 0;
    void showSamples();
  });
  // Files may be dropped anywhere on the page: otherwise, a drop outside the zone would make the
  // browser leave the page.
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
    // Folders can be detected only now.
    const dropped = [...event.dataTransfer?.items ?? []].filter(({ kind }) => kind === 'file')
      .map((item) => ({ file: item.getAsFile(), folder: item.webkitGetAsEntry?.()?.isDirectory ?? false }));
    void take(dropped.flatMap(({ file, folder }) => (file && !folder ? [file] : [])), dropped.flatMap(({ file, folder }) => (folder ? [file?.name ?? 'This'] : [])));
  });
}

export function showData(event: Event & { kind: 'data' }): void {
  const { text, train, test, source } = event;
  say('data-source', `${text[0]!.toUpperCase()}${text.slice(1)}: ${format.count(train)} to train on, ${format.count(test)} to test with.`);
  own = source === 'files';
  byId('data-forget').hidden = !waiting && !own;
  from = 0;
  total = train;
  void showSamples();
}
