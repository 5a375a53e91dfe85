// Serves web/dist on localhost like a host of static files: `node serve.mjs [--port N]`, or `serve()` in tests.

import http from 'node:http';
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import sirv from 'sirv';

const here = path.dirname(fileURLToPath(import.meta.url));

/** The content security policy, which is also in the page's meta tag: nothing from elsewhere, no inline script. */
export const POLICY = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; "
  + "img-src 'self' data: blob:; connect-src 'self'";

/** The folder of MNIST's files: MNIST_DIR, or the one next to the repository; undefined if neither exists. */
export function mnistFolder() {
  const given = process.env.MNIST_DIR;
  if (given !== undefined && given !== '') {
    if (!existsSync(given)) throw new Error(`MNIST_DIR is '${given}', which is no folder; correct or unset it`);
    return path.resolve(given);
  }
  const beside = path.resolve(here, '../../shared/data/mnist');
  return existsSync(beside) ? beside : undefined;
}

/** The path of a request within `base`; undefined if it is outside, malformed, or escapes its folder. */
export function pathWithin(url, base) {
  let name;
  try {
    name = decodeURIComponent(url.split(/[?#]/, 1)[0]);
  } catch {
    return undefined;
  }
  if (!name.startsWith(base) || /[\\\0]/.test(name) || name.split('/').includes('..')) return undefined;
  return `/${name.slice(base.length)}`;
}

/**
 * Starts a server on localhost and resolves with `{url, close}`. `mounts` are pairs of a path and a folder or a function; the
 * first path that is a prefix of the request's path answers it. `base` is the path below which all of them are. If
 * `instead(name, response, missing)` returns true, it has answered the request: tests break parts of the page this way.
 */
export function serve(mounts, { port = 0, base = '/', headers = {}, instead = () => false } = {}) {
  const setHeaders = (response, name = '') => {
    const all = { 'Cache-Control': 'no-cache', 'X-Content-Type-Options': 'nosniff', 'Content-Security-Policy': POLICY };
    for (const [key, value] of Object.entries({ ...all, ...headers })) response.setHeader(key, value);
    // Sent unchanged: the page decompresses MNIST's files itself, and sirv would make the browser do so.
    if (name.endsWith('.gz')) {
      response.setHeader('Content-Type', 'application/gzip');
      response.setHeader('Content-Encoding', 'identity');
    }
  };
  // `dev`: files are looked up at each request, so a new build does not need a restart.
  const files = (folder) => packing(folder, sirv(folder, { dev: true, etag: true, setHeaders }));
  const handlers = mounts.map(([at, what]) => [at, typeof what === 'function' ? what : files(what)]);
  const server = http.createServer((request, response) => {
    const missing = () => {
      setHeaders(response);
      response.writeHead(404, { 'Content-Type': 'text/plain' }).end('Not found\n');
    };
    const name = pathWithin(request.url, base);
    const found = name !== undefined && handlers.find(([at]) => name.startsWith(at));
    if (!found) return missing();
    const [at, handler] = found;
    setHeaders(response);
    if (instead(name, response, missing)) return undefined;
    request.url = encodeURI(`/${name.slice(at.length)}`);
    return handler(request, response, missing);
  });
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, 'localhost', () => {
      const close = () => new Promise((done) => {
        server.close(done);
        server.closeAllConnections();
      });
      resolve({ url: `http://localhost:${server.address().port}${base}`, close });
    });
  });
}

const TEXTS = { '.html': 'text/html;charset=utf-8', '.js': 'text/javascript', '.css': 'text/css', '.json': 'application/json', '.txt': 'text/plain',
  '.svg': 'image/svg+xml', '.map': 'application/json', '.wasm': 'application/wasm' };
const PACKERS = {
  br: (bytes) => brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 6, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length } }),
  gzip: (bytes) => gzipSync(bytes),
};

/** Compresses texts and wasm for clients that can decompress them. Compressed files and parts of files are left to `plain`. */
function packing(folder, plain) {
  const known = new Map();
  return (request, response, missing) => {
    const name = decodeURI(request.url.split('?', 1)[0]).replace(/\/$/, '/index.html');
    const type = TEXTS[path.extname(name)];
    const accepted = (request.headers['accept-encoding'] ?? '').split(',').map((word) => word.trim())
      .filter((word) => !/;\s*q=0(\.0*)?$/.test(word)).map((word) => word.split(';')[0]);
    const encoding = Object.keys(PACKERS).find((each) => accepted.includes(each));
    const file = path.join(folder, name);
    const stats = statSync(file, { throwIfNoEntry: false });
    if (type) response.setHeader('Vary', 'Accept-Encoding');
    if (!type || !encoding || !stats?.isFile() || request.headers.range || !['GET', 'HEAD'].includes(request.method)) return plain(request, response, missing);
    const tag = `W/"${stats.size}-${Math.floor(stats.mtimeMs)}-${encoding}"`;
    response.setHeader('ETag', tag);
    if (request.headers['if-none-match'] === tag) return response.writeHead(304).end();
    const key = `${encoding} ${file}`;
    if (known.get(key)?.tag !== tag) known.set(key, { tag, packed: PACKERS[encoding](readFileSync(file)) });
    const { packed } = known.get(key);
    response.writeHead(200, { 'Content-Type': type, 'Content-Encoding': encoding, 'Content-Length': packed.length });
    return response.end(request.method === 'HEAD' ? undefined : packed);
  };
}

/** The mounts of the page: its files, and MNIST's if its folder exists. */
export function pageMounts(mnist = mnistFolder()) {
  const dist = ['/', path.join(here, 'dist')];
  return mnist === undefined ? [dist] : [['/data/mnist/index.json', list(mnist)], ['/data/mnist/', mnist], dist];
}

/** Answers with the list of available data; build.mjs writes the same kind of list. */
function list(folder) {
  return (request, response) => {
    const names = readdirSync(folder).filter((name) => /-idx[13]-ubyte(\.gz)?$/.test(name)).sort();
    const files = names.map((name) => ({ name, bytes: statSync(path.join(folder, name)).size }));
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify({ files }));
  };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({ options: { port: { type: 'string', default: '8080' } } });
  try {
    const { url } = await serve(pageMounts(), { port: Number(values.port) });
    console.log(`serving ${path.join(here, 'dist')} on ${url}`);
    console.log(`MNIST: ${mnistFolder() ?? 'not found, so the page draws digits; MNIST_DIR names its folder'}`);
  } catch (error) {
    const hint = error.code === 'EADDRINUSE' ? '; another port is chosen with --port' : '';
    console.error(`error: ${error.message}${hint}`);
    process.exitCode = 1;
  }
}
