// XOR with tensors and the tape. Reaches a loss below 0.01 in 400 steps, in a second or a few.
import init, { Device, Tensor, Variable, onPanic, randomNormal, setSeed, tidy, valueAndGradients } from '../pkg/wgrad.js';

const out = document.getElementById('out');
const say = (text) => { out.textContent += text + '\n'; };

async function main() {
  await init();
  onPanic((message) => say(message));
  const device = await Device.open();
  out.textContent = '';
  say(`running on ${device.adapter.text}`);

  setSeed(3);
  const x = Tensor.from([[0, 0], [0, 1], [1, 0], [1, 1]]);
  const y = Tensor.from([[0], [1], [1], [0]]);
  const w1 = new Variable(randomNormal([2, 8]), 'w1');
  const b1 = new Variable(Tensor.zeros([8]), 'b1');
  const w2 = new Variable(randomNormal([8, 1]), 'w2');
  const b2 = new Variable(Tensor.zeros([1]), 'b2');
  const weights = [w1, b1, w2, b2];

  const model = () => x.matmul(w1).add(b1).tanh().matmul(w2).add(b2).sigmoid();

  for (let step = 0; step <= 400; step++) {
    // Tensors made inside tidy and not returned are freed at once, not when the browser collects garbage.
    const loss = tidy(() => {
      // The tape is open while the function runs, and watches the variables that it reads.
      const { value, gradients } = valueAndGradients(() => model().sub(y).square().mean(), weights);
      weights.forEach((w, i) => w.assignSub(gradients[i].mul(2)));
      return value;
    });
    device.flush();
    // Reading waits for the GPU, so it is done seldom; it also lets the page draw.
    if (step % 50 === 0) say(`step ${step}  loss ${(await loss.item()).toFixed(4)}`);
    loss.dispose();
  }
  const predicted = await model().data();
  [...await x.data()].forEach((bit, i, bits) => {
    if (i % 2 === 0) say(`${bit} xor ${bits[i + 1]} = ${predicted[i / 2].toFixed(3)}`);
  });
}

main().catch((error) => say(`${error.name}: ${error.message}`));
