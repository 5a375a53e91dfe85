// Sources of the digits: the visitor's files, the server's `data/mnist/`, or digits drawn here.

import { Images } from '../page-pkg/wgrad.js';
import { FileError } from './faults';
import type { Files, Role } from './files';
import { dropFiles, keptFiles, type KeptFile } from './store';

export interface Data {
  source: 'mnist' | 'files' | 'drawn';
  text: string;
  train: Images;
  test: Images;
}

const ROLES: readonly Role[] = ['train-images', 'train-labels', 't10k-images', 't10k-labels'];
export type Progress = (what: string, loaded: number, total: number) => void;

/** Enough for a reasonable epoch, and few enough to be drawn in half a second. */
const DRAWN = { train: 10000, test: 2000 };
/** Enough to start with, until there are more. */
const FIRST = { train: 2000, test: 500 };

function draw(seed: number, text: string, count: typeof DRAWN): Data {
  return {
    source: 'drawn',
    text,
    train: Images.drawDigits(count.train, seed),
    // Far from any seed that a visitor would enter for the training digits.
    test: Images.drawDigits(count.test, seed + 1_000_003),
  };
}

export const drawn = (seed: number, text = 'digits drawn on the spot, much like MNIST’s'): Data => draw(seed, text, DRAWN);

/** The data for the start of training, while more is being loaded. */
export const firstDrawn = (seed: number): Data => draw(seed, 'a few digits drawn on the spot, until MNIST is here', FIRST);

/** Loads the code for files, which is needed only if there are files. */
export async function files(): Promise<Files> {
  const { Files } = await import('./files');
  return new Files();
}

function images([images, labels]: [KeptFile, KeptFile]): Images {
  try {
    return Images.fromIdx(images.bytes, labels.bytes);
  } catch (error) {
    throw new FileError(`${images.name} with ${labels.name}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** The data, once all four files are there. */
export function dataOf(files: Files, source: Data['source'], text: string): Data {
  return { source, text, train: images(files.pair('train')), test: images(files.pair('t10k')) };
}

/** The files of an earlier visit. Damaged ones are dropped. */
export async function kept(): Promise<Data | undefined> {
  const found = await keptFiles();
  if (!found) return undefined;
  try {
    const known = await files();
    await known.add(found);
    if (known.missing.length === 0) return dataOf(known, 'files', 'your files, kept in this browser');
  } catch {
    // They were valid when they were stored, so a damaged one is useless.
  }
  await dropFiles();
  return undefined;
}

async function fetched(url: URL, name: string, onBytes: (count: number) => void): Promise<KeptFile> {
  const response = await fetch(url);
  if (!response.ok || !response.body) throw new FileError(`${name}: the server answered ${response.status}. Load the page again to try once more.`);
  const parts: Uint8Array<ArrayBuffer>[] = [];
  const reader = response.body.getReader();
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    parts.push(part.value);
    onBytes(part.value.length);
  }
  return { name, bytes: new Uint8Array(await new Blob(parts).arrayBuffer()) };
}

/** The server's MNIST, if `data/mnist/index.json` lists it: requests for missing files would print errors on the console. */
export async function served(base: string, progress: Progress): Promise<Data | undefined> {
  const folder = new URL('data/mnist/', base);
  const response = await fetch(new URL('index.json', folder));
  if (!response.ok) return undefined;
  // Some hosts answer with a page instead of status 404.
  const index = await response.json().catch(() => ({})) as { files?: { name: string; bytes: number }[] };
  const listed = ROLES.map((role) => index.files?.find((file) => file.name.startsWith(role)));
  if (listed.some((file) => !file)) return undefined;
  let loaded = 0;
  const total = listed.reduce((sum, file) => sum + (file?.bytes ?? 0), 0);
  const mnist = await files();
  const refused = await mnist.add(await Promise.all(listed.map((file) => fetched(new URL(file!.name, folder), file!.name, (count) => {
    loaded += count;
    progress('MNIST', loaded, total);
  }))));
  if (refused.length > 0) throw new FileError(refused.join(' '));
  return dataOf(mnist, 'mnist', 'MNIST, from this server');
}
