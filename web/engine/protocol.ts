// The messages between the page and the engine, which is in a worker or on the same thread. They are plain data.

import type { Layer, Settings } from './settings';

/** The page's requests. Each is answered by one `Reply`. */
export interface Asks {
  /** The first request. `module` is the compiled library, `base` the page's address, `begun` the time of the navigation to it.
   * `memory` limits the bytes on the GPU; 0 means no limit. */
  open: { in: { settings: Settings; module: WebAssembly.Module; base: string; begun: number; resume: boolean; memory: number }; out: void };
  configure: { in: { settings: Settings }; out: void };
  start: { in: object; out: void };
  pause: { in: object; out: void };
  step: { in: object; out: void };
  reset: { in: object; out: void };
  /** Makes the model again from the weights stored last, perhaps with a smaller batch. */
  recover: { in: { settings: Settings }; out: void };
  files: { in: { files: { name: string; bytes: Uint8Array }[] }; out: { refused: string[] } };
  forgetFiles: { in: object; out: void };
  samples: { in: { of: 'train' | 'test'; from: number; count: number }; out: Digits & { from: number; of: number } };
  read: { in: { pixels: Uint8Array }; out: Reading };
  evaluate: { in: object; out: void };
  measure: { in: object; out: { kernels: Kernel[]; total: number } };
  save: { in: object; out: { bytes: Uint8Array; name: string } };
  load: { in: { name: string; bytes: Uint8Array }; out: void };
  tune: { in: object; out: { ops: TunedOp[] } };
  lose: { in: object; out: void };
}
export type AskName = keyof Asks;
export type Request = { [K in AskName]: { kind: K; id: number } & Asks[K]['in'] }[AskName];
export type Reply =
  | { kind: 'reply'; id: number; ok: true; value: unknown }
  | { kind: 'reply'; id: number; ok: false; fault: Fault };

/** An error, with its kind and the possible remedies. */
export interface Fault {
  kind: 'no-webgpu' | 'no-adapter' | 'lost' | 'memory' | 'file' | 'weights' | 'panic' | 'model' | 'error';
  text: string;
  /** False if the engine cannot continue by itself. */
  goesOn: boolean;
}

/** `finished`: all steps that the settings request are done. */
export type State = 'loading' | 'ready' | 'training' | 'paused' | 'finished' | 'error';

export type DataSource = 'mnist' | 'files' | 'drawn';

/** 28 by 28 images, one after the other, with their labels. */
export interface Digits {
  pixels: Uint8Array;
  labels: Uint8Array;
}

/** The outputs of the model and of each of its layers for a digit. */
export interface Reading {
  /** One probability per digit. */
  probabilities: Float32Array;
  layers: LayerResult[];
}

/** A layer's output for a digit. Values are left out for layers that pass on their input, and for huge ones. */
export interface LayerResult {
  name: string;
  layer: Layer;
  /** Without the batch axis; for images: height, width and channels. */
  shape: number[];
  values: Float32Array;
}

/** A layer's kernel; a huge one's values are left out. */
export interface LayerWeights {
  name: string;
  shape: number[];
  values: Float32Array;
  /** The distance of all the layer's weights from their initial values, relative to the length of those. */
  moved: number;
}

export interface Kernel {
  name: string;
  ops: string;
  result: string;
  bytes: number;
  flops?: number;
  /** Microseconds, once measured. */
  time?: number;
  wgsl: string;
}

/** A product or convolution that was measured; the first of its variants is the one used without tuning. */
export interface TunedOp {
  op: string;
  chosen: string;
  /** Times are microseconds. */
  variants: { name: string; time?: number; wrong: boolean }[];
}

export interface Adapter {
  /** Empty if the browser does not reveal it. */
  name: string;
  text: string;
  /** Computed on the processor, without a GPU. */
  software: boolean;
  limits: [name: string, value: number][];
  features: string[];
  timestamps: boolean;
}

/** Messages that the engine sends without a request. */
export type Event =
  | { kind: 'hello'; gpu: boolean }
  | { kind: 'state'; state: State }
  | { kind: 'progress'; what: string; loaded: number; total: number }
  /** Nothing is being loaded any more. `waits`: the new data is used after the present epoch. */
  | { kind: 'loaded'; what: string; waits: boolean }
  | { kind: 'adapter'; adapter: Adapter }
  | { kind: 'data'; source: DataSource; text: string; train: number; test: number }
  /** The visitor's files while some are missing, and the missing ones; empty once all are there. */
  | { kind: 'files'; taken: { role: string; name: string; count: number }[]; missing: string[] }
  /** `restored`: it continues with weights of an earlier visit; `wasTraining`: that visit ended during training. */
  | { kind: 'model'; summary: string; params: number; step: number; restored: boolean; wasTraining: boolean }
  /** The whole run so far. `ends` are the steps at which epochs ended. */
  | { kind: 'curves'; losses: Float32Array; accuracies: Float32Array; tests: [step: number, accuracy: number][]; epochs: number; ends: number[] }
  /**
   * `epochs` counts epochs so far, including the fraction of the present one; `ends` are the steps in this message that ended
   * one.
   */
  | { kind: 'points'; from: number; losses: Float32Array; accuracies: Float32Array; epochs: number; ends: number[] }
  | { kind: 'figures'; step: number; imagesPerSecond: number; stepMs: number; liveBytes: number; peakBytes: number;
      kernels: number; submits: number }
  /**
   * Until a run's first step in this visit is over: the number of kernels that the browser has compiled, of all requested ones,
   * and the current one.
   */
  | { kind: 'compiling'; done: number; total: number; name: string }
  | { kind: 'first-step'; afterStart: number; afterNavigation: number }
  /** `misread` starts with the most confident mistake. */
  | { kind: 'evaluation'; step: number; data: DataSource; accuracy: number; count: number; of: number; confusion: Uint32Array;
      misread: Digits & { guesses: Uint8Array; sure: Float32Array } }
  | { kind: 'weights'; step: number; layers: LayerWeights[] }
  /** The kernels of a training step, once some steps have run. */
  | { kind: 'kernels'; kernels: Kernel[] }
  /** `elsewhere`: another tab stores this run, so this one does not. */
  | { kind: 'kept'; step: number; elsewhere: boolean }
  | { kind: 'fault'; fault: Fault };

export type ToPage = Reply | Event;
/** The buffers of a message that are transferred instead of copied. */
export type Send = (message: ToPage, transfer?: Transferable[]) => void;
