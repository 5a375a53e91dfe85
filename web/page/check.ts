// "Check this GPU": starts the check on request, shows its progress, and reports its results.

import type { CheckMessage, CheckResult } from '../engine/check';
import { button, byId, make, say } from './dom';
import { download } from './files';
import * as format from './format';

/** The size of its files on the server, in bytes. */
declare const CHECK: { bytes: number; cases: number; version: string };

const short = (value: number) => (value >= 100 ? format.count(value) : String(Number(value.toPrecision(3))));

/** A row of a Markdown table; a driver's name may contain any characters. */
const row = (...cells: (string | number)[]) => `| ${cells.map((cell) => String(cell).replace(/[|\r\n]+/g, ' ')).join(' | ')} |`;
const table = (heads: string[], rows: (string | number)[][]) => [row(...heads), `|${heads.map(() => '---').join('|')}|`, ...rows.map((cells) => row(...cells))].join('\n');

const sum = (result: CheckResult, of: 'passed' | 'failed') => result.families.reduce((total, family) => total + family[of], 0);
/** With a larger difference, an MLP does not train as it does natively. */
const DIFFERENCE = 1e-3;
const strays = ({ losses }: CheckResult) => losses.filter(({ difference }) => !(difference <= DIFFERENCE));

/** Whether every case ran and passed. */
const fine = (result: CheckResult) => !result.trouble && !result.stopped && sum(result, 'failed') === 0 && strays(result).length === 0;

function verdict(result: CheckResult): string {
  const [passed, failed] = [sum(result, 'passed'), sum(result, 'failed')];
  if (result.trouble) return `The check ended early: ${result.trouble}`;
  const ran = `${passed} of ${passed + failed} cases agree with TensorFlow ${result.tensorflow}`;
  if (result.stopped) return `Stopped. So far ${ran}${failed > 0 ? '' : ', and none disagrees'}.`;
  if (failed > 0) return `${failed} cases do not agree with TensorFlow. Please attach the report to an issue.`;
  const models = strays(result);
  if (models.length > 0) return `${ran}, but training strays from the native run: ${models.map(({ name }) => name).join(', ')}. Please attach the report to an issue.`;
  return `${ran}, and training gives the losses of a native run. All is right here.`;
}

/** The report as Markdown, for readers who know neither this machine nor this page. */
export function markdown(result: CheckResult, date: Date): string {
  const { adapter } = result;
  const name = adapter ? adapter.name || 'an adapter without a name' : 'no adapter';
  const parts = [`# wgrad on ${name}`, table(['what', 'it is'], [
    ['adapter', adapter?.text ?? 'none'], ['driver', adapter?.driver || 'not told'], ['browser', navigator.userAgent],
    ['wgrad', CHECK.version], ['made', `${date.toISOString().slice(0, 10)} by the page, in ${short(result.seconds)} s`],
  ]), '## Summary', verdict(result)];
  if (result.failures.length > 0) parts.push('## What did not pass', table(['case', 'what'], result.failures.map(({ name, what }) => [name, what])));
  if (result.families.length > 0) {
    parts.push(`## TensorFlow's cases (${sum(result, 'passed') + sum(result, 'failed')} of ${result.cases} run)`,
      table(['family', 'passed', 'failed', 'largest error, of what is allowed', 'in'],
        result.families.map(({ name, passed, failed, error, worst }) => [name, passed, failed, format.percent(error, 0), worst])));
  }
  if (result.losses.length > 0) {
    parts.push('## 20 steps beside the native run',
      table(['model', 'largest relative difference of a loss'], result.losses.map(({ name, difference }) => [name, difference.toExponential(1)])));
  }
  if (result.figures.length > 0) parts.push('## Figures', table(['what', 'figure', 'unit'], result.figures.map(({ name, value, unit }) => [name, short(value), unit])));
  if (result.limits.length > 0) {
    parts.push('## Adapter', table(['limit', 'value'], result.limits), `Features: ${result.features.join(', ') || 'none'}.`);
  }
  return `${parts.join('\n\n')}\n`;
}

interface Running {
  result: Promise<CheckResult>;
  stop: () => void;
}

type Progress = (message: CheckMessage & { kind: 'progress' }) => void;

/** Milliseconds that a stopped check may take to report its results; a GPU that hangs never does. */
const PATIENCE = 5000;

const broken = (trouble: string, stopped = false): CheckResult =>
  ({ limits: [], features: [], tensorflow: '', families: [], cases: CHECK.cases, failures: [], losses: [], figures: [], trouble, stopped, seconds: 0 });

async function besidePage(progress: Progress, signal: AbortSignal): Promise<CheckResult> {
  const address = new URL('check.js', document.baseURI).href;
  const { check } = await import(address) as typeof import('../engine/check');
  return check(document.baseURI, signal, (what, done, total) => progress({ kind: 'progress', what, done, total }));
}

function begin(progress: Progress): Running {
  const stopping = new AbortController();
  const worker = new Worker(new URL('check.js', document.baseURI), { type: 'module', name: 'wgrad check' });
  const result = new Promise<CheckResult>((resolve) => {
    const beside = () => {
      worker.terminate();
      resolve(besidePage(progress, stopping.signal).catch((error) => broken(String(error))));
    };
    // For a worker that does not even start.
    worker.onerror = (event) => {
      event.preventDefault();
      beside();
    };
    worker.onmessage = ({ data }: MessageEvent<CheckMessage>) => {
      if (data.kind === 'progress') return progress(data);
      if (data.kind === 'result') {
        worker.terminate();
        return resolve(data.result);
      }
      if (!data.gpu) return beside();
      worker.onerror = (event) => {
        event.preventDefault();
        worker.terminate();
        resolve(broken(`the worker met an error: ${event.message}`));
      };
      worker.postMessage({ base: document.baseURI });
    };
    stopping.signal.addEventListener('abort', () => {
      worker.postMessage({});
      setTimeout(() => {
        worker.terminate();
        resolve(broken('the GPU did not answer any more', true));
      }, PATIENCE);
    });
  });
  return { result, stop: () => stopping.abort() };
}

/** `pause` pauses training so that it does not disturb measurements, and returns a function that resumes it. */
export function setUpCheck(pause: () => Promise<() => void>): void {
  let running: Running | undefined;
  const size = format.bytes(CHECK.bytes);
  const status = make('p', { id: 'check-status', class: 'note' });
  const bar = make('progress', { id: 'check-progress', max: '1', 'aria-label': 'The check', hidden: '' });
  const verdictLine = make('p', { id: 'check-verdict', class: 'verdict', role: 'status' });
  const results = make('div', { id: 'check-results', class: 'check-results' });

  const run = async () => {
    const goOn = await pause();
    results.replaceChildren();
    verdictLine.textContent = '';
    delete byId('check').dataset.result;
    begun.hidden = bar.hidden = false;
    start.disabled = true;
    bar.removeAttribute('value');
    running = begin(({ what, done, total }) => {
      status.textContent = `${what}…`;
      if (total > 0) bar.value = done / total;
      else bar.removeAttribute('value');
    });
    const result = await running.result;
    running = undefined;
    start.disabled = false;
    begun.hidden = bar.hidden = true;
    status.textContent = '';
    show(result);
    goOn();
  };
  const start = button('Check this GPU', () => void run(), { id: 'check-start' });
  const begun = button('Stop', () => {
    status.textContent = 'Stopping…';
    running?.stop();
  }, { id: 'check-stop' });
  begun.hidden = true;

  function show(result: CheckResult): void {
    const text = markdown(result, new Date());
    byId('check').dataset.result = fine(result) ? 'fine' : result.trouble || result.failures.length > 0 ? 'failed' : 'stopped';
    verdictLine.textContent = verdict(result);
    const copy = button('Copy the report', async () => {
      try {
        await navigator.clipboard.writeText(text);
        say('check-copy', 'Copied');
      } catch {
        // Not every page may use the clipboard; the visitor can copy selected text.
        report.open = true;
        getSelection()?.selectAllChildren(byId('check-report'));
        say('check-copy', 'Selected');
      }
      setTimeout(() => {
        if (document.getElementById('check-copy')) say('check-copy', 'Copy the report');
      }, 1500);
    }, { id: 'check-copy' });
    const save = button('Save as a file', () => download('wgrad-check.md', new TextEncoder().encode(text), 'text/markdown'), { id: 'check-save' });
    const report = make('details', {}, make('summary', {}, 'The report'),
      make('pre', { id: 'check-report', class: 'scroll code', tabindex: '0', role: 'region', 'aria-label': 'The report' }, text));
    const figures = make('dl', { class: 'figures small' }, ...result.figures.map(({ name, value, unit }) =>
      make('div', {}, make('dt', {}, name), make('dd', {}, `${short(value)} ${unit}`))));
    const failed = make('ul', { class: 'note' }, ...result.failures.slice(0, 5).map(({ name, what }) => make('li', {}, `${name}: ${what}`)));
    results.replaceChildren(...(result.failures.length > 0 ? [failed] : []), ...(result.figures.length > 0 ? [figures] : []),
      make('div', { class: 'row' }, copy, save), report);
  }

  byId('check').append(
    make('p', { class: 'note' }, `Does it compute rightly, and how fast? On request the page runs ${CHECK.cases} cases whose results TensorFlow has computed, `
      + 'values and gradients, trains two small models beside a native run, and measures a few kernels. '
      + `It takes about a minute, longer without a GPU, and loads up to ${size}. Training pauses meanwhile. Nothing is sent anywhere: you get a report to copy.`),
    make('div', { class: 'row' }, start, begun), bar, status, verdictLine, results);
}
