// Data stored in the browser between visits: the weights of the last runs, the visitor's data files, the tuning results. If a
// browser stores nothing (private windows), training works without.

import { del, get, set, update } from 'idb-keyval';
import type { Event, Kernel } from './protocol';

/** The last displayed results of a run, to be displayed again. */
export interface Seen {
  evaluation?: Event & { kind: 'evaluation' };
  kernels?: Kernel[];
}

export interface Kept {
  step: number;
  /** Safetensors, without the optimizer's state, which starts again. */
  weights: Uint8Array;
  losses: Float32Array;
  accuracies: Float32Array;
  tests: [step: number, accuracy: number][];
  /** Epochs so far, including the fraction of the present one. */
  epochs: number;
  /** The steps at which epochs ended. */
  ends: number[];
  seen: Seen;
  when: number;
}
export interface KeptFile {
  name: string;
  bytes: Uint8Array;
}

/** Older runs are deleted: a large model's weights are tens of megabytes. */
const RUNS = 4;

async function quietly<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch {
    return undefined;
  }
}

/** Stores a run; returns whether this worked. `key` identifies the weights. */
export async function keepRun(key: string, kept: Kept): Promise<boolean> {
  const done = await quietly(async () => {
    await set(`run ${key}`, kept);
    let old: string[] = [];
    await update<string[]>('runs', (known = []) => {
      const newest = [key, ...known.filter((other) => other !== key)];
      old = newest.slice(RUNS);
      return newest.slice(0, RUNS);
    });
    for (const key of old) await del(`run ${key}`);
    return true;
  });
  return done ?? false;
}

/** Data of older versions of this page has other keys. It is not read and is deleted over time. */
export const keptRun = (key: string) => quietly(() => get<Kept>(`run ${key}`));
export const dropRun = (key: string) => quietly(() => del(`run ${key}`));

/** The run being trained, so that a reload knows whether to continue; '' for none. */
export const keepTraining = (key: string) => quietly(() => set('training', key));
export const keptTraining = () => quietly(() => get<string>('training'));

let claimed: { key: string; release: () => void } | undefined;

/** Whether this tab may store the run of `key`: of several tabs with the same run, only the first one may. */
export async function claim(key: string): Promise<boolean> {
  if (claimed?.key === key) return true;
  claimed?.release();
  claimed = undefined;
  const { locks } = navigator;
  if (!locks) return true;
  return new Promise((resolve) => {
    locks.request(`wgrad run ${key}`, { ifAvailable: true }, (lock) => {
      if (!lock) return resolve(false);
      return new Promise<void>((release) => {
        claimed = { key, release };
        resolve(true);
      });
    }).catch(() => resolve(true));
  });
}

export const keepFiles = (files: KeptFile[]) => quietly(() => set('files', files));
export const keptFiles = () => quietly(() => get<KeptFile[]>('files'));
export const dropFiles = () => quietly(() => del('files'));

export const keepFindings = (adapter: string, text: string) => quietly(() => set(`findings ${adapter}`, text));
export const keptFindings = (adapter: string) => quietly(() => get<string>(`findings ${adapter}`));
