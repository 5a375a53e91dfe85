
/** The arrays that tensors are made from and read into. */
export type TypedArray = Float32Array | Int32Array | Uint32Array | Uint8Array;

/** The element type of a tensor, with TensorFlow's names. */
export type DType = 'float32' | 'float16' | 'int32' | 'uint32' | 'uint8' | 'bool';

/** Numbers or booleans in nested lists of equal lengths. */
export type Nested = number | boolean | readonly Nested[];

/** The other operand of a tensor's op: a number gets the tensor's dtype. */
export type Operand = Tensor | Variable | number | boolean;

/** The element-wise functions that layers apply to their outputs, with Keras's names. */
export type Activation =
  | 'linear' | 'relu' | 'relu6' | 'leaky_relu' | 'elu' | 'selu' | 'gelu' | 'sigmoid' | 'hard_sigmoid' | 'tanh'
  | 'softmax' | 'log_softmax' | 'softplus' | 'softsign' | 'silu' | 'swish' | 'mish' | 'exponential';

/** How initial weights are drawn, with Keras's names. */
export type Initializer =
  | 'glorot_uniform' | 'glorot_normal' | 'he_uniform' | 'he_normal' | 'lecun_uniform' | 'lecun_normal'
  | 'zeros' | 'ones';

/** Whether windows may extend beyond the image. */
export type Padding = 'same' | 'valid';

/** One number for both axes, or rows and columns. */
export type Pair = number | readonly [number, number];

/**
 * The loss that training minimizes. The cross-entropies expect logits: the last layer has no activation. With `fromLogits: false`, they
 * expect probabilities: the last layer has a softmax or a sigmoid.
 */
export type Loss =
  | 'sparseCategoricalCrossentropy' | 'categoricalCrossentropy' | 'categoricalFocalCrossentropy'
  | 'binaryCrossentropy' | 'binaryFocalCrossentropy' | 'categoricalHinge' | 'hinge' | 'squaredHinge'
  | 'meanSquaredError' | 'meanAbsoluteError' | 'huber' | 'logCosh' | 'cosineSimilarity' | 'poisson';

/** How a model is trained. */
export interface CompileOptions { optimizer: OptimizerConfig; loss?: OutputLosses; fromLogits?: boolean; metrics?: readonly 'accuracy'[]; }

/** The metrics that `fit` reports for a batch or an epoch. */
export interface Logs { loss: number; accuracy?: number; valLoss?: number; valAccuracy?: number; }

/** The metrics of each epoch. */
export interface History { loss: number[]; accuracy?: number[]; valLoss?: number[]; valAccuracy?: number[]; }

/** What `evaluate` measures. */
export interface Metrics { loss: number; accuracy?: number; }

/**
 * Callbacks for the events of `fit`; `this` is the object. `fit` awaits returned promises before the next epoch, and at the
 * end.
 */
export interface FitCallbacks {
  onTrainBegin?(): unknown;
  onTrainEnd?(logs: Logs): unknown;
  onEpochBegin?(epoch: number): unknown;
  onEpochEnd?(epoch: number, logs: Logs): unknown;
  onBatchBegin?(batch: number): unknown;
  /** Called some steps late: losses are read for many steps at once. */
  onBatchEnd?(batch: number, logs: Logs): unknown;
}

/** When `earlyStopping` ends a training. */
export interface EarlyStoppingOptions {
  /** The metric to watch; by default `valLoss`. */
  monitor?: keyof Logs;
  /** The smallest change that counts as an improvement; by default 0. */
  minDelta?: number;
  /** After how many epochs without an improvement the training ends; by default 0, which ends it at the first. */
  patience?: number;
  /** Whether to restore the weights of the best epoch; by default false. */
  restoreBestWeights?: boolean;
  /** The first epoch to watch. */
  startFromEpoch?: number;
}

/** What `earlyStopping` returns, a plain object. */
export interface EarlyStopping extends EarlyStoppingOptions { type: 'earlyStopping'; }

export interface FitOptions {
  /** The number of passes through the data; by default 1. */
  epochs?: number;
  /** Examples per step; by default 32. The last batch of an epoch may be smaller. */
  batchSize?: number;
  /** Whether each epoch visits the examples in a new order; by default true. */
  shuffle?: boolean;
  /** Measured after each epoch. */
  validationData?: Images | readonly [Tensors, Targets];
  /** Called after each step, some steps late: losses are read for many steps at once. Counts from 0 in each epoch. */
  onBatchEnd?: (batch: number, logs: Logs) => unknown;
  /** Called after each epoch, counted from 0. */
  onEpochEnd?: (epoch: number, logs: Logs) => unknown;
  /** An object with functions for the events of `fit`, or a list of such objects. */
  callbacks?: FitCallbacks | EarlyStopping | readonly (FitCallbacks | EarlyStopping)[];
  /** Stops training after the steps under way; `fit` then resolves with the history so far. */
  signal?: AbortSignal;
  /** The most steps between two moments at which the page may draw; by default as many as take about 10 ms. */
  yieldEvery?: number;
}

/** The values of the property `fault` of a `DeviceError`. */
export type DeviceFault = 'noAdapter' | 'lost' | 'outOfMemory' | 'limit' | 'mismatch' | 'validation';

/** Information about an adapter; `text` combines it in one line. */
export interface AdapterInfo { name: string; kind: string; backend: string; driver: string; text: string; }

/** What a device has done since it was opened, and the memory it holds. */
export interface DeviceStats {
  nodes: number; flushes: number; kernels: number; submits: number; planHits: number; planMisses: number;
  plans: number; planBytes: number; pipelines: number; bindGroups: number; reads: number; uploadedBytes: number; buffers: number;
  liveBytes: number; pooledBytes: number; peakBytes: number;
}

/** One dispatch of a plan. */
export interface PlannedKernel {
  name: string; ops: string; result: string; bytes: number; flops?: number;
  workgroups: [number, number, number]; wgsl: string;
}

/** One run of a kernel; times are microseconds. */
export interface ProfiledKernel { label: string; start: number; duration: number; bytes: number; flops?: number; }

/** What was recorded: every run, a table, and a trace for https://ui.perfetto.dev. */
export interface Profile { kernels: ProfiledKernel[]; text: string; trace: string; }

/**
 * One way to compute an op. `time` is in microseconds, and undefined if the variant was dropped before; `wrong` variants are
 * not used.
 */
export interface TunedVariant { name: string; time?: number; wrong: boolean; }

/** One op with its shapes, and the times of its variants. The first variant is the one used without tuning. */
export interface TunedOp { op: string; chosen: string; variants: TunedVariant[]; }

/** The result of `Device.tune`: the ops that it measured, and a table of them. */
export interface TuningReport { ops: TunedOp[]; text: string; }

/** What a function of `tfFunction` takes and returns. */
export type Nest = Tensor | number | string | boolean | null | undefined | readonly Nest[] | { readonly [key: string]: Nest };

/**
 * Makes a function of `f` that runs `f` only at the first call with each signature: each dtype and shape of the tensors among
 * its arguments, and each value of the other arguments. Later calls run the recorded ops as one plan, with the present values of
 * variables, learning rates and random generators. `f` takes up to six arguments, may assign variables and apply an optimizer,
 * and must not be async; it cannot read values. TensorFlow's `tf.function`.
 */
export function tfFunction<F extends (...args: Tensor[]) => Nest | void>(f: F): Traced<F>;
export function tfFunction<F extends (...args: never[]) => Nest | void>(f: F): Traced<F>;

/** A function of `tfFunction`. */
export type Traced<F> = F & {
  /** How many signatures were traced. */
  tracingCount(): number;
  /** What each trace has recorded, as text. */
  graphText(): string;
};

/**
 * Calls `f`, returns its result, and disposes of all other tensors that `f` made. `f` may return a tensor, or lists and
 * objects of tensors; it must not be async.
 */
export function tidy<T>(f: () => T): T;
