// The kernels of a training step, as planned, and the time of each.

import { Tensor, type Device } from '../page-pkg/wgrad.js';
import type { Kernel } from './protocol';
import type { Run } from './run';

/** The kernels of the most recently submitted step; call this before anything else runs. */
export function kernelsOf(device: Device): Kernel[] {
  const plan = device.lastPlan();
  const kernels = plan?.kernels ?? [];
  plan?.free();
  return kernels.map(({ name, ops, result, bytes, flops, wgsl }) =>
    ({ name, ops, result, bytes, ...(flops === undefined ? {} : { flops }), wgsl }));
}

/** Trains one step with a timestamp around every kernel. */
export async function measured(device: Device, run: Run): Promise<{ kernels: Kernel[]; total: number; loss: Float32Array }> {
  const profiler = device.profile();
  const { loss, accuracy } = run.trainStep();
  const kernels = kernelsOf(device);
  const values = await Tensor.items([loss, accuracy]);
  const { kernels: times } = await profiler.finish();
  // Reads after the step run kernels too; the step's own kernels come first and in order.
  const left = [...times];
  for (const kernel of kernels) {
    const at = left.findIndex(({ label }) => label === kernel.name || label.startsWith(`${kernel.name} `));
    if (at < 0) continue;
    kernel.time = left[at]!.duration;
    left.splice(0, at + 1);
  }
  return { kernels, total: kernels.reduce((sum, { time = 0 }) => sum + time, 0), loss: values };
}
