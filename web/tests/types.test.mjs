// The package's types in strict programs: dtypes determine which arrays are read, and models may have several inputs.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, it } from 'node:test';
import { root } from './driver.mjs';

describe('the types of the package', () => {
  it('know dtypes, and refuse what is not there', () => {
    const folder = mkdtempSync(path.join(os.tmpdir(), 'wgrad-types-'));
    try {
      const compilerOptions = {
        target: 'ES2022', module: 'ESNext', moduleResolution: 'Bundler', lib: ['ES2022', 'DOM'], types: [], strict: true, noEmit: true,
        skipLibCheck: false, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, paths: { wgrad: [path.join(root, 'web/pkg/wgrad.d.ts')], 'wgrad/models': [path.join(root, 'web/pkg/models/wgrad.d.ts')] },
      };
      writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
      for (const name of ['usage.ts', 'models.ts']) writeFileSync(path.join(folder, name), readFileSync(path.join(root, 'web/tests/types', name)));
      const { status, stdout, stderr } = spawnSync(
        process.execPath, [path.join(root, 'web/node_modules/typescript/bin/tsc'), '-p', folder], { encoding: 'utf8' },
      );
      assert.equal(status, 0, `${stdout}\n${stderr}`);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
