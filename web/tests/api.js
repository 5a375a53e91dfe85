// Provides the package as `wgrad` to the tests, with an open device; `ready` resolves once it is
// open.
import init, * as wgrad from '../pkg/wgrad.js';

globalThis.ready = (async () => {
  await init();
  globalThis.wgrad = wgrad;
  globalThis.device = await wgrad.Device.open();
})();
globalThis.ready.catch(() => {});
