// Compresses TensorFlow's golden cases for visitors: the small cases of tests/data/oracle that the JavaScript API can express,
// and the losses of the native run. One file: the length of a JSON header, the header, and the tensors' bytes.

import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { deflateSync } from 'node:zlib';
import { isSayable, readSafetensors } from './engine/golden.js';

const data = (path) => fileURLToPath(new URL(`../tests/data/${path}`, import.meta.url));
/** The maximum bytes of a case's tensors; the few larger cases are as large as all others together. */
const MOST = 16_384;

export async function packedCases() {
  const index = JSON.parse(await readFile(data('oracle/index.json'), 'utf8'));
  const files = {};
  const parts = [];
  const tensors = {};
  const cases = [];
  let at = 0;
  for (const each of index.cases.filter(isSayable)) {
    if (!files[each.family]) {
      const file = await readFile(data(`oracle/${each.family}.safetensors`));
      files[each.family] = readSafetensors(file.buffer.slice(file.byteOffset, file.byteOffset + file.length));
    }
    const groups = [each.inputs, each.upstream, each.outputs, each.grads];
    const names = [...new Set(groups.flatMap((group) => Object.values(group ?? {})))].filter((name) => name in files[each.family]);
    const stored = names.map((name) => files[each.family][name]);
    if (stored.reduce((sum, { values }) => sum + values.byteLength, 0) > MOST) continue;
    cases.push(each);
    for (const [i, { dtype, shape, values }] of stored.entries()) {
      const bytes = Buffer.from(values.buffer, values.byteOffset, values.byteLength);
      tensors[names[i]] = { dtype, shape, at, length: bytes.length };
      parts.push(bytes);
      at += bytes.length;
    }
  }
  const runs = JSON.parse(await readFile(data('web/losses.json'), 'utf8'));
  const header = Buffer.from(JSON.stringify({ tensorflow: index.tensorflow, cases, tensors, runs }));
  const length = Buffer.alloc(4);
  length.writeUInt32LE(header.length);
  return { bytes: deflateSync(Buffer.concat([length, header, ...parts]), { level: 9 }), cases: cases.length, names: cases.map(({ name }) => name) };
}
