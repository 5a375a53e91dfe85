// axe finds no violation on any page in any state; the tab order matches the visual order; nothing is wider than the window.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { it } from 'node:test';
import { isChromium } from './driver.mjs';
import { visits } from './visitor.mjs';

const axe = readFileSync(fileURLToPath(new URL('../node_modules/axe-core/axe.min.js', import.meta.url)), 'utf8');

visits('accessibility', (visitor) => {
  /** axe's violations, as `rule: element`, and the number of elements that it checked. */
  async function violations(page = visitor.page) {
    await page.eval(axe);
    const { found, passes } = await page.eval(async () => {
      const { violations, passes } = await globalThis.axe.run(document, { resultTypes: ['violations'] });
      const found = violations.flatMap(({ id, nodes }) => nodes.map((node) => `${id}: ${node.target.join(' ')} ${node.any.map(({ message }) => message).join(' ')}`));
      return { found, passes: passes.length };
    });
    assert.ok(passes > 20, `axe looked at ${passes} rules`);
    return found;
  }

  async function clean(state) {
    assert.deepEqual(await violations(), [], state);
    const [wide, window_] = await visitor.page.eval(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= window_, `${state}: ${wide} pixels in a window of ${window_}`);
    await visitor.page.screenshot(`axe-${state.replaceAll(/\W+/g, '-')}`);
  }

  const scheme = (name) => visitor.page.raw.emulateMediaFeatures([{ name: 'prefers-color-scheme', value: name }]);
  const unfold = () => visitor.page.eval(() => document.querySelectorAll('details').forEach((details) => { details.open = true; }));

  for (const [width, height] of [[1280, 800], [390, 844], [320, 640]]) {
    it(`has nothing to find at ${width} by ${height}: fresh, trained, unfolded, with messages`, { timeout: 300_000 }, async () => {
      await visitor.ready({ stop: 12, lr: 'much', batch: 50 }, { width, height });
      await clean(`${width} fresh with a message`);
      await visitor.page.eval(() => document.querySelector('.notice[data-kind] .close').click());
      await visitor.page.click('#toggle');
      await visitor.done(12);
      await visitor.page.until(() => document.querySelector('#confusion-note').textContent.includes('at step 12.'), { what: 'an evaluation' });
      await visitor.page.set('#batch', 'many');
      await unfold();
      await clean(`${width} trained and unfolded`);
      // The confusion matrix is complete.
      const table = await visitor.page.eval(() => {
        const { scrollWidth, clientWidth, scrollHeight, clientHeight } = document.querySelector('#confusion').parentElement;
        return [scrollWidth - clientWidth, scrollHeight - clientHeight];
      });
      assert.deepEqual(table, [0, 0]);
    });
  }

  it('has nothing to find in the dark, with a model of one’s own that does not fit, and restored', { timeout: 300_000, skip: !isChromium && 'Firefox’s driver cannot ask for the dark' }, async () => {
    await visitor.visit({ model: 'custom', layers: 'flatten-dense_9_linear', stop: 6 });
    await scheme('dark');
    await visitor.page.state('ready');
    await visitor.whole();
    await visitor.page.until(() => !document.querySelector('#model-error').hidden, { what: 'a word on the model' });
    await clean('dark refused model');
    await visitor.page.set('#layers > li:last-child input', '10');
    await visitor.page.until(() => document.querySelector('#model-error').hidden && !document.querySelector('#toggle').disabled, { what: 'a model that fits' });
    await visitor.page.click('#toggle');
    await visitor.done(6);
    await visitor.page.until(() => document.documentElement.dataset.kept === '6', { what: 'kept weights' });
    await visitor.page.raw.reload();
    await visitor.page.state('finished');
    await visitor.whole();
    await visitor.page.until(() => document.querySelector('#confusion-note').textContent.includes('at step 6.'), { what: 'an evaluation' });
    await unfold();
    await clean('dark restored');
  });

  it('has nothing to find where the device is lost for good', async () => {
    await visitor.ready();
    for (let loss = 1; loss <= 4; loss += 1) {
      await visitor.page.eval(() => document.querySelector('.notice[data-kind="lost"]')?.remove());
      await visitor.page.eval(() => document.querySelector('#lose-device').click());
      await visitor.page.until(() => document.querySelector('.notice[data-kind="lost"]') !== null, { what: `loss ${loss}` });
      if (loss < 4) await visitor.page.state('ready');
    }
    await visitor.page.state('error');
    await clean('lost for good');
  });

  for (const name of ['examples/index.html', 'examples/xor.html', 'examples/digits.html', 'examples/models.html', 'docs/web.html']) {
    it(`has nothing to find in ${name}`, async () => {
      for (const dark of isChromium ? [false, true] : [false]) {
        visitor.page = await visitor.browser.page({ width: 320, height: 640 });
        if (dark) await scheme('dark');
        await visitor.page.goto(`${visitor.server.url}${name}`);
        await visitor.page.until(() => !document.querySelector('#out') || document.querySelector('#out').textContent.includes('running on'), { what: 'a running example' });
        await clean(`${name} ${dark ? 'dark' : 'light'}`);
        const landmarks = await visitor.page.eval(() => ['header', 'nav', 'main', 'h1'].map((each) => document.querySelectorAll(each).length));
        assert.ok(landmarks.every((count) => count > 0), `header, nav, main, h1: ${landmarks}`);
        await visitor.leave();
      }
    });
  }

  for (const [width, height] of [[1280, 800], [800, 900], [390, 844]]) {
    it(`goes by the tab key as the eye does at ${width} by ${height}`, async () => {
      await visitor.train({ stop: 3 }, { width, height });
      await visitor.page.until(() => document.querySelector('#confusion-note').textContent.includes('at step 3.'), { what: 'an evaluation' });
      const order = await visitor.page.eval(() => {
        const focusable = [...document.querySelectorAll('a[href], button:not(:disabled), input:not([type=hidden]), select, summary, [tabindex="0"]')]
          .filter((element) => element.checkVisibility() && element.tabIndex >= 0);
        const jumps = [];
        // From top to bottom within a card, and from left to right within a row.
        for (const area of document.querySelectorAll('header, #controls, .card, footer')) {
          const own = focusable.filter((element) => area.contains(element) && element.closest('header, #controls, .card, footer') === area && element.type !== 'radio');
          for (const [i, element] of own.entries()) {
            if (i === 0) continue;
            const [a, b] = [own[i - 1].getBoundingClientRect(), element.getBoundingClientRect()];
            if (b.bottom <= a.top || (b.top < a.bottom && a.top < b.bottom && b.right <= a.left)) jumps.push([own[i - 1].id || own[i - 1].textContent, element.id || element.textContent]);
          }
        }
        // From card to card never upwards within a column.
        const cards = [...document.querySelectorAll('main .card')].map((card) => ({ name: card.querySelector('h2').textContent, ...card.getBoundingClientRect().toJSON() }));
        for (const [i, a] of cards.entries()) {
          for (const b of cards.slice(i + 1)) if (b.left < a.right && a.left < b.right && b.top < a.top) jumps.push([a.name, b.name]);
        }
        const positive = [...document.querySelectorAll('[tabindex]')].filter((element) => element.tabIndex > 0).length;
        return { count: focusable.length, jumps, positive };
      });
      assert.ok(order.count > 30, `${order.count} elements`);
      assert.deepEqual(order.jumps, []);
      assert.equal(order.positive, 0);
      // An element focused by the keyboard is not hidden under the bar.
      await visitor.page.eval(() => { scrollTo(0, document.body.scrollHeight); document.querySelector('#lr').focus(); });
      const [top, bar] = await visitor.page.eval(() => [document.activeElement.getBoundingClientRect().top, document.querySelector('#controls').getBoundingClientRect().bottom]);
      assert.ok(top >= bar - 1, `a field at ${top} under a bar that ends at ${bar}`);
    });
  }
});
