// The page as a visitor uses it, at a sub-path as on any host. Failures are reported with the page's own messages.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { mnistFolder, pageMounts, serve } from '../serve.mjs';
import { browserName, exchange, isChromium, launch, root } from './driver.mjs';

const runs = JSON.parse(readFileSync(path.join(root, 'tests/data/web/losses.json'), 'utf8'));
const mnist = mnistFolder();
const absent = 'MNIST IS ABSENT: set MNIST_DIR to the folder of its four files, or nothing shows that the page learns it';
if (mnist === undefined) console.warn(`warning: ${absent}`);

describe(`the page in ${browserName}`, () => {
  let server;
  let browser;
  let page;
  const files = mkdtempSync(path.join(os.tmpdir(), 'wgrad-files-'));

  before(async () => {
    const own = ['pkg', 'tests'].map((name) => [`/own/${name}/`, path.join(root, 'web', name)]);
    server = await serve([...own, ...pageMounts()], { base: '/some/where/' });
    browser = await launch();
  });

  after(async () => {
    await browser?.close();
    await server?.close();
    rmSync(files, { recursive: true, force: true });
  });

  /** After every test: no console output and no policy violation, unless the test expected it. */
  afterEach(async () => {
    if (page === undefined) return;
    const [problems, violations] = [page.problems, await page.violations().catch(() => [])];
    const notices = await words();
    await page.close();
    page = undefined;
    assert.deepEqual([...problems, ...violations], [], `on the page: ${notices}`);
  });

  const words = () => page.eval(() => [...document.querySelectorAll('.notice[data-kind]')].map((each) => each.textContent).join('\n')).catch(String);

  async function visit(query = {}, options = {}) {
    page = await (options.in ?? browser).page(options);
    await page.goto(`${server.url}?${new URLSearchParams({ start: 0, ...query })}`);
    return page;
  }

  async function ready(query, options) {
    await visit(query, options);
    assert.equal(await page.state('ready', 'error', 'paused', 'finished'), 'ready', await words());
    await page.until(() => document.documentElement.dataset.stage === 'whole', { what: 'the whole page' });
  }

  /** Trains from the beginning until the page has done `stop` steps. */
  async function train({ stop, ...query }) {
    await ready({ ...query, stop });
    await page.click('#toggle');
    await settled(stop);
  }

  async function settled(step) {
    const what = `${step} steps`;
    const reached = (wanted) => {
      const { state, step: at } = document.documentElement.dataset;
      const failed = document.querySelector('.notice[data-kind]:not([data-kind="info"])') !== null;
      return state === 'error' || failed || (['paused', 'finished'].includes(state) && Number(at) >= wanted);
    };
    await page.until(reached, { what, timeout: 200_000 }, step);
    const { state, step: at } = await page.facts();
    assert.ok(['paused', 'finished'].includes(state), await words());
    assert.equal(at, String(step), await words());
  }

  const step = async () => Number((await page.facts()).step);
  const reaches = (least) => page.until((n) => Number(document.documentElement.dataset.step) >= n, { what: `step ${least}` }, least);

  /** The losses of the page's first steps equal those of the native run with the same seed. */
  async function losesAs(run) {
    const got = JSON.parse((await page.facts()).losses);
    const worst = Math.max(...run.losses.map((loss, i) => Math.abs(got[i] - loss) / loss));
    assert.ok(worst <= 1e-3, `off by ${worst}: ${got}`);
  }

  for (const worker of [1, 0]) {
    it(`trains ${worker ? 'in a worker' : 'on the main thread'} with the losses of the native run`, async () => {
      await train({ data: 'drawn', seed: 1, lr: 0.001, batch: 50, model: 'mlp', stop: 20, ...(worker ? {} : { worker: 0 }) });
      const facts = await page.facts();
      assert.equal(facts.engine, worker ? 'worker' : 'main');
      assert.equal(facts.data, 'drawn');
      await losesAs(runs.mlp);
      await page.screenshot(worker ? 'worker' : 'main-thread');
    });
  }

  it('trains a model of the visitor’s own with the losses of the native run', async () => {
    const layers = 'conv2d_8_5_1_same_relu-maxPooling2d_2_2_valid-conv2d_16_5_1_same_relu-maxPooling2d_2_2_valid-flatten'
      + '-dense_64_relu-dropout_0.4-dense_10_linear';
    await ready({ data: 'drawn', seed: 1, lr: 0.003, batch: 50, model: 'custom', layers, stop: 20 });
    const filters = () => page.until(() => document.querySelector('[data-layer=conv2d] [data-moved]') && document.querySelector('[data-layer=conv2d] canvas').toDataURL(), { what: 'the filters' });
    const untrained = await filters();
    await page.click('#toggle');
    await settled(20);
    await losesAs(runs.cnn);
    assert.notEqual(await filters(), untrained, 'the pictures of the filters stay as they were');
    await page.screenshot('own-model');
  });

  it('learns the real MNIST, and reads a digit that is drawn', { timeout: 900_000, skip: mnist === undefined && absent }, async () => {
    await ready({ stop: 600, seed: 2 });
    await page.until(() => document.documentElement.dataset.data === 'mnist', { what: 'MNIST in the place of the drawn digits' });
    await page.click('#toggle');
    await settled(600);
    await page.click('#evaluate');
    await page.until(() => Number(document.documentElement.dataset.testCount) >= 10_000, { what: 'all test images' });
    const { testAccuracy } = await page.facts();
    console.log(`  ${testAccuracy} of 10,000 test images after 600 steps`);
    assert.ok(Number(testAccuracy) > 0.9, testAccuracy);
    assert.ok(Number(testAccuracy) < 0.97, 'better than this network can be');
    const counts = await page.eval(() => [...document.querySelectorAll('#confusion td')].map(({ dataset }) => ({ ...dataset })));
    assert.equal(counts.reduce((sum, { count }) => sum + Number(count || 0), 0), 10_000);
    const right = counts.filter((cell) => cell.true === cell.read).reduce((sum, { count }) => sum + Number(count || 0), 0);
    assert.ok(Math.abs(right / 10_000 - Number(testAccuracy)) < 1e-6, `${right} on the diagonal`);
    await page.screenshot('mnist');

    // A slightly slanted stroke from top to bottom.
    const pad = await page.raw.$('#pad');
    await pad.scrollIntoView();
    const { x, y, width, height } = await pad.boundingBox();
    const { mouse } = page.raw;
    await mouse.move(x + 0.53 * width, y + 0.2 * height);
    await mouse.down();
    for (let i = 1; i <= 12; i += 1) await mouse.move(x + (0.53 - 0.005 * i) * width, y + (0.2 + 0.05 * i) * height);
    await mouse.up();
    await page.until(() => document.querySelector('#guess').dataset.digit === '1', { what: 'a stroke read as 1', timeout: 30_000 });
    const bars = await page.eval(() => [...document.querySelectorAll('#bars > li')].map(({ dataset }) => Number(dataset.probability)));
    assert.equal(bars.length, 10);
    assert.equal(bars.indexOf(Math.max(...bars)), 1, String(bars));
    assert.ok(Math.abs(bars.reduce((sum, bar) => sum + bar, 0) - 1) < 1e-2, String(bars));
    await page.screenshot('drawn-digit');
    await page.click('#pad-clear');
    await page.until(() => !document.querySelector('#guess').dataset.digit, { what: 'an empty guess', timeout: 20_000 });
  });

  it('pauses, makes one step, goes on and starts afresh', async () => {
    await ready({ data: 'drawn' });
    await page.click('#toggle');
    await reaches(5);
    await page.click('#toggle');
    await page.state('paused');
    const paused = await step();
    await new Promise((done) => setTimeout(done, 1000));
    assert.equal(await step(), paused, 'it trains although it is paused');
    await page.screenshot('paused');
    await page.click('#step-once');
    await reaches(paused + 1);
    await page.state('paused');
    assert.equal(await step(), paused + 1);
    await page.click('#toggle');
    await reaches(paused + 5);
    const first = JSON.parse((await page.facts()).losses)[0];
    await page.click('#reset');
    await page.state('ready');
    assert.equal(await step(), 0);
    await page.click('#step-once');
    await reaches(1);
    // The same seed starts with the same weights and the same batch.
    assert.equal(JSON.parse((await page.facts()).losses)[0], first);
  });

  it('starts by itself on drawn digits, reads test images meanwhile, and takes MNIST at the end of an epoch', async () => {
    await visit({ start: 1, batch: 200, ...(mnist === undefined ? { data: 'drawn' } : {}) });
    await reaches(1);
    assert.equal((await page.facts()).data, 'drawn');
    await page.until(() => document.querySelector('#guess').dataset.digit, { what: 'a test image that is read' });
    if (mnist !== undefined) {
      await page.until(() => document.documentElement.dataset.data === 'mnist', { what: 'MNIST in the place of the drawn digits' });
      // The first drawn digits are ten batches.
      await reaches(10);
      assert.match(await page.text('#announce'), /MNIST is here/);
    }
    assert.equal((await page.facts()).state, 'training');
    await page.screenshot('by-itself');
  });

  it('waits for a click where the visitor wants less motion', async () => {
    page = await browser.page({ media: { 'prefers-reduced-motion': 'reduce' } });
    await page.goto(`${server.url}?data=drawn`);
    assert.equal(await page.state('ready', 'training', 'error'), 'ready', await words());
    await page.until(() => document.documentElement.dataset.stage === 'whole', { what: 'the whole page' });
    assert.equal(await step(), 0);
  });

  it('comes to an end, and trains on when asked', async () => {
    await train({ data: 'drawn', stop: 12 });
    assert.equal((await page.facts()).state, 'finished');
    assert.match(await page.text('#status'), /^Finished: 12 steps/);
    assert.equal(await page.text('#toggle'), 'Train on');
    await page.click('#toggle');
    await settled(24);
    assert.equal((await page.facts()).state, 'finished');
    assert.match(await page.eval(() => location.search), /stop=24/);
  });

  it('goes on from the kept weights after a reload', async () => {
    await train({ data: 'drawn', stop: 30, seed: 7 });
    await page.until(() => Number(document.documentElement.dataset.kept) >= 30, { what: 'kept weights' });
    await page.raw.reload();
    await page.state('paused', 'finished', 'ready');
    const facts = await page.facts();
    assert.equal(facts.restored, '30');
    assert.equal(facts.step, '30');
    await page.screenshot('restored');
    await page.click('#step-once');
    await reaches(31);
    const loss = Number((await page.facts()).loss);
    assert.ok(loss < 2, `a loss of ${loss} is that of a fresh start`);
  });

  it('saves weights that a native program reads, and loads them', async () => {
    await train({ data: 'drawn', stop: 60, seed: 4 });
    // The file that a click on a link with `download` would save.
    await page.eval(() => {
      const make = URL.createObjectURL.bind(URL);
      URL.createObjectURL = (blob) => {
        globalThis.saved = blob;
        return make(blob);
      };
      addEventListener('click', (event) => event.target.download !== undefined && event.target.download !== '' && event.preventDefault(), true);
    });
    await page.click('#weights-save');
    const bytes = await page.until(async () => globalThis.saved && [...new Uint8Array(await globalThis.saved.arrayBuffer())]);
    const file = path.join(exchange, `${browserName}-page.safetensors`);
    writeFileSync(file, Uint8Array.from(bytes));

    const api = await browser.page();
    await api.goto(`${server.url}own/tests/api.html`);
    await api.until(() => 'ready' in globalThis);
    await api.eval(() => globalThis.ready);
    const logits = await api.eval(async (layers, values) => {
      const model = new wgrad.Sequential(layers);
      model.build([null, 28, 28, 1]);
      model.load(new Uint8Array(values));
      return [...await model.call(wgrad.Images.drawDigits(20, 99).batch(0, 20).x, false).data()];
    }, runs.mlp.layers, bytes);
    assert.deepEqual(api.problems, []);
    await api.close();
    writeFileSync(file.replace('safetensors', 'json'), JSON.stringify({ layers: runs.mlp.layers, logits }));

    const before = Number((await page.facts()).loss);
    await page.click('#reset');
    await page.state('ready');
    await page.upload('#weights-load', file);
    // The file's label does not show which weights are loaded; their predictions do.
    await new Promise((done) => setTimeout(done, 500));
    await page.click('#step-once');
    await page.until(() => JSON.parse(document.documentElement.dataset.losses).length > 0 || Number(document.documentElement.dataset.step) > 0);
    const loss = Number((await page.facts()).loss);
    assert.ok(loss < 1.7 && before < 1.7, `a loss of ${loss} after one of ${before}`);
  });

  it('explains a broken data file and a broken weights file, and goes on', async () => {
    await ready({ data: 'drawn' });
    const broken = path.join(files, 'train-images-idx3-ubyte');
    writeFileSync(broken, Buffer.from([0, 0, 8, 3, 0, 0, 0, 9, 0, 0]));
    const labels = path.join(files, 'train-labels-idx1-ubyte');
    writeFileSync(labels, Buffer.from([1, 2, 3, 4, 5, 6, 7, 8]));
    await page.upload('#data-files', labels);
    await page.until(() => document.querySelector('.notice[data-kind="file"]') !== null, { what: 'a notice on the data file' });
    assert.match(await words(), /train-labels/);
    await page.screenshot('broken-file');
    const weights = path.join(files, 'weights.safetensors');
    writeFileSync(weights, 'no weights');
    await page.upload('#weights-load', weights);
    await page.until(() => document.querySelector('.notice[data-kind="weights"]')?.textContent.includes('weights.safetensors'), { what: 'a notice on the weights' });
    await page.click('#step-once');
    await reaches(1);
  });

  it('takes files that are dropped, and tells of what cannot be read', async () => {
    await ready({ data: 'drawn' });
    const drop = (names, count) => page.eval((names, count) => {
      const transfer = new DataTransfer();
      for (const name of names) {
        // An IDX header, then white pictures with the label 3.
        const image = name.includes('images');
        const head = image ? [0, 0, 8, 3, 0, 0, 0, count, 0, 0, 0, 28, 0, 0, 0, 28] : [0, 0, 8, 1, 0, 0, 0, count];
        const bytes = new Uint8Array(head.length + (image ? 784 : 1) * count).fill(image ? 255 : 3);
        bytes.set(head);
        transfer.items.add(new File([bytes], name));
      }
      document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, bubbles: true, cancelable: true }));
    }, names, count);
    await drop(['train-images-idx3-ubyte', 'train-labels-idx1-ubyte'], 100);
    await page.until(() => document.querySelector('#files-note').textContent.includes('Still needed: t10k-images'), { what: 'a word on what is missing' });
    await drop(['t10k-images-idx3-ubyte', 't10k-labels-idx1-ubyte'], 40);
    await page.until(() => document.documentElement.dataset.data === 'files', { what: 'the dropped files' });
    assert.match(await page.text('#data-source'), /: 100 to train on, 40 to test with/);
    await page.click('#step-once');
    await reaches(1);

    // A folder, or a file that was deleted meanwhile.
    await page.eval(() => { Blob.prototype.arrayBuffer = () => Promise.reject(new DOMException('It was not found.', 'NotFoundError')); });
    await drop(['gone'], 1);
    await page.until(() => document.querySelector('.notice[data-kind="file"]') !== null, { what: 'a notice on the file' });
    assert.match(await words(), /gone: the browser cannot read it \(It was not found\.\)/);
    await page.click('#data-forget');
    await page.until(() => document.documentElement.dataset.data !== 'files', { what: 'other data' });
  });

  it('replaces a lost device and goes on training', async () => {
    await ready({ data: 'drawn' });
    await page.click('#toggle');
    await reaches(5);
    await page.eval(() => document.querySelector('#lose-device').click());
    await page.until(() => document.querySelector('.notice[data-kind="lost"]') !== null, { what: 'a notice on the loss' });
    await page.screenshot('lost-device');
    const at = await step();
    await page.until((from) => document.documentElement.dataset.state === 'training' && Number(document.documentElement.dataset.step) > from,
      { what: 'training on the new device' }, at + 5);
  });

  it('explains that memory is used up, and goes on with smaller batches', async () => {
    // Parameters and slots use a megabyte, a batch of 1,000 images three.
    await visit({ data: 'drawn', batch: 1000, memory: 3 });
    await page.state('ready', 'paused');
    await page.click('#toggle');
    await page.until(() => document.querySelector('.notice[data-kind="memory"] .action') !== null, { what: 'a notice on memory' });
    const told = await words();
    assert.match(told, /Not enough memory.*memory limit/s);
    assert.match(told, /Go on with batches of 500/);
    await page.screenshot('out-of-memory');
    // Half as many may still be too many; one of the next halves fits.
    for (let batch = 500; batch >= 30 && !(await step() >= 5); batch = Math.floor(batch / 2)) {
      // Training may begin, and end the notice, before the memory is used up again.
      await page.until(() => Number(document.documentElement.dataset.step) >= 5
        || document.querySelector('.notice[data-kind="memory"] .action') !== null, { what: 'training or a notice on memory' });
      if (await step() >= 5) break;
      await page.click('.notice[data-kind="memory"] .action');
      // The answered notice may remain for a moment.
      await page.until((next) => Number(document.documentElement.dataset.step) >= 5
        || document.querySelector('.notice[data-kind="memory"] .action')?.textContent.endsWith(` ${next}`), { what: 'training or another notice' }, Math.floor(batch / 2));
    }
    assert.ok(await step() >= 5, await words());
    const batch = Number(new URL(page.raw.url()).searchParams.get('batch'));
    assert.ok(batch >= 30 && batch <= 500, String(batch));
  });

  it('keeps its memory level while it trains', { timeout: 900_000 }, async () => {
    await ready({ data: 'drawn', stop: 5000, batch: 10 });
    await page.click('#toggle');
    await reaches(1000);
    const heap = async () => (isChromium ? (await page.raw.metrics()).JSHeapUsedSize : 0);
    const [memory, used] = [await page.text('#memory'), await heap()];
    await page.until(() => Number(document.documentElement.dataset.step) >= 5000, { what: '5,000 steps', timeout: 600_000 });
    const bytes = (text) => {
      const [, number, unit] = /([\d.,]+)\s*(\w*)/.exec(text);
      return Number(number.replaceAll(',', '')) * { B: 1, kB: 1e3, MB: 1e6, GB: 1e9 }[unit];
    };
    const late = await page.text('#memory');
    console.log(`  ${memory} and ${late} on the device, ${used} and ${await heap()} bytes of the page's heap`);
    assert.ok(bytes(late) <= 1.2 * bytes(memory) + 2e5, `${memory} became ${late}`);
    assert.ok(await heap() - used < 30e6);
  });

  it('leads to the examples, which run', async () => {
    await ready();
    await page.click('nav a[href="examples/index.html"]');
    await page.click('a[href="xor.html"]');
    const said = (wanted) => {
      const text = document.querySelector('#out')?.textContent ?? '';
      return (new RegExp(wanted).test(text) || /Error: /.test(text)) && text;
    };
    const xor = await page.until(said, { what: 'the last line of xor' }, '1 xor 1 = ');
    const read = [...xor.matchAll(/(\d) xor (\d) = ([\d.]+)/g)].map(([, a, b, value]) => [Number(a) ^ Number(b), Number(value)]);
    assert.equal(read.length, 4, xor);
    for (const [want, got] of read) assert.ok(Math.abs(want - got) < 0.2, xor);

    await page.goto(`${server.url}examples/digits.html`);
    const digits = await page.until(said, { what: 'the last line of digits' }, 'weights: ');
    const [accuracy] = [...digits.matchAll(/on unseen digits ([\d.]+)/g)].map(([, value]) => Number(value)).slice(-1);
    assert.ok(accuracy > 0.8, digits);
    const [shown, guessed] = ['shown', 'read '].map((word) => digits.match(new RegExp(`${word} ([\\d ]+)`))[1].trim().split(' '));
    assert.equal(guessed.length, 10, digits);
    assert.ok(shown.filter((digit, i) => digit === guessed[i]).length >= 7, digits);
  });

  it('fits a tiny window', async () => {
    await ready({ data: 'drawn', stop: 2 }, { width: 320, height: 480 });
    await page.click('#toggle');
    await settled(2);
    const [wide, window_] = await page.eval(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= window_, `${wide} pixels in a window of ${window_}`);
    await page.screenshot('tiny');
  });

  it('shows the shaders that the tape made', async () => {
    await train({ data: 'drawn', stop: 2 });
    const rows = await page.until(() => document.querySelectorAll('#kernels tr[data-index]').length);
    assert.ok(rows >= 5, `${rows} kernels`);
    const texts = [];
    for (const index of [0, rows - 1]) {
      await page.eval((i) => document.querySelector(`#kernels tr[data-index="${i}"] button`).click(), index);
      texts.push(await page.text('#wgsl'));
    }
    for (const text of texts) assert.match(text, /@compute/);
    assert.notEqual(texts[0], texts[1]);
  });

  it('can be used from the keyboard, and takes its settings from the address', async () => {
    await ready({ data: 'drawn', batch: 20, lr: 0.01, seed: 9, optimizer: 'momentum' });
    const fields = await page.eval(() => ['batch', 'lr', 'seed', 'optimizer'].map((id) => document.getElementById(id).value));
    assert.deepEqual(fields, ['20', '0.01', '9', 'momentum']);
    await page.eval(() => document.querySelector('#toggle').focus());
    await page.raw.keyboard.press('Enter');
    await reaches(1);
    await page.raw.keyboard.press('Enter');
    await page.state('paused');
    await page.click('#reset');
    await page.state('ready');
    await page.set('#batch', 25);
    await page.until(() => location.search.includes('batch=25'), { what: 'the address with the new batch' });
    await page.set('#batch', -3);
    await page.until(() => document.querySelector('#settings-error').textContent.includes('-3'), { what: 'a word on the batch size' });
    assert.ok(await page.eval(() => location.search.includes('batch=25')));
  });

  it('refuses a library of another version', async () => {
    const init = () => {
      // It imports the function `a` from a module that these bindings do not know.
      const other = [0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 2, 11, 1, 5, ...new TextEncoder().encode('older'), 1, 97, 0, 0];
      WebAssembly.compileStreaming = () => WebAssembly.compile(new Uint8Array(other));
    };
    for (const worker of [0, 1]) {
      await visit({ data: 'drawn', worker }, { init });
      assert.equal(await page.state('error', 'ready'), 'error');
      assert.match(await words(), /parts of this page are of different versions.*Load the page again/s);
      await page.close();
    }
    page = undefined;
  });
});
