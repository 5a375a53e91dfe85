// Waiting and giving way.

export const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

const inWindow = typeof document !== 'undefined';
const channel = new MessageChannel();
const waiting: (() => void)[] = [];
channel.port1.onmessage = () => waiting.shift()?.();

let since = performance.now();

/**
 * In a window, gives way to input and drawing once work has held the thread for a while; in a worker nobody waits.
 * Timers would be slower: browsers stretch them to 4 ms, and to a second in a tab behind others.
 */
export async function giveWay(afterMs = 8): Promise<void> {
  if (!inWindow || performance.now() - since < afterMs) return;
  await new Promise<void>((resolve) => {
    waiting.push(resolve);
    channel.port2.postMessage(0);
  });
  since = performance.now();
}
