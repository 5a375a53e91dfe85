// The server: types, headers, and paths that try to escape their folder.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, before, describe, it } from 'node:test';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { POLICY, pathWithin, serve } from '../serve.mjs';

describe('the server', () => {
  let folder;
  let server;

  before(async () => {
    folder = mkdtempSync(path.join(os.tmpdir(), 'wgrad-serve-'));
    for (const name of ['dist', 'dist-beside', 'data']) mkdirSync(path.join(folder, name));
    const files = {
      'dist/index.html': '<!doctype html>', 'dist/a.js': 'let a;', 'dist/a.wasm': '\0asm', 'dist/a.css': 'a{}',
      'dist/a b.js': 'let b;', 'dist-beside/secret': 'no', 'secret': 'no', 'data/images.gz': 'packed',
    };
    for (const [name, text] of Object.entries(files)) writeFileSync(path.join(folder, name), text);
    server = await serve([['/data/', path.join(folder, 'data')], ['/', path.join(folder, 'dist')]], { base: '/some/where/' });
  });

  after(async () => {
    await server?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it('gives each file its type, the policy, and no cache that outlives a build', async () => {
    const types = {
      '': 'text/html', 'a.js': 'text/javascript', 'a.wasm': 'application/wasm', 'a.css': 'text/css', 'a%20b.js': 'text/javascript',
      'data/images.gz': 'application/gzip',
    };
    for (const [name, type] of Object.entries(types)) {
      const response = await fetch(server.url + name);
      assert.equal(response.status, 200, name);
      assert.equal(response.headers.get('content-type').split(';')[0], type, name);
      assert.equal(response.headers.get('content-security-policy'), POLICY, name);
      assert.equal(response.headers.get('cache-control'), 'no-cache', name);
    }
    // The browser must not decompress what the page decompresses.
    const packed = await fetch(`${server.url}data/images.gz`);
    assert.equal(packed.headers.get('content-encoding'), 'identity');
    assert.equal(await packed.text(), 'packed');
  });

  it('packs texts for who unpacks them, and nothing else', async () => {
    const get = (name, headers) => new Promise((resolve, reject) => {
      http.get(server.url + name, { headers }, (response) => {
        const parts = [];
        response.on('data', (part) => parts.push(part)).on('end', () => resolve({ ...response, status: response.statusCode, headers: response.headers, body: Buffer.concat(parts) }));
      }).on('error', reject);
    });
    for (const [asked, encoding, unpack] of [['gzip, deflate, br', 'br', brotliDecompressSync], ['gzip', 'gzip', gunzipSync], ['br;q=0, gzip', 'gzip', gunzipSync]]) {
      for (const [name, text] of [['a.js', 'let a;'], ['', '<!doctype html>'], ['a%20b.js?x=1', 'let b;'], ['a.wasm', '\0asm']]) {
        const { headers, body } = await get(name, { 'Accept-Encoding': asked });
        assert.equal(headers['content-encoding'], encoding, name);
        assert.equal(headers.vary, 'Accept-Encoding');
        assert.equal(unpack(body).toString(), text);
        const again = await get(name, { 'Accept-Encoding': asked, 'If-None-Match': headers.etag });
        assert.equal(again.status, 304);
      }
    }
    assert.equal((await get('a.js', {})).headers['content-encoding'], undefined);
    assert.equal((await get('a.js', { 'Accept-Encoding': 'gzip', Range: 'bytes=0-1' })).body.toString(), 'le');
    assert.equal((await get('data/images.gz', { 'Accept-Encoding': 'gzip' })).body.toString(), 'packed');
    assert.equal((await get('absent.js', { 'Accept-Encoding': 'gzip' })).status, 404);
    // A changed file is compressed again.
    writeFileSync(path.join(folder, 'dist/b.js'), 'let before;');
    await get('b.js', { 'Accept-Encoding': 'gzip' });
    writeFileSync(path.join(folder, 'dist/b.js'), 'let afterwards;');
    assert.equal(gunzipSync((await get('b.js', { 'Accept-Encoding': 'gzip' })).body).toString(), 'let afterwards;');
  });

  it('serves nothing outside its folders', async () => {
    // Sent manually, as fetch normalizes paths.
    const ask = (target) => new Promise((resolve, reject) => {
      const socket = net.connect(Number(new URL(server.url).port), 'localhost', () => {
        socket.write(`GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n`);
      });
      let text = '';
      socket.on('data', (data) => { text += data; }).on('end', () => resolve(text)).on('error', reject);
    });
    const base = '/some/where/';
    const escapes = [
      `${base}../secret`, `${base}%2e%2e/secret`, `${base}..%2fsecret`, `${base}../dist-beside/secret`, `${base}..%5csecret`,
      `${base}data/../../secret`, `${base}%00`, `${base}%`, `${base}/../../../../etc/passwd`, '/', '/secret', '/some/wherever', `${base}absent`,
    ];
    for (const target of escapes) {
      const answer = await ask(target);
      assert.match(answer, /^HTTP\/1\.1 404 /, target);
      assert.doesNotMatch(answer, /\r\n\r\nno/, target);
    }
    assert.match(await ask(base), /^HTTP\/1\.1 200 /);
  });

  it('finds the path within its base', () => {
    assert.equal(pathWithin('/a/b.js?x=/../', '/a/'), '/b.js');
    assert.equal(pathWithin('/a/b%20c', '/a/'), '/b c');
    assert.equal(pathWithin('/b', '/a/'), undefined);
    assert.equal(pathWithin('/a/%zz', '/a/'), undefined);
  });
});
