// Runs the model in this folder on WebGPU, in a page, a worker or a server. Written by wgrad; it needs no library.
//
//   import { load } from './model.mjs';
//   const model = await load();
//   const logits = await model(pixels);
//
// model.d.ts describes the arguments and results.

const ARRAYS = {
  float32: Float32Array,
  // The bits: not every browser has a Float16Array.
  float16: Uint16Array,
  int32: Int32Array,
  uint32: Uint32Array,
  uint8: Uint8Array,
  bool: Uint8Array,
};
// The names in safetensors files.
const FILE_DTYPES = { F32: 'float32', F16: 'float16', I32: 'int32', U32: 'uint32', U8: 'uint8', BOOL: 'bool' };
// Bytes of an element in the file and on the device.
const FILE_SIZE = { float32: 4, float16: 2, int32: 4, uint32: 4, uint8: 1, bool: 1 };
const SIZE = { ...FILE_SIZE, bool: 4 };

const count = (shape) => shape.reduce((product, size) => product * size, 1);
const up = (bytes, to) => Math.ceil(bytes / to) * to;
// Buffers hold whole vectors of four elements.
const room = ({ dtype, shape }) => Math.max(16, up(count(shape) * SIZE[dtype], 16));
const shown = ({ dtype, shape }) => `${dtype}[${shape.join(', ')}]`;

/** Loads the model from its folder; by default the one of this module. */
export async function load(url = new URL('.', import.meta.url), { device } = {}) {
  const folder = new URL(`${url}`.replace(/\/?$/, '/'), globalThis.location?.href ?? import.meta.url);
  const [text, file] = await Promise.all(['model.json', 'model.safetensors'].map((name) => read(new URL(name, folder))));
  const plan = parsePlan(text, folder);
  const values = valuesOf(plan, parseWeights(file, folder));
  if (device) require(plan, device, 'device', ' Request it with the device.');
  const own = !device;
  device ??= await requestDevice(plan);
  const buffers = [];
  try {
    const pipelines = await Promise.all(plan.kernels.map((kernel) => compile(device, kernel)));
    let failure;
    device.pushErrorScope('out-of-memory');
    try {
      for (const [at, size] of plan.buffers.entries()) buffers.push(makeBuffer(device, size, values.get(at)));
      buffers.push(makeUniforms(device, plan));
    } finally {
      failure = await device.popErrorScope();
    }
    if (failure) throw new Error(`load: the GPU has no memory for the model: ${failure.message}`);
    return makeModel({ device, own, plan, buffers, uniforms: buffers.at(-1), pipelines });
  } catch (error) {
    buffers.forEach((buffer) => buffer.destroy());
    if (own) device.destroy();
    throw error;
  }
}

async function read(url) {
  if (url.protocol === 'file:') {
    const { readFile } = await import('node:fs/promises');
    return new Uint8Array(await readFile(url)).buffer;
  }
  const answer = await fetch(url);
  if (!answer.ok) throw new Error(`load: ${url} answered ${answer.status} ${answer.statusText}. Copy the whole folder of the model.`);
  return answer.arrayBuffer();
}

function parsePlan(bytes, folder) {
  let plan;
  try {
    plan = JSON.parse(new TextDecoder().decode(bytes));
  } catch (error) {
    throw new Error(`load: model.json of ${folder} is damaged: ${error.message}`);
  }
  if (plan?.format !== 'wgrad-webgpu' || plan.version !== 1) {
    throw new Error(`load: model.json of ${folder} has the format ${plan?.format} ${plan?.version}, but model.mjs reads wgrad-webgpu 1. Export the model again.`);
  }
  return plan;
}

// The tensors of a safetensors file: { name: { dtype, shape, bytes } }.
function parseWeights(file, folder) {
  const damaged = (why) => new Error(`load: model.safetensors of ${folder} is damaged: ${why}. Copy it again.`);
  if (file.byteLength < 8) throw damaged(`it has ${file.byteLength} bytes`);
  const length = Number(new DataView(file).getBigUint64(0, true));
  if (length > file.byteLength - 8) throw damaged(`its header should have ${length} bytes`);
  let header;
  try {
    header = JSON.parse(new TextDecoder().decode(new Uint8Array(file, 8, length)));
  } catch (error) {
    throw damaged(error.message);
  }
  const weights = new Map();
  for (const [name, { dtype, shape, data_offsets: [start, end] = [] }] of Object.entries(header)) {
    if (name === '__metadata__') continue;
    const known = FILE_DTYPES[dtype];
    const size = known && count(shape) * FILE_SIZE[known];
    if (!known || !(start >= 0) || end - start !== size || 8 + length + end > file.byteLength) {
      throw damaged(`'${name}' is ${dtype}[${shape}] in bytes ${start} to ${end} of ${file.byteLength - 8 - length}`);
    }
    weights.set(name, { dtype: known, shape, bytes: new Uint8Array(file, 8 + length + start, size) });
  }
  return weights;
}

function require(plan, { features, limits }, what, remedy) {
  for (const feature of plan.features) {
    if (!features.has(feature)) throw new Error(`load: the model needs ${feature}, which the ${what} lacks.${remedy}`);
  }
  for (const [limit, least] of Object.entries(plan.limits)) {
    if (limits[limit] < least) throw new Error(`load: the model needs ${limit} ${least}, but the ${what} has ${limits[limit]}.${remedy}`);
  }
}

async function requestDevice(plan) {
  const gpu = globalThis.navigator?.gpu;
  if (!gpu) throw new Error('load: there is no WebGPU here. Use a browser that has it, over https or on localhost, or pass a device.');
  const adapter = await gpu.requestAdapter();
  if (!adapter) throw new Error('load: WebGPU found no adapter. Check that the GPU is not blocked.');
  require(plan, adapter, 'adapter', '');
  return adapter.requestDevice({ requiredFeatures: plan.features, requiredLimits: plan.limits });
}

// The weights by their buffers.
function valuesOf(plan, weights) {
  return new Map(plan.weights.map((weight) => {
    const found = weights.get(weight.name);
    if (!found) throw new Error(`load: model.safetensors lacks '${weight.name}', which is ${shown(weight)}. Export the model again.`);
    if (shown(found) !== shown(weight)) {
      throw new Error(`load: '${weight.name}' is ${shown(found)} in model.safetensors and ${shown(weight)} in model.json. Export the model again.`);
    }
    return [weight.buffer, found];
  }));
}

function makeBuffer(device, size, value) {
  const { STORAGE, COPY_SRC, COPY_DST } = GPUBufferUsage;
  const buffer = device.createBuffer({ size, usage: STORAGE | COPY_SRC | COPY_DST, mappedAtCreation: !!value });
  if (value) {
    const { dtype, bytes } = value;
    const range = buffer.getMappedRange();
    if (dtype === 'bool') new Uint32Array(range).set(bytes);
    else new Uint8Array(range).set(bytes);
    buffer.unmap();
  }
  return buffer;
}

// One buffer with the parameters of all steps; each binding gets its offset.
function makeUniforms(device, plan) {
  const all = plan.steps.flatMap((step) => step.bindings).filter((binding) => binding.uniform);
  let size = 0;
  for (const binding of all) {
    binding.offset = size;
    size += up(4 * binding.uniform.length, 256);
  }
  const buffer = device.createBuffer({ size: Math.max(size, 16), usage: GPUBufferUsage.UNIFORM, mappedAtCreation: true });
  const words = new Uint32Array(buffer.getMappedRange());
  for (const { offset, uniform } of all) words.set(uniform, offset / 4);
  buffer.unmap();
  return buffer;
}

async function compile(device, { wgsl, bindings }) {
  const entry = (type, binding) => ({ binding, visibility: GPUShaderStage.COMPUTE, buffer: { type } });
  const layout = device.createBindGroupLayout({ entries: bindings.map(entry) });
  const module = device.createShaderModule({ code: wgsl });
  const pipeline = await device.createComputePipelineAsync({
    layout: device.createPipelineLayout({ bindGroupLayouts: [layout] }),
    compute: { module, entryPoint: 'main' },
  });
  return { pipeline, layout };
}

function makeModel({ device, own, plan, buffers, uniforms, pipelines }) {
  let gone = null;
  device.lost.then(({ message }) => { gone ??= `the device was lost: ${message || 'no reason was given'}. Load the model again.`; });

  const bindGroup = (step, given) => {
    const resource = ({ buffer, size, offset, uniform }) => (uniform
      ? { buffer: uniforms, offset, size: 4 * uniform.length }
      : { buffer: given.get(buffer) ?? buffers[buffer], size });
    const entries = step.bindings.map((bound, binding) => ({ binding, resource: resource(bound) }));
    return device.createBindGroup({ layout: pipelines[step.kernel].layout, entries });
  };
  const groups = plan.steps.map((step) => bindGroup(step, new Map()));
  const takes = `the model takes ${plan.inputs.map(shown).join(' and ') || 'no inputs'}`;

  // Buffers for results on the host; a call takes one and returns it.
  const places = plan.outputs.map((output) => up(count(output.shape) * SIZE[output.dtype], 16));
  const staging = [];

  async function model(inputs, { outputs = 'arrays' } = {}) {
    if (gone) throw new Error(`model: ${gone}`);
    if (outputs !== 'arrays' && outputs !== 'buffers') throw new TypeError(`model: outputs is '${outputs}'; it can be 'arrays' or 'buffers'.`);
    const values = list(inputs).map((value, at) => checked(value, plan.inputs[at], at));
    // Nothing between here and the submission waits, so calls do not mix their inputs.
    device.pushErrorScope('validation');
    device.pushErrorScope('out-of-memory');
    const encoder = device.createCommandEncoder();
    const given = new Map();
    plan.inputs.forEach((input, at) => {
      const value = values[at];
      if (ArrayBuffer.isView(value)) device.queue.writeBuffer(buffers[input.buffer], 0, value);
      else if (value.usage & GPUBufferUsage.STORAGE && value.size >= room(input)) given.set(input.buffer, value);
      else encoder.copyBufferToBuffer(value, 0, buffers[input.buffer], 0, up(count(input.shape) * SIZE[input.dtype], 4));
    });
    const pass = encoder.beginComputePass();
    plan.steps.forEach((step, at) => {
      const direct = given.size && step.bindings.some(({ buffer }) => given.has(buffer));
      pass.setPipeline(pipelines[step.kernel].pipeline);
      pass.setBindGroup(0, direct ? bindGroup(step, given) : groups[at]);
      pass.dispatchWorkgroups(...step.workgroups);
    });
    pass.end();
    const from = (output) => given.get(output.buffer) ?? buffers[output.buffer];
    const { STORAGE, COPY_SRC, COPY_DST, MAP_READ } = GPUBufferUsage;
    let results;
    let host;
    if (outputs === 'buffers') {
      results = plan.outputs.map((output) => {
        const size = room(output);
        const copy = device.createBuffer({ size, usage: STORAGE | COPY_SRC | COPY_DST });
        encoder.copyBufferToBuffer(from(output), 0, copy, 0, size);
        return copy;
      });
    } else {
      const size = Math.max(16, places.reduce((sum, bytes) => sum + bytes, 0));
      host = staging.pop() ?? device.createBuffer({ size, usage: MAP_READ | COPY_DST });
      let place = 0;
      plan.outputs.forEach((output, at) => {
        if (places[at]) encoder.copyBufferToBuffer(from(output), 0, host, place, places[at]);
        place += places[at];
      });
    }
    device.queue.submit([encoder.finish()]);
    const ends = [device.popErrorScope(), device.popErrorScope(), host?.mapAsync(GPUMapMode.READ)];
    const failure = (await Promise.allSettled(ends)).map(({ value, reason }) => value ?? reason).find(Boolean);
    if (failure) {
      (results ?? [host]).forEach((buffer) => buffer.destroy());
      throw new Error(`model: ${gone ?? failure.message}`);
    }
    if (host) {
      let place = 0;
      results = plan.outputs.map((output, at) => {
        const stored = host.getMappedRange(place, places[at]).slice(0, count(output.shape) * SIZE[output.dtype]);
        place += places[at];
        return output.dtype === 'bool' ? Uint8Array.from(new Uint32Array(stored)) : new ARRAYS[output.dtype](stored);
      });
      host.unmap();
      if (gone) host.destroy();
      else staging.push(host);
    }
    return results.length === 1 ? results[0] : results;
  }

  // The inputs in order. A model with one input also takes that itself.
  function list(inputs) {
    if (plan.inputs.length === 1) {
      const listed = Array.isArray(inputs) && inputs.length === 1 && (ArrayBuffer.isView(inputs[0]) || isBuffer(inputs[0]));
      return listed ? inputs : [inputs];
    }
    const given = inputs ?? [];
    if (!Array.isArray(given) || given.length !== plan.inputs.length) {
      throw new TypeError(`model: ${takes}, in an array; it got ${Array.isArray(given) ? `${given.length} values` : typeof given}.`);
    }
    return given;
  }

  // A view of the input's bytes as the device stores them, or a buffer.
  function checked(value, input, at) {
    const wrong = (what) => new TypeError(`model: input ${at} is ${shown(input)}; it got ${what}.`);
    const { dtype, shape } = input;
    const elements = count(shape);
    if (isBuffer(value)) {
      const bytes = up(elements * SIZE[dtype], 4);
      const usable = value.usage & GPUBufferUsage.COPY_SRC || (value.usage & GPUBufferUsage.STORAGE && value.size >= room(input));
      if (value.size < bytes) throw wrong(`a buffer of ${value.size} bytes, which should have ${bytes}`);
      if (!usable) throw wrong(`a buffer that can be neither copied (COPY_SRC) nor bound (STORAGE, with ${room(input)} bytes)`);
      return value;
    }
    let array = value;
    if (Array.isArray(value) || typeof value === 'number' || typeof value === 'boolean') {
      const flat = [value].flat(Infinity);
      const strange = flat.find((number) => typeof number !== 'number' && typeof number !== 'boolean');
      if (strange !== undefined) throw wrong(`an array with a ${typeof strange} in it`);
      const { Float16Array } = globalThis;
      if (dtype !== 'float16') array = ARRAYS[dtype].from(flat);
      else if (Float16Array) array = new Uint16Array(Float16Array.from(flat).buffer);
      else throw wrong('an array of numbers, which this browser cannot round; pass the bits in a Uint16Array');
    }
    if (!(array instanceof ARRAYS[dtype])) {
      throw wrong(`${array?.constructor?.name ?? typeof array}; pass a ${ARRAYS[dtype].name}, an array of numbers or a GPUBuffer`);
    }
    if (array.length !== elements) throw wrong(`${array.length} elements, not ${elements}`);
    if (dtype === 'bool') array = Uint32Array.from(array, (truth) => Number(truth !== 0));
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    if (bytes.length % 4 === 0) return bytes;
    const whole = new Uint8Array(up(bytes.length, 4));
    whole.set(bytes);
    return whole;
  }

  model.inputs = plan.inputs.map(({ dtype, shape }) => ({ dtype, shape }));
  model.outputs = plan.outputs.map(({ dtype, shape }) => ({ dtype, shape }));
  model.device = device;
  model.destroy = () => {
    gone ??= 'it was destroyed. Load it again.';
    [...buffers, ...staging].forEach((buffer) => buffer.destroy());
    if (own) device.destroy();
  };
  return model;
}

const isBuffer = (value) => typeof GPUBuffer !== 'undefined' && value instanceof GPUBuffer;
