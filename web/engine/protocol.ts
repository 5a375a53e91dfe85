// What the page and the engine say to each other, in a worker or beside each other. Only plain data.

import type { Layer, Settings } from './settings';

/** What the page asks for. Each is answered by one `Reply`. */
export interface Asks {
  /** The first. `module` is the compiled library, `base` the page's address, `begun` when it was navigated to. `memory` limits
   * the bytes on the GPU; 0 does not. */
  open: { in: { settings: Settings; module: WebAssembly.Module; base: string; begun: number; resume: boolean; memory: number }; out: void };
  configure: { in: { settings: Settings }; out: void };
  start: { in: object; out: void };
  pause: { in: object; out: void };
  step: { in: object; out: void };
  reset: { in: object; out: void };
  /** Smaller batch or not: makes the model again from the last kept weights. */
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

/** Something that went wrong, with what it is and what can be done. */
export interface Fault {
  kind: 'no-webgpu' | 'no-adapter' | 'lost' | 'memory' | 'file' | 'weights' | 'panic' | 'model' | 'error';
  text: string;
  /** False if the engine cannot go on by itself. */
  goesOn: boolean;
}

/** `finished`: all steps that the settings ask for are done. */
export type State = 'loading' | 'ready' | 'training' | 'paused' | 'finished' | 'error';

export type DataSource = 'mnist' | 'files' | 'drawn';

/** 28 by 28 images, one after the other, with their labels. */
export interface Digits {
  pixels: Uint8Array;
  labels: Uint8Array;
}

/** What the model and each of its layers make of a digit. */
export interface Reading {
  /** Of each digit. */
  probabilities: Float32Array;
  layers: LayerResult[];
}

/** What a layer makes of a digit. Of layers that pass on what they are given, and of huge ones, the values are left out. */
export interface LayerResult {
  name: string;
  layer: Layer;
  /** Without the batch; of images height, width and channels. */
  shape: number[];
  values: Float32Array;
}

/** A layer's kernel; a huge one's values are left out. */
export interface LayerWeights {
  name: string;
  shape: number[];
  values: Float32Array;
  /** How far all the layer's weights are from where they began, as a share of their length there. */
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

/** A product or convolution that was measured; of its variants the first is what is taken without measuring. */
export interface TunedOp {
  op: string;
  chosen: string;
  /** Times are microseconds. */
  variants: { name: string; time?: number; wrong: boolean }[];
}

export interface Adapter {
  /** Empty where the browser keeps it to itself. */
  name: string;
  text: string;
  /** Computed on the processor, without a GPU. */
  software: boolean;
  limits: [name: string, value: number][];
  features: string[];
  timestamps: boolean;
}

/** What the engine tells without being asked. */
export type Event =
  | { kind: 'hello'; gpu: boolean }
  | { kind: 'state'; state: State }
  | { kind: 'progress'; what: string; loaded: number; total: number }
  /** Nothing is loading any more. `waits`: what came is used once the present epoch ends. */
  | { kind: 'loaded'; what: string; waits: boolean }
  | { kind: 'adapter'; adapter: Adapter }
  | { kind: 'data'; source: DataSource; text: string; train: number; test: number }
  /** The visitor's files that wait for others, and which those are; none when they wait no more. */
  | { kind: 'files'; taken: { role: string; name: string; count: number }[]; missing: string[] }
  /** `restored`: it goes on from weights of an earlier visit, which left it training or not. */
  | { kind: 'model'; summary: string; params: number; step: number; restored: boolean; wasTraining: boolean }
  /** All of the run so far. `ends` are the steps at which passes through the data were over. */
  | { kind: 'curves'; losses: Float32Array; accuracies: Float32Array; tests: [step: number, accuracy: number][]; epochs: number; ends: number[] }
  /** `epochs` counts the passes through the data so far, with the begun one's share; `ends` are the steps here that ended one. */
  | { kind: 'points'; from: number; losses: Float32Array; accuracies: Float32Array; epochs: number; ends: number[] }
  | { kind: 'figures'; step: number; imagesPerSecond: number; stepMs: number; liveBytes: number; peakBytes: number;
      kernels: number; submits: number }
  /** Until the first step of a run in this visit is over: kernels that the browser was asked to compile, how many it has, and the one under way. */
  | { kind: 'compiling'; done: number; total: number; name: string }
  | { kind: 'first-step'; afterStart: number; afterNavigation: number }
  /** `misread` begins with the one that the network was surest of. */
  | { kind: 'evaluation'; step: number; data: DataSource; accuracy: number; count: number; of: number; confusion: Uint32Array;
      misread: Digits & { guesses: Uint8Array; sure: Float32Array } }
  | { kind: 'weights'; step: number; layers: LayerWeights[] }
  /** Those of a training step, once some have run. */
  | { kind: 'kernels'; kernels: Kernel[] }
  /** `elsewhere`: another tab keeps this run, so this one does not. */
  | { kind: 'kept'; step: number; elsewhere: boolean }
  | { kind: 'fault'; fault: Fault };

export type ToPage = Reply | Event;
/** The buffers of a message that are handed over rather than copied. */
export type Send = (message: ToPage, transfer?: Transferable[]) => void;
