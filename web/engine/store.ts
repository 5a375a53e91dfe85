// What is kept in the browser between visits: the weights of the last runs, the visitor's data files, the tuner's findings.
// A browser that keeps nothing (private windows) is no error: training goes on without.

import { del, get, set, update } from 'idb-keyval';
import type { Event, Kernel } from './protocol';

/** What was last seen of a run, to be shown again. */
export interface Seen {
  evaluation?: Event & { kind: 'evaluation' };
  kernels?: Kernel[];
}

export interface Kept {
  step: number;
  /** Safetensors. The optimizer's state is not in it: it starts from scratch. */
  weights: Uint8Array;
  losses: Float32Array;
  accuracies: Float32Array;
  tests: [step: number, accuracy: number][];
  /** Passes through the data, with the begun one's share. */
  epochs: number;
  /** The step at which each pass was over. */
  ends: number[];
  seen: Seen;
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

/** True if it was kept. `key` says which weights they are. */
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

/** What an older version of this page has kept is not read: it lies under other keys, and makes room with time. */
export const keptRun = (key: string) => quietly(() => get<Kept>(`run ${key}`));
export const dropRun = (key: string) => quietly(() => del(`run ${key}`));

/** Which run is being trained, so that a reload knows whether to train on; '' if none is. */
export const keepTraining = (key: string) => quietly(() => set('training', key));
export const keptTraining = () => quietly(() => get<string>('training'));

let claimed: { key: string; release: () => void } | undefined;

/** Whether this tab may keep the run of `key`: of several tabs with the same run, the first one may. */
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
