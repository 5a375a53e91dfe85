// The declared dtype of each method is that of its result: every method of a tensor is called with each dtype, and a program
// that uses the results with their real types must compile.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { serve } from '../serve.mjs';
import { browserName, launch, root } from './driver.mjs';

const DTYPES = ['float32', 'int32', 'uint32', 'uint8', 'bool'];
/** Calls of methods that need more than no argument or a tensor of the same dtype; `x` and `y` are 2 by 2 and hold ones. */
const CALLS = {
  addN: 'Tensor.addN([x, y])', concat: 'Tensor.concat([x, y], 0)', stack: 'Tensor.stack([x, y])', einsum: "Tensor.einsum('ij,jk->ik', x, y)",
  where: 'Tensor.where(true, x, y)', scatterND: 'Tensor.scatterND(places, x, [3, 2])', select: 'mask.select(x, y)',
  fill: "Tensor.fill([2], 1, x.dtype)", range: "Tensor.range(0, 4, 1, x.dtype)", from: 'Tensor.from([1], [1], x.dtype)', cast: "x.cast('int32')",
  eye: 'Tensor.eye(2)', full: 'Tensor.full([2], 1)', linspace: 'Tensor.linspace(0, 1, 3)', ones: 'Tensor.ones([2])', zeros: 'Tensor.zeros([2])',
  avgPool2d: 'x.reshape([1, 2, 2, 1]).avgPool2d()', maxPool2d: 'x.reshape([1, 2, 2, 1]).maxPool2d()',
  dilation2d: 'x.reshape([1, 2, 2, 1]).dilation2d(y.reshape([2, 2, 1]))',
  conv2d: 'x.reshape([1, 2, 2, 1]).conv2d(y.reshape([2, 2, 1, 1]))', sparseSoftmaxCrossEntropy: 'x.sparseSoftmaxCrossEntropy(labels)',
  broadcastTo: 'x.broadcastTo([2, 2, 2])', clipByValue: 'x.clipByValue(0, 1)', gather: 'x.gather(labels)', gatherND: 'x.gatherND(places)',
  mirrorPad: "x.mirrorPad([[1, 1], [0, 0]], 'symmetric')", pad: 'x.pad([[1, 1], [0, 0]])', oneHot: 'x.oneHot(2)', reshape: 'x.reshape([4])',
  roll: 'x.roll(1)', slice: 'x.slice([0, 0], [1, 1])', stridedSlice: 'x.stridedSlice([0, 0], [1, 1])', tile: 'x.tile([2, 1])',
  split: 'x.split(2)[0]!', unstack: 'x.unstack()[0]!', topk: 'x.topk(1).values', moments: 'x.moments().mean', booleanMask: '(await x.booleanMask(mask))',
  whereAsync: '(await x.whereAsync())', topkIndices: 'x.topk(1).indices', variance2: 'x.moments().variance', divNumber: 'x.div(2)', whereNumber: 'Tensor.where(mask, x, 1)',
};

/** The names of the methods that return tensors, and whether they need another operand. */
function methods() {
  const text = readFileSync(path.join(root, 'web/pkg/wgrad.d.ts'), 'utf8');
  const tensor = /^export class Tensor<[^]*?^}/m.exec(text)?.[0] ?? assert.fail('the types have no class Tensor');
  const found = new Map();
  for (const [, name, parameters] of tensor.matchAll(/^ {4}(?:static )?(\w+)(?:<[^(]*>)?\((.*)\): (?:Promise<)?(?:\{.*)?Tensor\b.*;$/gm)) found.set(name, parameters);
  return found;
}

describe(`dtypes in ${browserName}`, () => {
  let server;
  let browser;
  let page;

  before(async () => {
    server = await serve([['/pkg/', path.join(root, 'web/pkg')], ['/tests/', path.join(root, 'web/tests')]]);
    browser = await launch();
    page = await browser.page();
    await page.goto(`${server.url}tests/api.html`);
    await page.until(() => 'ready' in globalThis, { what: 'the script', timeout: 30_000 });
    await page.eval(() => globalThis.ready);
  });

  after(async () => {
    await browser?.close();
    await server?.close();
  });

  it('of results are those that the types declare', async () => {
    const calls = { ...CALLS };
    for (const [name, parameters] of methods()) {
      if (name in calls) continue;
      const first = parameters.split(', ')[0];
      assert.ok(/^(\w+\?: .*|other: .*)?$/.test(first), `how is ${name}(${parameters}) called? CALLS has to say`);
      calls[name] = first.startsWith('other: ') ? `x.${name}(y)` : `x.${name}()`;
    }
    const lines = DTYPES.flatMap((dtype) => Object.entries(calls).map(([name, call]) => ({ dtype, name, call: call.replaceAll('x.dtype', `'${dtype}'`) })));
    const given = await page.raw.evaluate(`(async () => {
      const { Tensor } = wgrad;
      const mask = Tensor.from([[true, false], [false, true]]), labels = Tensor.from(new Int32Array([0, 1])), places = Tensor.from(new Int32Array([0, 1]), [2, 1]);
      const given = [];
      for (const [dtype, call] of [${lines.map(({ dtype, call }) => `['${dtype}', async (x, y) => ${call.replaceAll('!', '')}]`).join(',\n')}]) {
        const ones = () => Tensor.ones([2, 2]).cast(dtype);
        try { given.push((await call(ones(), ones())).dtype); } catch (error) { given.push(null); }
      }
      return given;
    })()`);
    const works = lines.map((line, i) => ({ ...line, gives: given[i] })).filter(({ gives }) => gives !== null);
    for (const name of Object.keys(calls)) assert.ok(works.some((line) => line.name === name), `${name} works with no dtype: ${calls[name]}`);
    const program = [
      "import { Tensor } from 'wgrad';",
      "declare const mask: Tensor<'bool'>, labels: Tensor<'int32'>, places: Tensor<'int32'>;",
      ...works.map(({ dtype, call, gives }, i) =>
        `export async function call${i}(x: Tensor<'${dtype}'>, y: Tensor<'${dtype}'>) { let result = ${call}; result = null! as Tensor<'${gives}'>; return [result, x, y]; }`),
    ].join('\n');
    const folder = mkdtempSync(path.join(os.tmpdir(), 'wgrad-dtypes-'));
    try {
      const compilerOptions = {
        target: 'ES2022', module: 'ESNext', moduleResolution: 'Bundler', lib: ['ES2022', 'DOM'], types: [], strict: true, noEmit: true,
        paths: { wgrad: [path.join(root, 'web/pkg/wgrad.d.ts')] },
      };
      writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['calls.ts'] }));
      writeFileSync(path.join(folder, 'calls.ts'), program);
      const { status, stdout } = spawnSync(process.execPath, [path.join(root, 'web/node_modules/typescript/bin/tsc'), '-p', folder], { encoding: 'utf8' });
      const wrong = [...stdout.matchAll(/^calls\.ts\((\d+),.*$/gm)].map(([text, line]) => `${program.split('\n')[line - 1]}\n  ${text}`);
      assert.equal(status, 0, wrong.join('\n') || stdout);
      console.log(`  ${works.length} calls of ${lines.length} give a tensor`);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
