// Shared by tests of the page: a server, a browser, a page that is closed after each test, and its errors.

import assert from 'node:assert/strict';
import path from 'node:path';
import { after, afterEach, before, describe } from 'node:test';
import { pageMounts, serve } from '../serve.mjs';
import { browserName, launch, root } from './driver.mjs';

/** Describes tests of the page; `tests` gets the visitor. `instead` may answer the page's requests. */
export function visits(name, tests, { instead, mnist } = {}) {
  describe(`${name} in ${browserName}`, () => {
    const visitor = new Visitor();
    before(async () => {
      const own = ['pkg', 'tests'].map((folder) => [`/own/${folder}/`, path.join(root, 'web', folder)]);
      visitor.server = await serve([...own, ...pageMounts(mnist)], { base: '/some/where/', ...(instead ? { instead } : {}) });
      visitor.browser = await launch();
    });
    after(async () => {
      await visitor.browser?.close();
      await visitor.server?.close();
    });
    afterEach(() => visitor.leave());
    tests(visitor);
  });
}

class Visitor {
  page;

  /** Opens the page, by default with drawn digits and without an automatic start; `query` can change this. */
  async visit(query = {}, options = {}) {
    this.page = await this.browser.page(options);
    await this.open(query);
    return this.page;
  }

  async open(query = {}, page = this.page) {
    await page.goto(this.address(query));
  }

  address(query = {}) {
    return `${this.server.url}?${new URLSearchParams({ start: 0, data: 'drawn', ...query })}`;
  }

  async ready(query, options) {
    await this.visit(query, options);
    assert.equal(await this.page.state('ready', 'error', 'paused', 'finished'), 'ready', await this.words());
    await this.whole();
    return this.page;
  }

  /** Like `visit`, but waits until the whole page is loaded, whatever its state. */
  async shown(query, options) {
    await this.visit(query, options);
    await this.whole();
    return this.page;
  }

  /** Waits for the parts of the page that are loaded later. */
  whole() {
    return this.page.until(() => document.documentElement.dataset.stage === 'whole', { what: 'the whole page' });
  }

  /** Trains from the beginning until `stop` steps are done. */
  async train({ stop, ...query }, options) {
    await this.ready({ ...query, stop }, options);
    await this.page.click('#toggle');
    await this.done(stop);
    return this.page;
  }

  async done(step) {
    await this.page.until((least) => {
      const { state, step } = document.documentElement.dataset;
      return state === 'error' || (['paused', 'finished'].includes(state) && Number(step) >= least);
    }, { what: `${step} steps`, timeout: 200_000 }, step);
    const { state, step: at } = await this.page.facts();
    assert.ok(['paused', 'finished'].includes(state), await this.words());
    assert.equal(at, String(step), await this.words());
  }

  async step() {
    return Number((await this.page.facts()).step);
  }

  reaches(least) {
    return this.page.until((n) => Number(document.documentElement.dataset.step) >= n, { what: `step ${least}` }, least);
  }

  /** All messages of the page. */
  words() {
    return this.page.eval(() => [...document.querySelectorAll('.notice[data-kind], .refused')].map((each) => each.textContent).filter(Boolean).join('\n')).catch(String);
  }

  /** Requires no console output and no policy violation, unless the test expected it. */
  async leave() {
    const { page } = this;
    if (page === undefined) return;
    const [problems, violations] = [page.problems, await page.violations().catch(() => [])];
    const words = await this.words();
    await page.close();
    this.page = undefined;
    assert.deepEqual([...problems, ...violations], [], `on the page: ${words}`);
  }
}
