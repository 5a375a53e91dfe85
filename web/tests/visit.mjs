// What the tests of the page have in common: a server, a browser, and a visit that begins at rest.

import assert from 'node:assert/strict';
import { after, afterEach, before } from 'node:test';
import { pageMounts, serve } from '../serve.mjs';
import { launch } from './driver.mjs';

/**
 * For a `describe`: serves the page below a path, as any host may, and opens it. After each test nothing may stand on the console
 * and no policy may be broken. `page()` is the page that was opened last.
 */
export function visitor() {
  let server;
  let browser;
  let page;

  before(async () => {
    server = await serve(pageMounts(), { base: '/some/where/' });
    browser = await launch();
  });

  after(async () => {
    await browser?.close();
    await server?.close();
  });

  afterEach(async () => {
    if (page === undefined) return;
    const [problems, violations] = [page.problems, await page.violations().catch(() => [])];
    const told = await words();
    await page.close();
    page = undefined;
    assert.deepEqual([...problems, ...violations], [], `on the page: ${told}`);
  });

  const words = () => page.eval(() => document.querySelector('#notices')?.textContent ?? '').catch(String);

  /** Opens the page; it waits for a click unless `query` has `start: 1`. `media` are features such as a colour scheme. */
  async function visit(query = {}, { media, ...options } = {}) {
    page = await browser.page(options);
    if (media) await page.raw.emulateMediaFeatures(Object.entries(media).map(([name, value]) => ({ name, value })));
    await page.goto(`${server.url}?${new URLSearchParams({ start: 0, data: 'drawn', ...query })}`);
    return page;
  }

  /** As `visit`, until all of the page is there. */
  async function whole(query, options) {
    await visit(query, options);
    await page.until(() => document.documentElement.dataset.stage === 'whole', { what: 'the whole page' });
    await page.state('ready', 'paused', 'finished', 'training');
    return page;
  }

  /** Trains from a fresh start until `stop` steps are done. */
  async function trained(query, options) {
    await whole(query, options);
    await page.click('#toggle');
    await page.state('finished', 'error');
    assert.equal((await page.facts()).step, String(query.stop), await words());
    return page;
  }

  const reaches = (least) => page.until((n) => Number(document.documentElement.dataset.step) >= n, { what: `step ${least}` }, least);

  return { page: () => page, visit, whole, trained, reaches, words, url: () => server.url, browser: () => browser };
}
