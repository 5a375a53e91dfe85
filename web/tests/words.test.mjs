// JavaScript's names in the library's messages: searches its sources for names without a translation.

import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, it } from 'node:test';
import { root } from './driver.mjs';

/** Folders and files of `src` whose errors a page never sees: other programs' files, summaries, functions for Rust only. */
const APART = [
  /^(summary|image|plan|debugging|wgsl)\//, /^saved_model\/((onnx\/)?save|traced|webgpu|rust_source|model\.rs)/, /^data\//, /^device\/(profile|limits|platform\/native|pipeline_cache)/, /^interop/, /^runtime\/shared/,
  /^keras\/(applications|datasets|metrics|callbacks|utils|pad_sequences|regularizers)/, /^keras\/layers\/core\/lambda/, /^keras\/layers\/preprocessing\/(category_encoding\/|discretization\/|feature_space|hash|host_|integer_lookup|lookup|quantiles|string_lookup|text|vocabulary)/,
  /^keras\/(front\/|saving\/assets)/, /^train\/manager/,
  /^tape\/(custom_gradient|jacobian|check)/, /^(files|docs)/, /^(host_array\/element|tensor\/host_array)/, /^ops\/(signal|image|linalg|catalog|attention)/, /^function\/(control_flow|tensor_array|repeated|difference|taped|selects|concrete_function)/, /^compat\//,
  /^(config|distribute|estimator|hub|text)\//, /^runtime\/(context|device_name|copies)/, /^eager\/(replica|workers)/, /^variable\/mirrored/, /^keras\/training\/(replicas|workers)/, /^runtime\/packs/,
];

/** Names in messages that are not Rust's: those of files, of Keras and TensorFlow, of losses' parts. */
const STAY = new Set([
  'tf_idf',
  // Functions for Rust programs only.
  'add_loss', 'assert_consumed', 'assert_nontrivial_match', 'expect_partial', 'list_variables', 'set_weights', 'get_weights', 'weight_map', 'predict_all', 'reset_states', 'insert_axis', 'train_on_batch', 'test_on_batch', 'reset_metrics',
  'metrics_of', 'finalize_variable_values', 'exclude_from_weight_decay', 'slot_names', 't_mul', 'drop_remainder', 'central_fraction', 'reverse_sequence', 'kaiser_window',
  'class_name', 'saved_model', 'go_backwards', 'return_sequences', 'max_output_boxes_per_class', 'score_threshold', 'to_onnx', 'handle_unknown', 'mixed_float16', 'mixed_bfloat16', 'fan_in', 'fan_out', 'fan_avg', 'implicit_gradients', 'set_trainable', 'from_buffer', 'from_tensors', 'set_iterations', 'load_npz',
  'load_model', 'load_keras_model', 'vectorized_map', 'load_weights', 'concrete_functions', 'save_file', 'embedding_lookup_with', 'exclude_layers', 'power_factors', 'full_matrices', 'clip_by_norm', 'from_strings', 'apply_gradients', 'while_loop', 'host_call', 'switch_case', 'input_signature', 'get_concrete_function', 'reduce_retracing',
]);

const unescaped = (text) => text.replace(/\\\n\s*/g, '').replace(/\\"/g, '"').replace(/\\\\/g, '\\');

function files(folder) {
  return readdirSync(folder, { recursive: true }).map(String).filter((name) => name.endsWith('.rs') && !/tests?(\.rs|\/)/.test(name)).sort();
}

/** The string literals of a file, without its tests and comments. */
function literals(text) {
  const code = text.split('#[cfg(test)]\nmod tests {')[0].replace(/^\s*\/\/.*$/gm, '');
  return [...code.matchAll(/"((?:[^"\\\n]|\\.|\\\n)*)"/gs)].map((found) => unescaped(found[1]));
}

describe('the words for JavaScript', () => {
  const src = path.join(root, 'src');
  const table = readFileSync(path.join(root, 'web/src/words.rs'), 'utf8');
  const part = (name) => table.slice(table.indexOf(`const ${name}:`), table.indexOf('\n];', table.indexOf(`const ${name}:`)));
  const texts = (name) => [...part(name).matchAll(/"((?:[^"\\]|\\[\s\S])*)"/g)].map((found) => unescaped(found[1]));
  const pairs = (name) => texts(name).reduce((all, text, i) => (i % 2 ? (all.at(-1).push(text), all) : [...all, [text]]), []);
  const sentences = pairs('SENTENCES');
  const names = new Map(pairs('NAMES'));
  const camel = new Set(texts('CAMEL'));

  it('replace sentences that the library says', () => {
    assert.ok(sentences.length > 10 && names.size > 20 && camel.size > 40);
    // Format strings double their braces, and insert values where the table has text.
    const all = files(src).flatMap((name) => literals(readFileSync(path.join(src, name), 'utf8'))).join('\n').replaceAll('{{', '{').replaceAll('}}', '}');
    const missing = sentences.map(([from]) => from).filter((from) => !all.includes(from.replaceAll('{{', '{').replaceAll('}}', '}')));
    assert.deepEqual(missing, [], 'nobody says these any more');
  });

  it('have one for each name of Rust that a page can meet', () => {
    const unknown = new Set();
    for (const name of files(src).filter((name) => !APART.some((apart) => apart.test(name)))) {
      for (const literal of literals(readFileSync(path.join(src, name), 'utf8'))) {
        // Messages are sentences; the others are code for the GPU, and keys.
        if (!/[a-z] [a-z]/.test(literal) || !/[.:]( |$)/.test(literal) || /(?:\b|\\n)fn |struct |vec4|var<|;\n|`impl | = /.test(literal)) continue;
        let text = literal.replace(/\{[^{}]*\}/g, '{}');
        for (const [from, to] of sentences) text = text.replace(from.replace(/\{[^{}]*\}/g, '{}'), to);
        for (const [word] of text.matchAll(/(?<!['"/\w])[a-z][a-z0-9]*(?:_[a-z0-9]+)+(?!['"/\w])/g)) {
          if (!names.has(word) && !camel.has(word) && !STAY.has(word)) unknown.add(`${name}: ${word}: ${literal}`);
        }
      }
    }
    assert.deepEqual([...unknown], []);
  });

  it('speak of what there is', () => {
    const types = readFileSync(path.join(root, 'web/pkg/models/wgrad.d.ts'), 'utf8');
    for (const [, word] of names) {
      const [, name] = /([a-zA-Z]+)(\(\))?$/.exec(word.replaceAll("'", '')) ?? [];
      if (/^[A-Z]\w+$|^'|^(u?int|float|bool|WebGPU)/.test(word) || word.startsWith("'")) continue;
      assert.match(types, new RegExp(`\\b${name}\\b`), `${word} is not in the package`);
    }
  });
});
