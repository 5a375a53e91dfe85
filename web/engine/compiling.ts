// Tracks which kernel the browser is compiling. It compiles in another process, one kernel after the other, and creating a
// kernel returns at once. So a query is queued behind each kernel, and its answer shows the progress.

/** A browser type that TypeScript does not know here. */
interface Pipelines {
  createComputePipeline(descriptor: { label?: string }): unknown;
  pushErrorScope(filter: 'out-of-memory'): void;
  popErrorScope(): Promise<unknown>;
}

let tell: ((done: number, total: number, name: string) => void) | undefined;
let done = 0;
/** The names of all kernels; those that are not done are last. */
let names: string[] = [];

/** Drops the kernels that are done, so that the next run has its own count. */
export function countAgain(): void {
  names = names.slice(done);
  done = 0;
}

/** From now on `listener` is called for every kernel that starts or ends; `name` is the current one, or empty. */
export function watchCompiling(listener: (done: number, total: number, name: string) => void): void {
  const known = tell !== undefined;
  tell = listener;
  const { GPUDevice } = globalThis as { GPUDevice?: { prototype: Pipelines } };
  if (known || !GPUDevice) return;
  const { prototype } = GPUDevice;
  const create = prototype.createComputePipeline;
  prototype.createComputePipeline = function (descriptor) {
    const pipeline = create.call(this, descriptor);
    names.push(descriptor.label ?? '');
    // Nothing runs within this scope, so it does not intercept another caller's error.
    this.pushErrorScope('out-of-memory');
    const answered = () => {
      done += 1;
      tell!(done, names.length, names[done] ?? '');
    };
    this.popErrorScope().then(answered, answered);
    return pipeline;
  };
}
