// Explanations of the page's terms: shown at a term on hovering or tapping, and in a list of all of them for visitors who can
// do neither.

import { byId, make } from './dom';

/** The term as it appears on the page, and one or two sentences. Elements refer to them by `data-tip`. */
const TIPS: Record<string, [word: string, text: string]> = {
  epoch: ['Epoch', 'One pass through all training images. 1.5 means that half of them were seen a second time.'],
  step: ['Step', 'The network reads one batch of images, and all its weights are moved a little so that the loss falls.'],
  loss: ['Loss', 'How wrong the answers are, as one number: the mean of −log(probability of the right digit). Guessing gives 2.3, certainty 0.'],
  accuracy: ['Accuracy', 'The share of training images that are read right, as a mean over the last 20 steps.'],
  test: ['On test images', 'The share of images read right that the network never learns from. Only this shows that it has not just learnt by heart.'],
  speed: ['Images/s', 'How many training images pass through the network in a second, forward and backward.'],
  mlp: ['MLP', 'Multilayer perceptron: every pixel is connected to each of 100 hidden units, and these to each of the ten digits.'],
  cnn: ['CNN', 'Convolutional neural network: small filters slide over the picture, so that a stroke is found wherever it stands.'],
  own: ['Your own', 'A list of layers that you put together.'],
  optimizer: ['Optimizer', 'The rule that turns gradients into steps. Adam gives each weight a step length of its own; SGD takes the gradient as it is; momentum goes on in the direction of the steps before.'],
  lr: ['Learning rate', 'How long a step is. Too small, and learning takes for ever; too large, and it jumps over the goal.'],
  batch: ['Batch size', 'How many images make one step. More give a truer gradient and more work.'],
  seed: ['Seed', 'Where all random numbers begin: first weights, drawn digits, shuffling. The same seed trains the same way again.'],
  stop: ['Stop after steps', 'Training comes to its end here. 0 goes on until you pause.'],
  parameters: ['Parameters', 'The numbers that are learnt: weights and biases of all layers.'],
  'step-time': ['Step time', 'How long a step takes, as a mean over the last ones.'],
  'first-step': ['First step', 'From the start to the end of the first step: its shaders are made and compiled in it, so it takes longest.'],
  kernels: ['Kernels a step', 'How many programs run on the GPU in one step. wgrad makes one of several operations where it can.'],
  memory: ['GPU memory', 'What weights, gradients, the optimizer and the batch take on the GPU now.'],
  peak: ['Peak', 'The most memory that was in use at once.'],
  confusion: ['Confusion matrix', 'A row for each digit, a column for each answer of the model. Right answers are on the diagonal.'],
  safetensors: ['safetensors', 'A simple file format for weights that Python, Rust and others read. The names in it are those of Keras.'],
  wgsl: ['WGSL', 'The language of WebGPU’s shaders. wgrad writes these programs from what you train.'],
  tape: ['Tape', 'It records each operation of the forward pass and plays them backwards to get gradients.'],
  adapter: ['Adapter', 'The browser’s word for a GPU, with its driver. A software adapter is a program on the processor instead.'],
  tune: ['Tune kernels', 'Measures several ways to compute the large products on this GPU and keeps the quickest.'],
};

/** Milliseconds that a pointer must rest before a tip appears, or may be away before it disappears. */
const REST = 200;

const tip = make('div', { id: 'tip', role: 'tooltip', popover: 'manual' });
let target: HTMLElement | undefined;
let timer = 0;

function hide(): void {
  clearTimeout(timer);
  target = undefined;
  if (tip.matches(':popover-open')) tip.hidePopover();
}

function show(element: HTMLElement): void {
  clearTimeout(timer);
  const found = TIPS[element.dataset.tip ?? ''];
  if (!found) return;
  target = element;
  tip.textContent = found[1];
  tip.showPopover();
  const [at, own] = [element.getBoundingClientRect(), tip.getBoundingClientRect()];
  const left = Math.max(8, Math.min(at.left, innerWidth - own.width - 8));
  const below = at.bottom + 6 + own.height < innerHeight;
  tip.style.setProperty('left', `${left}px`);
  tip.style.setProperty('top', `${below ? at.bottom + 6 : Math.max(8, at.top - own.height - 6)}px`);
}

const soon = (work: () => void) => {
  clearTimeout(timer);
  timer = window.setTimeout(work, REST);
};

export function setUpTips(): void {
  document.body.append(tip);
  const list = make('dl', { class: 'words' });
  for (const [id, [word, text]] of Object.entries(TIPS)) {
    list.append(make('div', {}, make('dt', {}, word), make('dd', { id: `word-${id}` }, text)));
  }
  byId('words').append(list);
  for (const element of document.querySelectorAll<HTMLElement>('[data-tip]')) {
    element.addEventListener('pointerenter', (event) => {
      if (event.pointerType === 'mouse') soon(() => show(element));
    });
    element.addEventListener('pointerleave', () => soon(hide));
    // A tap on the word; the control in a label keeps its own behaviour.
    element.addEventListener('click', (event) => {
      if ((event.target as Element).closest('input, select, summary')) return;
      if (target === element) hide();
      else show(element);
    });
    const control = element.querySelector('input, select');
    if (!control) continue;
    const described = control.getAttribute('aria-describedby');
    control.setAttribute('aria-describedby', [...(described ? [described] : []), `word-${element.dataset.tip}`].join(' '));
    control.addEventListener('focus', () => {
      if (control.matches(':focus-visible') && control.matches('[type=radio]')) show(element);
    });
    control.addEventListener('blur', hide);
  }
  // The pointer may rest on the tip itself, to read it.
  tip.addEventListener('pointerenter', () => clearTimeout(timer));
  tip.addEventListener('pointerleave', () => soon(hide));
  addEventListener('keydown', ({ key }) => {
    if (key === 'Escape') hide();
  });
  addEventListener('scroll', hide, { passive: true });
  addEventListener('pointerdown', (event) => {
    if (target && !target.contains(event.target as Node) && event.target !== tip) hide();
  });
}
