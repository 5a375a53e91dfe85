
/** What tensors are made from and read into. */
export type TypedArray = Float32Array | Int32Array | Uint32Array | Uint8Array;

/** The element type of a tensor, by TensorFlow's names. */
export type DType = 'float32' | 'float16' | 'int32' | 'uint32' | 'uint8' | 'bool';

/** Numbers or truth values in nested lists of equal lengths. */
export type Nested = number | boolean | readonly Nested[];

/** What may stand beside a tensor: a number takes the tensor's dtype. */
export type Operand = Tensor | Variable | number | boolean;

/** The element-wise functions that layers apply to their results, by Keras's names. */
export type Activation =
  | 'linear' | 'relu' | 'relu6' | 'leaky_relu' | 'elu' | 'selu' | 'gelu' | 'sigmoid' | 'hard_sigmoid' | 'tanh'
  | 'softmax' | 'log_softmax' | 'softplus' | 'softsign' | 'silu' | 'swish' | 'mish' | 'exponential';

/** How the start values of weights are drawn, by Keras's names. */
export type Initializer =
  | 'glorot_uniform' | 'glorot_normal' | 'he_uniform' | 'he_normal' | 'lecun_uniform' | 'lecun_normal'
  | 'zeros' | 'ones';

/** How far windows may leave the image. */
export type Padding = 'same' | 'valid';

/** One number for both axes, or rows and columns. */
export type Pair = number | readonly [number, number];

/** What training makes small. The cross-entropies take logits: the last layer has no activation. */
export type Loss =
  | 'sparseCategoricalCrossentropy' | 'categoricalCrossentropy' | 'categoricalFocalCrossentropy'
  | 'binaryCrossentropy' | 'binaryFocalCrossentropy' | 'categoricalHinge' | 'hinge' | 'squaredHinge'
  | 'meanSquaredError' | 'meanAbsoluteError' | 'huber' | 'logCosh' | 'cosineSimilarity' | 'poisson';

/** How a model is trained. */
export interface CompileOptions { optimizer: OptimizerConfig; loss?: Loss; metrics?: readonly 'accuracy'[]; }

/** What `fit` tells of a batch or an epoch. */
export interface Logs { loss: number; accuracy?: number; valLoss?: number; valAccuracy?: number; }

/** The values of each epoch. */
export interface History { loss: number[]; accuracy?: number[]; valLoss?: number[]; valAccuracy?: number[]; }

/** Data to train with: images, or tensors whose first axis counts the examples. */
export type Examples = Images | Tensor;

/** Hears of what `fit` does; `this` is the object. `fit` waits for what they return before the next epoch, and at the end. */
export interface FitCallbacks {
  onTrainBegin?(): unknown;
  onTrainEnd?(logs: Logs): unknown;
  onEpochBegin?(epoch: number): unknown;
  onEpochEnd?(epoch: number, logs: Logs): unknown;
  onBatchBegin?(batch: number): unknown;
  /** Some steps late: losses are read for many steps at once. */
  onBatchEnd?(batch: number, logs: Logs): unknown;
}

/** When `earlyStopping` ends a training. */
export interface EarlyStoppingOptions {
  /** What is watched; `valLoss` unless given. */
  monitor?: keyof Logs;
  /** What counts as better: by more than this; 0 unless given. */
  minDelta?: number;
  /** For how many epochs it may get no better; 0 unless given. */
  patience?: number;
  /** Whether the model then gets the weights of its best epoch; false unless given. */
  restoreBestWeights?: boolean;
  /** Epochs before this one do not count. */
  startFromEpoch?: number;
}

/** What `earlyStopping` makes, a plain object. */
export interface EarlyStopping extends EarlyStoppingOptions { type: 'earlyStopping'; }

export interface FitOptions {
  /** How often to go through the data; 1 unless given. */
  epochs?: number;
  /** Examples in a step; 32 unless given. The last batch of an epoch may be smaller. */
  batchSize?: number;
  /** Whether each epoch takes the examples in an order of its own; so it is unless given. */
  shuffle?: boolean;
  /** Measured after each epoch. */
  validationData?: Images | readonly [Tensor, Tensor];
  /** Called after each step, some steps late: losses are read for many steps at once. Counts from 0 in each epoch. */
  onBatchEnd?: (batch: number, logs: Logs) => unknown;
  /** Called after each epoch, counted from 0. */
  onEpochEnd?: (epoch: number, logs: Logs) => unknown;
  /** An object with functions for what `fit` tells, or a list of them. */
  callbacks?: FitCallbacks | EarlyStopping | readonly (FitCallbacks | EarlyStopping)[];
  /** Stops training after the steps that are under way; `fit` then returns what it has. */
  signal?: AbortSignal;
  /** The most steps between two moments at which the page may draw; as many as take about 10 ms unless given. */
  yieldEvery?: number;
}

/** What `DeviceError`s carry in their property `fault`. */
export type DeviceFault = 'noAdapter' | 'lost' | 'outOfMemory' | 'limit' | 'mismatch' | 'validation';

/** What is known of an adapter; `text` says it all in one line. */
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

/** One way to compute an op. `time` is microseconds, undefined if it was set aside before; `wrong` ones are not used. */
export interface TunedVariant { name: string; time?: number; wrong: boolean; }

/** One op with its shapes, and how fast its variants are. The first is what is taken without measuring. */
export interface TunedOp { op: string; chosen: string; variants: TunedVariant[]; }

/** What `Device.tune` has found: the ops that it measured, and a table of them. */
export interface TuningReport { ops: TunedOp[]; text: string; }

/**
 * Calls `f`, returns what it returns, and disposes of all other tensors that were made meanwhile. `f` may return a
 * tensor, or lists and objects of tensors; it must not be async.
 */
export function tidy<T>(f: () => T): T;
