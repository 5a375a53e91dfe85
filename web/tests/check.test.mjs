// Under the hood, the check of this GPU, and the messages about an adapter.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { visits } from './visitor.mjs';

/** A model whose kernels compile immediately. */
const SMALL = { model: 'custom', layers: 'flatten-dense_8_relu-dense_10_linear' };

visits('what is under the hood', (at) => {
  it('tunes, and tells what it found in a table', async () => {
    const page = await at.train({ ...SMALL, stop: 2 });
    await page.unfold('#hood');
    await page.clickUntil('#tune', () => document.querySelector('#tune-note').textContent !== '');
    await page.until(() => !document.querySelector('#tune').hasAttribute('aria-busy'), { what: 'the end of tuning', timeout: 200_000 });
    const rows = await page.eval(() => [...document.querySelectorAll('#tuned > table > tbody > tr')].map((row) => [...row.cells].map((cell) => cell.textContent)));
    assert.ok(rows.length > 0, `${await page.text('#tune-note')}\n${await at.words()}`);
    assert.ok(rows.some(([op]) => /^Product.*\[50, 784\] × \[784, 8\]/.test(op)), JSON.stringify(rows));
    for (const [op, chosen, time, , before, gain, tried] of rows) {
      assert.match(time, /^[\d.,]+ (µs|ms|s)$/, op);
      assert.match(before, /^[\d.,]+ (µs|ms|s)$/, op);
      // The chosen variant is not slower than the one used without tuning.
      assert.ok(Number(gain.replace(/ ×$/, '')) >= 1, gain);
      assert.match(tried, /^\d+ ways/, op);
      assert.ok(tried.includes(chosen), `${tried}: ${chosen}`);
    }
    assert.match(await page.text('#tune-note'), /were? measured|was measured/);
    await page.screenshot('tuned');
    // Everything is measured now.
    await page.clickUntil('#tune', () => !document.querySelector('#tune-note').textContent.includes('measured. '));
    await page.until(() => document.querySelector('#tune-note').textContent.startsWith('There was nothing to measure'), { what: 'nothing more' });
    assert.equal(await page.eval(() => document.querySelector('#tuned').hidden), true);
  });

  it('sums the plan up, and names the adapter', async () => {
    const page = await at.train({ ...SMALL, stop: 3 });
    await page.unfold('#hood');
    const kernels = await page.eval(() => document.querySelectorAll('#kernels tbody tr').length);
    assert.ok(kernels > 5, `${kernels} kernels`);
    assert.equal(await page.text('#plan-kernels'), String(kernels));
    assert.ok(Number(await page.text('#plan-ops')) >= kernels, await page.text('#plan-ops'));
    assert.match(await page.text('#plan-bytes'), /^[\d.]+ [kM]B$/);
    assert.match(await page.text('#plan-flops'), /^[\d.]+ [kM]flop$/);
    const [name, note] = [await page.text('#adapter'), await page.text('#adapter-note')];
    assert.doesNotMatch(name + note, /BrowserWebGpu/);
    assert.match(name, /\w+ \w+/);
    // Both browsers compute without a GPU where these tests run; Firefox reports no name.
    if (name === 'An adapter without a name') assert.match(note, /does not tell/);
    await page.screenshot('hood');
  });

  it('tells which kernel is compiled while the first step is under way', async () => {
    const init = () => {
      globalThis.told = [];
      // A fast machine finishes the first step before the page would report it, so it reports more often here.
      const every = globalThis.setInterval;
      globalThis.setInterval = (call, period) => every(call, Math.min(period, 5));
      const seen = () => {
        const text = document.querySelector('#status')?.textContent ?? '';
        if (text.startsWith('First step') && globalThis.told.at(-1) !== text) globalThis.told.push(text);
      };
      new MutationObserver(seen).observe(document, { subtree: true, childList: true, characterData: true });
    };
    let page = await at.visit({ ...SMALL }, { init });
    await page.state('ready');
    // Nothing about a step is reported without a request.
    assert.deepEqual(await page.eval(() => globalThis.told), []);
    await page.close();
    page = await at.visit({ model: 'cnn', stop: 1 }, { init });
    await page.state('ready');
    // A single step compiles as much as the first of many.
    await page.click('#step-once');
    await page.state('finished');
    const told = await page.eval(() => globalThis.told);
    assert.ok(told.length > 0, 'nothing was told');
    for (const text of told) {
      assert.match(text, /^First step: (compiling kernel \d+ of \d+( \([\w ,]+\))?|\d+ kernels are compiled and run for the first time)( on the processor)?; [\d.]+ m?s so far\.$/);
    }
    assert.match(await page.text('#status'), /^Finished/);
  });
});

visits('the check of a GPU', (at) => {
  const begin = async (page) => {
    await page.eval(() => document.querySelector('#check-start').scrollIntoView({ block: 'center' }));
    await page.click('#check-start');
  };
  const result = (page) => page.until(() => document.querySelector('#check').dataset.result, { what: 'a result', timeout: 400_000 });

  it('runs the golden cases and a benchmark beside the training, and makes a report', async () => {
    const page = await at.shown({ ...SMALL, start: 1, stop: 0 });
    await at.reaches(3);
    await begin(page);
    await page.state('paused');
    const paused = (await page.facts()).step;
    assert.equal(await result(page), 'fine', await page.text('#check'));
    const [, ran] = /^(\d+) of \1 cases agree with TensorFlow 2\.\d+\.\d+, and training gives the losses of a native run/.exec(await page.text('#check-verdict')) ?? assert.fail(await page.text('#check-verdict'));
    assert.ok(Number(ran) >= 350, `${ran} cases`);
    const text = await page.text('#check-report');
    for (const family of ['unary', 'binary', 'reduction', 'matmul', 'conv', 'pool', 'softmax', 'array', 'gather']) {
      const [, passed, failed, error] = new RegExp(`\\| ${family} \\| (\\d+) \\| (\\d+) \\| ([\\d,.]+) % \\|`).exec(text) ?? assert.fail(`${family} is missing\n${text}`);
      assert.ok(Number(passed) > 0 && Number(failed) === 0 && Number(error) <= 100, text);
    }
    assert.match(text, /\| MLP \| \d\.\de-\d+ \|\n\| CNN \| \d\.\de-\d+ \|/);
    const figures = [...text.matchAll(/\| ([\d,.]+) \| (GFLOP\/s|GB\/s|ms|steps\/s) \|/g)].map(([, figure]) => Number(figure.replaceAll(',', '')));
    assert.equal(figures.length, 6, text);
    assert.ok(figures.every((figure) => figure > 0), text);
    assert.match(text, /^# wgrad on .+\n/);
    assert.ok(text.includes(await page.eval(() => navigator.userAgent.replaceAll('|', ' '))), text);
    assert.match(text, /\| wgrad \| \d+\.\d+\.\d+/);
    assert.match(text, /\| maxBufferSize \| \d+ \|/);
    await page.screenshot('checked');
    // Training was paused meanwhile, and continues.
    assert.ok(Number((await page.facts()).step) >= Number(paused));
    await page.state('training');
    await at.reaches(Number(paused) + 2);
  });

  it('can be stopped, and tells what it has found so far', async () => {
    const page = await at.shown(SMALL, { init: () => {
      globalThis.copied = '';
      Object.defineProperty(navigator, 'clipboard', { value: { writeText: async (text) => {
        if (globalThis.copied === undefined) throw new Error('not allowed');
        globalThis.copied = text;
      } } });
    } });
    await begin(page);
    await page.until(() => /^Case \d/.test(document.querySelector('#check-status').textContent), { what: 'cases' });
    await page.click('#check-stop');
    assert.equal(await result(page), 'stopped');
    assert.match(await page.text('#check-verdict'), /^Stopped\. So far \d+ of \d+ cases agree/);
    assert.match(await page.text('#check-report'), /cases \(\d+ of \d+ run\)/);
    assert.equal(await page.eval(() => document.querySelector('#check-start').disabled), false);
    await page.click('#check-copy');
    await page.until(() => document.querySelector('#check-copy').textContent === 'Copied', { what: 'a copy' });
    assert.equal(await page.eval(() => globalThis.copied), await page.text('#check-report'));
    // If a page may not use the clipboard, the text is selected.
    await page.eval(() => { globalThis.copied = undefined; });
    await page.click('#check-copy');
    await page.until(() => document.querySelector('#check-copy').textContent === 'Selected', { what: 'a selection' });
    assert.match(await page.eval(() => String(getSelection())), /^# wgrad on .+\n/);
  });

  // Both tests emulate workers without WebGPU: then the check runs on the page's thread, where it can be manipulated.
  it('tells in the report what a GPU computes wrongly', async () => {
    // On the page's thread, where exp is wrong; the training worker is not affected.
    const page = await at.shown(SMALL, { init: () => {
      globalThis.Worker = new Proxy(Worker, { construct: (Worker, [url, options]) => {
        if (!String(url).includes('check.js')) return new Worker(url, options);
        const without = { postMessage() {}, terminate() {} };
        setTimeout(() => without.onmessage({ data: { kind: 'hello', gpu: false } }));
        return without;
      } });
      const create = GPUDevice.prototype.createShaderModule;
      GPUDevice.prototype.createShaderModule = function (what) {
        return create.call(this, { ...what, code: what.code.replace(/\(0\.5 \+ r/g, '(0.6 + r') });
      };
    } });
    await begin(page);
    await page.until(() => Number(/^Case (\d+)/.exec(document.querySelector('#check-status').textContent)?.[1]) > 40, { what: 'cases' });
    await page.click('#check-stop');
    assert.equal(await result(page), 'failed');
    const text = await page.text('#check-report');
    assert.match(text, /## What did not pass\n\n\| case \| what \|\n\|---\|---\|\n(\| \w+ \| .+ \|\n)*\| exp_\w+ \| (gradient of x: )?element \d+ is [-\d.e]+, not [-\d.e]+ \|/);
    assert.match(text, /\| abs_vec \||\| unary \| [1-9]/);
  });

  it('tells what could not be loaded', async () => {
    const page = await at.shown(SMALL, { init: () => {
      globalThis.Worker = new Proxy(Worker, { construct: (Worker, [url, options]) => {
        if (!String(url).includes('check.js')) return new Worker(url, options);
        const without = { postMessage() {}, terminate() {} };
        setTimeout(() => without.onmessage({ data: { kind: 'hello', gpu: false } }));
        return without;
      } });
      const { fetch } = globalThis;
      globalThis.fetch = (url, ...rest) => fetch(String(url).replace('golden.bin.packed', 'no-golden'), ...rest);
    } });
    await begin(page);
    assert.equal(await result(page), 'failed');
    assert.match(await page.text('#check-verdict'), /^The check ended early: Error: golden\.bin\.packed: the server answered 404/);
    // The missing file is correctly reported on the console.
    page.problems.length = 0;
  });
});
