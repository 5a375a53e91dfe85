// The same program for a page that loads the union package, which TensorFlow.js's instructions
// start with.
import '@tensorflow/tfjs';
import './tfjs.js';
