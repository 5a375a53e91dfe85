// Provides the module that loads models of other programs as `wgrad` to the tests, with an open device.
import init, * as wgrad from '../pkg/models/wgrad.js';

/** The files of a model by name, from the folders of the tests. */
globalThis.files = async (folder, names) => Object.fromEntries(await Promise.all(names.map(async (name) =>
  [name, new File([await (await fetch(`${folder}/${name}`)).arrayBuffer()], name.split('/').at(-1))])));

/** A tensor of plain values. */
globalThis.tensor = ({ shape, dtype, values }) => {
  const array = { F32: Float32Array, I32: Int32Array, I64: Int32Array, BOOL: Uint8Array }[dtype];
  const x = wgrad.Tensor.from(array.from(values), shape);
  return dtype === 'BOOL' ? x.toBool() : x;
};

/** The results of a model as plain values, by name. */
globalThis.plain = async (model, results) => {
  const all = results instanceof wgrad.Tensor ? { [model instanceof wgrad.GraphModel ? model.outputs[0].name : 'y']: results } : results;
  const entry = async ([name, y]) => [name, y instanceof wgrad.Tensor ? { shape: y.shape, values: [...await y.data()] } : y];
  return Object.fromEntries(await Promise.all(Object.entries(all).map(entry)));
};

/** The error of an action. */
globalThis.error = async (action) => {
  try {
    await action();
  } catch (error) {
    return `${error.name}: ${error.message}`;
  }
  return 'none';
};

globalThis.ready = (async () => {
  await init();
  globalThis.wgrad = wgrad;
  globalThis.device = await wgrad.Device.open();
})();
globalThis.ready.catch(() => {});
