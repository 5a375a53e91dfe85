// Files of the visitor's: read, and given.

import { make } from './dom';
import { notice } from './notices';

/** What is in a file of the visitor's; undefined, with a message, if it cannot be read. */
export async function contents(file: File): Promise<Uint8Array<ArrayBuffer> | undefined> {
  try {
    return new Uint8Array(await file.arrayBuffer());
  } catch (error) {
    notice('file', `${file.name}: the browser cannot read it (${error instanceof Error ? error.message : String(error)}). `
      + 'Choose files, not folders, that are still where they were.');
    return undefined;
  }
}

/** Gives the visitor a file. */
export function download(name: string, content: BlobPart, type: string): void {
  const url = URL.createObjectURL(new Blob([content], { type }));
  const link = make('a', { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
