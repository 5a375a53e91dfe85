// What is kept in the browser between visits: the weights of the last runs, the visitor's data files, the tuner's findings.
// A browser that keeps nothing (private windows) is no error: training goes on without.

import { del, get, set, update } from 'idb-keyval';

export interface Kept {
  step: number;
  /** Safetensors. The optimizer's state is not in it: it starts anew. */
  weights: Uint8Array;
  losses: Float32Array;
  accuracies: Float32Array;
  tests: [step: number, accuracy: number][];
  when: number;
}
export interface KeptFile {
  name: string;
  bytes: Uint8Array;
}

/** Older runs make room: a large model's weights are tens of megabytes. */
const RUNS = 4;

async function quietly<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch {
    return undefined;
  }
}

/** True if it was kept. `settings` are those that the weights belong to. */
export async function keepRun(settings: string, kept: Kept): Promise<boolean> {
  const done = await quietly(async () => {
    await set(`run ${settings}`, kept);
    let old: string[] = [];
    await update<string[]>('runs', (known = []) => {
      const newest = [settings, ...known.filter((other) => other !== settings)];
      old = newest.slice(RUNS);
      return newest.slice(0, RUNS);
    });
    for (const settings of old) await del(`run ${settings}`);
    return true;
  });
  return done ?? false;
}

export const keptRun = (settings: string) => quietly(() => get<Kept>(`run ${settings}`));
export const dropRun = (settings: string) => quietly(() => del(`run ${settings}`));

export const keepFiles = (files: KeptFile[]) => quietly(() => set('files', files));
export const keptFiles = () => quietly(() => get<KeptFile[]>('files'));
export const dropFiles = () => quietly(() => del('files'));

export const keepFindings = (adapter: string, text: string) => quietly(() => set(`findings ${adapter}`, text));
export const keptFindings = (adapter: string) => quietly(() => get<string>(`findings ${adapter}`));
