// The network card: the engine's messages about each layer, and how the page shows them.

import assert from 'node:assert/strict';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pageMounts, serve } from '../serve.mjs';
import { browserName, isChromium, launch, root } from './driver.mjs';
import { visits } from './visitor.mjs';

describe(`what the engine tells of a network in ${browserName}`, () => {
  let server;
  let browser;
  let page;

  before(async () => {
    const own = ['pkg', 'tests'].map((name) => [`/own/${name}/`, path.join(root, 'web', name)]);
    server = await serve([...own, ...pageMounts()]);
    browser = await launch();
    page = await browser.page();
    await page.goto(`${server.url}own/tests/api.html`);
    await page.until(() => 'ready' in globalThis);
    await page.eval(() => globalThis.ready);
    // The page's engine in addition to the full package, with its own device and bindings.
    await page.eval(async (base) => {
      const { connect } = await import(`${base}engine.js`);
      const response = await fetch(`${base}wgrad_bg.wasm.packed`);
      const unpacked = response.body.pipeThrough(new DecompressionStream('deflate'));
      const module = await WebAssembly.compile(await new Response(unpacked).arrayBuffer());
      globalThis.openEngine = async (settings) => {
        const [waiting, events] = [new Map(), []];
        let next = 0;
        const receive = connect((message) => {
          if (message.kind !== 'reply') events.push(message);
          else if (message.ok) waiting.get(message.id).resolve(message.value);
          else waiting.get(message.id).reject(Object.assign(new Error(message.fault.text), { fault: message.fault }));
        });
        const ask = (kind, input = {}) => new Promise((resolve, reject) => {
          waiting.set(++next, { resolve, reject });
          receive({ kind, id: next, ...input });
        });
        const whole = { model: 'mlp', layers: [], optimizer: 'adam', lr: 0.001, batch: 20, seed: 1, stop: 0, data: 'drawn', ...settings };
        await ask('open', { settings: whole, module, base, begun: Date.now(), resume: false, memory: 0 });
        return { ask, events, settings: whole };
      };
    }, server.url);
  });

  after(async () => {
    await browser?.close();
    await server?.close();
  });

  const MLP = [{ type: 'flatten' }, { type: 'dense', units: 100, activation: 'relu' }, { type: 'dense', units: 10, activation: 'linear' }];
  const conv = (filters, activation) => ({ type: 'conv2d', filters, kernelSize: 5, strides: 1, padding: 'same', activation });
  const pool = (type) => ({ type, poolSize: 2, strides: 2, padding: 'valid' });
  const OWN = [
    conv(6, 'linear'), { type: 'activation', activation: 'tanh' }, pool('maxPooling2d'), { type: 'layerNormalization', epsilon: 0.001 }, conv(4, 'relu'),
    pool('averagePooling2d'), { type: 'flatten' }, { type: 'dense', units: 12, activation: 'sigmoid' }, { type: 'dropout', rate: 0.4 },
    { type: 'dense', units: 10, activation: 'linear' },
  ];

  for (const [name, layers] of [['the MLP', MLP], ['a model with every kind of layer', OWN]]) {
    it(`tells what each layer of ${name} makes of a digit, as the library does layer by layer`, async () => {
      const got = await page.eval(async (layers) => {
        const engine = await openEngine({ model: layers.length === 3 ? 'mlp' : 'custom', layers });
        for (let i = 0; i < 3; i++) await engine.ask('step');
        const { bytes } = await engine.ask('save');
        const { pixels } = await engine.ask('samples', { of: 'test', from: 5, count: 1 });
        const reading = await engine.ask('read', { pixels });
        const { layers: weights } = engine.events.filter(({ kind }) => kind === 'weights').at(-1);

        const whole = new wgrad.Sequential(layers);
        whole.build([null, 28, 28, 1]);
        whole.load(bytes);
        const x = wgrad.Tensor.from(Float32Array.from(pixels, (p) => p / 255), [1, 28, 28, 1]);
        const results = [];
        for (let i = 0; i < layers.length; i++) {
          const part = new wgrad.Sequential(layers.slice(0, i + 1));
          part.build([null, 28, 28, 1]);
          part.variables.forEach((variable, at) => variable.assign(whole.variables[at].read()));
          const y = part.call(x, false);
          results.push({ shape: y.shape.slice(1), values: [...await y.data()] });
        }
        const each = await Promise.all(whole.activations(x).map(async (y) => [...await y.data()]));
        const kernels = [];
        for (const variable of whole.variables) {
          const [layer, part] = variable.name.split('/');
          if (part === 'kernel') kernels.push({ name: layer, shape: variable.shape, values: [...await variable.read().data()] });
        }
        return {
          names: whole.layerNames, results, each, kernels,
          probabilities: [...await whole.call(x, false).softmax().data()],
          reading: { probabilities: [...reading.probabilities], layers: reading.layers.map((layer) => ({ ...layer, values: [...layer.values] })) },
          weights: weights.map((layer) => ({ ...layer, values: [...layer.values] })),
        };
      }, layers);
      const near = (a, b, what) => {
        assert.equal(a.length, b.length, what);
        const scale = Math.max(1e-3, ...b.map(Math.abs));
        const worst = Math.max(...a.map((x, i) => Math.abs(x - b[i]))) / scale;
        assert.ok(worst < 1e-4, `${what} is off by ${worst}`);
      };
      assert.deepEqual(got.reading.layers.map(({ name }) => name), got.names);
      got.reading.layers.forEach(({ name, layer, shape, values }, i) => {
        assert.equal(layer.type, layers[i].type);
        assert.deepEqual(shape, got.results[i].shape, name);
        near(got.each[i], got.results[i].values, `activations of ${name}`);
        // These layers pass on their input.
        if (['flatten', 'dropout'].includes(layer.type)) assert.equal(values.length, 0);
        else near(values, got.results[i].values, name);
      });
      near(got.reading.probabilities, got.probabilities, 'the probabilities');
      for (const kernel of got.kernels) {
        const told = got.weights.find(({ name }) => name === kernel.name);
        assert.deepEqual(told.shape, kernel.shape);
        near(told.values, kernel.values, `the weights of ${kernel.name}`);
      }
    });
  }

  it('tells how far the weights have moved since they began, also after a lost device', { timeout: 300_000 }, async () => {
    const got = await page.eval(async (layers) => {
      const engine = await openEngine({ model: 'mlp' });
      const moved = async (step) => {
        const found = () => engine.events.findLast(({ kind, step: at }) => kind === 'weights' && at === step);
        await until(found);
        return found().layers.map(({ name, moved }) => ({ name, moved }));
      };
      const until = async (true_) => {
        for (let i = 0; i < 600 && !true_(); i++) await new Promise((done) => setTimeout(done, 50));
        return true_();
      };
      const values = async () => {
        const model = new wgrad.Sequential(layers);
        model.build([null, 28, 28, 1]);
        model.load((await engine.ask('save')).bytes);
        return Promise.all(model.variables.map(async (variable) => ({ layer: variable.name.split('/')[0], values: [...await variable.read().data()] })));
      };
      const atFirst = await moved(0);
      const before = await values();
      for (let i = 0; i < 4; i++) await engine.ask('step');
      const now = await values();
      const want = ['dense', 'dense_1'].map((name) => {
        const of = (all) => all.filter(({ layer }) => layer === name).map(({ values }) => values);
        const [old, young] = [of(before), of(now)];
        let [far, long] = [0, 0];
        old.forEach((list, i) => list.forEach((w, j) => {
          far += (young[i][j] - w) ** 2;
          long += w ** 2;
        }));
        return Math.sqrt(far / long);
      });
      const told = await moved(4);
      await until(() => engine.events.some(({ kind, step }) => kind === 'kept' && step === 4));

      const events = engine.events.length;
      // A request while the device is lost is answered or refused, and the engine continues.
      const asked = Array.from({ length: 5 }, () => engine.ask('read', { pixels: new Uint8Array(784) }).then(() => 'read', ({ fault }) => fault.goesOn));
      engine.ask('lose');
      const during = [...await Promise.all(asked), ...await Promise.all(Array.from({ length: 5 }, () => engine.ask('read', { pixels: new Uint8Array(784) }).then(() => 'read', ({ fault }) => fault.goesOn)))];
      await until(() => engine.events.slice(events).some(({ kind, fault }) => kind === 'fault' && fault.kind === 'lost'));
      await engine.ask('step');
      const replaced = await moved(5);
      const { layers: after } = await engine.ask('read', { pixels: new Uint8Array(784).fill(99) });
      return { atFirst, want, told, during, replaced, after: after.map(({ values }) => Math.max(...values)) };
    }, MLP);
    assert.deepEqual(got.atFirst, [{ name: 'dense', moved: 0 }, { name: 'dense_1', moved: 0 }]);
    got.told.forEach(({ name, moved }, i) => assert.ok(moved > 0 && Math.abs(moved - got.want[i]) < 1e-4 * got.want[i], `${name} moved by ${moved}, not ${got.want[i]}`));
    for (const answer of got.during) assert.ok(answer === 'read' || answer === true, String(answer));
    // Measured from the initial weights of the seed, not from those on the new device.
    got.replaced.forEach(({ name, moved }, i) => assert.ok(moved > got.told[i].moved, `${name} moved by ${moved} after ${got.told[i].moved}`));
    assert.ok(got.after[1] > 0, String(got.after));
  });

  // Each takes Firefox's software driver a tenth of a second.
  const looks = isChromium ? 1000 : 200;

  it(`keeps its memory level over ${looks} looks`, { timeout: 300_000 }, async () => {
    const got = await page.eval(async (layers, looks) => {
      const engine = await openEngine({ model: 'custom', layers });
      const { pixels } = await engine.ask('samples', { of: 'test', from: 0, count: 1 });
      const live = async () => {
        await engine.ask('step');
        return engine.events.filter(({ kind }) => kind === 'figures').at(-1).liveBytes;
      };
      for (let i = 0; i < 10; i++) await engine.ask('read', { pixels });
      await live();
      const before = await live();
      for (let i = 0; i < looks; i++) await engine.ask('read', { pixels });
      return [before, await live()];
    }, OWN, looks);
    console.log(`  ${got[0]} bytes before and ${got[1]} after ${looks} looks`);
    assert.ok(got[0] > 0 && got[1] <= got[0] * 1.02, String(got));
  });
});

visits('the network on the page', (at) => {
  const rows = () => at.page.eval(() => [...document.querySelectorAll('#network-layers > li')].map(({ dataset: { layer, shape } }) => [layer, shape]));
  const told = () => at.page.text('#network-words');
  const picture = (layer) => at.page.eval((name) => document.querySelector(`[data-layer="${name}"] canvas`).toDataURL(), layer);
  const moved = (layer) => at.page.eval((name) => Number(document.querySelector(`[data-layer="${name}"] [data-moved]`)?.dataset.moved ?? NaN), layer);
  const built = (count) => at.page.until((n) => document.querySelectorAll('#network-layers > li').length === n && document.querySelector('#network [data-moved]') !== null, { what: `${count} rows with weights` }, count);

  /** Moves the mouse over a row's canvas, to a fraction of its width and height. */
  async function hover(layer, across, down) {
    const canvas = await at.page.raw.$(`[data-layer="${layer}"] canvas`);
    await canvas.scrollIntoView();
    const { x, y, width, height } = await canvas.boundingBox();
    await at.page.raw.mouse.move(x + across * width, y + down * height);
  }

  it('shows the layers, which change while they learn', async () => {
    await at.shown({ model: 'mlp', stop: 40 });
    await built(4);
    assert.deepEqual(await rows(), [['input', '28,28,1'], ['flatten', '784'], ['dense', '100'], ['dense_1', '10']]);
    assert.equal(await moved('dense'), 0);
    await at.page.click('#pad-test');
    await at.page.until(() => document.querySelector('#guess').dataset.digit, { what: 'a test image that is read' });
    await new Promise((done) => setTimeout(done, 1000));
    const before = await Promise.all(['dense', 'dense_1'].map(picture));
    await at.page.click('#toggle');
    await at.page.state('finished');
    await at.page.until(() => document.querySelector('#network').dataset.step === '40', { what: 'the weights of step 40' });
    await new Promise((done) => setTimeout(done, 500));
    const later = await Promise.all(['dense', 'dense_1'].map(picture));
    assert.notEqual(later[0], before[0], 'the pictures of the weights stay as they were');
    assert.notEqual(later[1], before[1], 'the answers stay as they were');
    assert.ok(await moved('dense') > 0.01, String(await moved('dense')));
    assert.match(await at.page.text('[data-layer=dense] .moved-text'), /^moved \d+(\.\d)? %$/);
    await at.page.screenshot('network-mlp');
  });

  it('says what one points at, and follows the keyboard', async () => {
    await at.train({ model: 'mlp', stop: 5 });
    await built(4);
    await at.page.click('#pad-test');
    await at.page.until(() => document.querySelector('#guess').dataset.digit, { what: 'a test image that is read' });
    await hover('dense', 0.01, 0.02);
    await at.page.until(() => document.querySelector('#network').dataset.told === 'dense 0', { what: 'the first unit' });
    assert.match(await told(), /^Unit 1 of dense: .*weights/);
    assert.ok(await at.page.eval(() => !document.querySelector('#network-large').hidden));
    await hover('dense_1', 0.35, 0.9);
    await at.page.until(() => document.querySelector('#network').dataset.told === 'dense_1 3', { what: 'the answer 3' });
    assert.match(await told(), /^Answer 3: [\d.]+ % sure.*Of dense, unit \d+ speaks most for it/);
    const sure = Number(/: ([\d.]+) %/.exec(await told())[1]);
    const bar = await at.page.eval(() => Number(document.querySelector('#bars [data-digit="3"]').dataset.probability));
    assert.ok(Math.abs(sure - 100 * bar) < 0.06, `${sure} % said, ${bar} shown`);
    await at.page.raw.mouse.move(2, 2);

    await at.page.eval(() => document.querySelector('[data-layer=dense] canvas').focus());
    await at.page.raw.keyboard.press('ArrowRight');
    await at.page.raw.keyboard.press('ArrowRight');
    const slider = () => at.page.eval(() => {
      const { ariaValueNow, ariaValueText, ariaLabel } = document.activeElement;
      return { now: ariaValueNow, text: ariaValueText, label: ariaLabel, role: document.activeElement.getAttribute('role') };
    });
    const third = await slider();
    assert.deepEqual([third.now, third.role], ['3', 'slider']);
    assert.match(third.label, /^dense, 100: units$/);
    assert.match(third.text, /^Unit 3 of dense/);
    assert.match(await told(), /^Unit 3 of dense/);
    await at.page.raw.keyboard.press('End');
    assert.equal((await slider()).now, '100');
    await at.page.raw.keyboard.press('Escape');
    assert.equal(await at.page.eval(() => document.querySelector('#network').dataset.told), '');
  });

  it('shows feature maps and filters of an own model', async () => {
    const layers = 'conv2d_8_5_1_same_relu-maxPooling2d_2_2_valid-conv2d_72_3_1_same_relu-flatten-dropout_0.4-dense_10_linear';
    await at.train({ model: 'custom', layers, stop: 3, batch: 10 });
    await built(7);
    assert.deepEqual(await rows(), [
      ['input', '28,28,1'], ['conv2d', '28,28,8'], ['max_pooling2d', '14,14,8'], ['conv2d_1', '14,14,72'], ['flatten', '14112'], ['dropout', '14112'], ['dense', '10'],
    ]);
    await at.page.click('#pad-test');
    await at.page.until(() => document.querySelector('#guess').dataset.digit, { what: 'a test image that is read' });
    await hover('conv2d', 0.01, 0.05);
    await at.page.until(() => document.querySelector('#network').dataset.told === 'conv2d 0', { what: 'the first map' });
    assert.match(await told(), /^Feature map 1 of conv2d: green where its 5 × 5 filter, the first picture, matches the digit\./);
    await hover('max_pooling2d', 0.01, 0.05);
    await at.page.until(() => document.querySelector('#network').dataset.told === 'max_pooling2d 0', { what: 'the pooled map' });
    assert.match(await told(), /the largest of each 2 × 2 in map 1 of conv2d/);
    await hover('conv2d_1', 0.01, 0.05);
    await at.page.until(() => document.querySelector('#network').dataset.told === 'conv2d_1 0', { what: 'a map of maps' });
    assert.match(await told(), /looks at all 8 maps of max_pooling2d/);
    await at.page.eval(() => document.querySelector('[data-layer=conv2d_1] .layer-words').dispatchEvent(new PointerEvent('pointerenter')));
    assert.match(await told(), /^72 filters of 3 × 3 .* The first 64 are shown\. Its weights have moved by /);
    await at.page.screenshot('network-own');
  });

  it('changes a test image and what is read in it together', async () => {
    await at.visit({ start: 1, stop: 0 });
    await at.page.until(() => document.querySelectorAll('#network-layers canvas').length > 0, { what: 'the layers' });
    const apart = await at.page.eval(async () => {
      const look = () => [document.querySelector('#pad-pixels').toDataURL(), [...document.querySelectorAll('#bars li')].map(({ dataset }) => dataset.probability).join()];
      let [picture, bars] = look();
      let [changes, apart] = [0, 0];
      const end = performance.now() + 60_000;
      while (changes < 4 && performance.now() < end) {
        await new Promise(requestAnimationFrame);
        const now = look();
        if (now[0] !== picture) {
          changes += 1;
          if (now[1] === bars) apart += 1;
        }
        [picture, bars] = now;
      }
      return { changes, apart };
    });
    assert.deepEqual(apart, { changes: 4, apart: 0 });
  });

  it('goes on after a lost device, and with another model', async () => {
    await at.visit({ start: 1, stop: 0 });
    await built(4);
    await at.reaches(5);
    await at.page.eval(() => document.querySelector('#lose-device').click());
    await at.page.until(() => document.querySelector('#notices > .notice[data-kind="lost"]') !== null, { what: 'a notice on the loss' });
    const readings = () => at.page.eval(() => Number(document.querySelector('#network').dataset.readings));
    const before = await readings();
    await at.page.until((n) => Number(document.querySelector('#network').dataset.readings) > n + 2, { what: 'readings on the new device' }, before);
    await at.page.eval(() => document.querySelector('#model-custom').click());
    await built(6);
    assert.equal((await rows())[1][0], 'conv2d');
  });

  it('fits a narrow window, in the dark, without motion', async () => {
    await at.shown({ stop: 3 }, { width: 320, height: 700, media: { 'prefers-color-scheme': 'dark', 'prefers-reduced-motion': 'reduce' } });
    await at.page.click('#toggle');
    await at.page.state('finished');
    await at.page.eval(() => document.querySelector('#network').scrollIntoView());
    await built(4);
    const [wide, window_] = await at.page.eval(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= window_, `${wide} pixels in a window of ${window_}`);
    const outside = await at.page.eval(() => {
      const card = document.querySelector('.area-network').getBoundingClientRect();
      return [...document.querySelectorAll('#network *')].filter((element) => element.getBoundingClientRect().right > card.right).map(({ className, id }) => id || className);
    });
    assert.deepEqual(outside, []);
    await at.page.screenshot('network-320-dark');
  });
});
