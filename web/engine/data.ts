// Where the digits come from: the visitor's files, the server's `data/mnist/`, or drawn on the spot.

import { Images } from '../page-pkg/wgrad.js';
import { FileError } from './faults';
import { dropFiles, keepFiles, keptFiles, type KeptFile } from './store';

export interface Data {
  source: 'mnist' | 'files' | 'drawn';
  text: string;
  train: Images;
  test: Images;
}

const ROLES = ['train-images', 'train-labels', 't10k-images', 't10k-labels'] as const;
type Role = (typeof ROLES)[number];
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

async function unpacked({ name, bytes }: KeptFile): Promise<Uint8Array> {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
  try {
    const stream = new Blob([bytes as Uint8Array<ArrayBuffer>]).stream().pipeThrough(new DecompressionStream('gzip'));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  } catch {
    throw new FileError(`${name}: the packed data is broken or cut off. Fetch the file again.`);
  }
}

/** Which of the four a file is: what it holds by its first bytes, which half by its name. */
function roleOf(name: string, bytes: Uint8Array): Role {
  const magic = [0, 1, 2, 3].map((i) => (bytes[i] ?? 0).toString(16).padStart(2, '0')).join('');
  const half = /t10k|test/i.test(name) ? 't10k' : 'train';
  if (magic === '00000803') return `${half}-images`;
  if (magic === '00000801') return `${half}-labels`;
  throw new FileError(`${name} is no IDX file of images or labels: it begins with ${magic}, not with 00000803 or 00000801. `
    + `MNIST's files are called ${ROLES.join('…, ')}….`);
}

function images(images: KeptFile, labels: KeptFile): Images {
  try {
    return Images.fromIdx(images.bytes, labels.bytes);
  } catch (error) {
    throw new FileError(`${images.name} with ${labels.name}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

/** The visitor's files, which may come one by one. */
export class Files {
  readonly #found = new Map<Role, KeptFile>();
  readonly #packed = new Map<Role, KeptFile>();

  /** Takes files in; afterwards `missing` says which are still needed. */
  async add(files: KeptFile[]): Promise<void> {
    const found: [Role, KeptFile, KeptFile][] = [];
    for (const file of files) {
      const bytes = await unpacked(file);
      found.push([roleOf(file.name, bytes), { name: file.name, bytes }, file]);
    }
    for (const [role, file, packed] of found) {
      this.#found.set(role, file);
      this.#packed.set(role, packed);
    }
  }

  get missing(): Role[] {
    return ROLES.filter((role) => !this.#found.has(role));
  }

  /** All four as data, once none is missing. A broken pair gives them all up, so that the next drop begins anew. */
  take(source: Data['source'], text: string): Data {
    const [a, b, c, d] = ROLES.map((role) => this.#found.get(role)!);
    this.#found.clear();
    return { source, text, train: images(a!, b!), test: images(c!, d!) };
  }

  /** Puts the last four aside for the next visit, as they came. */
  async keep(): Promise<void> {
    await keepFiles([...this.#packed.values()]);
  }
}

/** The files of an earlier visit. Broken ones are forgotten. */
export async function kept(): Promise<Data | undefined> {
  const files = await keptFiles();
  if (!files) return undefined;
  try {
    const known = new Files();
    await known.add(files);
    if (known.missing.length === 0) return known.take('files', 'your files, kept in this browser');
  } catch {
    // They were whole when they were kept: what is broken now is of no use.
  }
  await dropFiles();
  return undefined;
}

async function fetched(url: URL, name: string, onBytes: (count: number) => void): Promise<KeptFile> {
  const response = await fetch(url);
  if (!response.ok || !response.body) throw new FileError(`${name}: the server answered ${response.status}.`);
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
  const index = await response.json() as { files?: { name: string; bytes: number }[] };
  const listed = ROLES.map((role) => index.files?.find((file) => file.name.startsWith(role)));
  if (listed.some((file) => !file)) return undefined;
  let loaded = 0;
  const total = listed.reduce((sum, file) => sum + (file?.bytes ?? 0), 0);
  const files = new Files();
  await files.add(await Promise.all(listed.map((file) => fetched(new URL(file!.name, folder), file!.name, (count) => {
    loaded += count;
    progress('MNIST', loaded, total);
  }))));
  return files.take('mnist', 'MNIST, from this server');
}
