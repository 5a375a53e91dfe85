// Runs that are left and restored: by another model, by a reload, by another tab.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { visits } from './visitor.mjs';

visits('runs', (visitor) => {

  /** The page's display of a run. */
  const shown = () => visitor.page.eval(() => {
    const text = (id) => document.getElementById(id).textContent;
    const { step, losses, testAccuracy } = document.documentElement.dataset;
    return {
      step, losses, testAccuracy, figures: ['epoch', 'step', 'loss', 'accuracy', 'test-accuracy'].map(text),
      confusion: [...document.querySelectorAll('#confusion td[data-true]')].map(({ dataset }) => dataset.count),
      misread: [...document.querySelectorAll('#misread > *')].map((each) => each.getAttribute('aria-label')),
      pictures: [...document.querySelectorAll('#misread canvas')].map((canvas) => canvas.toDataURL()),
      kernels: [...document.querySelectorAll('#kernels tr[data-index]')].map((row) => row.textContent),
    };
  });
  const evaluated = (step) => visitor.page.until((at) => document.querySelector('#confusion-note').textContent.includes(`at step ${at}.`),
    { what: `an evaluation at step ${step}` }, step);

  it('come back as they were left when another model is looked at', async () => {
    const page = await visitor.train({ stop: 30, seed: 3, lr: 0.003 });
    await evaluated(30);
    const before = await shown();
    assert.ok(before.misread.length > 0 && before.kernels.length > 0, JSON.stringify(before).slice(0, 400));
    await page.eval(() => document.getElementById('model-custom').click());
    await page.until(() => document.documentElement.dataset.step === '0', { what: 'a fresh run of the other model' });
    await page.click('#toggle');
    await visitor.done(30);
    await page.eval(() => document.getElementById('model-mlp').click());
    await page.until((losses) => document.documentElement.dataset.losses === losses, { what: 'the first run' }, before.losses);
    await page.state('finished');
    assert.deepEqual(await shown(), before);
    // Its weights are unchanged.
    await page.set('#stop', 60);
    await page.click('#step-once');
    await visitor.reaches(31);
    const losses = JSON.parse((await page.facts()).losses);
    assert.ok(losses[30] < 0.8 * losses[0], `a loss of ${losses[30]} after one of ${losses[29]}`);
    assert.equal(await visitor.words(), '');
  });

  it('train on when the model is changed while they train', async () => {
    const page = await visitor.ready({ stop: 0 });
    await page.click('#toggle');
    await visitor.reaches(20);
    await page.eval(() => document.getElementById('model-custom').click());
    await page.until(() => Number(document.documentElement.dataset.step) < 20, { what: 'the other model' });
    await visitor.reaches(3);
    assert.equal((await page.facts()).state, 'training');
    await page.eval(() => document.getElementById('model-mlp').click());
    await visitor.reaches(20);
    assert.equal((await page.facts()).state, 'training');
    await page.click('#toggle');
    await page.state('paused');
  });

  it('keep their weights when the batch and the learning rate change, also over a reload', async () => {
    const page = await visitor.train({ stop: 20, seed: 5 });
    await page.set('#batch', 20);
    await page.set('#lr', 0.002);
    await page.until(() => Number(document.documentElement.dataset.kept) >= 20, { what: 'kept weights' });
    await page.raw.reload();
    await page.state('paused', 'finished', 'ready', 'error');
    assert.equal((await page.facts()).restored, '20');
    assert.match(page.raw.url(), /batch=20/);
  });

  it('show after a reload what they showed before, and wait where they were paused', async () => {
    const page = await visitor.train({ stop: 25, seed: 7 });
    await evaluated(25);
    await page.until(() => Number(document.documentElement.dataset.kept) >= 25, { what: 'kept weights' });
    const before = await shown();
    // The evaluation is stored after it was shown.
    await new Promise((done) => setTimeout(done, 300));
    await page.raw.reload();
    await page.state('finished');
    await visitor.whole();
    await evaluated(25);
    assert.deepEqual(await shown(), before);
    assert.match(await visitor.words(), /Step 25 of this model was kept in this browser, and is here again/);
    await new Promise((done) => setTimeout(done, 500));
    assert.equal(await visitor.step(), 25);
    await page.screenshot('restored');
  });

  it('train on after a reload if they were left training and the page starts by itself', async () => {
    const page = await visitor.visit({ start: 1, stop: 0, seed: 8 });
    await page.until(() => Number(document.documentElement.dataset.kept) > 0, { what: 'kept weights', timeout: 60_000 });
    await page.raw.reload();
    await page.until(() => Number(document.documentElement.dataset.restored) > 0, { what: 'a restored run' });
    assert.match(await visitor.words(), /Training goes on from step/);
    const { restored } = await page.facts();
    await visitor.reaches(Number(restored) + 5);
    assert.equal((await page.facts()).state, 'training');
    // A run paused by the visitor stays paused.
    await page.click('#toggle');
    await page.state('paused');
    const at = await visitor.step();
    await page.until((step) => Number(document.documentElement.dataset.kept) >= step, { what: 'kept weights' }, at);
    await page.raw.reload();
    await page.state('paused');
    await new Promise((done) => setTimeout(done, 500));
    assert.equal(await visitor.step(), at);
    assert.equal((await page.facts()).state, 'paused');
  });

  it('are kept by one tab at a time', async () => {
    const page = await visitor.train({ stop: 12, seed: 9 });
    await page.until(() => document.documentElement.dataset.kept === '12', { what: 'kept weights' });
    const raw = await page.context.newPage();
    const text = () => raw.evaluate(() => document.querySelector('#kept-note').textContent);
    const wait = async (f, what) => {
      for (let i = 0; i < 600; i += 1) {
        if (await raw.evaluate(f)) return;
        await new Promise((done) => setTimeout(done, 100));
      }
      throw new Error(`no ${what}: ${await text()} ${JSON.stringify(await raw.evaluate(() => ({ ...document.documentElement.dataset, losses: 0 })))}`);
    };
    await raw.goto(visitor.address({ stop: 14, seed: 9 }));
    await wait(() => document.documentElement.dataset.restored === '12' && document.documentElement.dataset.state === 'paused', 'restored run');
    await raw.evaluate(() => document.querySelector('#toggle').click());
    await wait(() => document.documentElement.dataset.kept === 'elsewhere', 'word on the other tab');
    assert.match(await text(), /Another tab of this page keeps/);
    // That tab cannot delete it either.
    await raw.evaluate(() => document.querySelector('#reset').click());
    await wait(() => document.documentElement.dataset.step === '0', 'fresh run');
    await raw.close();
    await page.raw.reload();
    await page.state('finished', 'paused', 'ready');
    assert.equal((await page.facts()).restored, '12');
  });
});
