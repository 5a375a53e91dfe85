/** A dtype, by its name in NumPy. */
export type DType = 'float32' | 'float16' | 'int32' | 'uint32' | 'uint8' | 'bool';

/** The shape and dtype of an input or a result. */
export interface TensorSpec {
  readonly dtype: DType;
  readonly shape: readonly number[];
}

/** Numbers in row-major order, in a typed array of the input's dtype (`Uint8Array` for `bool`, `Uint16Array` of bits for `float16`). */
export type TypedArray = Float32Array | Int32Array | Uint32Array | Uint16Array | Uint8Array;

/** Numbers, also nested. */
export type Numbers = number | boolean | readonly Numbers[];

/** Numbers on the host, or a buffer of the model's device, which is read and never written. */
export type Input = TypedArray | Numbers | GPUBuffer;

/** INPUTS */
export type Inputs = _Inputs;

/** RESULTS */
export type Results = _Results;

export interface Model {
  /** Runs the model. A model with one input takes that, or an array with it; a model with one result returns that. */
  (inputs: Inputs, options?: { outputs?: 'arrays' }): Promise<Results>;
  /** Runs the model, and leaves the results on the GPU, in buffers that the caller destroys. */
  (inputs: Inputs, options: { outputs: 'buffers' }): Promise<_Buffers>;
  readonly inputs: readonly TensorSpec[];
  readonly outputs: readonly TensorSpec[];
  readonly device: GPUDevice;
  /** Frees the model's buffers, and its device, unless that was passed to `load`. */
  destroy(): void;
}

/**
 * Loads the model in the folder `url`, by default that of `model.mjs`.
 *
 * @param options.device the device to use; by default `load` requests one
 */
export function load(url?: string | URL, options?: { device?: GPUDevice }): Promise<Model>;
