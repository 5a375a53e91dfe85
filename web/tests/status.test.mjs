// The page's messages about its state, and its display before there is any data.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, it } from 'node:test';
import { isChromium } from './driver.mjs';
import { visits } from './visitor.mjs';

/** A model whose kernels compile immediately. */
const SMALL = { model: 'custom', layers: 'flatten-dense_8_relu-dense_10_linear' };

/** A server's MNIST: small, in the real format. */
const mnist = mkdtempSync(path.join(os.tmpdir(), 'wgrad-mnist-'));
after(() => rmSync(mnist, { recursive: true, force: true }));
for (const [role, count] of [['train', 60], ['t10k', 20]]) {
  const head = (magic, ...sizes) => [0, 0, 8, magic, ...sizes.flatMap((size) => [0, 0, size >>> 8, size & 255])];
  writeFileSync(path.join(mnist, `${role}-images-idx3-ubyte`), Uint8Array.from([...head(3, count, 28, 28), ...Array.from({ length: 784 * count }, (_, i) => i % 251)]));
  writeFileSync(path.join(mnist, `${role}-labels-idx1-ubyte`), Uint8Array.from([...head(1, count), ...Array.from({ length: count }, (_, i) => i % 10)]));
}

/** The server's answers wait for `comes`. */
let comes;
const coming = new Promise((done) => { comes = done; });
const late = (name, response) => {
  if (!name.endsWith('-ubyte')) return false;
  void coming.then(() => response.end(readFileSync(path.join(mnist, path.basename(name)))));
  return true;
};

/** Records every text of the status line in `told`. */
function listen() {
  globalThis.told = [];
  const seen = () => {
    const text = document.querySelector('#status')?.textContent ?? '';
    if (globalThis.told.at(-1) !== text) globalThis.told.push(text);
  };
  new MutationObserver(seen).observe(document, { subtree: true, childList: true, characterData: true });
}

visits('the status', (visitor) => {
  const told = () => visitor.page.eval(() => globalThis.told);

  it('does not ask for a start where the page starts by itself', async () => {
    const page = await visitor.visit({ ...SMALL, start: 1, stop: 3 }, { init: listen });
    await visitor.done(3);
    assert.deepEqual((await told()).filter((text) => /Press Start/.test(text)), []);
    // After that, the visitor starts the training.
    await page.click('#reset');
    await page.state('ready');
    assert.match(await page.text('#status'), /^Ready\. Press Start/);
  });

  it('tells of compiling also after a change of the model', async () => {
    const page = await visitor.train({ ...SMALL, stop: 1 }, { init: listen });
    // A fast machine finishes the first step before the page would report it, so it reports more often here.
    await page.eval(() => {
      globalThis.told = [];
      const every = globalThis.setInterval;
      globalThis.setInterval = (call, period) => every(call, Math.min(period, 5));
    });
    await page.eval(() => document.getElementById('model-cnn').click());
    await page.until(() => document.documentElement.dataset.step === '0', { what: 'a fresh run of the CNN' });
    await page.click('#step-once');
    await visitor.done(1);
    // When the status is written, all kernels may already be compiled.
    const counted = /^First step: (?:compiling kernel (?<at>\d+) of )?(?<of>\d+)\b/;
    const counts = (await told()).map((text) => counted.exec(text)).filter(Boolean);
    assert.ok(counts.length > 0, JSON.stringify(await told()));
    for (const { 0: text, groups: { at = 1, of } } of counts) {
      assert.ok(Number(at) >= 1 && Number(at) <= Number(of) && Number(of) < 80, text);
    }
    assert.match(await page.text('#status'), /^Finished/);
  });

  it('says when MNIST has come, and no longer that it is loading', async () => {
    const page = await visitor.train({ ...SMALL, data: 'auto', stop: 7 }, { init: listen });
    await page.until(() => document.querySelector('#status').textContent.startsWith('Finished'), { what: 'the end' });
    comes();
    const here = 'MNIST is here, and takes the place of the drawn digits when this epoch ends.';
    await page.until((text) => globalThis.told.includes(text), { what: 'MNIST' }, here);
    assert.equal((await page.facts()).data, 'drawn');
    assert.equal(await page.text('#status'), here);
    assert.equal(await page.eval(() => document.querySelector('#progress').hidden), true);
    await page.set('#stop', 45);
    await page.click('#toggle');
    // An epoch of the drawn digits is 40 steps.
    await visitor.reaches(41);
    await page.until(() => document.querySelector('#status').textContent.startsWith('Finished'), { what: 'the end' });
    assert.equal((await page.facts()).data, 'mnist');
  });
}, { mnist, instead: late });

visits('the page before its first step', (visitor) => {
  it('says what wgrad is, and outlines the network', async () => {
    const page = await visitor.visit({ ...SMALL });
    assert.match(await page.text('.top'), /wgrad trains neural networks on any GPU/);
    await page.until(() => document.documentElement.dataset.script, { what: 'the script' });
    await visitor.whole();
    await page.state('ready');
    await page.click('#pad-test');
    // The network is updated only when it is visible.
    await page.eval(() => document.querySelector('#network').scrollIntoView());
    await page.until(() => document.querySelector('#network-layers li') !== null, { what: 'the layers' });
    assert.ok(await page.eval(() => document.querySelector('#network .outline') === null));
    // The network's description is next to the drawing, not over it.
    const apart = await page.eval(() => {
      const [pad, small] = ['pad', 'pad-pixels'].map((id) => document.getElementById(id).getBoundingClientRect());
      return small.width > 20 && (small.top >= pad.bottom || small.left >= pad.right);
    });
    assert.ok(apart, 'the small picture covers the drawing');
  });

  it('moves nothing while it comes up, not even on a narrow screen', { skip: !isChromium && 'Firefox tells no layout shifts' }, async () => {
    for (const [width, height] of [[320, 640], [390, 844], [1280, 900]]) {
      const page = await visitor.visit({ ...SMALL, start: 1, stop: 60 }, { width, height, init: () => {
        globalThis.shifts = [];
        new PerformanceObserver((list) => {
          for (const { value, hadRecentInput, sources } of list.getEntries()) {
            if (!hadRecentInput) globalThis.shifts.push([value, sources.map(({ node }) => node?.id || node?.nodeName).join(' ')]);
          }
        }).observe({ type: 'layout-shift', buffered: true });
      } });
      await visitor.done(60);
      await visitor.whole();
      await page.until(() => document.querySelector('#confusion-note').textContent.includes('at step 60.'), { what: 'an evaluation' });
      await page.eval(() => scrollTo(0, 0));
      await page.screenshot(`first-step-${width}`);
      const shifts = await page.eval(() => globalThis.shifts);
      const sum = shifts.reduce((total, [value]) => total + value, 0);
      console.log(`  ${width} by ${height}: ${sum.toFixed(3)}`);
      // The recommended limit for a good page.
      assert.ok(sum < 0.1, `${width} by ${height}: ${JSON.stringify(shifts)}`);
      await visitor.leave();
    }
  });
});
