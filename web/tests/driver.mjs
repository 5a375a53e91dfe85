// Starts the browser that WGRAD_BROWSER names, and opens pages that remember what went wrong on them.
//
// Puppeteer steers both browsers: Chromium over its DevTools protocol, Firefox over WebDriver BiDi.

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

/** Files that go from the native tests to the browsers' and back. */
export const exchange = process.env.WGRAD_WEB_EXCHANGE ?? path.join(root, 'target/web/exchange');
const screenshots = process.env.WGRAD_WEB_SCREENSHOTS ?? path.join(root, 'target/web-screenshots');

const CHROMIUM_FLAGS = [
  // The kernel's namespaces are often not to be had where tests run.
  '--no-sandbox', '--disable-quic', '--no-first-run', '--disable-background-networking', '--disable-component-update',
  '--disable-sync',
];
// WebGPU on a machine without a GPU.
const CHROMIUM_WEBGPU = ['--enable-unsafe-webgpu', '--use-webgpu-adapter=swiftshader'];
const FIREFOX_WEBGPU = {
  'dom.webgpu.enabled': true, 'gfx.webgpu.ignore-blocklist': true, 'gfx.webgpu.force-enabled': true,
};

/** Starts the browser; without `webgpu`, as one that has none. `flags` are Chromium's. */
export async function launch({ webgpu = true, flags = [] } = {}) {
  // A home of its own: no profile, settings or caches of whoever runs the tests.
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
    /** Opens a page with an empty storage of its own. `media` are features such as `prefers-reduced-motion`. What it says on the console, throws, or breaks of its policy is kept in `problems`. */
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

/** What Puppeteer does not emulate in Firefox: scripts see these features, style sheets do not. */
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
    // A visitor who leaves the page stops what is on its way.
    if (!['NS_BINDING_ABORTED', 'net::ERR_ABORTED'].includes(why)) problems.push(`failed: ${request.url()} ${why}`);
  });
  // The console does not tell every violation in every browser; the event does.
  await page.evaluateOnNewDocument(() => {
    globalThis.violations = [];
    addEventListener('securitypolicyviolation', (event) => {
      globalThis.violations.push(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`);
    });
  });
  if (init !== undefined) await page.evaluateOnNewDocument(init);
  return problems;
}

/** What is said of a question that came while the page was left for another, or for itself again. */
const LEFT = /documentElement is null|context was destroyed|Cannot find context|DiscardedBrowsingContext/;

/** A page, with the calls that the tests need of Puppeteer's (`raw`). */
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

  /** The page's words about itself, all texts. */
  facts() {
    return this.eval(() => ({ ...document.documentElement.dataset }));
  }

  /** Clicks as a person does: the element is scrolled into view, has to be visible, and stands still. */
  async click(selector, again = 5) {
    await this.raw.waitForSelector(selector, { visible: true, timeout: 20_000 });
    await this.eval(async (at) => {
      const place = () => {
        const { x, y, width, height } = document.querySelector(at)?.getBoundingClientRect() ?? {};
        return [x, y, width, height].join();
      };
      // A page that nobody looks at draws no frames.
      const frame = () => new Promise((done) => [requestAnimationFrame(done), setTimeout(done, 50)]);
      document.querySelector(at)?.scrollIntoView({ block: 'nearest' });
      for (let i = 0, last; i < 100 && last !== (last = place()); i += 1) await frame();
    }, selector);
    try {
      await this.raw.click(selector);
    } catch (error) {
      // What came above pushed it out of view just now.
      if (again === 0 || !/not clickable/.test(String(error))) throw error;
      await this.click(selector, again - 1);
    }
  }

  /** Opens a `details` by its summary. A person who misses, because something above came to be there, clicks again. */
  async unfold(selector) {
    for (let i = 0; i < 5; i += 1) {
      if (await this.eval((at) => document.querySelector(at).open, selector)) return;
      await this.click(`${selector} > summary`);
    }
    throw new Error(`${selector} does not open`);
  }

  /** Sets an input or a select as a person would leave it. */
  async set(selector, value) {
    await this.eval((at, to) => {
      const field = document.querySelector(at);
      field.value = to;
      field.dispatchEvent(new Event('input', { bubbles: true }));
      field.dispatchEvent(new Event('change', { bubbles: true }));
    }, selector, String(value));
  }

  /** Chooses files in a file input. */
  async upload(selector, ...files) {
    const input = await this.raw.$(selector);
    await input.uploadFile(...files);
  }

  text(selector) {
    return this.eval((at) => document.querySelector(at)?.textContent ?? null, selector);
  }

  /** Keeps a picture of the whole page, for a person to look at. */
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
