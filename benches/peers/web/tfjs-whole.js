// The same program, for a page that loads the union package, as TensorFlow.js's instructions begin.
import '@tensorflow/tfjs';
import './tfjs.js';
