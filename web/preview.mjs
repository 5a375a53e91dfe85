// Makes preview.png, the picture for previews of links to the page: the built page after some hundred steps.
//
//   node preview.mjs

import { fileURLToPath } from 'node:url';
import { pageMounts, serve } from './serve.mjs';
import { launch } from './tests/driver.mjs';

/** The size that suits social networks best. */
const [width, height] = [1200, 630];
const STEPS = 600;

const server = await serve(pageMounts());
const browser = await launch();
try {
  const page = await browser.page({ width, height });
  await page.goto(`${server.url}?${new URLSearchParams({ data: 'drawn', stop: STEPS })}`);
  await page.until(() => document.documentElement.dataset.stage === 'whole', { what: 'the whole page' });
  await page.state('finished', 'error');
  await page.until(() => document.querySelector('#guess').dataset.digit, { what: 'a digit that is read' });
  // Advice about this machine is irrelevant for others.
  await page.eval(() => document.querySelector('#advice').remove());
  // Waits for the last pictures.
  await new Promise((done) => setTimeout(done, 3000));
  await page.raw.screenshot({ path: fileURLToPath(new URL('preview.png', import.meta.url)) });
} finally {
  await browser.close();
  await server.close();
}
