// The training engine: owns the device, the data, the model and its optimizer. The same module runs in a worker or, where
// workers have no WebGPU, on the page's thread. Commands run one after the other; training and evaluation give way to them.

import init, { Device, onPanic } from '../page-pkg/wgrad.js';
import { read } from './activations';
import { countAgain, watchCompiling } from './compiling';
import { dataOf, drawn, files as noFiles, firstDrawn, kept as keptData, served, type Data } from './data';
import type { Files } from './files';
import { PartsError, faultOf, notePanic } from './faults';
import { measured } from './kernels';
import * as look from './look';
import type { AskName, Asks, Fault, Request, Send, State } from './protocol';
import { Run } from './run';
import { layersOf, runKey, type Settings } from './settings';
import { claim, dropFiles, dropRun, keepFiles, keepFindings, keepRun, keepTraining, keptFindings, keptRun, keptTraining, type Kept } from './store';
import { sleep } from './time';
import { Trainer } from './trainer';

/** A device that is lost more often than this within a minute is not replaced. */
const REPLACEMENTS = 3;
/** This many runs stay on the device, with their optimizers, while another run is shown. */
const PARKED = 3;

type Handlers = { [K in AskName]: (input: Asks[K]['in']) => Promise<Asks[K]['out']> | Asks[K]['out'] };

export class Engine {
  readonly #send: Send;
  #device: Device | undefined;
  #data: Data | undefined;
  /** The server's MNIST, from its arrival until an epoch ends. */
  #next: Data | undefined;
  /** Whether the server's MNIST should be requested, is being loaded, or needs no request. */
  #mnist: 'wanted' | 'asked' | 'done' = 'done';
  #trainer: Trainer | undefined;
  #settings!: Settings;
  #base = '';
  #navigated = 0;
  #memory = 0;
  /** The visitor's files, while some are still missing. */
  #files: Files | undefined;
  #state: State = 'loading';
  /** The queue of commands. */
  #queue: Promise<unknown> = Promise.resolve();
  #waiting = 0;
  /** Whether the run's first step in this visit is over; later compilation causes no long waits. */
  #compiled = false;
  /** Training or evaluation in progress, which a command stops first. */
  #work: Promise<void> | undefined;
  /** Whether the visitor wants training to run. */
  #wanted = false;
  /** After a failure that may have lost values: start again from the stored weights. */
  #broken = false;
  #kept: Kept | undefined;
  /** The runs that the visitor left in this visit; after a device is lost, only their stored weights remain. */
  readonly #parked = new Map<string, { run?: Run; kept: Kept | undefined }>();
  #training = '';
  #losses: number[] = [];

  constructor(send: Send) {
    this.#send = (message, transfer) => {
      send(message, transfer);
      // Large files are fetched only after the first step.
      if (message.kind === 'first-step') void this.#fetchMnist();
      this.#compiled ||= message.kind === 'points';
    };
  }

  async receive(request: Request): Promise<void> {
    try {
      // The visitor has to start another engine. The digits can still be displayed.
      if (this.#state === 'error' && request.kind !== 'samples') throw new Error('The engine has stopped. Its last message says why.');
      const handler = this.#handlers[request.kind] as (input: Request) => unknown;
      const value = await handler(request);
      this.#send({ kind: 'reply', id: request.id, ok: true, value });
    } catch (error) {
      const fault = faultOf(error);
      if (!fault.goesOn) this.#setState('error');
      this.#send({ kind: 'reply', id: request.id, ok: false, fault });
    }
  }

  #handlers: Handlers = {
    open: (input) => this.#command(() => this.#open(input)),
    configure: ({ settings }) => this.#command(() => this.#configure(settings)),
    start: () => this.#command(() => {
      this.#wanted = true;
      this.#mend();
    }),
    pause: () => {
      this.#wanted = false;
      return this.#command(() => {});
    },
    step: () => {
      this.#wanted = false;
      return this.#command(async () => {
        this.#mend();
        const trainer = this.#ready();
        trainer.expectFirstStep(this.#navigated);
        await trainer.train(1);
        this.#setState(this.#atRest());
      });
    },
    reset: () => {
      this.#wanted = false;
      return this.#command(async () => {
        const key = runKey(this.#settings);
        if (await claim(key)) await dropRun(key);
        this.#kept = undefined;
        this.#takeNext();
        this.#begin(this.#settings);
      });
    },
    recover: ({ settings }) => this.#command(() => {
      this.#settings = settings;
      this.#broken = true;
      this.#mend();
    }),
    files: ({ files }) => this.#command(async () => {
      const all = this.#files ??= await noFiles();
      const refused = await all.add(files);
      if (all.missing.length === 0) {
        this.#forgetWaiting();
        const data = dataOf(all, 'files', 'your files');
        await keepFiles(all.packed);
        this.#dropNext();
        this.#mnist = 'done';
        this.#useData(data);
      } else this.#tellFiles();
      return { refused };
    }),
    forgetFiles: () => this.#command(async () => {
      this.#forgetWaiting();
      if (this.#data?.source !== 'files') return;
      await dropFiles();
      this.#useData(await this.#findData(this.#settings));
    }),
    samples: ({ of, from, count }) => {
      if (!this.#data) throw new Error('There are no images yet.');
      const images = this.#data[of];
      const indices = Array.from({ length: Math.min(count, images.length) }, (_, i) => (from + i) % images.length);
      return { ...look.digits(images, indices), from, of: images.length };
    },
    read: ({ pixels }) => {
      const { run } = this.#ready();
      return read(run.model, layersOf(run.settings), pixels);
    },
    evaluate: () => this.#command(() => this.#ready().look(true)),
    measure: () => this.#command(async () => {
      const trainer = this.#ready();
      const { kernels, total, loss } = await measured(this.#device!, trainer.run);
      trainer.record(loss.subarray(0, 1), loss.subarray(1));
      this.#setState(this.#atRest());
      return { kernels, total };
    }),
    save: () => this.#command(async () => {
      const { run } = this.#ready();
      return { bytes: await run.model.save(), name: `wgrad-${this.#settings.model}-step-${run.step}.safetensors` };
    }),
    load: ({ name, bytes }) => this.#command(() => {
      this.#load(name, bytes);
    }),
    tune: () => this.#command(async () => {
      const { ops } = await this.#device!.tune();
      await keepFindings(this.#device!.adapter.text, this.#device!.findings());
      return { ops };
    }),
    lose: () => this.#device?.destroy(),
  };

  #tellFiles(): void {
    const { taken = [], missing = [] } = this.#files ?? {};
    this.#send({ kind: 'files', taken, missing: taken.length > 0 ? missing : [] });
  }

  #forgetWaiting(): void {
    if (!this.#files) return;
    this.#files = undefined;
    this.#tellFiles();
  }

  #setState(state: State): void {
    this.#state = state;
    this.#send({ kind: 'state', state });
    // A run that ended with an error keeps the mark that it was training.
    if (state === 'loading' || state === 'error') return;
    const training = state === 'training' ? runKey(this.#settings) : '';
    if (training !== this.#training) void keepTraining(training);
    this.#training = training;
  }

  #atRest(): State {
    const trainer = this.#trainer;
    if (!trainer || trainer.run.step === 0) return 'ready';
    return trainer.finished ? 'finished' : 'paused';
  }

  #fault(fault: Fault): void {
    if (!fault.goesOn) {
      this.#wanted = false;
      this.#setState('error');
    }
    this.#send({ kind: 'fault', fault });
  }

  #ready(): Trainer {
    if (!this.#trainer) throw new Error('The page is still loading, or could not set up a model.');
    return this.#trainer;
  }

  /** Runs `work` while neither training nor another command runs; afterwards training continues if it should. */
  #command<T>(work: () => Promise<T> | T): Promise<T> {
    this.#waiting += 1;
    const done = this.#queue.then(async () => {
      this.#trainer?.stop();
      await this.#work;
      this.#work = undefined;
      this.#waiting -= 1;
      try {
        return await work();
      } finally {
        this.#goOn();
      }
    });
    this.#queue = done.catch(() => {});
    return done;
  }

  #goOn(): void {
    const trainer = this.#trainer;
    if (!trainer || this.#state === 'error' || this.#state === 'loading' || this.#work) return;
    this.#work = this.#wanted && !trainer.finished ? this.#train(trainer) : this.#rest(trainer);
  }

  async #train(trainer: Trainer): Promise<void> {
    this.#setState('training');
    trainer.expectFirstStep(this.#navigated);
    try {
      await trainer.train();
    } catch (error) {
      await this.#failed(error);
    }
    if (trainer.finished) this.#wanted = false;
    if (!this.#wanted && this.#state === 'training') {
      this.#setState(this.#atRest());
      if (this.#waiting === 0) await this.#rest(trainer);
    }
  }

  /** Updates everything that the page shows. */
  async #rest(trainer: Trainer): Promise<void> {
    this.#wanted = false;
    if (this.#state === 'training') this.#setState(this.#atRest());
    try {
      await trainer.look();
    } catch (error) {
      await this.#failed(error);
    }
    void this.#fetchMnist();
  }

  async #failed(error: unknown): Promise<void> {
    // A failing call may be the first sign of a lost device. Then the replacement is already being opened.
    const lost = await Promise.race([this.#device?.lost.then(() => true), sleep(300).then(() => false)]);
    if (lost) return;
    this.#wanted = false;
    this.#broken = true;
    // Parked runs may occupy the memory that is missing.
    this.#unpark();
    if (this.#state === 'training') this.#setState(this.#atRest());
    this.#fault(faultOf(error));
  }

  #mend(): void {
    if (this.#trainer && !this.#broken) return;
    // If memory was missing, releasing the old run first helps.
    this.#trainer?.run.dispose();
    this.#trainer = undefined;
    this.#unpark();
    this.#device?.trim();
    this.#begin(this.#settings, this.#kept);
  }

  // Setting up

  async #open({ settings, module, base, begun, resume, memory }: Asks['open']['in']): Promise<void> {
    [this.#settings, this.#base, this.#navigated, this.#memory] = [settings, base, begun, memory];
    try {
      await init({ module_or_path: module });
    } catch (error) {
      // The wasm imports functions that these bindings do not have.
      throw error instanceof TypeError || error instanceof WebAssembly.LinkError ? new PartsError(error) : error;
    }
    onPanic((text) => {
      notePanic(text);
      this.#fault(faultOf(new Error(text)));
    });
    const device = this.#openDevice();
    // Without a device the page can still show digits.
    device.catch(() => {});
    const key = runKey(settings);
    const [data, kept, training] = await Promise.all([this.#findData(settings), resume ? keptRun(key) : undefined, keptTraining()]);
    this.#useData(data);
    await device;
    this.#kept = kept;
    try {
      this.#begin(settings, kept, { restored: true, wasTraining: training === key });
    } catch (error) {
      // Other settings may work.
      this.#setState('ready');
      throw error;
    }
  }

  async #openDevice(): Promise<void> {
    watchCompiling((done, total, name) => {
      if (!this.#compiled) this.#send({ kind: 'compiling', done, total, name });
    });
    const device = await Device.open(this.#memory > 0 ? { memoryLimit: this.#memory } : {});
    this.#device = device;
    void device.lost.then((reason) => {
      if (this.#device === device) void this.#command(() => this.#replace(reason)).catch((error) => this.#notReplaced(error));
    });
    const findings = await keptFindings(device.adapter.text);
    if (findings) device.setFindings(findings);
    this.#send({
      kind: 'adapter',
      adapter: {
        name: device.adapter.name, text: device.adapter.text,
        software: device.adapter.kind === 'Cpu' || /swiftshader|llvmpipe|basic render/i.test(device.adapter.name), limits: Object.entries(device.limits), features: device.features,
        timestamps: device.features.includes('timestamp-query'),
      },
    });
  }

  #notReplaced(error: unknown): void {
    const fault = faultOf(error);
    // A replacement that is lost, too, is replaced again.
    if (fault.kind !== 'lost') this.#fault({ ...fault, goesOn: false });
  }

  async #replace(reason: string): Promise<void> {
    const now = Date.now();
    this.#losses = [...this.#losses.filter((when) => now - when < 60_000), now];
    if (this.#losses.length > REPLACEMENTS) {
      return this.#fault({
        kind: 'lost', goesOn: false,
        text: `The GPU was lost ${this.#losses.length} times within a minute. Close what else uses it, or try a smaller batch or model, before you go on.`,
      });
    }
    const wanted = this.#wanted;
    this.#setState('loading');
    this.#unpark();
    await this.#openDevice();
    this.#begin(this.#settings, this.#kept);
    this.#wanted = wanted;
    this.#send({
      kind: 'fault',
      fault: { kind: 'lost', goesOn: true, text: `A new device was opened; ${wanted ? 'training goes on' : 'the weights are those'} from step ${this.#ready().run.step}. The browser's reason: ${reason}` },
    });
  }

  /** The data for the start of training: the visitor's files, or drawn digits until the server's MNIST has arrived. */
  async #findData(settings: Settings): Promise<Data> {
    this.#dropNext();
    this.#mnist = 'done';
    if (settings.data === 'drawn') return drawn(settings.seed);
    const data = await keptData();
    if (data) return data;
    this.#mnist = 'wanted';
    return firstDrawn(settings.seed);
  }

  #dropNext(): void {
    this.#next?.train.free();
    this.#next?.test.free();
    this.#next = undefined;
  }

  /** Fetches the server's MNIST during training on the drawn digits. */
  async #fetchMnist(): Promise<void> {
    if (this.#mnist !== 'wanted') return;
    this.#mnist = 'asked';
    let data: Data | undefined;
    let why = 'as this server offers no MNIST';
    try {
      data = await served(this.#base, (what, loaded, total) => {
        if (this.#mnist === 'asked') this.#send({ kind: 'progress', what, loaded, total });
      });
    } catch (error) {
      why = 'as MNIST could not be loaded';
      if (this.#mnist === 'asked') this.#fault({ ...faultOf(error), kind: 'file', goesOn: true });
    }
    if (this.#mnist !== 'asked') {
      // Other data was chosen meanwhile.
      data?.train.free();
      data?.test.free();
      return;
    }
    this.#mnist = 'done';
    data ??= drawn(this.#settings.seed, `digits drawn on the spot, ${why}`);
    this.#next = data;
    // In the middle of an epoch, the data is replaced at its end.
    const waits = this.#wanted || Boolean(this.#trainer?.run.submitted);
    this.#send({ kind: 'loaded', what: 'MNIST', waits: waits && data.source === 'mnist' });
    if (!waits) await this.#command(() => this.#takeNext());
  }

  #takeNext(): void {
    const data = this.#next;
    this.#next = undefined;
    if (data) this.#useData(data);
  }

  #useData(data: Data): void {
    const before = this.#data;
    this.#data = data;
    this.#trainer?.useData(data);
    if (before) {
      before.train.free();
      before.test.free();
    }
    const { source, text, train, test } = data;
    this.#send({ kind: 'data', source, text, train: train.length, test: test.length });
  }

  /** Starts a new run, from `kept` weights or from the seed. If the model cannot be made, the old one stays. */
  #begin(settings: Settings, kept?: Kept, { restored = false, wasTraining = false } = {}): void {
    const { run, whole } = this.#made(settings, kept);
    this.#trainer?.run.dispose();
    this.#follow(run, restored && whole, wasTraining);
  }

  /** `whole`: it continues from `kept`. */
  #made(settings: Settings, kept: Kept | undefined): { run: Run; whole: boolean } {
    const run = new Run(settings, this.#data!.train, () => this.#takeNext());
    try {
      if (kept) run.restore(kept);
      return { run, whole: kept !== undefined };
    } catch (error) {
      this.#fault(faultOf(error));
      return { run, whole: false };
    }
  }

  /** From now on, this run is trained and shown. */
  #follow(run: Run, restored: boolean, wasTraining: boolean): void {
    this.#broken = false;
    this.#compiled = false;
    countAgain();
    this.#settings = run.settings;
    this.#trainer = new Trainer(this.#device!, run, this.#data!, this.#send, () => this.#keepRun());
    this.#send({ kind: 'model', summary: run.model.summary(), params: run.model.countParams(), step: run.step, restored, wasTraining });
    const { losses, accuracies, tests, epochs, ends, seen } = run;
    this.#send({ kind: 'curves', losses: losses.values(), accuracies: accuracies.values(), tests, epochs, ends });
    if (seen.evaluation) this.#send(seen.evaluation);
    if (seen.kernels) this.#send({ kind: 'kernels', kernels: seen.kernels });
    this.#setState(this.#atRest());
  }

  /** Replaces the present run with another one, and parks the present one until it is selected again. */
  async #turnTo(settings: Settings): Promise<void> {
    const wanted = this.#wanted;
    const key = runKey(settings);
    const old = this.#trainer?.run;
    const parks = old !== undefined && !this.#broken && old.step > 0;
    // If the device is lost at this moment, the weights stored before are used.
    if (parks) await this.#keepRun().catch(() => {});
    const mine = this.#parked.get(key);
    const kept = mine?.kept ?? await keptRun(key);
    const { run, whole } = mine?.run ? { run: mine.run, whole: false } : this.#made(settings, kept);
    this.#parked.delete(key);
    if (parks) this.#park(old);
    else old?.dispose();
    run.adjust(settings);
    run.useImages(this.#data!.train);
    this.#kept = kept;
    this.#follow(run, whole, wanted);
  }

  #park(run: Run): void {
    this.#parked.set(runKey(run.settings), { run, kept: this.#kept });
    // With a memory limit, all memory should be available for training.
    if (this.#memory > 0) this.#unpark();
    for (const [key, parked] of [...this.#parked].slice(0, -PARKED)) {
      parked.run?.dispose();
      this.#parked.delete(key);
    }
  }

  /** Releases the device memory of the parked runs. Their stored weights stay. */
  #unpark(): void {
    for (const parked of this.#parked.values()) {
      parked.run?.dispose();
      delete parked.run;
    }
  }

  async #configure(settings: Settings): Promise<void> {
    const before = this.#settings;
    if (!this.#trainer || runKey(settings) !== runKey(before)) {
      const wanted = this.#wanted;
      this.#wanted = false;
      this.#takeNext();
      if (settings.seed !== before.seed && this.#data?.source === 'drawn') {
        this.#useData(this.#mnist === 'done' ? drawn(settings.seed) : firstDrawn(settings.seed));
      }
      await this.#turnTo(settings);
      this.#wanted = wanted;
    }
    this.#settings = settings;
    this.#trainer?.run.adjust(settings);
    if (settings.data !== before.data) {
      this.#forgetWaiting();
      this.#useData(await this.#findData(settings));
      if (!this.#wanted) void this.#fetchMnist();
    }
  }

  async #keepRun(): Promise<void> {
    const { run } = this.#ready();
    const before = this.#kept;
    const known = before !== undefined && before.step === run.step;
    if (run.step === 0 || (known && before.seen.evaluation === run.seen.evaluation)) return;
    // The weights are unchanged, but may have been evaluated meanwhile.
    const kept = known ? { ...before, tests: run.tests, seen: { ...run.seen } } : await run.keep();
    this.#kept = kept;
    const key = runKey(run.settings);
    const mayKeep = await claim(key);
    if (!mayKeep || await keepRun(key, kept)) this.#send({ kind: 'kept', step: kept.step, elsewhere: !mayKeep });
    void keepFindings(this.#device!.adapter.text, this.#device!.findings());
  }

  #load(name: string, bytes: Uint8Array): void {
    const { run } = this.#ready();
    try {
      run.load(bytes);
    } catch (error) {
      const text = error instanceof Error ? error.message : String(error);
      throw Object.assign(new Error(`${name}: ${text}`), { name: 'CheckpointError' });
    }
    this.#kept = undefined;
    this.#trainer?.weightsChanged();
  }
}

/** On the page's thread: the returned function takes the page's requests. */
export function connect(send: Send): (request: Request) => void {
  const engine = new Engine(send);
  return (request) => void engine.receive(request);
}

// In a worker: handles its messages.
if (typeof document === 'undefined') {
  const send: Send = (message, transfer = []) => self.postMessage(message, { transfer });
  const receive = connect(send);
  self.onmessage = ({ data }: MessageEvent<Request>) => receive(data);
  send({ kind: 'hello', gpu: Boolean(navigator.gpu) });
  self.onunhandledrejection = ({ reason }) => send({ kind: 'fault', fault: faultOf(reason) });
}
