// Messages: in view, one per subject, each with a way to continue. Also if a part of the page does not load.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { isChromium } from './driver.mjs';
import { visits } from './visitor.mjs';

let broken;
/** Parts that the server lacks or answers differently, for one visit. */
const instead = (name, response, missing) => {
  if (!broken || !name.startsWith(`/${broken.part}`) || !/\.(js|packed)$/.test(name)) return false;
  broken.answer(response, missing);
  return true;
};

visits('messages', (visitor) => {
  const inView = (selector) => visitor.page.eval((at) => {
    const element = document.querySelector(at);
    const { top, bottom, height } = element.getBoundingClientRect();
    // If there is little room, long messages scroll in a separate box.
    const end = Math.min(bottom, element.parentElement.id === 'notices' ? element.parentElement.getBoundingClientRect().bottom : Infinity);
    return height > 0 && top >= 0 && end <= innerHeight && end - top >= Math.min(height, 80);
  }, selector);

  it('stay in view, however far one has scrolled', async () => {
    for (const [width, height] of [[1280, 800], [390, 844], [320, 480]]) {
      await visitor.visit({ lr: 'much', batch: -1 }, { width, height });
      const { page } = visitor;
      await page.state('ready');
      await visitor.whole();
      assert.match(await visitor.words(), /The address\. .*“much” is not.*“-1” is not/);
      for (const at of [0, 700, 1e5]) {
        await page.eval((y) => scrollTo(0, y), at);
        assert.ok(await inView('.notice[data-kind="settings"]'), `scrolled by ${at} in ${width} by ${height}`);
      }
      await page.screenshot(`notice-${width}`);
      await visitor.leave();
    }
  });

  it('on a model that does not fit stand in view in its card, and go when it fits again', async () => {
    const layers = new Array(12).fill('dense_16_relu').join('-');
    await visitor.visit({ model: 'custom', layers: `flatten-${layers}-dense_9_linear` }, { width: 1280, height: 800 });
    const { page } = visitor;
    await page.state('ready');
    await visitor.whole();
    await page.until(() => /The last layer gives \[batch, 9\]/.test(document.querySelector('#model-error').textContent), { what: 'a word on the model' });
    for (const id of ['#layers > li:first-child', '#layers > li:last-child']) {
      await page.eval((at) => document.querySelector(at).scrollIntoView({ block: 'center' }), id);
      assert.ok(await inView('#model-error'), `at ${id}`);
    }
    await page.screenshot('refused-model');
    await page.set('#layers > li:last-child input', '10');
    await page.until(() => document.querySelector('#model-error').hidden, { what: 'no word on the model' });
    // Invalid input is reported next to its field, and associated with it.
    await page.set('#layers > li:last-child input', 'ten');
    const [invalid, text] = await page.eval(() => {
      const field = document.querySelector('#layers > li:last-child input');
      return [field.getAttribute('aria-invalid'), document.getElementById(field.getAttribute('aria-describedby'))?.textContent];
    });
    assert.equal(invalid, 'true');
    assert.match(text, /A whole number from 1 to 4096; “ten” is not/);
  });

  it('on a field are tied to it, and go with the mistake', async () => {
    const page = await visitor.ready();
    await page.set('#batch', 'many');
    await page.set('#seed', '-4');
    const tied = (id) => page.eval((at) => {
      const field = document.querySelector(at);
      const ids = (field.getAttribute('aria-describedby') ?? '').split(' ').filter((id) => id.endsWith('-error'));
      return [field.getAttribute('aria-invalid'), ids.map((id) => document.getElementById(id).textContent)[0] ?? null];
    }, id);
    assert.deepEqual(await tied('#lr'), [null, null]);
    for (const id of ['#batch', '#seed']) {
      const [invalid, text] = await tied(id);
      assert.equal(invalid, 'true');
      assert.match(text, /“many” is not.*“-4” is not/);
    }
    await page.set('#batch', '20');
    await page.set('#seed', '4');
    assert.deepEqual([await tied('#batch'), await tied('#seed')], [[null, null], [null, null]]);
    assert.equal(await page.text('#settings-error'), '');
  });

  it('on the fourth loss of the device in a minute lead on to a new one, from the same step', async () => {
    const page = await visitor.ready({ stop: 0 });
    await page.click('#toggle');
    await visitor.reaches(5);
    for (let loss = 1; loss <= 3; loss += 1) {
      await page.eval(() => document.querySelector('.notice[data-kind="lost"]')?.remove());
      await page.eval(() => document.querySelector('#lose-device').click());
      await page.until(() => document.querySelector('.notice[data-kind="lost"]') !== null, { what: `a message on loss ${loss}` });
      await page.state('training');
      await visitor.reaches(await visitor.step() + 3);
    }
    await page.until(() => Number(document.documentElement.dataset.kept) > 0, { what: 'kept weights' });
    await page.eval(() => document.querySelector('#lose-device').click());
    await page.state('error');
    assert.match(await visitor.words(), /lost 4 times within a minute/);
    await page.screenshot('fourth-loss');
    // Errors caused by it neither hide the way to continue nor restart the stopped engine.
    await page.eval(() => {
      for (const id of ['evaluate', 'reset', 'step-once', 'pad-test', 'model-cnn', 'samples-more']) document.getElementById(id).click();
      document.querySelector('#samples button').click();
    });
    await new Promise((done) => setTimeout(done, 500));
    assert.equal((await page.facts()).state, 'error');
    assert.equal(await page.eval(() => document.querySelector('.notice[data-kind="lost"] .close')), null);
    await page.eval(() => document.getElementById('model-mlp').click());
    await page.click('.notice[data-kind="lost"] .action');
    await page.state('training');
    const restored = Number((await page.facts()).restored);
    assert.ok(restored > 0, 'it begins again');
    await visitor.reaches(restored + 5);
    assert.doesNotMatch(await visitor.words(), /was lost/);
  });

  const parts = {
    'engine.js': [/engine\.js could not be loaded/, 'error'],
    'wgrad_bg.wasm.packed': [/wgrad_bg\.wasm\.packed could not be loaded \(the server answered 404\)/, 'error'],
    later: [/A part of this page could not be loaded/, 'ready'],
  };
  for (const [part, [pattern, state]] of Object.entries(parts)) {
    it(`say that ${part} is missing, and offer to load the page again`, async () => {
      broken = { part, answer: (response, missing) => missing() };
      try {
        await visitor.visit();
        const { page } = visitor;
        await page.state(state);
        await page.until(() => document.querySelector('.notice[data-kind="error"]') !== null, { what: 'a message' });
        assert.match(await visitor.words(), pattern);
        page.problems.length = 0;
        broken = undefined;
        await page.click('.notice[data-kind="error"] .action');
        await page.state('ready');
        await visitor.whole();
        assert.equal(await visitor.words(), '');
      } finally {
        broken = undefined;
      }
    });
  }

  it('say that the script of the page is missing, also to those who want less motion', async () => {
    for (const answer of [(response, missing) => missing(), (response) => { response.setHeader('Content-Type', 'text/javascript'); response.end('this is no script'); }]) {
      broken = { part: 'main.js', answer };
      try {
        visitor.page = await visitor.browser.page({ width: 390, height: 844 });
        const { page } = visitor;
        // Firefox's driver cannot emulate reduced motion.
        if (isChromium) await page.raw.emulateMediaFeatures([{ name: 'prefers-reduced-motion', value: 'reduce' }]);
        await visitor.open();
        const visible = () => getComputedStyle(document.querySelector('#unloaded')).visibility === 'visible' && document.querySelector('#unloaded').offsetHeight > 20;
        assert.equal(await page.eval(visible), false, 'at once');
        await page.until(visible, { what: 'a word on main.js', timeout: 10_000 });
        await page.screenshot('no-script');
        page.problems.length = 0;
        await visitor.leave();
      } finally {
        broken = undefined;
      }
    }
    const page = await visitor.ready();
    assert.equal(await page.eval(() => document.querySelector('#unloaded').offsetHeight), 0);
  });
}, { instead });
