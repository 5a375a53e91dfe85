// The connection to the engine: in its own worker if workers have WebGPU, else the same module on the page's thread.

import type { AskName, Asks, Event, Fault, Request, Send, ToPage } from '../engine/protocol';

type Listener<K extends Event['kind']> = (event: Event & { kind: K }) => void;

/** A request that the engine refused, with the reason. */
export class Refused extends Error {
  constructor(readonly fault: Fault) {
    super(fault.text);
  }
}

export class Link {
  readonly #post: (request: Request, transfer: Transferable[]) => void;
  readonly #end: () => void;
  readonly #waiting = new Map<number, { resolve: (value: never) => void; reject: (reason: Refused) => void }>();
  readonly #listeners: Listener<Event['kind']>[];
  #id = 0;

  /** `listeners` are shared by all links of a page, so that they also hear a new engine. */
  constructor(post: (request: Request, transfer: Transferable[]) => void, end: () => void, listeners: Listener<Event['kind']>[]) {
    [this.#post, this.#end, this.#listeners] = [post, end, listeners];
  }

  ask<K extends AskName>(kind: K, input: Asks[K]['in'], transfer: Transferable[] = []): Promise<Asks[K]['out']> {
    const id = ++this.#id;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#post({ kind, id, ...input } as Request, transfer);
    });
  }

  take(message: ToPage): void {
    if (message.kind !== 'reply') {
      for (const listener of this.#listeners) listener(message);
      return;
    }
    const waiting = this.#waiting.get(message.id);
    this.#waiting.delete(message.id);
    if (message.ok) waiting?.resolve(message.value as never);
    else waiting?.reject(new Refused(message.fault));
  }

  /** Ends a worker; its pending requests are not answered. */
  end(): void {
    this.#end();
  }
}

/** A worker that reports whether it has WebGPU; undefined if it has not, or does not start. */
function inWorker(listeners: Listener<Event['kind']>[]): Promise<Link | undefined> {
  return new Promise((resolve) => {
    const worker = new Worker(new URL('engine.js', import.meta.url), { type: 'module', name: 'wgrad' });
    const link = new Link((request, transfer) => worker.postMessage(request, transfer), () => worker.terminate(), listeners);
    worker.onerror = (event) => {
      event.preventDefault();
      worker.terminate();
      resolve(undefined);
    };
    worker.onmessage = ({ data }: MessageEvent<ToPage>) => {
      if (data.kind === 'hello') {
        if (!data.gpu) worker.terminate();
        else worker.onerror = (event) => listeners.forEach((listener) => listener({
          kind: 'fault', fault: { kind: 'panic', text: `The worker that trains met an error: ${event.message}`, goesOn: false },
        }));
        resolve(data.gpu ? link : undefined);
      } else link.take(data);
    };
  });
}

/** Reports which part of the page is missing, and what to do. */
export const missing = (name: string) => (error: unknown): never => {
  throw new Error(`${name} could not be loaded (${error instanceof Error ? error.message : String(error)}). `
    + 'A blocker, a filter in the network, or an old copy in the cache may be in the way.');
};

async function besidePage(listeners: Listener<Event['kind']>[]): Promise<Link> {
  const address = './engine.js';
  const { connect } = await import(address).catch(missing('engine.js')) as { connect: (send: Send) => (request: Request) => void };
  const receive = connect((message) => queueMicrotask(() => link.take(message)));
  const link: Link = new Link((request) => receive(request), () => {}, listeners);
  return link;
}

/** Starts the engine, and returns its location and the connection to it. */
export async function reach(listeners: Listener<Event['kind']>[], mayUseWorker: boolean): Promise<{ link: Link; where: 'worker' | 'main' }> {
  const link = mayUseWorker ? await inWorker(listeners) : undefined;
  return link ? { link, where: 'worker' } : { link: await besidePage(listeners), where: 'main' };
}
