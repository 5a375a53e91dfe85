// A browser without a GPU: the advice, and a recording that plays. Also the message for a software adapter.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { pageMounts, serve } from '../serve.mjs';
import { browserName, isChromium, launch } from './driver.mjs';
import { visits } from './visitor.mjs';

/** Three strokes of a plain seven, as fractions of the drawing area. */
const SEVEN = [[0.25, 0.2], [0.72, 0.2], [0.45, 0.85]];

async function draw(page, points) {
  await page.eval(() => document.querySelector('#pad').scrollIntoView({ block: 'center' }));
  const box = await (await page.raw.$('#pad')).boundingBox();
  const at = ([x, y]) => [box.x + x * box.width, box.y + y * box.height];
  await page.raw.mouse.move(...at(points[0]));
  await page.raw.mouse.down();
  for (const point of points.slice(1)) await page.raw.mouse.move(...at(point), { steps: 12 });
  await page.raw.mouse.up();
}

describe(`a browser without WebGPU, ${browserName}`, () => {
  let server;
  let browser;

  before(async () => {
    server = await serve(pageMounts(), { base: '/some/where/' });
    browser = await launch({ webgpu: false });
  });

  after(async () => {
    await browser?.close();
    await server?.close();
  });

  async function visit(query, { init = '', ...options } = {}) {
    // Chromium defines this property even if it does not provide WebGPU.
    const page = await browser.page({ ...options, init: `delete Navigator.prototype.gpu; ${init}` });
    await page.goto(`${server.url}?${new URLSearchParams(query)}`);
    await page.until(() => document.documentElement.dataset.engine === 'recording', { what: 'the recording' });
    return page;
  }

  it('says what to do in this browser, and plays a recording that reads a drawn digit', async () => {
    const page = await visit({});
    const told = await page.text('#notices .notice[data-kind="no-webgpu"]');
    assert.match(told, isChromium ? /Chrome \d+ on Linux has WebGPU switched off\. .*chrome:\/\/flags\/#enable-unsafe-webgpu/ : /Firefox \d+ on Linux has WebGPU switched off\. .*about:config.*dom\.webgpu\.enabled/);
    assert.match(await page.text('#advice'), /^This is a recording\. A small network learnt in 1,500 steps, in Chrome \d+, on google swiftshader/);
    assert.equal(await page.state('training'), 'training');
    await page.until(() => Number(document.documentElement.dataset.step) > 60 && Number(document.documentElement.dataset.testAccuracy) > 0.3, { what: 'a network that has learnt' });
    await page.until(() => document.documentElement.dataset.stage === 'whole', { what: 'the whole page' });
    assert.match(await page.text('#status'), /^A recording plays/);
    await page.screenshot('recording');
    await page.click('#toggle');
    await page.state('paused');
    const { step } = await page.facts();
    await page.click('#step-once');
    await page.until((before) => Number(document.documentElement.dataset.step) === before + 1, { what: 'a step' }, Number(step));
    // At its end the network predicts as well as it did when it was recorded.
    await page.eval(() => { globalThis.reached = new Promise((done) => { new MutationObserver(() => {
      if (document.documentElement.dataset.state === 'finished') done();
    }).observe(document.documentElement, { attributes: true }); }); });
    await page.click('#toggle');
    await page.state('finished');
    const facts = await page.facts();
    assert.equal(facts.step, '1500');
    assert.ok(Number(facts.testAccuracy) > 0.85, facts.testAccuracy);
    assert.match(await page.text('#status'), /^The recording is over, after 1,500 steps/);
    assert.equal(await page.text('#toggle'), 'Play again');
    await draw(page, SEVEN);
    await page.until(() => document.querySelector('#guess').dataset.digit === '7', { what: 'a seven' });
    assert.ok(Number(await page.eval(() => document.querySelector('#guess').dataset.probability)) > 0.5);
    // From the beginning.
    await page.click('#toggle');
    await page.state('training');
    await page.until(() => Number(document.documentElement.dataset.step) < 500, { what: 'the beginning' });
    assert.deepEqual([...page.problems, ...await page.violations()], []);
    await page.close();
  });

  it('waits with the recording where the visitor wants less motion, and hides what cannot be set', async () => {
    const page = await visit({ start: 0 }, { width: 390, height: 844 });
    await page.state('ready');
    assert.equal(await page.text('#toggle'), 'Play');
    for (const area of ['setup', 'hood', 'check']) {
      await page.until((name) => getComputedStyle(document.querySelector(`.area-${name}`)).display === 'none', { what: area }, area);
    }
    assert.ok(await page.eval(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), 'wider than the window');
    await page.screenshot('recording-phone');
    assert.deepEqual([...page.problems, ...await page.violations()], []);
    await page.close();
  });

  it('says that the page has to come over a secure line', async () => {
    const page = await visit({ start: 0 }, { init: "Object.defineProperty(globalThis, 'isSecureContext', { get: () => false });" });
    assert.match(await page.text('#notices .notice[data-kind="no-webgpu"] p'), /only to secure pages\. Open this one by https, or from localhost/);
    await page.close();
  });

  for (const [agent, wanted] of [
    ['Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/109.0.0.0 Safari/537.36', /^No WebGPU here\. Chrome 109 on Windows does not offer WebGPU; version 113 does\. Update it/],
    ['Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/150.0.0.0 Safari/537.36 Edg/150.0.0.0', /Edge 150 on Windows has WebGPU switched off\. .*edge:\/\/flags\/#enable-unsafe-webgpu/],
    ['Mozilla/5.0 (Linux; Android 14; Pixel 8) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0.0.0 Mobile Safari/537.36', /Chrome 120 on Android does not offer WebGPU; version 121 does/],
    ['Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:140.0) Gecko/20100101 Firefox/140.0', /Firefox 140 on macOS does not offer WebGPU; version 145 does/],
    ['Mozilla/5.0 (Android 14; Mobile; rv:150.0) Gecko/150.0 Firefox/150.0', /Firefox 150 on Android has WebGPU switched off\. .*about:config/],
    ['Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1', /Safari 18 on iOS does not offer WebGPU\. Update to iOS 26/],
    ['Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15', /Safari 18 on macOS does not offer WebGPU; version 26 does/],
    ['Mozilla/5.0 (X11; Something)', /This browser on Linux does not offer WebGPU\. Chrome and Edge have it/],
  ]) {
    it(`knows ${agent.slice(12, 60)}…`, async () => {
      const init = `Object.defineProperty(Navigator.prototype, 'userAgent', { get: () => ${JSON.stringify(agent)} });`;
      const page = await visit({ start: 0 }, { init });
      assert.match(await page.text('#notices .notice[data-kind="no-webgpu"] p'), wanted);
      await page.close();
    });
  }
});

visits('adapters', (at) => {
  it('explains a browser without an adapter, and plays the recording', async () => {
    const page = await at.visit({ worker: 0, start: 1 }, { init: () => {
      GPU.prototype.requestAdapter = async () => null;
    } });
    await page.state('training');
    assert.match(await page.text('#notices .notice[data-kind="no-adapter"]'), isChromium ? /found no GPU for it\. .*chrome:\/\/settings\/system.*chrome:\/\/gpu/ : /found no GPU for it\. .*about:support/);
    await at.reaches(20);
    await page.screenshot('no-adapter');
    page.problems.length = 0;
  });

  it('says why a software adapter is slow, and how to get the GPU', async () => {
    const page = await at.shown();
    const { adapter } = await page.facts();
    // The machines that run these tests have no GPU for their browsers.
    assert.equal(adapter, 'software');
    const moved = () => page.eval(() => Math.round(document.querySelector('main').getBoundingClientRect().top));
    const before = await moved();
    await page.until(() => document.documentElement.dataset.slow !== undefined, { what: 'advice' });
    assert.equal(await moved(), before);
    await page.click('.either .link');
    assert.match(await page.text('#slow:popover-open'), isChromium ? /processor computes in its place \(.*swiftshader.*\).*chrome:\/\/gpu/i : /processor computes in its place.*about:support/);
    await page.screenshot('software');
  });
});
