// Memory that is not disposed of: the collector soon finds it, and an idle page releases it.

import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { serve } from '../serve.mjs';
import { browserName, launch, root } from './driver.mjs';

describe(`memory of a page that disposes of nothing in ${browserName}`, () => {
  let server;
  let browser;

  before(async () => {
    server = await serve([['/pkg/', path.join(root, 'web/pkg')], ['/tests/', path.join(root, 'web/tests')]]);
    browser = await launch();
  });

  after(async () => {
    await browser?.close();
    await server?.close();
  });

  async function open() {
    const page = await browser.page();
    await page.goto(`${server.url}tests/api.html`);
    await page.until(() => 'ready' in globalThis, { what: 'the script', timeout: 30_000 });
    await page.eval(() => globalThis.ready);
    return page;
  }

  /** Waits until the device holds at most `bytes`; returns what it holds. */
  const held = (page, bytes) => page.until(
    (most) => {
      const { liveBytes, pooledBytes } = device.stats();
      return liveBytes + pooledBytes <= most && { liveBytes, pooledBytes };
    },
    { what: `at most ${bytes} bytes`, timeout: 30_000 },
    bytes,
  );

  it('comes back from 200 pairs made in one go', async () => {
    const page = await open();
    const most = await page.eval(async () => {
      const values = new Float32Array(256 * 256).fill(1);
      let last;
      for (let i = 0; i < 200; i += 1) {
        const x = wgrad.Tensor.from(values, [256, 256]);
        last = x.add(i);
      }
      device.flush();
      const { liveBytes, pooledBytes } = device.stats();
      globalThis.sum = await last.sum().item();
      return liveBytes + pooledBytes;
    });
    assert.ok(most > 80e6, `only ${most} bytes were held`);
    const left = await held(page, 8e6);
    console.log(`  ${(most / 1e6).toFixed(1)} MB at most, then ${JSON.stringify(left)}`);
    assert.equal(await page.eval(() => globalThis.sum), 200 * 256 * 256);
    assert.deepEqual(page.problems, []);
    await page.close();
  });

  it('comes back while pairs are made and read', async () => {
    const page = await open();
    await page.eval(async () => {
      const values = new Float32Array(256 * 256).fill(1);
      for (let i = 0; i < 200; i += 1) {
        const x = wgrad.Tensor.from(values, [256, 256]);
        const y = x.add(i);
        device.flush();
        if (i % 10 === 0) await y.sum().item();
        else await new Promise((done) => setTimeout(done));
      }
    });
    await held(page, 8e6);
    assert.deepEqual(page.problems, []);
    await page.close();
  });

  it('stays where it is needed', async () => {
    const page = await open();
    const sums = await page.eval(async () => {
      const values = new Float32Array(256 * 256).fill(2);
      globalThis.kept = Array.from({ length: 160 }, () => wgrad.Tensor.from(values, [256, 256]).add(1));
      device.flush();
      // Longer than the time after which an idle page's pool is emptied.
      await new Promise((done) => setTimeout(done, 4000));
      const sums = await wgrad.Tensor.items(globalThis.kept.map((x) => x.mean()));
      return { sums: [...sums], live: device.stats().liveBytes };
    });
    assert.deepEqual(new Set(sums.sums), new Set([3]));
    assert.ok(sums.live >= 160 * 256 * 256 * 4);
    assert.deepEqual(page.problems, []);
    await page.close();
  });

  it('goes on after the pool was emptied', async () => {
    const page = await open();
    const got = await page.eval(async () => {
      const { Tensor } = wgrad;
      const compute = async () => {
        const all = Array.from({ length: 20 }, (_, i) => Tensor.full([512, 512], i).add(1));
        device.flush();
        const sums = [...await Tensor.items(all.map((x) => x.mean()))];
        for (const x of all) x.dispose();
        return sums;
      };
      const first = await compute();
      const before = device.stats().pooledBytes;
      const end = Date.now() + 20_000;
      while (device.stats().pooledBytes > 4 << 20 && Date.now() < end) await new Promise((done) => setTimeout(done, 200));
      return { before, idle: device.stats().pooledBytes, first, second: await compute() };
    });
    console.log(`  the pool had ${got.before} bytes, and ${got.idle} once idle`);
    assert.ok(got.before > 16 << 20, `${got.before} bytes in the pool`);
    assert.ok(got.idle <= 4 << 20, `${got.idle} bytes in the pool`);
    assert.deepEqual(got.first, Array.from({ length: 20 }, (_, i) => i + 1));
    assert.deepEqual(got.second, got.first);
    assert.deepEqual(page.problems, []);
    await page.close();
  });
});
