// Waiting and yielding.

export const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

const inWindow = typeof document !== 'undefined';
const channel = new MessageChannel();
const waiting: (() => void)[] = [];
channel.port1.onmessage = () => waiting.shift()?.();

let since = performance.now();

/**
 * In a window, yields to input and drawing once work has blocked the thread for a while; in a worker this is not necessary.
 * Timers would be slower: browsers extend them to 4 ms, and to a second in background tabs.
 */
export async function giveWay(afterMs = 8): Promise<void> {
  if (!inWindow || performance.now() - since < afterMs) return;
  await new Promise<void>((resolve) => {
    waiting.push(resolve);
    channel.port2.postMessage(0);
  });
  since = performance.now();
}
