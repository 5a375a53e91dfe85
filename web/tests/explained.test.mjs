// The page's explanations: presets, and the meaning of its terms.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { visits } from './visitor.mjs';

visits('the page explains itself', (at) => {
  const pressed = () => at.page.eval(() => [...document.querySelectorAll('#preset-list [aria-pressed="true"]')].map(({ dataset }) => dataset.preset));
  const settings = () => at.page.eval(() => Object.fromEntries(new URLSearchParams(location.search)));

  it('trains with the settings of each preset, and says what to watch', async () => {
    await at.ready({ batch: 20 });
    assert.deepEqual(await pressed(), []);
    const wanted = {
      'large-rate': { model: 'mlp', lr: '0.3', batch: '50' },
      'no-hidden': { model: 'custom', layers: 'flatten-dense_10_linear', lr: '0.001', batch: '50' },
      own: { model: 'custom', batch: '50' },
      'tiny-batch': { model: 'mlp', batch: '4', lr: '0.001' },
    };
    const texts = new Set();
    for (const [preset, set] of Object.entries(wanted)) {
      await at.page.click(`[data-preset="${preset}"]`);
      assert.deepEqual(await pressed(), [preset]);
      const now = await settings();
      for (const [name, value] of Object.entries(set)) assert.equal(now[name], value, `${preset}: ${name}`);
      texts.add(await at.page.text('#preset-note'));
      // 784 x 10 weights and 10 biases.
      if (preset === 'no-hidden') await at.page.until(() => document.querySelector('#params').textContent === '7,850', { what: 'a model of one layer' });
      await at.page.state('training');
      await at.reaches(2);
    }
    assert.equal(texts.size, 4);
    // After a manual change, the settings are not a preset any more.
    await at.page.set('#lr', 0.002);
    await at.page.until(() => document.querySelectorAll('#preset-list [aria-pressed="true"]').length === 0, { what: 'no preset' });
    await at.page.screenshot('presets');
  });

  it('shows a learning rate that is too large for what it is', async () => {
    await at.ready();
    await at.page.click('[data-preset="large-rate"]');
    await at.reaches(150);
    const losses = JSON.parse((await at.page.facts()).losses);
    assert.ok(Math.max(...losses) > 2 * losses[0], `from ${losses[0]} to ${Math.max(...losses)} at most`);
  });

  it('draws the run before in grey, to compare with', async () => {
    await at.ready({ stop: 40 });
    const [key, grey] = [() => at.page.eval(() => !document.querySelector('#curves-before').hidden), () => at.page.eval(() => {
      const canvas = document.querySelector('#loss-chart canvas');
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      const [r, g, b] = [0xa9, 0xaa, 0xa8];
      let count = 0;
      for (let i = 0; i < data.length; i += 4) count += data[i] === r && data[i + 1] === g && data[i + 2] === b && data[i + 3] === 255;
      return count;
    })];
    await at.page.click('#toggle');
    await at.page.state('finished');
    assert.equal(await key(), false);
    assert.equal(await grey(), 0);
    await at.page.click('#reset');
    await at.page.state('ready');
    // Far from the previous run, so that nothing covers its line.
    await at.page.set('#lr', 0.00001);
    await at.page.until(() => !document.querySelector('#curves-before').hidden, { what: 'the run before' });
    assert.ok(await grey() > 50, `${await grey()} grey pixels`);
    // After a lost device is replaced, the same run continues.
    await at.page.click('#toggle');
    await at.page.state('finished');
    await new Promise((done) => setTimeout(done, 600));
    const before = await grey();
    assert.ok(before > 50, `${before} grey pixels`);
    await at.page.eval(() => document.querySelector('#hood').setAttribute('open', ''));
    await at.page.click('#lose-device');
    await at.page.until(() => document.querySelector('.notice[data-kind="lost"]') !== null, { what: 'a notice on the loss' });
    await new Promise((done) => setTimeout(done, 600));
    assert.equal(await grey(), before);
  });

  it('keeps the layers of the visitor when another preset comes in between', async () => {
    await at.ready({ model: 'custom', layers: 'flatten-dense_12_tanh-dense_10_linear' });
    for (const preset of ['tiny-batch', 'own']) await at.page.click(`[data-preset="${preset}"]`);
    assert.equal((await settings()).layers, 'flatten-dense_12_tanh-dense_10_linear');
    assert.deepEqual(await at.page.eval(() => [...document.querySelectorAll('#layers li')].map(({ dataset }) => dataset.type)), ['flatten', 'dense', 'dense']);
    // After the preset without a hidden layer, "Your own" starts with layers that are worth
    // changing.
    for (const preset of ['no-hidden', 'own']) await at.page.click(`[data-preset="${preset}"]`);
    assert.match((await settings()).layers, /^conv2d_/);
  });

  it('leaves the run of the visitor as it was, and leads back to it', async () => {
    await at.train({ stop: 12, seed: 5, batch: 20 });
    const losses = (await at.page.facts()).losses;
    for (const preset of ['tiny-batch', 'large-rate']) {
      await at.page.click(`[data-preset="${preset}"]`);
      await at.page.until((own) => document.documentElement.dataset.losses !== own && Number(document.documentElement.dataset.step) >= 2, { what: preset }, losses);
    }
    await at.page.click('#preset-back');
    await at.page.until((own) => document.documentElement.dataset.losses === own, { what: 'the run before' }, losses);
    assert.equal((await at.page.facts()).step, '12');
    const { seed, batch, lr } = await settings();
    assert.deepEqual([seed, batch, lr ?? '0.001'], ['5', '20', '0.001']);
    assert.equal(await at.page.eval(() => document.querySelector('#preset-back').hidden), true);
  });

  it('tells what a word means, by pointer, by tap and in a list', async () => {
    await at.ready();
    const tip = () => at.page.eval(() => {
      const element = document.querySelector('#tip');
      const { left, right, top, bottom } = element.getBoundingClientRect();
      return element.matches(':popover-open') && left >= 0 && right <= innerWidth && top >= 0 && bottom <= innerHeight && element.textContent;
    });
    const shown = (what) => at.page.until(() => document.querySelector('#tip').matches(':popover-open'), { what, timeout: 5000 });
    await at.page.raw.hover('dt[data-tip="epoch"]');
    await shown('a tip under the pointer');
    assert.match(await tip(), /One pass through all training images/);
    await at.page.raw.keyboard.press('Escape');
    assert.equal(await tip(), false);
    await at.page.click('[data-tip="parameters"]');
    await shown('a tip at a tap');
    assert.match(await tip(), /numbers that are learnt/);
    await at.page.raw.mouse.move(2, 2);
    await at.page.until(() => !document.querySelector('#tip').matches(':popover-open'), { what: 'no tip' });

    const lacking = await at.page.eval(() => [...document.querySelectorAll('[data-tip]')]
      .filter(({ dataset }) => !document.querySelector(`#words #word-${dataset.tip}`)?.textContent).map(({ dataset }) => dataset.tip));
    assert.deepEqual(lacking, [], 'words without an explanation');
    const described = await at.page.eval(() => document.querySelector('#lr').getAttribute('aria-describedby').split(' ')
      .map((id) => document.getElementById(id)?.textContent).join(' '));
    assert.match(described, /How long a step is/);
  });

  it('has the pad, the bars and the network in the first screen of a desk and of a phone', async () => {
    for (const [width, height, seen] of [[1280, 800, ['#pad', '#bars', '#network']], [390, 844, ['#pad', '#bars']]]) {
      await at.ready({}, { width, height });
      const bottoms = await at.page.eval((ids) => ids.map((id) => {
        const { top, bottom } = document.querySelector(id).getBoundingClientRect();
        return id === '#network' ? top : bottom;
      }), seen);
      for (const [i, bottom] of bottoms.entries()) assert.ok(bottom <= height, `${seen[i]} ends at ${bottom} of ${height}`);
      if (width < 1000) break;
      await at.page.close();
    }
  });
});
