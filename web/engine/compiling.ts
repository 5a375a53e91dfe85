// Which kernel the browser compiles. It does so in a process of its own, one after the other, and asking for a kernel returns
// at once; so only the answers to questions that wait in line behind each kernel tell how far it is.

/** A type of the browser's, which TypeScript does not know here. */
interface Pipelines {
  createComputePipeline(descriptor: { label?: string }): unknown;
  pushErrorScope(filter: 'out-of-memory'): void;
  popErrorScope(): Promise<unknown>;
}

let tell: ((done: number, total: number, name: string) => void) | undefined;
let done = 0;
/** Those that are asked for and not done come last. */
let names: string[] = [];

/** Forgets the kernels that are done: the next run counts its own. */
export function countAgain(): void {
  names = names.slice(done);
  done = 0;
}

/** From now on `listener` hears of every kernel that is begun and done; `name` is the one under way, empty if none. */
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
    // Nothing happens within this scope, so it keeps no error from whom it concerns.
    this.pushErrorScope('out-of-memory');
    const answered = () => {
      done += 1;
      tell!(done, names.length, names[done] ?? '');
    };
    this.popErrorScope().then(answered, answered);
    return pipeline;
  };
}
