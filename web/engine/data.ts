// Where the digits come from: the visitor's files, the server's `data/mnist/`, or drawn on the spot.

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

/** So many that an epoch is worth the name, and few enough to be drawn in half a second. */
const DRAWN = { train: 10000, test: 2000 };
/** Enough to begin with, until there are more. */
const FIRST = { train: 2000, test: 500 };

function draw(seed: number, text: string, count: typeof DRAWN): Data {
  return {
    source: 'drawn',
    text,
    train: Images.drawDigits(count.train, seed),
    // Far from any seed that a visitor would type for the training digits.
    test: Images.drawDigits(count.test, seed + 1_000_003),
  };
}

export const drawn = (seed: number, text = 'digits drawn on the spot, much like MNIST’s'): Data => draw(seed, text, DRAWN);

/** What training begins with at once, while more is on its way. */
export const firstDrawn = (seed: number): Data => draw(seed, 'a few digits drawn on the spot, until MNIST is here', FIRST);

/** The code for files is only loaded where there are some. */
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

/** All four as data, once none is missing. */
export function dataOf(files: Files, source: Data['source'], text: string): Data {
  return { source, text, train: images(files.pair('train')), test: images(files.pair('t10k')) };
}

/** The files of an earlier visit. Broken ones are forgotten. */
export async function kept(): Promise<Data | undefined> {
  const found = await keptFiles();
  if (!found) return undefined;
  try {
    const known = await files();
    await known.add(found);
    if (known.missing.length === 0) return dataOf(known, 'files', 'your files, kept in this browser');
  } catch {
    // They were whole when they were kept: what is broken now is of no use.
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

/** The server's MNIST, if `data/mnist/index.json` lists it: asking for files that are not there would litter the console. */
export async function served(base: string, progress: Progress): Promise<Data | undefined> {
  const folder = new URL('data/mnist/', base);
  const response = await fetch(new URL('index.json', folder));
  if (!response.ok) return undefined;
  // Some hosts answer what they do not have with a page.
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
