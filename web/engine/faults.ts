// Converts exceptions to messages for the page. The library's messages already name the remedy; this module decides whose fault
// it is and whether training can continue.

import type { Fault } from './protocol';

let panic: string | undefined;

/** Called by the library just before a panic. */
export function notePanic(text: string): void {
  panic = text;
}

export function panicked(): boolean {
  return panic !== undefined;
}

/** A file that cannot be used. Its message names the file. */
export class FileError extends Error {}

/** Files of the page that are from different builds. */
export class PartsError extends Error {
  constructor(cause: unknown) {
    super('The parts of this page are of different versions: the browser, or the server, kept an old one. '
      + 'Load the page again without the cache (Ctrl+Shift+R, or ⌘+Shift+R).', { cause });
  }
}

export function faultOf(error: unknown): Fault {
  const { name, message, fault } = error instanceof Error
    ? { name: error.name, message: error.message, fault: (error as Error & { fault?: string }).fault }
    : { name: '', message: String(error), fault: undefined };
  if (panic !== undefined || error instanceof WebAssembly.RuntimeError) {
    return { kind: 'panic', text: `The library stopped at a defect of its own: ${panic ?? message}`, goesOn: false };
  }
  if (error instanceof PartsError) return { kind: 'error', text: message, goesOn: false };
  if (error instanceof FileError) return { kind: 'file', text: message, goesOn: true };
  if (name === 'CheckpointError') return { kind: 'weights', text: message, goesOn: true };
  if (name === 'DataError') return { kind: 'file', text: message, goesOn: true };
  if (name === 'ShapeError' || name === 'DTypeError' || name === 'IndexError') return { kind: 'model', text: message, goesOn: true };
  if (fault === 'outOfMemory' || fault === 'limit' || /out of memory/i.test(message) || error instanceof RangeError) {
    return { kind: 'memory', text: message, goesOn: true };
  }
  if (fault === 'noWebGpu') return { kind: 'no-webgpu', text: message, goesOn: false };
  if (fault === 'noAdapter') return { kind: 'no-adapter', text: message, goesOn: false };
  if (fault === 'lost') return { kind: 'lost', text: 'What was asked for could not be finished. Another device takes its place; try again then.', goesOn: true };
  return { kind: 'error', text: message || String(error), goesOn: true };
}
