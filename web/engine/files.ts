// The visitor's data files: which of MNIST's four each is, whether it is complete, and which are still missing. Loaded only
// when there are files to read; independent of the library.

import type { KeptFile } from './store';

export const ROLES = ['train-images', 'train-labels', 't10k-images', 't10k-labels'] as const;
export type Role = (typeof ROLES)[number];

/** More than the decompressed size of any of MNIST's files; longer files are refused. */
const MOST = 100e6;
const HEAD = { images: 16, labels: 8 };

const n = (value: number) => value.toLocaleString('en');

/** A file that cannot be used. Its message names the file. */
class FileError extends Error {
  override name = 'FileError';
}

async function unpacked({ name, bytes }: KeptFile): Promise<Uint8Array> {
  if (bytes[0] !== 0x1f || bytes[1] !== 0x8b) return bytes;
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  try {
    const stream = new Blob([bytes as Uint8Array<ArrayBuffer>]).stream().pipeThrough(new DecompressionStream('gzip'));
    const reader = stream.getReader();
    for (let part = await reader.read(); !part.done && length <= MOST; part = await reader.read()) {
      parts.push(part.value);
      length += part.value.length;
    }
    if (length > MOST) void reader.cancel();
  } catch {
    throw new FileError(`${name}: the packed data is broken or cut off after ${n(length)} bytes. Fetch the file again.`);
  }
  if (length > MOST) throw new FileError(`${name} holds more than ${n(MOST)} bytes, unpacked: MNIST's files are smaller.`);
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}

interface Found {
  role: Role;
  count: number;
  file: KeptFile;
  packed: KeptFile;
}

/**
 * Which of the four a file is: images or labels according to its first bytes, training or test according to its name, or else
 * its length.
 */
async function found(packed: KeptFile): Promise<Found> {
  const { name } = packed;
  if (packed.bytes.length === 0) throw new FileError(`${name} is empty: it has 0 bytes. Fetch the file again.`);
  const bytes = await unpacked(packed);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const magic = [0, 1, 2, 3].map((i) => (bytes[i] ?? 0).toString(16).padStart(2, '0')).join('');
  if (magic !== '00000803' && magic !== '00000801') {
    throw new FileError(`${name} is no IDX file of images or labels: it begins with ${magic}, not with 00000803 or 00000801. `
      + `MNIST's files are called ${ROLES.join('…, ')}….`);
  }
  const what = magic === '00000803' ? 'images' : 'labels';
  if (bytes.length < HEAD[what]) {
    throw new FileError(`${name} is cut off: it has ${n(bytes.length)} bytes, and the head of a file of ${what} alone has ${HEAD[what]}. Fetch it again.`);
  }
  const count = view.getUint32(4);
  if (what === 'images') {
    const [rows, columns] = [view.getUint32(8), view.getUint32(12)];
    if (rows !== 28 || columns !== 28) throw new FileError(`${name} holds images of ${rows} by ${columns} pixels; this page's models read 28 by 28.`);
  }
  const wanted = HEAD[what] + count * (what === 'images' ? 784 : 1);
  if (bytes.length !== wanted) {
    throw new FileError(`${name} ${bytes.length < wanted ? 'is cut off' : 'is too long'}: ${n(count)} ${what} are ${n(wanted)} bytes, and it has ${n(bytes.length)}. Fetch it again.`);
  }
  if (count === 0) throw new FileError(`${name} holds no ${what}.`);
  const wrong = what === 'labels' ? bytes.subarray(8).findIndex((label) => label > 9) : -1;
  if (wrong >= 0) throw new FileError(`${name}: label ${n(wrong + 1)} is ${bytes[8 + wrong]}; labels are digits from 0 to 9.`);
  const half = /t10k|test/i.test(name) ? 't10k' : /train/i.test(name) ? 'train' : count === 60000 ? 'train' : count === 10000 ? 't10k' : undefined;
  if (!half) throw new FileError(`${name}: are its ${n(count)} ${what} to train on, or to test with? Give it a name with “train” or “t10k” in it.`);
  return { role: `${half}-${what}`, count, file: { name, bytes }, packed };
}

const partner = (role: Role) => (role.endsWith('images') ? role.replace('images', 'labels') : role.replace('labels', 'images')) as Role;

/** The visitor's files, which may be added one by one. */
export class Files {
  readonly #found = new Map<Role, Found>();

  /** Adds the usable files, and returns a message for each of the others. */
  async add(files: KeptFile[]): Promise<string[]> {
    const refused: string[] = [];
    const now = new Map<Role, string>();
    for (const file of files) {
      try {
        const one = await found(file);
        const twin = now.get(one.role);
        if (twin !== undefined) throw new FileError(`${twin} and ${file.name} are both ${one.role}; the first of them was taken.`);
        now.set(one.role, file.name);
        this.#found.set(one.role, one);
        const other = this.#found.get(partner(one.role));
        if (!other || other.count === one.count) continue;
        this.#found.delete(other.role);
        const [images, labels] = one.role.endsWith('images') ? [one, other] : [other, one];
        refused.push(`${images.file.name} has ${n(images.count)} images, and ${labels.file.name} ${n(labels.count)} labels: they do not belong together. `
          + `${one.file.name} was taken; its ${other === images ? 'images are' : 'labels are'} still needed.`);
      } catch (error) {
        if (!(error instanceof FileError)) throw error;
        refused.push(error.message);
      }
    }
    return refused;
  }

  get missing(): Role[] {
    return ROLES.filter((role) => !this.#found.has(role));
  }

  get taken(): { role: Role; name: string; count: number }[] {
    return ROLES.flatMap((role) => {
      const one = this.#found.get(role);
      return one ? [{ role, name: one.file.name, count: one.count }] : [];
    });
  }

  /** Decompressed images and labels of a half, once both are there. */
  pair(half: 'train' | 't10k'): [images: KeptFile, labels: KeptFile] {
    return [this.#found.get(`${half}-images`)!.file, this.#found.get(`${half}-labels`)!.file];
  }

  /** All files as they were added. */
  get packed(): KeptFile[] {
    return [...this.#found.values()].map(({ packed }) => packed);
  }
}
