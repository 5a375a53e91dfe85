// The parts of the page that are shown from the first step on. They are loaded then, so that they do not delay that step.

import type { AskName, Asks, Event } from '../engine/protocol';
import { setUpBuilder, showLayers } from './builder';
import { setUpCheck } from './check';
import { drawCurves, setUpCurves } from './curves';
import { setUpData, showData, showFiles } from './data';
import { pause } from './dom';
import { change, currentSettings } from './form';
import { showAdapter, setUpHood } from './hood';
import { setUpNetwork, showNetwork } from './network';
import { setUpPresets } from './presets';
import { forgetResults, setUpResults, showResults } from './results';
import { canMeasure, noKernels, setUpShaders, showKernels, showTimestamps } from './shaders';
import { setUpTips } from './tips';

/** The page's access to the engine. */
export interface Page {
  ask: <K extends AskName>(kind: K, input: Asks[K]['in'], transfer?: Transferable[]) => Promise<Asks[K]['out']>;
  /** Like `ask`; a refusal becomes a message, and nothing is returned. */
  attempt: <K extends AskName>(kind: K, input: Asks[K]['in'], transfer?: Transferable[]) => Promise<Asks[K]['out'] | undefined>;
}

export interface Later {
  show(event: Event): void;
  /** Enables or disables the controls that need the engine. */
  able(yes: boolean): void;
}

/** Pauses the training, if it runs, and returns a function that resumes it. */
async function standStill({ attempt }: Page): Promise<() => void> {
  if (document.documentElement.dataset.state !== 'training') return () => {};
  await attempt('pause', {});
  return () => void attempt('start', {});
}

/** Sets up one part after the other, and yields in between, so that the page does not freeze. */
export async function setUpLater(page: Page): Promise<Later> {
  const parts = [
    setUpNetwork,
    setUpCurves,
    setUpResults,
    () => setUpBuilder(currentSettings().layers, (layers) => change({ layers: structuredClone(layers) })),
    () => setUpData(page.attempt),
    () => setUpShaders(() => page.attempt('measure', {})),
    () => setUpHood(page.attempt),
    () => setUpCheck(() => standStill(page)),
    () => setUpPresets((afresh) => void (afresh ? page.attempt('reset', {}) : Promise.resolve()).then(() => page.attempt('start', {}))),
    setUpTips,
  ];
  for (const setUp of parts) {
    setUp();
    await pause();
  }
  addEventListener('settings', () => showLayers(currentSettings().layers));
  drawCurves();
  return { able: canMeasure, show };
}

function show(event: Event): void {
  showResults(event);
  showNetwork(event);
  switch (event.kind) {
    case 'curves':
    case 'points':
    case 'evaluation': return drawCurves();
    case 'adapter':
      showTimestamps(event.adapter);
      return showAdapter(event.adapter);
    case 'data': return showData(event);
    case 'files': return showFiles(event);
    case 'model':
      noKernels();
      return forgetResults();
    case 'kernels': return showKernels(event.kernels);
    default:
  }
}
