// The curves' marks and labels, and the misclassified digits.

import assert from 'node:assert/strict';
import { it } from 'node:test';
import { visits } from './visitor.mjs';

visits('curves and mistakes', (visitor) => {
  it('mark the epochs, and cut no label', async () => {
    const own = { model: 'custom', layers: 'flatten-dense_10_linear', batch: 2500, stop: 10 };
    const page = await visitor.train(own, { width: 1000, height: 800 });
    // 10,000 images are four steps: epochs end at 4 and 8.
    assert.equal(await page.text('#epoch'), '2.5');
    const marks = await page.until(() => {
      const canvas = document.querySelector('#loss-chart canvas');
      const over = document.querySelector('#loss-chart .u-over');
      const [ratio, left, width] = [canvas.width / canvas.clientWidth, parseFloat(over.style.left), parseFloat(over.style.width)];
      const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
      const inked = (x, from, to) => {
        let count = 0;
        for (let y = Math.round(from); y < Math.round(to); y += 1) if (data[4 * (y * canvas.width + x) + 3] > 60) count += 1;
        return count;
      };
      const [top, height] = [parseFloat(over.style.top) * ratio, parseFloat(over.style.height) * ratio];
      // The dashes of a mark are darker than the lines of the grid: the fraction of dark pixels in a column, at each step up to
      // 20.
      const dark = (step) => {
        const x = Math.round((left + width * step / 20) * ratio);
        return Math.max(...[-1, 0, 1].map((by) => {
          let count = 0;
          for (let y = Math.round(top + height * 0.5); y < top + height; y += 1) {
            const [r, g, b, a] = data.slice(4 * (y * canvas.width + x + by), 4 * (y * canvas.width + x + by) + 4);
            if (a > 120 && r < 170 && g < 170 && b < 180) count += 1;
          }
          return count / (height / 2);
        }));
      };
      const steps = Array.from({ length: 19 }, (_, i) => i + 1).filter((step) => dark(step) > 0.2);
      if (!steps.includes(8) || !/after 10 steps/.test(document.querySelector('#loss-chart').getAttribute('aria-label'))) return false;
      // The last column of pixels below the axis: a label that is cut off has ink there.
      return { steps, edge: inked(canvas.width - 1, top + height + 2, canvas.height), label: document.querySelector('#loss-chart').getAttribute('aria-label') };
    }, { what: 'marks of epochs', timeout: 20_000 });
    assert.deepEqual(marks.steps, [4, 8]);
    assert.equal(marks.edge, 0);
    assert.match(marks.label, /^Loss by step: \d\.\d+ after 10 steps$/);
    await page.screenshot('epochs');
  });

  it('show the mistakes that the network was surest of, and how sure it was', async () => {
    const page = await visitor.train({ stop: 40 });
    await page.until(() => document.querySelector('#confusion-note').textContent.includes('at step 40.'), { what: 'an evaluation' });
    const sure = await page.eval(() => [...document.querySelectorAll('#misread > *')].map((each) => Number(/(\d+) % sure/.exec(each.getAttribute('aria-label'))[1])));
    assert.ok(sure.length > 5, `${sure.length} mistakes`);
    assert.deepEqual(sure, [...sure].sort((a, b) => b - a));
    assert.ok(sure[0] > sure.at(-1), String(sure));
    // A selected digit is described as in the list.
    const words = await page.eval(() => document.querySelector('#misread > *').getAttribute('aria-label'));
    await page.eval(() => document.querySelector('#misread > *').click());
    const [, label, guess, certain] = /^(\d) → (\d) (\d+) %/.exec(words);
    const wanted = `Reads as ${guess}, ${certain} % sure, but it is ${label}.`;
    await page.until((text) => document.querySelector('#guess').textContent === text, { what: wanted, timeout: 30_000 }, wanted)
      .catch(async ({ message }) => assert.fail(`${message}: ${await page.text('#guess')}`));
    assert.match(await page.text('#misread-note'), /surest of/);
  });
});
