// Gives the tests the package as `wgrad`, once a device is open; `ready` is what became of it.
import init, * as wgrad from '../pkg/wgrad.js';

globalThis.ready = (async () => {
  await init();
  globalThis.wgrad = wgrad;
  globalThis.device = await wgrad.Device.open();
})();
globalThis.ready.catch(() => {});
