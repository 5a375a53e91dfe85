// Reads the visitor's files, and offers files for download.

import { make } from './dom';
import * as format from './format';

/** The contents of a visitor's file, or a message why it cannot be read. The largest `of` its kind has `most` bytes. */
export async function contents(file: File, most: number, of: string): Promise<Uint8Array<ArrayBuffer> | string> {
  if (file.size > most) return `${file.name} has ${format.bytes(file.size)}; ${of} have ${format.bytes(most)} at most.`;
  try {
    const bytes = new Uint8Array(await file.arrayBuffer());
    return bytes.length > 0 ? bytes : `${file.name} is empty: it has 0 bytes.`;
  } catch (error) {
    return `${file.name}: the browser cannot read it (${error instanceof Error ? error.message : String(error)}). Choose files, not folders, that are still where they were.`;
  }
}

/** Offers the visitor a file for download. */
export function download(name: string, content: BlobPart, type: string): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = make('a', { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
