// Runs an exported model in a worker.
import { load } from '/exported/mlp/model.mjs';

globalThis.onmessage = async ({ data: { given } }) => {
  try {
    const model = await load();
    globalThis.postMessage({ found: [...await model(given)] });
  } catch (error) {
    globalThis.postMessage({ failure: error.message });
  }
};
