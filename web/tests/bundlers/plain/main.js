// Shared by all the projects: opens the device and computes a sum.
import init, { Device, Tensor } from './node_modules/wgrad/wgrad.js';

async function main() {
  await init();
  await Device.open();
  return Tensor.from([1, 2, 3.5]).sum().item();
}

globalThis.result = main();
globalThis.result.catch(() => {}); // the test reads it
