// What the page shows from the first step on. It is loaded then, so that nothing of it keeps a visitor waiting for that step.

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

/** How the page asks the engine. */
export interface Page {
  ask: <K extends AskName>(kind: K, input: Asks[K]['in'], transfer?: Transferable[]) => Promise<Asks[K]['out']>;
  /** As `ask`; a refusal becomes a message, and nothing is returned. */
  attempt: <K extends AskName>(kind: K, input: Asks[K]['in'], transfer?: Transferable[]) => Promise<Asks[K]['out'] | undefined>;
}

export interface Later {
  show(event: Event): void;
  /** Whether the engine takes orders. */
  able(yes: boolean): void;
}

/** Pauses the training, if there is one, and returns what lets it go on. */
async function standStill({ attempt }: Page): Promise<() => void> {
  if (document.documentElement.dataset.state !== 'training') return () => {};
  await attempt('pause', {});
  return () => void attempt('start', {});
}

/** Sets up one part after the other, and gives way between them: none of it is worth a page that stands still. */
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
