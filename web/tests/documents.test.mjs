// The docs next to the page: every link has a target, and they are readable.

import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { serve } from '../serve.mjs';
import { browserName, launch, root } from './driver.mjs';

const dist = path.join(root, 'web/dist');
const docs = path.join(dist, 'docs');

describe(`the docs in ${browserName}`, () => {
  let server;
  let browser;

  before(async () => {
    server = await serve([['/', dist]]);
    browser = await launch();
  });

  after(async () => {
    await browser?.close();
    await server?.close();
  });

  it('has a page for each of the project’s, whose links lead somewhere', () => {
    const names = readdirSync(docs);
    for (const name of readdirSync(path.join(root, 'docs')).filter((file) => file.endsWith('.md'))) {
      assert.ok(names.includes(name.toLowerCase().replace('.md', '.html')), `${name} is missing`);
    }
    const broken = [];
    let count = 0;
    for (const name of names) {
      const text = readFileSync(path.join(docs, name), 'utf8');
      for (const [, href] of text.matchAll(/href="([^"]*)"/g)) {
        if (/^(https?:|data:|mailto:)/.test(href)) continue;
        count += 1;
        const [to, hash] = href.split('#');
        const file = path.join(docs, to === '' ? name : to.endsWith('/') ? `${to}index.html` : to);
        if (!existsSync(file)) broken.push(`${name}: ${href}`);
        else if (hash && !readFileSync(file, 'utf8').includes(`id="${hash}"`)) broken.push(`${name}: ${href} has no such heading`);
      }
    }
    assert.deepEqual(broken, []);
    assert.ok(count > 400, `${count} links`);
  });

  it('shows code, tables and links, on a phone, too', async () => {
    for (const [width, height] of [[1280, 800], [320, 640]]) {
      const page = await browser.page({ width, height });
      await page.goto(`${server.url}docs/web.html`);
      const seen = await page.eval(() => ({
        wide: document.documentElement.scrollWidth, title: document.title, code: document.querySelector('pre code').textContent,
        tables: document.querySelectorAll('table').length, raw: document.querySelector('main').textContent.includes('```'),
      }));
      assert.ok(seen.wide <= width, `${seen.wide} pixels in a window of ${width}`);
      assert.match(seen.title, /In the browser – wgrad/);
      assert.match(seen.code, /import init, \{/);
      assert.ok(!seen.raw);
      await page.screenshot(`docs-${width}`);
      assert.deepEqual([...page.problems, ...await page.violations()], []);
      await page.close();
    }
  });
});
