// Errors of the package: messages with JavaScript's names, thrown at the mistake, and rejected promises from asynchronous
// methods.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { serve } from '../serve.mjs';
import { browserName, launch, root } from './driver.mjs';

/** The expected messages for lines in `misuse.js`. */
const WORDS = {
  "x.add('3')": [/^Tensor\.add: other is "3"; it must be a Tensor, a Variable or a number\.$/],
  'x.add([1, 2])': [/Tensor\.from\(\.\.\.\) makes a tensor of it/],
  'x.add(ints)': [/^Add: a is float32 \[2, 2\] and b is int32/, /x\.cast\('float32'\)/],
  'x.add(wide)': [/reshape or expandDims/],
  'x.item()': [/use data\(\)\.$/],
  "Tensor.zeros([2], 'int32')": [/^Tensor\.zeros: "int32" is one argument too many; it takes \(shape\)\.$/],
  'x.relu(1)': [/it takes \(\)/],
  'gone.add(1)': [/was disposed of/],
  'freed.add(1)': [/^Tensor\.add: this Tensor was given back by free\(\)/],
  'freed.data()': [/^Tensor\.data: this Tensor was given back/],
  'lost.data()': [/this Variable was given back/],
  'ints.oneHot(-1)': [/^Tensor\.oneHot: depth is -1; it must be a whole number from 0/],
  'x.softmax(1.5)': [/axis is 1\.5; it must be a whole number/],
  'new Tensor([1])': [/Tensor\.from\(\.\.\.\)/],
  'new Device()': [/One is made by await Device\.open\(\)/],
  'new layers()': [/without new/],
  'x * 2': [/x\.mul\(2\)/],
  'layers.dense({ unit: 3 })': [/^layers\.dense: there is no option 'unit'\. The known ones are .*units/],
  'layers.dense(3)': [/must be an object, not 3/],
  'adam({ lr: 1 })': [/no option 'lr'.*learningRate/],
  'ready.fit(images, { epochs: 2 })': [/the options stand behind it: fit\(images, null, \{ \.\.\. \}\)\. Here y is \{"epochs":2\}/],
  'ready.fit(images, null, { epoch: 3 })': [/no option 'epoch'.*epochs/],
  'ready.fit(images, null, { validationData: 5 })': [/validationData: x is 5/],
  'ready.fit(images, null, { signal: new AbortController() })': [/an AbortController's signal/],
  'ready.fit()': [/x is undefined; it must be Images or a Tensor/],
  'new Sequential([dense()]).fit(images)': [/Call compile\(\{ optimizer: 'adam' \}\) first/],
  'tfFunction(async () => x)()': [/the function returned a promise/],
  'tfFunction((a) => a)(v)': [/its arguments have a Variable\..*x\.read\(\)/],
  'tfFunction((a) => a)(new Map())': [/its arguments have a Map\. They may be Tensors, numbers/],
  'tfFunction(() => new Date())()': [/the function's results have a Date/],
  'tfFunction(() => x)(1, 2, 3, 4, 5, 6, 7)': [/at most six arguments/],
  'tfFunction((a) => a.matmul(wide))(x)': [/^MatMul|matmul/],
  'valueAndGradients(async () => x, [v])': [/returned a promise/],
  'valueAndGradients(() => 5, [v])': [/returned 5; it must return a Tensor/],
  'checkpoint.restore(5)': [/neither a location, such as opfs/],
  'Images.fromIdx(new Uint8Array([0x1f, 0x8b, 8, 0]), new Uint8Array(8))': [/DecompressionStream\('gzip'\)/],
};

/** Lines that return a promise, which is rejected; the others throw. */
const PROMISES = /\.(fit|evaluate|predict|data|item|items|trainOnBatch|open|finish|save|restore|latest|toBlobs)\b(\.call)?\(/;

/** Lines that are not mistakes, or that fail later. */
const FINE = [
  'Tensor.ones([1, 4, 4, 1]).maxPool2d({ poolSize: 9 })', 'Tensor.ones([1, 4, 4, 2]).conv2d(Tensor.ones([3, 3, 1, 2]))',
  'Tensor.ones([1, 4, 4, 1]).conv2d(Tensor.ones([5, 5, 1, 2]))', 'layers.dropout({ rate: 5 })', 'layers.batchNormalization({ axis: 1.5 })',
  "made(dense({ name: 'a' }), dense({ name: 'a' }))", 'new Sequential([layers.embedding({ inputDim: 3, outputDim: 2 })]).call(x)',
  'new Sequential([dense()]).call(ints)',
];

/** Lines that the module which loads models accepts; a draft of the package consists of that one. */
const EITHER = ['model.call(v)'];

describe(`errors of the package in ${browserName}`, () => {
  let server;
  let browser;
  let page;
  let found;

  before(async () => {
    server = await serve([['/pkg/', path.join(root, 'web/pkg')], ['/tests/', path.join(root, 'web/tests')]]);
    browser = await launch();
    page = await open(browser);
    found = await page.eval(async () => {
      const { mistakes, tried } = await import('/tests/misuse.js');
      return tried(mistakes(wgrad, device));
    });
  });

  async function open(from) {
    const opened = await from.page();
    await opened.goto(`${server.url}tests/api.html`);
    await opened.until(() => 'ready' in globalThis, { what: 'the script', timeout: 30_000 });
    await opened.eval(() => globalThis.ready.catch(() => {}));
    return opened;
  }

  after(async () => {
    await browser?.close();
    await server?.close();
  });

  it('refuses each mistake in words of JavaScript', () => {
    assert.ok(found.length > 300, `${found.length} mistakes`);
    const wrong = [];
    for (const { line, how, name, message, error } of found) {
      if ((how === 'GIVES') !== FINE.includes(line) && !(how === 'GIVES' && EITHER.includes(line))) wrong.push(`${line} ${how}`);
      if (how === 'GIVES') continue;
      const says = (problem) => wrong.push(`${line}: ${problem}: ${name}: ${message}`);
      if (!error || !/Error$/.test(name) || name === 'Error' && !/mine/.test(message)) says('no error with a name');
      if (/::|_async|\bunwrap\b|\bpanick?|\bNone\b|\bSome\(|&self|\bRust\b|null pointer|__|undefined \(reading|non-object|unreachable/.test(message)) says('words of another language');
      // Keras's names contain underscores, such as those of layers and activations.
      const own = /\b(layer '[a-z0-9_]+'|The known ones are [^.]*|it must be one of [^.]*)/g;
      if (/\b[a-z]+\d?_[a-z]/.test(message.replace(own, ''))) says('a name of another language');
      if (/\b[fiu](8|16|32|64)\b/.test(message)) says('a dtype of another language');
      if (/expected instance of/.test(message)) says('the bindings\' own words');
      if (message.length < 20) says('too few words');
    }
    assert.deepEqual(wrong, []);
  });

  it('names Node.js where a program runs in it', { skip: browserName !== 'chromium' && 'it takes no browser' }, async () => {
    const { default: init, Device } = await import(path.join(root, 'web/pkg/wgrad.js'));
    await init({ module_or_path: readFileSync(path.join(root, 'web/pkg/wgrad_bg.wasm')) });
    await assert.rejects(Device.open(), (error) => {
      assert.equal(error.name, 'DeviceError');
      assert.match(error.message, /^Device\.open: Node\.js \d+ has no WebGPU here \(navigator\.gpu is missing\); run it in a browser\.$/);
      return true;
    });
  });

  it('says what it got and what to do', () => {
    const lines = new Map(found.map((each) => [each.line, each.message]));
    for (const [line, all] of Object.entries(WORDS)) {
      assert.ok(lines.has(line), `misuse.js has no line ${line}`);
      for (const words of all) assert.match(lines.get(line), words);
    }
  });

  it('rejects promises and throws nowhere that a promise is given', () => {
    const promises = found.filter(({ line }) => PROMISES.test(line.replace(/^made\(.*/, '')) && !/\b(withModel|withVariable)\(|zeros\(/.test(line));
    assert.ok(promises.length > 60, `${promises.length} lines`);
    assert.deepEqual(promises.filter(({ how }) => how === 'THROWS').map(({ line }) => line), []);
  });

  it('refuses calls before init', async () => {
    const said = await page.eval(async () => {
      const { Tensor, Device, Images, Sequential, Variable, setSeed, tidy, layers } = await import('/pkg/wgrad.js?fresh');
      const tell = async (f) => {
        try {
          await f();
          return 'nothing was thrown';
        } catch (error) {
          return error.message;
        }
      };
      const calls = [
        () => Tensor.from([1]), () => new Sequential([]), () => new Variable(), () => Images.drawDigits(1, 1), () => setSeed(1),
        () => tidy(() => 1), () => layers.dense({ units: 1 }), () => Device.open(),
      ];
      let rejected = false;
      const promise = Device.open();
      await promise.catch(() => { rejected = true; });
      return { said: await Promise.all(calls.map(tell)), rejected };
    });
    for (const words of said.said) assert.match(words, /^[\w.]+: wgrad is not loaded yet\. Call and await init\(\)/);
    assert.equal(said.rejected, true);
  });

  it('lets free and dispose be called again', async () => {
    const got = await page.eval(() => {
      const tensor = wgrad.Tensor.ones([2]);
      tensor.dispose();
      tensor.dispose();
      tensor.free();
      tensor.free();
      return `${tensor}`;
    });
    assert.match(got, /disposed of/);
  });

  it('has nothing left on the console', () => {
    assert.deepEqual(page.problems, []);
  });
});

/** Browsers by their user agents: name, and advice. */
const AGENTS = [
  ['Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0', /Firefox 128 has no WebGPU here .*; update it to 141 or newer\.$/],
  ['Mozilla/5.0 (X11; Linux x86_64; rv:150.0) Gecko/20100101 Firefox/150.0', /Firefox 150 has no WebGPU here .*; set dom\.webgpu\.enabled to true in about:config/],
  ['Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36', /Chrome 140 .*; turn on "Unsafe WebGPU Support" in chrome:\/\/flags/],
  ['Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/100.0.0.0 Safari/537.36', /Chrome 100 .*; update it to 113 or newer/],
  ['Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36 Edg/140.0.0.0', /Edge 140 .*; turn on graphics acceleration/],
  ['Mozilla/5.0 (Linux; Android 12) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/115.0.0.0 Mobile Safari/537.36', /Chrome 115 .*; update it to 121 or newer/],
  ['Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 Safari/605.1.15', /Safari 17 .*; update the system to macOS 26/],
  ['A reader of its own', /This browser has no WebGPU here .*; take Chrome or Edge 113, Safari 26, Firefox 141, or newer/],
];

describe(`a browser without WebGPU: ${browserName}`, () => {
  let server;
  let browser;

  before(async () => {
    server = await serve([['/pkg/', path.join(root, 'web/pkg')], ['/tests/', path.join(root, 'web/tests')]]);
    browser = await launch({ webgpu: false });
  });

  after(async () => {
    await browser?.close();
    await server?.close();
  });

  /** The error of `Device.open` on a page that begins with `init`. */
  async function refusal(init) {
    const page = await browser.page({ init });
    await page.goto(`${server.url}tests/api.html`);
    await page.until(() => 'ready' in globalThis, { what: 'the script', timeout: 30_000 });
    const error = await page.eval(() => globalThis.ready.then(() => ({}), ({ name, fault, message }) => ({ name, fault, message })));
    await page.close();
    assert.deepEqual([error.name, error.fault], ['DeviceError', 'noAdapter'], error.message);
    assert.match(error.message, /^Device\.open: /);
    assert.doesNotMatch(error.message, /\.\s/, 'more than one sentence');
    return error.message;
  }

  it('is named in one sentence that tells what to do', async () => {
    const message = await refusal();
    const major = /\/(\d+)/.exec(browser.version)[1];
    assert.ok(message.includes(browserName === 'firefox' ? `Firefox ${major}` : `Chrome ${major}`), `${browser.version}: ${message}`);
    assert.match(message, /about:config|about:support|:\/\/flags|:\/\/gpu|update it/);
  });

  it('is told by its user agent', async () => {
    for (const [agent, words] of AGENTS) {
      const init = `Object.defineProperty(Navigator.prototype, 'gpu', { get: () => undefined });
        Object.defineProperty(Navigator.prototype, 'userAgent', { get: () => ${JSON.stringify(agent)} });`;
      assert.match(await refusal(init), words);
    }
  });

  it('is no browser\'s fault on a page without https', async () => {
    const init = `Object.defineProperty(Navigator.prototype, 'gpu', { get: () => undefined });
      Object.defineProperty(globalThis, 'isSecureContext', { get: () => false });`;
    assert.match(await refusal(init), /https or from localhost/);
  });
});
