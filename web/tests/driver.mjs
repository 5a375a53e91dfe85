// Starts the browser that WGRAD_BROWSER names, and opens pages that record their errors.
//
// Puppeteer controls both browsers: Chromium with its DevTools protocol, Firefox with WebDriver BiDi.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import puppeteer from 'puppeteer-core';

const here = path.dirname(fileURLToPath(import.meta.url));
export const root = path.resolve(here, '../..');

/** `chromium` or `firefox`. */
export const browserName = process.env.WGRAD_BROWSER ?? 'chromium';
if (!['chromium', 'firefox'].includes(browserName)) throw new Error(`WGRAD_BROWSER is '${browserName}'`);
export const isChromium = browserName === 'chromium';

/** The folder for files exchanged between the native tests and the browsers' tests. */
export const exchange = process.env.WGRAD_WEB_EXCHANGE ?? path.join(root, 'target/web/exchange');
const screenshots = process.env.WGRAD_WEB_SCREENSHOTS ?? path.join(root, 'target/web-screenshots');

const CHROMIUM_FLAGS = [
  // The kernel's namespaces are often not available where tests run.
  '--no-sandbox', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
  '--disable-sync',
];
// WebGPU on a machine without a GPU.
const CHROMIUM_WEBGPU = ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'];
const FIREFOX_WEBGPU = {
  'dom.webgpu.enabled': true, 'gfx.webgpu.ignore-blocklist': true, 'gfx.webgpu.force-enabled': true,
};

/** Starts the browser; without `webgpu`, as a browser that has none. `flags` are Chromium's. */
export async function launch({ webgpu = true, flags = [] } = {}) {
  // A separate home folder without the user's profile, settings or caches.
  const home = mkdtempSync(path.join(os.tmpdir(), 'wgrad-browser-'));
  const options = isChromium
    ? {
      browser: 'chrome',
      executablePath: process.env.WGRAD_CHROMIUM ?? '/usr/bin/chromium',
      userDataDir: path.join(home, 'profile'),
      args: [...CHROMIUM_FLAGS, ...(webgpu ? CHROMIUM_WEBGPU : ['--disable-features=WebGPU']), ...flags],
    }
    : {
      browser: 'firefox',
      executablePath: process.env.WGRAD_FIREFOX ?? '/usr/bin/firefox-esr',
      env: { ...process.env, HOME: home },
      extraPrefsFirefox: webgpu ? FIREFOX_WEBGPU : { 'dom.webgpu.enabled': false },
    };
  const browser = await puppeteer.launch({ ...options, headless: true, protocolTimeout: 600_000 });
  return {
    /** Name and version, as `Chrome/156.0.8078.79`. */
    version: await browser.version(),
    /** Opens a page with its own empty storage. `media` are features such as `prefers-reduced-motion`. Console output, exceptions and policy violations are recorded in `problems`. */
    async page({ width = 1200, height = 900, init, media = {} } = {}) {
      const context = await browser.createBrowserContext();
      const page = await context.newPage();
      await page.setViewport({ width, height });
      if (isChromium) await page.emulateMediaFeatures(Object.entries(media).map(([name, value]) => ({ name, value })));
      else await page.evaluateOnNewDocument(emulate, media);
      return new Page(page, context, await watch(page, init));
    },
    async close() {
      await browser.close();
      rmSync(home, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

/** Puppeteer does not emulate these in Firefox: scripts see these features, style sheets do not. */
function emulate(media) {
  const real = globalThis.matchMedia;
  globalThis.matchMedia = (query) => {
    const [, name, value] = /^\(([\w-]+): ?(\w+)\)$/.exec(query) ?? [];
    if (!(name in media)) return real.call(globalThis, query);
    return Object.assign(new EventTarget(), { media: query, matches: media[name] === value });
  };
}

async function watch(page, init) {
  const problems = [];
  page.on('console', (message) => {
    if (['error', 'warn', 'warning', 'assert'].includes(message.type())) problems.push(`${message.type()}: ${message.text()}`);
  });
  page.on('pageerror', (error) => problems.push(`uncaught: ${error.stack ?? error.message ?? error}`));
  page.on('requestfailed', (request) => {
    const why = request.failure()?.errorText;
    // Requests are aborted when a visitor leaves the page.
    if (!['NS_BINDING_ABORTED', 'net::ERR_ABORTED'].includes(why)) problems.push(`failed: ${request.url()} ${why}`);
  });
  // Not every browser prints every violation on the console; the event reports all.
  await page.evaluateOnNewDocument(() => {
    globalThis.violations = [];
    addEventListener('securitypolicyviolation', (event) => {
      globalThis.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`);
    });
  });
  if (init !== undefined) await page.evaluateOnNewDocument(init);
  return problems;
}

/** Errors of a query that arrives while the page navigates or reloads. */
const LEFT = /documentElement is null|context was destroyed|Cannot find context|DiscardedBrowsingContext/;

/** A page, with Puppeteer's page as `raw`. */
class Page {
  constructor(raw, context, problems) {
    this.raw = raw;
    this.context = context;
    this.problems = problems;
  }

  async goto(url) {
    await this.raw.goto(url, { waitUntil: 'load', timeout: 60_000 });
  }

  eval(f, ...args) {
    return this.raw.evaluate(f, ...args);
  }

  /** Waits until `f` returns something true on the page, and returns it. */
  async until(f, { timeout = 120_000, what = String(f) } = {}, ...args) {
    const end = Date.now() + timeout;
    for (;;) {
      const got = await this.eval(f, ...args).catch((error) => {
        if (!LEFT.test(String(error))) throw error;
      });
      if (got) return got;
      if (Date.now() > end) throw new Error(`not within ${timeout / 1000} s: ${what}\n${this.problems.join('\n')}`);
      await new Promise((done) => setTimeout(done, 50));
    }
  }

  /** Waits until the page's state is one of `states`, and returns it. */
  state(...states) {
    return this.until(
      (wanted) => wanted.includes(document.documentElement.dataset.state) && document.documentElement.dataset.state,
      { what: `state ${states.join(' or ')}` },
      states,
    );
  }

  /** All texts of the page about its state. */
  facts() {
    return this.eval(() => ({ ...document.documentElement.dataset }));
  }

  /** Clicks like a user: scrolls to the element, and waits until it is visible and does not move. */
  async click(selector, again = 5) {
    await this.raw.waitForSelector(selector, { visible: true, timeout: 20_000 });
    await this.eval(async (at) => {
      const place = () => {
        const { x, y, width, height } = document.querySelector(at)?.getBoundingClientRect() ?? {};
        return [x, y, width, height].join();
      };
      // A page in the background draws no frames.
      const frame = () => new Promise((done) => [requestAnimationFrame(done), setTimeout(done, 50)]);
      document.querySelector(at)?.scrollIntoView({ block: 'nearest' });
      for (let i = 0, last; i < 100 && last !== (last = place()); i += 1) await frame();
    }, selector);
    try {
      await this.raw.click(selector);
    } catch (error) {
      // New content above has just moved it out of view.
      if (again === 0 || !/not clickable/.test(String(error))) throw error;
      await this.click(selector, again - 1);
    }
  }

  /** Clicks until `f` is true on the page: new content above may move the element away from a click. */
  async clickUntil(selector, f) {
    for (let i = 0; i < 5; i += 1) {
      await this.click(selector);
      if (await this.eval(f)) return;
    }
    throw new Error(`no click reaches ${selector}`);
  }

  /** Opens a `details` by its summary. Clicks again if new content above moved it. */
  async unfold(selector) {
    for (let i = 0; i < 5; i += 1) {
      if (await this.eval((at) => document.querySelector(at).open, selector)) return;
      await this.click(`${selector} > summary`);
    }
    throw new Error(`${selector} does not open`);
  }

  /** Sets an input or a select and leaves it, like a user. */
  async set(selector, value) {
    await this.eval((at, to) => {
      const field = document.querySelector(at);
      field.value = to;
      field.dispatchEvent(new Event('input', { bubbles: true }));
      field.dispatchEvent(new Event('change', { bubbles: true }));
    }, selector, String(value));
  }

  /** Selects files in a file input. */
  async upload(selector, ...files) {
    const input = await this.raw.$(selector);
    await input.uploadFile(...files);
  }

  text(selector) {
    return this.eval((at) => document.querySelector(at)?.textContent ?? null, selector);
  }

  /** Saves a picture of the whole page for manual inspection. */
  async screenshot(name) {
    mkdirSync(screenshots, { recursive: true });
    await this.raw.screenshot({ path: path.join(screenshots, `${browserName}-${name}.png`), fullPage: true });
  }

  violations() {
    return this.eval(() => globalThis.violations ?? []);
  }

  close() {
    return this.context.close();
  }
}
