// The golden cases of TensorFlow; see golden.js.

/** A tensor as it is stored. */
export interface Stored {
  shape: number[];
  dtype: string;
  values: ArrayLike<number>;
}

export interface Case {
  name: string;
  family: string;
  op: string;
}

export const CALLS: Record<string, unknown>;
export function readSafetensors(bytes: ArrayBuffer): Record<string, Stored>;
export function isSayable(each: Case): boolean;
export function run(wgrad: unknown, each: Case, tensors: Record<string, Stored>): Promise<{ problems: string[]; error: number }>;
