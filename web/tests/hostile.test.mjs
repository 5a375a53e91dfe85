// A visitor who does everything at once: the page stays usable, and shows correct information.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, it } from 'node:test';
import { mnistFolder } from '../serve.mjs';
import { isChromium } from './driver.mjs';
import { visits } from './visitor.mjs';

const files = mkdtempSync(path.join(os.tmpdir(), 'wgrad-hostile-'));
const mnist = mnistFolder();
/** MNIST arrives once this is resolved. */
let held;
const instead = (name, response, missing) => {
  if (!held || !/\/mnist\/train-images/.test(name)) return false;
  held.asked += 1;
  void held.promise.then(() => missing());
  return true;
};

visits('a hostile visitor', (visitor) => {
  after(() => rmSync(files, { recursive: true, force: true }));

  const click = (...ids) => visitor.page.eval((ids) => { for (const id of ids) document.getElementById(id).click(); }, ids);
  /** The page comes to rest, and then a single step adds exactly one step. */
  async function works() {
    const { page } = visitor;
    // All requests are done, and training has stopped.
    const now = () => page.eval(() => JSON.stringify([document.documentElement.dataset.state, document.documentElement.dataset.step, document.querySelector('#params').textContent]));
    for (let before = '', same = 0, waited = 0; same < 4; waited += 1) {
      assert.ok(waited < 200, `it does not come to rest: ${before}`);
      if ((await page.facts()).state === 'training') await page.click('#toggle');
      await new Promise((done) => setTimeout(done, 500));
      const after = await now();
      same = after === before ? same + 1 : 0;
      before = after;
    }
    await page.state('paused', 'ready', 'finished');
    const before = await visitor.step();
    await page.click('#step-once');
    await page.until((at) => Number(document.documentElement.dataset.step) === at, { what: `step ${before + 1}` }, before + 1);
    await page.until((at) => document.querySelector('#step').textContent === at, { what: 'the number of the step' }, String(before + 1));
    assert.equal(await visitor.words(), '');
  }

  it('clicks all buttons many times', async () => {
    await visitor.ready({ stop: 0 });
    for (let round = 0; round < 4; round += 1) {
      await click('toggle', 'toggle', 'step-once', 'toggle', 'reset', 'toggle', 'step-once', 'step-once', 'evaluate', 'reset', 'toggle');
      await click('pad-test', 'pad-clear', 'samples-more', 'weights-save', 'measure', 'toggle', 'evaluate', 'pad-test');
    }
    await works();
  });

  it('changes models, seeds and batches while it trains', async () => {
    await visitor.ready({ stop: 0, layers: 'flatten-dense_12_relu-dense_10_linear' });
    const { page } = visitor;
    await page.click('#toggle');
    await visitor.reaches(3);
    for (let round = 0; round < 3; round += 1) {
      await click('model-custom', 'model-mlp', 'model-custom');
      await page.set('#seed', round + 2);
      await page.set('#batch', 10 + round);
      await page.set('#optimizer', ['sgd', 'momentum', 'adam'][round]);
      await click('model-mlp');
      await page.set('#seed', 1);
    }
    // The run matches the form: MLP and seed 1, which had steps.
    await page.until(() => document.querySelector('#params').textContent === '79,510', { what: 'the MLP' });
    await works();
    assert.ok(await visitor.step() > 3);
  });

  it('chooses other data while MNIST is on its way, and starts afresh', { skip: mnist === undefined && 'MNIST IS ABSENT' }, async () => {
    let free;
    held = { asked: 0, promise: new Promise((resolve) => { free = resolve; }) };
    try {
      const page = await visitor.ready({ data: 'auto', stop: 0 });
      for (let i = 0; held.asked === 0 && i < 100; i += 1) await new Promise((done) => setTimeout(done, 100));
      assert.equal(held.asked, 1);
      await page.click('#toggle');
      await visitor.reaches(3);
      await click('reset');
      await page.set('#data-select', 'drawn');
      await page.until(() => /much like MNIST/.test(document.querySelector('#data-source').textContent), { what: 'drawn digits' });
      free();
      held = undefined;
      await new Promise((done) => setTimeout(done, 500));
      // The missing file is not needed any more, so no message mentions it.
      assert.equal(await visitor.words(), '');
      assert.equal((await page.facts()).data, 'drawn');
      page.problems.length = 0;
      // It is fetched when it is needed again.
      await page.set('#data-select', 'auto');
      await page.until(() => document.documentElement.dataset.data === 'mnist', { what: 'MNIST' });
      await works();
    } finally {
      held = undefined;
    }
  });

  it('is told that MNIST could not be loaded, and trains on drawn digits', { skip: mnist === undefined && 'MNIST IS ABSENT' }, async () => {
    held = { asked: 0, promise: Promise.resolve() };
    try {
      const page = await visitor.ready({ data: 'auto', stop: 0 });
      await page.until(() => document.querySelector('.notice[data-kind="file"]') !== null, { what: 'a word on MNIST' });
      assert.match(await visitor.words(), /train-images-idx3-ubyte(\.gz)?: the server answered 404\. Load the page again to try once more/);
      await page.until(() => /as MNIST could not be loaded/.test(document.querySelector('#data-source').textContent), { what: 'a word on the data' });
      await page.eval(() => document.querySelector('.notice .close').click());
      page.problems.length = 0;
      await works();
    } finally {
      held = undefined;
    }
  });

  it('loads weights while it trains, also those of another model', async () => {
    const page = await visitor.ready({ stop: 0, layers: 'flatten-dense_12_relu-dense_10_linear' });
    await page.eval(() => {
      const make = URL.createObjectURL.bind(URL);
      URL.createObjectURL = (blob) => {
        globalThis.saved = blob;
        return make(blob);
      };
      addEventListener('click', (event) => event.target.download && event.preventDefault(), true);
    });
    await page.click('#toggle');
    await visitor.reaches(5);
    await click('weights-save');
    const bytes = await page.until(async () => globalThis.saved && [...new Uint8Array(await globalThis.saved.arrayBuffer())]);
    const [own, cut, empty] = ['own', 'cut', 'empty'].map((name) => path.join(files, `${name}.safetensors`));
    writeFileSync(own, Uint8Array.from(bytes));
    writeFileSync(cut, Uint8Array.from(bytes.slice(0, 900)));
    writeFileSync(empty, '');
    await page.upload('#weights-load', own);
    await page.until(() => /own\.safetensors were loaded/.test(document.querySelector('.notice[data-kind="info"]')?.textContent), { what: 'a word on the weights' });
    const said = (pattern) => page.until((source) => new RegExp(source).test(document.querySelector('.notice[data-kind="weights"]')?.textContent), { what: pattern }, pattern);
    await page.upload('#weights-load', empty);
    await said('empty\\.safetensors is empty: it has 0 bytes');
    await page.upload('#weights-load', cut);
    await said('cut\\.safetensors: ');
    await click('model-custom');
    await page.until(() => document.querySelector('#params').textContent !== '79,510', { what: 'another model' });
    await page.upload('#weights-load', own);
    await said('own\\.safetensors: ');
    assert.equal(await page.eval(() => document.querySelectorAll('.notice[data-kind]:not([data-kind="info"])').length), 1);
    await page.eval(() => document.querySelectorAll('.notice .close').forEach((button) => button.click()));
    await works();
  });

  it('leaves the page and comes back', async () => {
    const page = await visitor.ready({ stop: 0 });
    await page.click('#toggle');
    await visitor.reaches(5);
    // Firefox's driver loses track of a page restored from the cache.
    for (let i = 0; i < (isChromium ? 2 : 1); i += 1) {
      await page.raw.goto(`${visitor.server.url}examples/index.html`);
      // Firefox's driver waits for a load event, which a page from the cache does not have.
      await page.eval(() => { setTimeout(() => history.back()); });
      await new Promise((done) => setTimeout(done, 1500));
      await page.state('ready', 'paused', 'training');
    }
    await visitor.whole();
    await page.eval(() => document.querySelectorAll('.notice[data-kind="info"] .close').forEach((button) => button.click()));
    await works();
  });
}, { instead });
