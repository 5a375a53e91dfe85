// Under the hood, the check of this GPU, and what a visitor is told of an adapter.

import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { browserName } from './driver.mjs';
import { visitor } from './visit.mjs';

/** A model whose kernels compile at once. */
const SMALL = { model: 'custom', layers: 'flatten-dense_8_relu-dense_10_linear' };

describe(`what is under the hood in ${browserName}`, () => {
  const at = visitor();

  it('tunes, and tells what it found in a table', async () => {
    const page = await at.trained({ ...SMALL, stop: 2 });
    await page.click('#hood > summary');
    await page.click('#tune');
    const rows = await page.until(() => {
      const rows = [...document.querySelectorAll('#tuned > table > tbody > tr')];
      return rows.length > 0 && rows.map((row) => [...row.cells].map((cell) => cell.textContent));
    }, { what: 'the table', timeout: 200_000 });
    assert.ok(rows.some(([op]) => /^Product.*\[50, 784\] × \[784, 8\]/.test(op)), JSON.stringify(rows));
    for (const [op, chosen, time, , before, gain, tried] of rows) {
      assert.match(time, /^[\d.,]+ (µs|ms|s)$/, op);
      assert.match(before, /^[\d.,]+ (µs|ms|s)$/, op);
      assert.ok(Number(gain.replace(/ ×$/, '')) >= 0.5, gain);
      assert.match(tried, /^\d+ ways/, op);
      assert.ok(tried.includes(chosen), `${tried}: ${chosen}`);
    }
    assert.match(await page.text('#tune-note'), /were? measured|was measured/);
    await page.screenshot('tuned');
    // All is measured now.
    await page.click('#tune');
    await page.until(() => document.querySelector('#tune-note').textContent.startsWith('There was nothing to measure'), { what: 'nothing more' });
    assert.equal(await page.eval(() => document.querySelector('#tuned').hidden), true);
  });

  it('sums the plan up, and names the adapter', async () => {
    const page = await at.trained({ ...SMALL, stop: 3 });
    await page.click('#hood > summary');
    const kernels = await page.eval(() => document.querySelectorAll('#kernels tbody tr').length);
    assert.ok(kernels > 5, `${kernels} kernels`);
    assert.equal(await page.text('#plan-kernels'), String(kernels));
    assert.ok(Number(await page.text('#plan-ops')) >= kernels, await page.text('#plan-ops'));
    assert.match(await page.text('#plan-bytes'), /^[\d.]+ [kM]B$/);
    assert.match(await page.text('#plan-flops'), /^[\d.]+ [kM]flop$/);
    const [name, note] = [await page.text('#adapter'), await page.text('#adapter-note')];
    assert.doesNotMatch(name + note, /BrowserWebGpu/);
    assert.match(name, /\w+ \w+/);
    // Both browsers compute without a GPU where these tests run; Firefox gives no name.
    if (name === 'An adapter without a name') assert.match(note, /does not tell/);
    await page.screenshot('hood');
  });

  it('tells which kernel is compiled while the first step is under way', async () => {
    const init = () => {
      globalThis.told = [];
      const seen = () => {
        const text = document.querySelector('#status')?.textContent ?? '';
        if (text.startsWith('First step') && globalThis.told.at(-1) !== text) globalThis.told.push(text);
      };
      new MutationObserver(seen).observe(document, { subtree: true, childList: true, characterData: true });
    };
    const page = await at.visit({ model: 'cnn', start: 1, stop: 1 }, { init });
    await page.state('finished');
    const told = await page.eval(() => globalThis.told);
    assert.ok(told.length > 0, 'nothing was told');
    for (const text of told) {
      assert.match(text, /^First step: (compiling kernel \d+ of \d+( \([\w ,]+\))?|\d+ kernels are compiled and run for the first time)( on the processor)?; [\d.]+ m?s so far\.$/);
    }
    assert.match(await page.text('#status'), /^Finished/);
  });
});
