// Evaluation results: the confusion matrix, and the misclassified digits.

import type { Event } from '../engine/protocol';
import { byId, make, fill, say } from './dom';
import { readChosen } from './draw';
import * as format from './format';
import { showThumbnail, thumbnail } from './pictures';

const WHOSE = { mnist: 'MNIST’s', drawn: 'drawn', files: 'your' };
const table = byId<HTMLTableElement>('confusion');
const cells: HTMLTableCellElement[] = [];
const images = new WeakMap<Element, { pixels: Uint8Array; label: number }>();

function setUpTable(): void {
  const digits = Array.from({ length: 10 }, (_, i) => i);
  const head = make('tr', {}, make('td', { class: 'corner' }), ...digits.map((digit) => make('th', { scope: 'col' }, String(digit))));
  table.append(make('thead', {}, head), make('tbody', {}, ...digits.map((truth) => {
    const row = digits.map((read) => make('td', { 'data-true': String(truth), 'data-read': String(read) }));
    cells.push(...row);
    return make('tr', {}, make('th', { scope: 'row' }, String(truth)), ...row);
  })));
}

function showEvaluation(event: Event & { kind: 'evaluation' }): void {
  say('confusion-note', `${format.percent(event.accuracy, 2)} of ${format.count(event.count)} of ${format.count(event.of)} ${WHOSE[event.data]} test images are right, at step ${format.count(event.step)}. Rows: the digit. Columns: what it was read as.`);
  for (const [i, cell] of cells.entries()) {
    const row = event.confusion.subarray(Math.floor(i / 10) * 10, Math.floor(i / 10) * 10 + 10);
    const total = row.reduce((sum, n) => sum + n, 0);
    const n = event.confusion[i]!;
    const share = total > 0 ? n / total : 0;
    const right = Math.floor(i / 10) === i % 10;
    cell.dataset.count = String(n);
    cell.textContent = n === 0 ? '' : String(n);
    cell.classList.toggle('right', right);
    // Errors are few, so their colour intensifies faster.
    cell.style.setProperty('--share', String(right ? share : Math.min(1, Math.sqrt(share * 2))));
  }
  const { pixels, labels, guesses, sure } = event.misread;
  const wrong = Math.round(event.count * (1 - event.accuracy));
  say('misread-note', wrong === 0 ? 'None of these test images is misread.'
    : `${labels.length < wrong ? `The ${labels.length} of ${format.count(wrong)}` : format.count(wrong)} that it was surest of: what it is, what it was read as, and how sure it was.`);
  fill(byId('misread'), labels.length,
    () => {
      const element = thumbnail(() => {
        const at = images.get(element);
        if (at) readChosen(at.pixels, at.label);
      });
      return element;
    },
    (element, i) => {
      const image = pixels.subarray(784 * i, 784 * i + 784);
      images.set(element, { pixels: image, label: labels[i]! });
      const certain = format.percent(sure[i]!, 0);
      showThumbnail(element, image, `${labels[i]} → ${guesses[i]}\n${certain}`, `${labels[i]} → ${guesses[i]} ${certain}: a ${labels[i]}, read as ${guesses[i]}, ${certain} sure. Show it.`);
    });
}

export function setUpResults(): void {
  setUpTable();
}

export function showResults(event: Event): void {
  if (event.kind === 'evaluation') showEvaluation(event);
}

/** A new model has no results yet. */
export function forgetResults(): void {
  for (const cell of cells) {
    cell.textContent = '';
    delete cell.dataset.count;
    cell.classList.remove('right');
    cell.style.removeProperty('--share');
  }
  byId('misread').replaceChildren();
  say('confusion-note', 'Appears after the first evaluation on test images.');
  say('misread-note', 'None yet.');
}
