// The page: brings the engine up, wires the controls to it, and shows what it tells.

import type { AskName, Asks, Event, Fault, State } from '../engine/protocol';
import { forgetResults, setUpResults, showResults } from './results';
import { lossOf, recent, setUpCurves, showCurves } from './curves';
import { setUpData, showData } from './data';
import { byId, make, say } from './dom';
import { contents, download } from './files';
import { readAgain, setUpDrawing } from './draw';
import { adopt, currentSettings, setUpForm } from './form';
import * as format from './format';
import { Link, Refused, reach } from './link';
import { NO_ADAPTER, clearNotice, noWebGpu, notice } from './notices';
import { canMeasure, noKernels, setUpShaders, showKernels, showTimestamps } from './shaders';

const root = document.documentElement;
/** The exact losses of the first steps are there to be compared with those of a native run. */
const COMPARED = 100;

const query = new URLSearchParams(location.search);
/** `worker=0` trains beside the page, `memory=64` leaves the rest of the GPU's memory to others: 64 MB for this page. */
const mayUseWorker = query.get('worker') !== '0';
const memory = Math.max(0, Number(query.get('memory')) || 0) * 1e6;
let link: Link | undefined;
let state: State = 'loading';
let step = 0;
let compared: number[] = [];
/** A model that the library refused: what trains is still the one before. */
let refused = false;
let changing = 0;

// The engine

async function ask<K extends AskName>(kind: K, input: Asks[K]['in'], transfer?: Transferable[]): Promise<Asks[K]['out']> {
  if (!link) throw new Error('The engine is not up yet.');
  return link.ask(kind, input, transfer);
}

/** As `ask`; a refusal becomes a message, and nothing is returned. */
async function attempt<K extends AskName>(kind: K, input: Asks[K]['in'], transfer?: Transferable[]): Promise<Asks[K]['out'] | undefined> {
  try {
    return await ask(kind, input, transfer);
  } catch (error) {
    showFault(error instanceof Refused ? error.fault : { kind: 'error', text: String(error), goesOn: true });
    return undefined;
  }
}

/** The library comes packed, by more work than a server does for each visitor, and is compiled while it is unpacked. */
async function compiled(): Promise<WebAssembly.Module> {
  const response = await fetch(new URL('wgrad_bg.wasm.packed', import.meta.url));
  if (!response.ok || !response.body) throw new Error(`wgrad_bg.wasm.packed: the server answered ${response.status}.`);
  const unpacked = response.body.pipeThrough(new DecompressionStream('deflate'));
  return WebAssembly.compileStreaming(new Response(unpacked, { headers: { 'content-type': 'application/wasm' } }));
}

const listeners = [(event: Event) => hear(event)];

async function open(resume: boolean): Promise<void> {
  const begun = performance.timeOrigin;
  const module = compiled();
  module.catch(() => {});
  try {
    const reached = await reach(listeners, mayUseWorker && 'Worker' in window);
    link = reached.link;
    root.dataset.engine = reached.where;
    await link.ask('open', { settings: currentSettings(), module: await module, base: document.baseURI, begun, resume, memory });
  } catch (error) {
    const fault: Fault = error instanceof Refused ? error.fault : { kind: 'error', text: error instanceof Error ? error.message : String(error), goesOn: false };
    // The engine's words are for programmers where there is no WebGPU at all.
    settle(navigator.gpu ? fault : { ...fault, kind: 'no-webgpu', goesOn: false });
  }
}

function openAgain(): void {
  if (root.dataset.engine === 'main') location.reload();
  link?.end();
  setState('loading');
  void open(true);
}

// What the engine tells

function hear(event: Event): void {
  showCurves(event);
  showResults(event);
  switch (event.kind) {
    case 'state': return setState(event.state);
    case 'progress': return showProgress(event);
    case 'adapter': return showAdapter(event.adapter);
    case 'data':
      showProgress(undefined);
      if (event.source === 'files') clearNotice('file');
      return showData(event);
    case 'model': return showModel(event);
    case 'points': return showPoints(event);
    case 'figures': return showFigures(event);
    case 'first-step':
      byId('first-step').title = `${format.time(event.afterNavigation)} after the page was opened`;
      root.dataset.firstStep = String(event.afterStart);
      root.dataset.firstStepAfterNavigation = String(event.afterNavigation);
      return say('first-step', format.time(event.afterStart));
    case 'evaluation':
      root.dataset.testAccuracy = String(event.accuracy);
      root.dataset.testCount = String(event.count);
      say('test-accuracy', format.percent(event.accuracy, 2));
      return readAgain();
    case 'filters': return readAgain();
    case 'kernels': return showKernels(event.kernels);
    case 'kept':
      root.dataset.kept = String(event.step);
      return say('kept-note', `Kept in this browser at step ${format.count(event.step)}. A reload goes on from there; the optimizer starts anew.`);
    case 'fault': return showFault(event.fault);
    case 'curves': return compare(0, event.losses);
    case 'hello':
  }
}

const STATUS: Record<State, () => string> = {
  loading: () => 'Loading…',
  ready: () => 'Ready. Press Start, and watch it learn.',
  training: () => 'Training. Draw a digit meanwhile.',
  paused: () => `Paused at step ${format.count(step)}.`,
  error: () => 'Stopped. The message below says why.',
};

function setState(next: State): void {
  const before = state;
  state = next;
  root.dataset.state = next;
  const status = refused ? 'This model does not fit; see Set up.' : STATUS[next]();
  say('status', status);
  // A step by hand is no news.
  if (next !== before && !(before === 'paused' && next === 'paused')) say('announce', status);
  say('toggle', next === 'training' ? 'Pause' : 'Start');
  const able = next === 'ready' || next === 'paused' || next === 'training';
  const disable = (id: string, disabled: boolean) => { byId<HTMLButtonElement>(id).disabled = disabled; };
  disable('toggle', !able || (refused && next !== 'training'));
  disable('step-once', !able || refused);
  disable('reset', !able || refused);
  for (const id of ['weights-save', 'tune', 'lose-device', 'evaluate', 'pad-test']) disable(id, !able);
  byId<HTMLInputElement>('weights-load').disabled = !able;
  canMeasure(able && !refused);
}

function showProgress(event: (Event & { kind: 'progress' }) | undefined): void {
  const bar = byId<HTMLProgressElement>('progress');
  bar.hidden = event === undefined;
  if (!event) return;
  if (event.total > 0) bar.value = Math.min(1, event.loaded / event.total);
  say('status', `Loading ${event.what}: ${format.bytes(event.loaded)}${event.total > 0 ? ` of ${format.bytes(event.total)}` : ''}`);
}

function showAdapter(adapter: Parameters<typeof showTimestamps>[0]): void {
  say('adapter', adapter.text);
  byId('limits').replaceChildren(
    ...adapter.limits.map(([name, value]) => make('div', {}, make('dt', {}, name), make('dd', {}, format.count(value)))),
    make('div', {}, make('dt', {}, 'features'), make('dd', {}, adapter.features.join(', ') || 'none')));
  showTimestamps(adapter);
  say('device-note', 'Tuning keeps what it finds in this browser. Losing the device shows how the page recovers.');
}

function showModel(event: Event & { kind: 'model' }): void {
  say('params', format.count(event.params));
  say('summary', event.summary);
  step = event.step;
  compared = [];
  for (const name of ['loss', 'accuracy', 'testAccuracy', 'testCount', 'restored', 'kept', 'firstStep']) delete root.dataset[name];
  root.dataset.step = String(step);
  root.dataset.losses = '[]';
  say('step', format.count(step));
  for (const id of ['loss', 'accuracy', 'test-accuracy', 'speed', 'step-time', 'first-step', 'kernels-per-step']) say(id, '–');
  say('kept-note', 'Kept in this browser while you train, so that a reload goes on.');
  clearNotice('info');
  clearNotice('error');
  noKernels();
  forgetResults();
  readAgain();
  if (!event.restored) return;
  root.dataset.restored = String(step);
  notice('info', `This goes on from step ${format.count(step)}, which was kept in this browser. The optimizer starts anew.`,
    { text: 'Start afresh', run: () => void attempt('reset', {}) });
}

function compare(from: number, losses: Float32Array): void {
  if (compared.length !== from || from >= COMPARED) return;
  compared.push(...losses.subarray(0, COMPARED - from));
  root.dataset.losses = JSON.stringify(compared);
}

let planned = false;

function showPoints(event: Event & { kind: 'points' }): void {
  step = event.from + event.losses.length;
  const [loss, accuracy] = [event.losses.at(-1)!, event.accuracies.at(-1)!];
  compare(event.from, event.losses);
  Object.assign(root.dataset, { step: String(step), loss: String(loss), accuracy: String(accuracy) });
  if (planned) return;
  planned = true;
  requestAnimationFrame(() => {
    planned = false;
    const mean = recent();
    // A reset came in between.
    if (!mean) return;
    say('step', format.count(step));
    say('loss', format.loss(step === 1 ? lossOf(1) : mean.loss));
    say('accuracy', format.percent(mean.accuracy));
    if (state === 'paused') say('status', STATUS.paused());
    if (!Number.isFinite(mean.loss) && state === 'training') {
      notice('error', 'The loss is not a finite number any more: the learning rate is too high for this model. Lower it and press Reset.');
      void attempt('pause', {});
    }
  });
}

function showFigures(event: Event & { kind: 'figures' }): void {
  if (event.stepMs > 0) {
    say('speed', format.rate(event.imagesPerSecond));
    say('step-time', format.time(event.stepMs));
  }
  if (event.kernels > 0) say('kernels-per-step', format.rate(event.kernels));
  say('memory', format.bytes(event.liveBytes));
  say('peak', format.bytes(event.peakBytes));
  root.dataset.liveBytes = String(event.liveBytes);
}

function showFault(fault: Fault): void {
  if (!fault.goesOn) setState('error');
  switch (fault.kind) {
    case 'no-webgpu': return notice('no-webgpu', noWebGpu());
    case 'no-adapter': return notice('no-adapter', NO_ADAPTER);
    case 'memory': {
      const settings = currentSettings();
      const batch = Math.max(1, Math.floor(settings.batch / 2));
      return notice('memory', fault.text, {
        text: `Go on with batches of ${batch}`,
        run: () => {
          adopt({ ...settings, batch });
          void attempt('recover', { settings: { ...settings, batch } }).then(() => attempt('start', {}));
        },
      });
    }
    case 'panic':
      return notice('panic', `${fault.text.replace(/\.?$/, ".")} Your weights were kept a few seconds ago at the latest.`, { text: 'Start the engine again', run: openAgain });
    case 'lost':
      return fault.goesOn ? notice('lost', fault.text) : notice('lost', fault.text, { text: 'Try again', run: openAgain });
    default: return notice(fault.kind, fault.text);
  }
}

// What the visitor asks for

async function configure(): Promise<void> {
  const turn = ++changing;
  clearNotice('settings');
  if (state === 'loading' || state === 'error') return;
  let fault: Fault | undefined;
  try {
    await ask('configure', { settings: currentSettings() });
  } catch (error) {
    fault = error instanceof Refused ? error.fault : { kind: 'error', text: String(error), goesOn: true };
  }
  if (turn === changing) settle(fault);
}

/** The settings were taken, or not: a model that does not fit is explained where it was made. */
function settle(fault: Fault | undefined): void {
  refused = fault?.kind === 'model';
  byId('model-error').hidden = !refused;
  say('model-error', refused ? fault!.text : '');
  setState(state);
  if (fault && !refused) showFault(fault);
}

function setUpControls(): void {
  byId('toggle').addEventListener('click', () => {
    const { stop } = currentSettings();
    if (state !== 'training' && stop > 0 && step >= stop) {
      notice('info', `The run has come to its end of ${format.count(stop)} steps. Raise “Stop after steps”, or set it to 0.`);
      return;
    }
    clearNotice('info');
    void attempt(state === 'training' ? 'pause' : 'start', {});
  });
  byId('step-once').addEventListener('click', () => void attempt('step', {}));
  byId('reset').addEventListener('click', () => {
    clearNotice('info');
    clearNotice('error');
    void attempt('reset', {});
  });
  byId('evaluate').addEventListener('click', async (event) => {
    const button = event.currentTarget as HTMLElement;
    button.setAttribute('aria-busy', 'true');
    await attempt('evaluate', {});
    button.removeAttribute('aria-busy');
  });
  byId('weights-save').addEventListener('click', async () => {
    const saved = await attempt('save', {});
    if (saved) download(saved.name, saved.bytes as Uint8Array<ArrayBuffer>, 'application/octet-stream');
  });
  const weights = byId<HTMLInputElement>('weights-load');
  weights.addEventListener('change', async () => {
    const file = weights.files?.[0];
    if (!file) return;
    const bytes = await contents(file);
    weights.value = '';
    if (!bytes) return;
    try {
      await ask('load', { name: file.name, bytes }, [bytes.buffer]);
      notice('info', `The weights of ${file.name} were loaded. Training goes on from them.`);
    } catch (error) {
      showFault(error instanceof Refused ? error.fault : { kind: 'error', text: String(error), goesOn: true });
    }
  });
  byId('tune').addEventListener('click', async () => {
    say('device-note', 'Measuring…');
    const tuned = await attempt('tune', {});
    say('device-note', tuned ? tuned.text : 'Nothing was tuned.');
  });
  byId('lose-device').addEventListener('click', () => void attempt('lose', {}));
}

addEventListener('unhandledrejection', ({ reason }) => notice('error', String(reason)));
setUpCurves();
setUpResults();
setUpControls();
setUpDrawing(ask);
setUpData(attempt);
setUpShaders(() => attempt('measure', {}));
const wrong = setUpForm(() => void configure());
if (wrong.length > 0) notice('settings', `${wrong.join(' ')} What it asks for otherwise is set.`);
void open(true);
