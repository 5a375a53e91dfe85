// The page: starts the engine, connects the controls to it, and shows its messages.

import type { AskName, Asks, Event, Fault, State } from '../engine/protocol';
import { compiling, firstStepOver } from './compiling';
import { byId, make, pause, say } from './dom';
import { contents, download } from './files';
import { readAgain, setUpDrawing, watchTests } from './draw';
import { adopt, change, currentSettings, setUpForm } from './form';
import { NUMBERS } from '../engine/settings';
import * as format from './format';
import { lossOf, note, recent } from './history';
import type { Later } from './later';
import { Link, Refused, missing, reach } from './link';
import { clearNotice, notice } from './notices';

const root = document.documentElement;
/** More bytes than the weights of any model that can be trained here. */
const WEIGHTS = 500e6;
/** The exact losses of this many first steps are shown, to compare with those of a native run. */
const COMPARED = 100;
/** Milliseconds after which slowness is explained; the first step comes earlier if possible. */
const EXPLAINED = 1500;

const query = new URLSearchParams(location.search);
/** Training starts automatically, unless the visitor prefers reduced motion or the address has `start=0`. */
const startsItself = query.get('start') !== '0' && !matchMedia('(prefers-reduced-motion: reduce)').matches;
/** `worker=0` trains on the page's thread; `memory=64` limits this page to 64 MB of the GPU's memory. */
const mayUseWorker = query.get('worker') !== '0';
const memory = Math.max(0, Number(query.get('memory')) || 0) * 1e6;
let link: Link | undefined;
let state: State = 'loading';
/** Whether the engine trains, or did when it failed; and whether its replacement should continue. */
let active = false;
let goesOn = false;
/** Whether an earlier visit ended during training, which should continue. */
let wasTraining = false;
let step = 0;
/** The step at which the run was last continued after its end. */
let begunAt = 0;
let compared: number[] = [];
/** The library refused a new model: the previous one is still being trained. */
let refused = false;
/** A single step is in progress. */
let stepping = false;
let changing = 0;
/** True between opening and the first order to train, if the page starts automatically. */
let begins = startsItself;
/** No step of this run was made in this visit yet, so the next one compiles. */
let cold = true;

// The engine

async function ask<K extends AskName>(kind: K, input: Asks[K]['in'], transfer?: Transferable[]): Promise<Asks[K]['out']> {
  if (!link) throw new Error('The engine is not up yet.');
  return link.ask(kind, input, transfer);
}

/** Like `ask`; a refusal becomes a message, and nothing is returned. */
async function attempt<K extends AskName>(kind: K, input: Asks[K]['in'], transfer?: Transferable[]): Promise<Asks[K]['out'] | undefined> {
  try {
    return await ask(kind, input, transfer);
  } catch (error) {
    showFault(error instanceof Refused ? error.fault : { kind: 'error', text: String(error), goesOn: true });
    return undefined;
  }
}

const LIBRARY = 'wgrad_bg.wasm.packed';

/** The library is compressed better than servers compress files for each visitor; it is compiled while it is decompressed. */
async function compiled(): Promise<WebAssembly.Module> {
  const response = await fetch(new URL(LIBRARY, import.meta.url));
  if (!response.ok || !response.body) throw new Error(`the server answered ${response.status}`);
  const unpacked = response.body.pipeThrough(new DecompressionStream('deflate'));
  return WebAssembly.compileStreaming(new Response(unpacked, { headers: { 'content-type': 'application/wasm' } }));
}

const listeners = [(event: Event) => hear(event)];

async function open(resume: boolean): Promise<void> {
  const begun = performance.timeOrigin;
  const module = compiled().catch(missing(LIBRARY));
  module.catch(() => {});
  try {
    const reached = await reach(listeners, mayUseWorker && 'Worker' in window);
    link = reached.link;
    root.dataset.engine = reached.where;
    await link.ask('open', { settings: currentSettings(), module: await module, base: document.baseURI, begun, resume, memory });
    if (state === 'ready' ? startsItself || goesOn : state === 'paused' && (wasTraining || goesOn)) await link.ask('start', {});
  } catch (error) {
    const fault: Fault = error instanceof Refused ? error.fault : { kind: 'error', text: error instanceof Error ? error.message : String(error), goesOn: false };
    // Without WebGPU, the engine's message is for programmers.
    settle(navigator.gpu ? fault : { ...fault, kind: 'no-webgpu', goesOn: false });
  }
}

const AGAIN = { text: 'Load the page again', run: () => location.reload(), only: true };

async function explainSoftware(name: string): Promise<void> {
  // If this fails, only the advice is missing; leaving the page also aborts the import.
  const words = await import('./advice').catch(() => undefined);
  if (!words) return;
  const { advise, here, onSoftware } = words;
  advise('slow', 'This is slow here.', onSoftware(here(), name));
  root.dataset.slow = '';
}

/** Without a GPU, plays a recorded training. */
async function playRecording(fault: Fault): Promise<void> {
  try {
    const { without } = await import('./without');
    link = await without(fault, link, listeners);
    root.dataset.engine = 'recording';
    Object.assign(STATUS, RECORDED);
    await link.ask('reset', {});
    if (startsItself) await link.ask('start', {});
  } catch (error) {
    notice(fault.kind, `${fault.text} There is a recording, but it could not be loaded (${error instanceof Error ? error.message : String(error)}).`);
  }
}

function openAgain(): void {
  if (root.dataset.engine === 'main') return location.reload();
  link?.end();
  goesOn = active;
  setState('loading');
  void open(true);
}

// The parts that are shown from the first step on

let later: Later | undefined;
/** The newest event of each kind that these parts will need, in order. */
const backlog = new Map<Event['kind'], Event>();
let asked = false;

/** Loads the rest of the page, once it has something to show. */
async function loadLater(): Promise<void> {
  if (asked) return;
  asked = true;
  try {
    const style = make('link', { rel: 'stylesheet', href: 'later.css' });
    const styled = new Promise((resolve) => ['load', 'error'].forEach((kind) => style.addEventListener(kind, resolve)));
    document.head.append(style);
    const [{ setUpLater }] = await Promise.all([import('./later'), styled]);
    const ready = await setUpLater({ ask, attempt });
    for (let next = backlog.values().next(); !next.done; next = backlog.values().next()) {
      backlog.delete(next.value.kind);
      ready.show(next.value);
      await pause();
    }
    later = ready;
    later.able(able() && !refused);
    allowTuning();
    root.dataset.stage = 'whole';
  } catch (error) {
    asked = false;
    notice('error', `A part of this page could not be loaded (${error instanceof Error ? error.message : String(error)}).`, AGAIN);
  }
}

// The engine's messages

function hear(event: Event): void {
  note(event);
  if (later) later.show(event);
  else {
    backlog.delete(event.kind);
    backlog.set(event.kind, event);
  }
  switch (event.kind) {
    case 'state': return setState(event.state);
    case 'progress': return showProgress(event);
    case 'loaded':
      showProgress(undefined);
      return say('status', event.waits ? `${event.what} is here, and takes the place of the drawn digits when this epoch ends.` : words());
    case 'data':
      showProgress(undefined);
      if (event.source === 'mnist' && root.dataset.data === 'drawn') {
        say('announce', 'MNIST is here, and takes the place of the drawn digits.');
        say('status', words());
      }
      if (event.source !== 'drawn') clearNotice('file');
      root.dataset.data = event.source;
      return;
    case 'model': return showModel(event);
    case 'points': return showPoints(event);
    case 'figures': return showFigures(event);
    case 'adapter':
      root.dataset.adapter = event.adapter.software ? 'software' : 'gpu';
      if (event.adapter.software) setTimeout(() => void explainSoftware(event.adapter.name), EXPLAINED);
      return;
    case 'compiling':
      if ((state === 'training' || stepping) && cold) compiling(event, root.dataset.adapter === 'software', (text) => say('status', text));
      return;
    case 'first-step':
      firstStepOver();
      setState(state);
      byId('first-step').title = `${format.time(event.afterNavigation)} after the page was opened`;
      root.dataset.firstStep = String(event.afterStart);
      root.dataset.firstStepAfterNavigation = String(event.afterNavigation);
      say('first-step', format.time(event.afterStart));
      return void loadLater();
    case 'evaluation':
      root.dataset.testAccuracy = String(event.accuracy);
      root.dataset.testCount = String(event.count);
      say('test-accuracy', format.percent(event.accuracy, 2));
      return readAgain();
    case 'weights': return readAgain();
    case 'kept':
      root.dataset.kept = event.elsewhere ? 'elsewhere' : String(event.step);
      return say('kept-note', event.elsewhere ? 'Another tab of this page keeps this model’s weights, so this one does not. Close the other, or save them as a file.'
        : `Kept in this browser at step ${format.count(event.step)}. A reload goes on from there; the optimizer starts from scratch.`);
    case 'fault':
      showFault(event.fault);
      // Requests to a lost device may not have been executed.
      return void (event.fault.kind === 'lost' && event.fault.goesOn && configure());
    case 'curves':
      compare(0, event.losses);
      epochs = event.epochs;
      return step > 0 ? showNumbers() : undefined;
    default:
  }
}

const STATUS: Record<State, () => string> = {
  loading: () => 'Loading…',
  ready: () => (begins ? 'Ready, and about to start…' : 'Ready. Press Start, and watch it learn.'),
  training: () => 'Training. Draw a digit meanwhile.',
  paused: () => `Paused at step ${format.count(step)}.`,
  finished: () => `Finished: ${format.count(step)} steps are done. Train on, or change something and see.`,
  error: () => 'Stopped. The message below says why.',
};

const RECORDED: Partial<typeof STATUS> = {
  ready: () => 'A recording of a training. Press Play, and watch it learn.',
  training: () => 'A recording plays. Draw a digit meanwhile.',
  paused: () => `The recording is paused at step ${format.count(step)}.`,
  finished: () => `The recording is over, after ${format.count(step)} steps. Draw a digit.`,
};

/** The text of the status line. */
const words = () => (refused ? 'This model does not fit; see Set up.' : STATUS[state]());

/** The present action of the first button. */
function order(): string {
  if (state === 'training') return 'Pause';
  if (root.dataset.engine === 'recording') return state === 'finished' ? 'Play again' : 'Play';
  return state === 'finished' ? 'Train on' : step > 0 ? 'Go on' : 'Start';
}

function setState(next: State): void {
  const before = state;
  state = next;
  if (next !== 'training') firstStepOver();
  if (!['loading', 'ready'].includes(next) || refused) begins = false;
  if (next !== 'loading' && next !== 'error') active = next === 'training';
  root.dataset.state = next;
  const status = words();
  say('status', status);
  // A single step is not announced.
  if (next !== before && !(before === 'paused' && next === 'paused')) say('announce', status);
  if (next === 'training') clearNotice('memory', 'panic');
  say('toggle', order());
  const disable = (id: string, disabled: boolean) => { byId<HTMLButtonElement>(id).disabled = disabled; };
  disable('toggle', !able() || (refused && next !== 'training'));
  disable('step-once', !able() || refused);
  disable('reset', !able() || refused);
  for (const id of ['weights-save', 'lose-device', 'evaluate', 'pad-test']) disable(id, !able());
  byId<HTMLInputElement>('weights-load').disabled = !able();
  later?.able(able() && !refused);
  allowTuning();
  watchTests(next === 'training' && startsItself);
  if (next === 'error' || next === 'paused' || next === 'finished' || (next === 'ready' && !startsItself)) void loadLater();
}

/** Enables the button whose clicks the parts that are loaded later receive. */
function allowTuning(): void {
  byId<HTMLButtonElement>('tune').disabled = !able() || !later;
}

/** Whether the engine accepts orders. */
const able = () => state !== 'loading' && state !== 'error';

function showProgress(event: (Event & { kind: 'progress' }) | undefined): void {
  const bar = byId<HTMLProgressElement>('progress');
  bar.hidden = event === undefined;
  if (!event) return;
  if (event.total > 0) bar.value = Math.min(1, event.loaded / event.total);
  const meanwhile = state === 'training' ? 'Training on drawn digits. ' : '';
  say('status', `${meanwhile}Loading ${event.what}: ${format.bytes(event.loaded)}${event.total > 0 ? ` of ${format.bytes(event.total)}` : ''}`);
}

function showModel(event: Event & { kind: 'model' }): void {
  cold = true;
  say('params', format.count(event.params));
  say('summary', event.summary);
  step = event.step;
  begunAt = 0;
  compared = [];
  for (const name of ['loss', 'accuracy', 'testAccuracy', 'testCount', 'restored', 'kept', 'firstStep']) delete root.dataset[name];
  root.dataset.step = String(step);
  root.dataset.losses = '[]';
  say('step', format.count(step));
  for (const id of ['epoch', 'loss', 'accuracy', 'test-accuracy', 'speed', 'step-time', 'first-step', 'kernels-per-step']) say(id, '–');
  say('kept-note', 'Kept in this browser while you train, so that a reload goes on.');
  clearNotice('info', 'error');
  readAgain();
  if (!event.restored) return;
  root.dataset.restored = String(step);
  wasTraining = state === 'training' || (event.wasTraining && (goesOn || startsItself));
  notice('info', wasTraining ? `Training goes on from step ${format.count(step)}, which was kept in this browser. The optimizer starts from scratch.`
    : `Step ${format.count(step)} of this model was kept in this browser, and is here again. Train on as you like; the optimizer starts from scratch.`,
    { text: 'Start afresh', run: () => void attempt('reset', {}) });
}

function compare(from: number, losses: Float32Array): void {
  if (compared.length !== from || from >= COMPARED) return;
  compared.push(...losses.subarray(0, COMPARED - from));
  root.dataset.losses = JSON.stringify(compared);
}

let planned = false;
let epochs = 0;

function showPoints(event: Event & { kind: 'points' }): void {
  step = event.from + event.losses.length;
  epochs = event.epochs;
  if (cold) {
    cold = false;
    firstStepOver();
    setState(state);
  }
  const [loss, accuracy] = [event.losses.at(-1)!, event.accuracies.at(-1)!];
  compare(event.from, event.losses);
  Object.assign(root.dataset, { step: String(step), loss: String(loss), accuracy: String(accuracy) });
  if (planned) return;
  planned = true;
  requestAnimationFrame(() => {
    planned = false;
    showNumbers();
  });
}

function showNumbers(): void {
  const mean = recent();
  // The run was reset meanwhile.
  if (!mean) return;
  say('step', format.count(step));
  say('epoch', format.epochs(epochs));
  say('loss', format.loss(step === 1 ? lossOf(1) : mean.loss));
  say('accuracy', format.percent(mean.accuracy));
  if (state === 'paused') say('status', STATUS.paused());
  if (!Number.isFinite(mean.loss) && state === 'training') {
    notice('error', 'The loss is not a finite number any more: the learning rate is too high for this model. Lower it and press Reset.');
    void attempt('pause', {});
  }
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
  // The error that stopped the engine is more informative than its consequences, and has the button to continue.
  if (state === 'error' && fault.goesOn && fault.kind !== 'file' && fault.kind !== 'weights') return;
  if (!fault.goesOn) setState('error');
  switch (fault.kind) {
    case 'no-webgpu':
    case 'no-adapter': return void playRecording(fault);
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
      return notice('panic', `${fault.text.replace(/\.?$/, ".")} Your weights were kept a few seconds ago at the latest.`, { text: 'Start the engine again', run: openAgain, only: true });
    case 'lost':
      if (!fault.goesOn) return notice('lost', fault.text, { text: 'Go on with a new device', run: openAgain, only: true });
      return notice('lost', fault.text);
    case 'error': return notice('error', fault.text, ...(fault.goesOn ? [] : [AGAIN]));
    default: return notice(fault.kind, fault.text);
  }
}

// The visitor's orders

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

/** The settings were accepted, or refused: a model that does not fit is explained next to the form. */
function settle(fault: Fault | undefined): void {
  refused = fault?.kind === 'model';
  byId('model-error').hidden = !refused;
  say('model-error', refused ? fault!.text : '');
  setState(state);
  if (fault && !refused) showFault(fault);
}

function setUpControls(): void {
  byId('toggle').addEventListener('click', () => {
    clearNotice('info');
    if (state === 'finished' && root.dataset.engine !== 'recording') {
      // As many steps again as were requested at first.
      const { stop } = currentSettings();
      change({ stop: Math.min(NUMBERS.stop.max, step + Math.max(stop - begunAt, 1)) });
      begunAt = step;
    }
    void attempt(state === 'training' ? 'pause' : 'start', {});
  });
  byId('step-once').addEventListener('click', async () => {
    stepping = true;
    await attempt('step', {});
    stepping = false;
  });
  byId('reset').addEventListener('click', () => {
    clearNotice('info', 'error', 'weights', 'memory');
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
    const bytes = await contents(file, WEIGHTS, 'the weights that this page reads');
    weights.value = '';
    if (typeof bytes === 'string') return notice('weights', bytes);
    clearNotice('weights');
    try {
      await ask('load', { name: file.name, bytes }, [bytes.buffer]);
      notice('info', `The weights of ${file.name} were loaded. Training goes on from them.`);
    } catch (error) {
      showFault(error instanceof Refused ? error.fault : { kind: 'error', text: String(error), goesOn: true });
    }
  });
  byId('lose-device').addEventListener('click', () => void attempt('lose', {}));
}

addEventListener('unhandledrejection', ({ reason }) => notice('error', String(reason)));
setUpControls();
setUpDrawing(ask);
const wrong = setUpForm(() => void configure());
if (wrong.length > 0) notice('settings', `${wrong.join(' ')} What it asks for otherwise is set.`);
root.dataset.script = 'runs';
void open(true);
