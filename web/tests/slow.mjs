// A connection as slow as a phone's on a bad day, between a browser and a local server.

import net from 'node:net';

const PIECE = 4096;

/**
 * Forwards requests to the server at `url`; all answers together have at most `bitsPerSecond`, and each arrives `latency`
 * milliseconds later.
 */
export async function slow(url, { bitsPerSecond, latency }) {
  const target = Number(new URL(url).port);
  const msPerByte = 8000 / bitsPerSecond;
  let free = 0;
  const proxy = net.createServer({ noDelay: true }, (client) => {
    const server = net.connect({ port: target, host: 'localhost', noDelay: true });
    const end = () => {
      client.destroy();
      server.destroy();
    };
    for (const socket of [client, server]) socket.on('error', end);
    client.on('close', () => server.destroy());
    client.pipe(server);
    let last = 0;
    // Timers of nearly the same time may fire in a different order than they were set in.
    const waiting = [];
    const later = (act, ms) => {
      waiting.push(act);
      setTimeout(() => waiting.shift()(), ms);
    };
    server.on('data', (data) => {
      for (let from = 0; from < data.length; from += PIECE) {
        const piece = data.subarray(from, from + PIECE);
        const now = performance.now();
        // All connections share the bandwidth.
        free = Math.max(now, free) + piece.length * msPerByte;
        last = free + latency;
        later(() => client.write(piece), last - now);
      }
      // Pending data is not sent to a visitor who leaves.
      server.pause();
      setTimeout(() => server.resume(), last - latency - performance.now());
    });
    server.on('close', () => later(() => client.end(), Math.max(0, last - performance.now())));
  });
  await new Promise((done) => proxy.listen(0, 'localhost', done));
  const slowed = new URL(url);
  slowed.port = String(proxy.address().port);
  return { url: slowed.href, close: () => new Promise((done) => proxy.close(done)) };
}
