//! Recurrent layers: numbers of Keras 3.15 beyond the golden cases, states, masks, custom cells, gradients, and the cost of a
//! training step.

#![allow(clippy::unwrap_used)]

use crate::{fill, near, wave};
use wgrad::keras::layers::{
    Bidirectional, ConvLstm1D, ConvLstm2D, ConvLstm3D, Dense, Gru, GruCell, Lstm, LstmCell,
    MergeMode, Rnn, RnnCell, SimpleRnn, StackedRnnCells, TimeDistributed,
};
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{
    Activation, CompileOptions, Context, FitOptions, Functional, INFERENCE, Initializer, Input,
    Layer, LayerExt, Model, PredictOptions, Regularizer, Sequential, TRAINING, Weight,
};
use wgrad::{Device, GradientTape, Padding, Result, Tensor, Trackable, constant, random};

fn sequences() -> (Tensor, Tensor) {
    let mask = constant([[true, true, false, true], [false, true, true, false]]).unwrap();
    (wave(&[2, 4, 3], 0.3), mask)
}

#[test]
fn other_activations_masks_and_directions_are_those_of_keras() {
    let (x, mask) = sequences();
    let masked = INFERENCE.with_mask(Some(&mask));
    let lstm = Lstm::new(2)
        .activation(Activation::Softsign)
        .recurrent_activation(Activation::HardSigmoid)
        .return_sequences(true)
        .go_backwards(true);
    lstm.call(&x, INFERENCE).unwrap();
    fill(&lstm);
    let result = lstm.call_with_state(&x, None, masked).unwrap();
    near(
        "output",
        &result.output,
        &[
            -0.024863, -0.022457, -0.024863, -0.022457, -0.085227, -0.022452, -0.052739, -0.021596,
            0.0, 0.0, -0.025371, -0.023502, -0.042510, 0.062533, -0.042510, 0.062533,
        ],
    );
    near("h", &result.state[0], &[-0.052739, -0.021596, -0.042510, 0.062533]);
    near("c", &result.state[1], &[-0.118874, -0.044832, -0.070081, 0.107533]);

    let gru = Gru::new(2)
        .activation(Activation::Softsign)
        .recurrent_activation(Activation::HardSigmoid)
        .return_sequences(true);
    gru.call(&x, INFERENCE).unwrap();
    fill(&gru);
    near(
        "gru",
        &gru.call(&x, masked).unwrap(),
        &[
            -0.097555, 0.023915, -0.171500, -0.085372, -0.171500, -0.085372, -0.184938, -0.007173,
            0.0, 0.0, -0.119400, -0.011652, -0.157946, 0.022510, -0.157946, 0.022510,
        ],
    );
    let gru = Gru::new(2).recurrent_activation(Activation::HardSigmoid).reset_after(false);
    gru.call(&x, INFERENCE).unwrap();
    fill(&gru);
    near("before", &gru.call(&x, INFERENCE).unwrap(), &[-0.147877, 0.202935, -0.179401, 0.050718]);

    let zeroed = |sequences: bool| {
        let layer = SimpleRnn::new(2).zero_output_for_mask(true).return_sequences(sequences);
        layer.call(&x, INFERENCE).unwrap();
        fill(&layer);
        layer.call(&x, masked).unwrap()
    };
    near(
        "zeroed",
        &zeroed(true),
        &[
            0.122516, -0.401346, 0.397142, 0.238220, 0.0, 0.0, 0.271511, -0.408011, 0.0, 0.0,
            -0.224923, -0.405040, 0.082893, -0.289753, 0.0, 0.0,
        ],
    );
    near("zeroed last", &zeroed(false), &[0.271511, -0.408011, 0.0, 0.0]);
}

#[test]
fn stacked_cells_are_those_of_keras_backwards_and_masked() {
    let (x, mask) = sequences();
    let cells = StackedRnnCells::new().add(LstmCell::new(3)).add(GruCell::new(2));
    let layer = Rnn::new(cells).return_sequences(true).go_backwards(true);
    layer.call(&x, INFERENCE).unwrap();
    let names: Vec<String> = layer.named_variables().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names[0], "stacked_rnn_cells/lstm_cell/kernel");
    assert_eq!(names[5], "stacked_rnn_cells/gru_cell/bias");
    fill(&layer);
    let masked = INFERENCE.with_mask(Some(&mask));
    near(
        "stacked",
        &layer.call(&x, masked).unwrap(),
        &[
            0.234000, 0.138594, 0.234000, 0.138594, 0.336527, 0.221472, 0.386191, 0.279282, 0.0,
            0.0, 0.233969, 0.138527, 0.343357, 0.233842, 0.343357, 0.233842,
        ],
    );
    let turned = Layer::<Tensor>::compute_mask(&layer, &x, Some(&mask)).unwrap().unwrap();
    assert_eq!(
        turned.to_vec::<bool>().unwrap(),
        [true, false, true, true, false, true, true, false]
    );
}

#[test]
fn both_ways_merge_as_in_keras() {
    let (x, mask) = sequences();
    let of = |mode| {
        let layer = Bidirectional::new(Gru::new(2).return_sequences(true)).merge_mode(mode);
        layer.call(&x, INFERENCE).unwrap();
        fill(&layer);
        layer.call(&x, INFERENCE.with_mask(Some(&mask))).unwrap()
    };
    near(
        "sum",
        &of(MergeMode::Sum),
        &[
            0.246294, 0.259812, 0.125885, 0.194424, 0.0, 0.0, -0.016963, 0.053427, 0.0, 0.0,
            0.229753, 0.161877, 0.015751, 0.089291, 0.0, 0.0,
        ],
    );
    near(
        "mul",
        &of(MergeMode::Mul),
        &[
            -0.040191, 0.007437, -0.068247, -0.026213, 0.0, 0.0, -0.044239, 0.000054, 0.0, 0.0,
            -0.053245, -0.000434, -0.037505, 0.001915, 0.0, 0.0,
        ],
    );
    near(
        "ave",
        &of(MergeMode::Ave),
        &[
            0.123147, 0.129906, 0.062942, 0.097212, 0.0, 0.0, -0.008482, 0.026714, 0.0, 0.0,
            0.114876, 0.080938, 0.007875, 0.044645, 0.0, 0.0,
        ],
    );

    let layer = Bidirectional::new(Lstm::new(2)).merge_mode(MergeMode::None);
    layer.call_both(&x, None, INFERENCE).unwrap();
    fill(&layer);
    let [ahead, back] = layer.call_both(&x, None, INFERENCE).unwrap();
    near("ahead", &ahead.output, &[-0.054786, 0.002529, -0.149817, -0.009651]);
    near("back", &back.output, &[0.114632, 0.022475, 0.151755, 0.003154]);
    near("back c", &back.state[1], &[0.226831, 0.046357, 0.366767, 0.008785]);

    // Bidirectional with explicit layers gives the same results.
    let own = Bidirectional::with_backward_layer(
        Lstm::new(2),
        Rnn::new(LstmCell::new(2)).go_backwards(true),
    );
    own.call(&x, INFERENCE).unwrap();
    fill(&own);
    near(
        "own",
        &own.call(&x, INFERENCE).unwrap(),
        &[-0.054786, 0.002529, 0.114632, 0.022475, -0.149817, -0.009651, 0.151755, 0.003154],
    );
}

#[test]
fn a_stateful_layer_goes_on_where_it_ended() {
    let x = wave(&[2, 4, 3], 0.3);
    let layer = Lstm::new(2).stateful(true);
    layer.call(&x, INFERENCE).unwrap();
    assert_eq!(layer.variables().len(), 3); // as in Keras, states are not weights
    fill(&layer);
    let first = [-0.054786, 0.002529, -0.149817, -0.009651];
    layer.reset_state();
    near("first", &layer.call(&x, INFERENCE).unwrap(), &first);
    near(
        "second",
        &layer.call(&x, INFERENCE).unwrap(),
        &[-0.055360, 0.003069, -0.150756, -0.008757],
    );
    // States passed to a call take precedence over stored ones.
    let zeros = || Tensor::zeros([2, 2]).unwrap();
    let (y, states) = layer.call(&[x.clone(), zeros(), zeros()][..], INFERENCE).unwrap();
    near("given", &y, &first);
    near("h", &states[0], &first);
    layer.reset_state();
    let one = x.slice(&[1, 0, 0], &[1, -1, -1]).unwrap();
    near("another batch", &layer.call(&one, INFERENCE).unwrap(), &first[2..]);

    // A sequence in two halves gives the same as the whole.
    let whole = Gru::new(8).unroll(true);
    let halves = Gru::new(8).stateful(true);
    let x = wave(&[3, 6, 5], 0.1);
    for layer in [&whole, &halves] {
        layer.call(&x, INFERENCE).unwrap();
        fill(layer);
    }
    halves.reset_state();
    let parts = x.split(2, 1).unwrap();
    halves.call(&parts[0], INFERENCE).unwrap();
    let want = whole.call(&x, INFERENCE).unwrap().to_vec::<f32>().unwrap();
    near("halves", &halves.call(&parts[1], INFERENCE).unwrap(), &want);
}

/// Every stateful layer, called by `fit`, `predict` and in a functional model, whose trial call has batches of 1.
#[test]
fn stateful_layers_keep_their_states_in_models() {
    fn both(layer: impl Layer + 'static, shape: [usize; 4]) {
        let kind = layer.kind();
        let volume = kind.starts_with("ConvLSTM");
        let sizes: Vec<usize> = if volume { shape.to_vec() } else { vec![shape[0], shape[1]] };
        let x = Input::new(&sizes[..]);
        let model = Functional::new(&x, layer.on(&x).unwrap()).unwrap();
        let batch = |examples: usize, phase: f32| {
            let mut shape = vec![examples];
            shape.extend(&sizes);
            wave(&shape, phase)
        };
        let data = |examples: usize| batch(examples, 0.2);
        let numbers = |y: Tensor| y.to_vec::<f32>().unwrap();
        let predict = |x: &Tensor| {
            numbers(model.predict(x, PredictOptions::new().batch_size(4).verbose(0)).unwrap())
        };
        let first = predict(&data(4));
        let second = predict(&data(4));
        assert_ne!(first, second, "{kind} keeps no state");
        // Two batches of four of the eight examples are one continued sequence.
        model.reset_states();
        let pair = wgrad::concat([&data(4), &data(4)], 0).unwrap();
        assert_eq!(predict(&pair), [first.clone(), second.clone()].concat(), "{kind}");
        // Batches of another size need other states.
        let options = || PredictOptions::new().batch_size(3).verbose(0);
        let error = model.predict(data(3), options()).unwrap_err().to_string();
        assert!(error.contains("stateful") && error.contains("reset_states"), "{kind}: {error}");
        model.reset_states();
        assert!(model.predict(data(3), options()).is_ok(), "{kind}");
        // A training whose validation has batches of the same size.
        model.reset_states();
        model.compile("sgd", "mse", CompileOptions::new()).unwrap();
        let y = model.call(&data(4), INFERENCE).unwrap().zeros_like().unwrap();
        model.reset_states();
        let options = FitOptions::new().batch_size(4).epochs(2).shuffle(false).verbose(0);
        let x = data(4);
        let history = model.fit((&x, &y), options.validation_data((&x, &y))).unwrap();
        let losses = history.get("loss").unwrap();
        assert!(losses.iter().all(|loss| loss.is_finite()), "{kind}: {losses:?}");
    }
    let flat = [5, 3, 0, 0];
    both(Lstm::new(2).stateful(true), flat);
    both(Gru::new(4).stateful(true).return_sequences(true), flat);
    both(Gru::new(3).reset_after(false).stateful(true), flat);
    both(SimpleRnn::new(4).stateful(true), flat);
    both(SimpleRnn::new(3).stateful(true).go_backwards(true), flat);
    both(Rnn::new(LstmCell::new(3)).stateful(true), flat);
    both(
        Rnn::new(StackedRnnCells::new().add(GruCell::new(3)).add(LstmCell::new(2))).stateful(true),
        flat,
    );
    both(Bidirectional::new(Lstm::new(3).stateful(true)), flat);
    both(ConvLstm2D::new(2, [2, 2]).stateful(true), [3, 4, 4, 2]);
    both(
        Sequential::new()
            .add(Lstm::new(3).stateful(true).return_sequences(true))
            .add(Gru::new(2).stateful(true)),
        flat,
    );
}

// Keras 3.15.1, two batches of four examples, each of 5 steps of two ones: the second continues where the first ended.
#[test]
fn a_prediction_of_a_stateful_layer_is_one_long_sequence() {
    let layer = SimpleRnn::new(4).stateful(true);
    let model = Sequential::new().add(layer);
    let x = wave(&[1, 10, 3], 0.4);
    let parts = x.split(2, 1).unwrap();
    model.call(&parts[0], INFERENCE).unwrap();
    fill(&model);
    model.reset_states();
    let options = || PredictOptions::new().batch_size(1).verbose(0);
    let both = wgrad::concat([&parts[0], &parts[1]], 0).unwrap();
    let got = model.predict(&both, options()).unwrap().to_vec::<f32>().unwrap();
    let whole = Sequential::new().add(SimpleRnn::new(4));
    whole.call(&x, INFERENCE).unwrap();
    fill(&whole);
    let want = whole.call(&x, INFERENCE).unwrap().to_vec::<f32>().unwrap();
    near("the second batch", &Tensor::from_slice(&got[4..], [4]).unwrap(), &want);
}

#[test]
fn the_kernels_and_the_cells_of_every_layer_agree_with_masks_and_states() {
    let x = wave(&[3, 5, 4], 0.2);
    let mask = Tensor::from_slice(&[0, 1, 1, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0], [3, 5]).unwrap();
    let mask = mask.not_equal(0).unwrap();
    let cx = INFERENCE.with_mask(Some(&mask));
    let states = [wave(&[3, 8], 0.5), wave(&[3, 8], 0.9)];
    for backwards in [false, true] {
        let make = |unroll: bool| {
            let lstm = Lstm::new(8).return_sequences(true).go_backwards(backwards).unroll(unroll);
            lstm.call(&x, INFERENCE).unwrap();
            fill(&lstm);
            lstm.call_with_state(&x, Some(&states), cx).unwrap()
        };
        let (fused, unrolled) = (make(false), make(true));
        let want = unrolled.output.to_vec::<f32>().unwrap();
        near("output", &fused.output, &want);
        // All steps of the third sequence are masked: its states stay, and its results are zeros.
        assert_eq!(want[2 * 5 * 8..], [0.0; 40]);
        near("c", &fused.state[1], &unrolled.state[1].to_vec::<f32>().unwrap());
        let kept = fused.state[1].to_vec::<f32>().unwrap();
        assert_eq!(kept[16..], states[1].to_vec::<f32>().unwrap()[16..]);
    }
}

#[test]
fn a_layer_at_every_step_is_the_layer() {
    let x = wave(&[2, 4, 3], 0.3);
    let layer = TimeDistributed::new(Dense::new(5));
    let y = layer.call(&x, INFERENCE).unwrap();
    assert_eq!(layer.named_variables()[0].0, "dense/kernel");
    let dense = Dense::new(5);
    dense.call(&x, INFERENCE).unwrap();
    dense.set_weights(&layer.get_weights().unwrap()).unwrap();
    near("steps", &y, &dense.call(&x, INFERENCE).unwrap().to_vec::<f32>().unwrap());

    // An inner layer gets the mask of its steps.
    let of_words = TimeDistributed::new(Rnn::new(LstmCell::new(4)));
    let words = wave(&[2, 3, 4, 5], 0.1);
    let mask = Tensor::ones([2, 3, 4]).unwrap().greater(0.0).unwrap();
    let y = of_words.call(&words, INFERENCE.with_mask(Some(&mask))).unwrap();
    assert_eq!(y.shape(), [2, 3, 4]);
    let error =
        of_words.call(&words, INFERENCE.with_mask(Some(&mask.transpose([1, 0, 2]).unwrap())));
    assert!(error.unwrap_err().to_string().starts_with("TimeDistributed: the mask is [3, 2, 4]"));
}

/// The cumulative product of decays, with a state of two axes.
#[derive(Trackable)]
struct Decay {
    decay: Weight,
}

impl RnnCell for Decay {
    fn state_sizes(&self) -> Vec<usize> {
        vec![2, 1]
    }

    fn step(
        &self,
        x: &Tensor,
        states: &[Tensor],
        _cx: Context<'_>,
    ) -> Result<(Tensor, Vec<Tensor>)> {
        let h = states[0].multiply(self.decay.get(x, [2])?)?.add(x)?;
        Ok((h.multiply(2.0)?, vec![h, states[1].add(1.0)?]))
    }
}

#[test]
fn a_cell_of_ones_own_goes_through_sequences() {
    let half = || Decay { decay: Weight::new().initializer(Initializer::Constant(0.5)) };
    let x = constant([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]]).unwrap();
    let layer = Rnn::new(half());
    let result = layer.call_with_state(&x, None, INFERENCE).unwrap();
    // ((1 / 2 + 3) / 2 + 5) * 2 and ((2 / 2 + 4) / 2 + 6) * 2; the second state counts steps.
    near("own", &result.output, &[13.5, 17.0]);
    near("count", &result.state[1], &[3.0]);
    let mask = constant([[true, false, true]]).unwrap();
    let result = layer.call_with_state(&x, None, INFERENCE.with_mask(Some(&mask))).unwrap();
    near("masked", &result.output, &[11.0, 14.0]);
    near("counted", &result.state[1], &[2.0]);
    assert_eq!(layer.named_variables()[0].0, "decay/decay");

    let stacked = Rnn::new(StackedRnnCells::new().add(half()).add(half()));
    assert_eq!(stacked.call_with_state(&x, None, INFERENCE).unwrap().state.len(), 4);
}

#[test]
fn dropout_draws_one_mask_a_call_and_repeats_with_its_seed() {
    let x = Tensor::ones([4, 6, 8]).unwrap();
    // With an identity kernel and no recurrent kernel, the results are the input after dropout.
    let layer = || {
        SimpleRnn::new(8)
            .activation(Activation::Linear)
            .kernel_initializer(Initializer::identity(1.0))
            .recurrent_initializer(Initializer::Zeros)
            .return_sequences(true)
            .dropout(0.5)
            .seed(3)
    };
    let first = layer();
    let y = first.call(&x, TRAINING).unwrap().to_vec::<f32>().unwrap();
    assert!(y.iter().all(|&y| y == 0.0 || y == 2.0) && y.contains(&0.0) && y.contains(&2.0));
    for batch in y.chunks(6 * 8) {
        assert!(batch.chunks(8).all(|step| step == &batch[..8]), "every step has the same mask");
    }
    assert_eq!(layer().call(&x, TRAINING).unwrap().to_vec::<f32>().unwrap(), y);
    assert_ne!(first.call(&x, TRAINING).unwrap().to_vec::<f32>().unwrap(), y);
    assert_eq!(first.call(&x, INFERENCE).unwrap().to_vec::<f32>().unwrap(), [1.0; 192]);

    // Dropout of the state: each gate has its own mask, the same at all steps.
    for make in [Lstm::new(8).dropout(0.3).recurrent_dropout(0.5).seed(1), Lstm::new(8)] {
        let y = make.call(&x, TRAINING).unwrap();
        assert!(y.to_vec::<f32>().unwrap().iter().all(|y| y.is_finite()));
    }
    let gru = Gru::new(8).recurrent_dropout(0.5).reset_after(false).seed(1);
    let apart = |cx| gru.call(&x, cx).unwrap().to_vec::<f32>().unwrap();
    assert_ne!(apart(TRAINING), apart(INFERENCE));
}

/// Compares a gradient with finite differences along the input and all weights.
fn check_gradients(name: &str, layer: &dyn Layer, x: &Tensor, cx: Context<'_>) {
    layer.call(x, cx).unwrap();
    fill(layer);
    let loss = |x: &Tensor| layer.call(x, cx).unwrap().square().unwrap().reduce_sum(()).unwrap();
    let tape = GradientTape::new();
    tape.watch(x).unwrap();
    let value = loss(x);
    let variables = layer.trainable_variables();
    let all = tape.required_gradient(&value, &variables[..]).unwrap();
    let number = |x: &Tensor| f64::from(loss(x).item::<f32>().unwrap());
    for (variable, grad) in variables.iter().zip(all) {
        let (at, grad) = (variable.read(), grad.to_vec::<f32>().unwrap());
        let direction = wave(variable.shape(), 2.5);
        let along: f64 = grad
            .iter()
            .zip(direction.to_vec::<f32>().unwrap())
            .map(|(g, d)| f64::from(*g) * f64::from(d))
            .sum();
        let moved = |by: f32| {
            variable.assign(at.add(direction.multiply(by).unwrap()).unwrap()).unwrap();
            number(x)
        };
        // Of second order: the error is about 1e-4 from the step's square, plus rounding of 1e-7 divided by the step.
        let difference = (moved(0.01) - moved(-0.01)) / 0.02;
        variable.assign(&at).unwrap();
        let bound = 2e-3 * along.abs().max(0.05);
        assert!((along - difference).abs() < bound, "{name}: {along}, not {difference}");
    }
}

#[test]
fn gradients_agree_with_differences() {
    let (x, mask) = sequences();
    let cx = INFERENCE.with_mask(Some(&mask));
    check_gradients(
        "lstm",
        &Lstm::new(3).recurrent_activation(Activation::HardSigmoid).return_sequences(true),
        &x,
        cx,
    );
    check_gradients("lstm of kernels", &Lstm::new(4).go_backwards(true), &x, cx);
    check_gradients(
        "gru before",
        &Gru::new(3).reset_after(false).activation(Activation::Softsign),
        &x,
        cx,
    );
    check_gradients(
        "rnn",
        &SimpleRnn::new(4).zero_output_for_mask(true).return_sequences(true),
        &x,
        cx,
    );
    check_gradients(
        "stacked",
        &Rnn::new(StackedRnnCells::new().add(LstmCell::new(4)).add(GruCell::new(2))),
        &x,
        cx,
    );
    check_gradients("both ways", &Bidirectional::new(Gru::new(4).return_sequences(true)), &x, cx);
}

#[test]
fn weights_start_as_in_keras_and_have_penalties() {
    let layer = Lstm::new(5)
        .kernel_regularizer(Regularizer::l2(0.1))
        .recurrent_regularizer(Regularizer::l1(0.1))
        .bias_initializer(Initializer::Constant(0.25));
    layer.call(&wave(&[1, 2, 3], 0.0), INFERENCE).unwrap();
    let [kernel, recurrent, bias] = &layer.variables()[..] else { panic!("three weights") };
    assert_eq!([kernel.shape(), recurrent.shape(), bias.shape()], [&[3, 20][..], &[5, 20], &[20]]);
    let bias = bias.read().to_vec::<f32>().unwrap();
    assert_eq!(bias[..5], [0.25; 5]);
    assert_eq!(bias[5..10], [1.0; 5]); // the forget gate
    assert_eq!(bias[10..], [0.25; 10]);
    // The rows of the recurrent kernel are orthogonal and have length 1.
    let r = recurrent.read();
    let product = r.matmul(r.transpose(()).unwrap()).unwrap().to_vec::<f32>().unwrap();
    for (at, value) in product.iter().enumerate() {
        let want = if at % 6 == 0 { 1.0 } else { 0.0 };
        assert!((value - want).abs() < 1e-5, "{product:?}");
    }
    assert_eq!(layer.regularization_losses().unwrap().len(), 2);
    assert_eq!(Gru::new(2).variables().len(), 0);
}

/// Trains for some steps; the last ones must plan, compile and allocate nothing.
fn settles(name: &str, layer: &dyn Layer, x: &Tensor) {
    let device = Device::current().unwrap();
    let adam = Adam::new(1e-3);
    let step = || {
        let tape = GradientTape::new();
        let loss = layer.call(x, TRAINING).unwrap().square().unwrap().reduce_mean(()).unwrap();
        adam.minimize(&loss, tape, layer).unwrap();
        loss.item::<f32>().unwrap()
    };
    // The first step makes the weights, and a structure's first run may use single kernels.
    (0..4).for_each(|_| _ = step());
    let before = device.stats();
    (0..3).for_each(|_| _ = step());
    let after = device.stats();
    let made = [
        after.plan_misses - before.plan_misses,
        after.pipelines - before.pipelines,
        after.buffers - before.buffers,
    ];
    assert_eq!(made, [0; 3], "{name}: plans, pipelines, buffers");
}

#[test]
fn training_steps_settle() {
    Device::new().unwrap().scope(|| {
        let x = random::normal([4, 7, 5]).unwrap();
        settles("LSTM", &Lstm::new(8).dropout(0.2), &x);
        settles("GRU", &Gru::new(6).recurrent_dropout(0.2), &x);
        settles("stateful", &Lstm::new(8).stateful(true), &x);
        settles("both ways", &Bidirectional::new(SimpleRnn::new(8).return_sequences(true)), &x);
    });
}

#[cfg(feature = "json")]
#[test]
fn configs_come_back_and_are_read_from_keras() {
    use wgrad::keras::layers::layer_from_config;
    let layers: Vec<Box<dyn Layer>> = vec![
        Box::new(Lstm::new(3).dropout(0.5).stateful(true).unit_forget_bias(false).seed(4)),
        Box::new(Gru::new(3).reset_after(false).go_backwards(true)),
        Box::new(SimpleRnn::new(3).activity_regularizer(Regularizer::l2(0.5))),
        Box::new(Bidirectional::new(Gru::new(3).return_sequences(true)).merge_mode(MergeMode::Ave)),
        Box::new(TimeDistributed::new(Dense::new(2))),
    ];
    for layer in layers {
        let config = layer.get_config().unwrap();
        assert_eq!(layer_from_config(&config).unwrap().get_config().unwrap(), config);
    }
    let x = wave(&[2, 4, 3], 0.3);
    let both = Bidirectional::new(
        Lstm::new(3).seed(1).kernel_initializer(Initializer::GlorotUniform.seed(2)),
    );
    let again = layer_from_config(&both.get_config().unwrap()).unwrap();
    both.call(&x, INFERENCE).unwrap();
    again.call(&x, INFERENCE).unwrap();
    again
        .named_variables()
        .iter()
        .zip(both.named_variables())
        .for_each(|(a, b)| assert_eq!(a.0, b.0));

    // Keras 3.15's text for `LSTM(3)`.
    let keras = r#"{"name": "lstm_3", "trainable": true, "dtype": {"module": "keras", "class_name": "DTypePolicy",
        "config": {"name": "float32"}, "registered_name": null}, "return_sequences": false, "return_state": false,
        "go_backwards": false, "stateful": false, "unroll": false, "zero_output_for_mask": false, "units": 3,
        "activation": "tanh", "recurrent_activation": "sigmoid", "use_bias": true,
        "kernel_initializer": {"module": "keras.initializers", "class_name": "GlorotUniform",
        "config": {"seed": null, "input_axes": null, "output_axes": null}, "registered_name": null},
        "recurrent_initializer": {"module": "keras.initializers", "class_name": "Orthogonal",
        "config": {"seed": null, "gain": 1.0}, "registered_name": null},
        "bias_initializer": {"module": "keras.initializers", "class_name": "Zeros", "config": {},
        "registered_name": null}, "unit_forget_bias": true, "kernel_regularizer": null, "recurrent_regularizer": null,
        "bias_regularizer": null, "activity_regularizer": null, "kernel_constraint": null,
        "recurrent_constraint": null, "bias_constraint": null, "dropout": 0.0, "recurrent_dropout": 0.0, "seed": null}"#;
    let config = wgrad::keras::Config::with_options("LSTM", serde_json::from_str(keras).unwrap());
    let layer = layer_from_config(&config).unwrap();
    assert_eq!(layer.get_config().unwrap(), Lstm::new(3).get_config().unwrap());
}

#[test]
fn convolutions_in_place_of_products_are_those_of_keras() {
    let x = wave(&[1, 3, 4, 4, 2], 0.3);
    let layer = ConvLstm2D::new(2, [3, 3]).padding(Padding::Same);
    layer.call(&x, INFERENCE).unwrap();
    assert_eq!(layer.named_variables()[0].0, "conv_lstm_cell/kernel");
    fill(&layer);
    near(
        "same",
        &layer.call(&x, INFERENCE).unwrap(),
        &[
            -0.269752, -0.073390, -0.020899, 0.002456, -0.097797, -0.060935, -0.128074, -0.124770,
            -0.178392, -0.102119, -0.364201, -0.207551, -0.014910, 0.048573, -0.031614, 0.018800,
            -0.127212, -0.098517, -0.292079, -0.356135, -0.293786, 0.073692, -0.012445, 0.026919,
            -0.026099, -0.006897, -0.078054, -0.065559, -0.239528, -0.357581, -0.238236, 0.072186,
        ],
    );
    let layer =
        ConvLstm2D::new(1, [2, 2]).strides([2, 2]).return_sequences(true).go_backwards(true);
    layer.call(&x, INFERENCE).unwrap();
    fill(&layer);
    near(
        "strided",
        &layer.call(&x, INFERENCE).unwrap(),
        &[
            -0.071386, -0.088654, -0.104128, -0.041325, -0.114693, -0.126554, -0.109641, -0.115821,
            -0.133847, -0.129493, -0.131878, -0.120777,
        ],
    );
    // A window of size 1 along other axes is equivalent in every number of axes.
    let line = ConvLstm1D::new(2, [3]);
    let volume = ConvLstm3D::new(2, [1, 1, 3]).stateful(true);
    let x = wave(&[2, 3, 5, 2], 0.3);
    let wide = x.reshape([2, 3, 1, 1, 5, 2]).unwrap();
    let y = line.call(&x, INFERENCE).unwrap();
    assert_eq!(volume.call(&wide, INFERENCE).unwrap().shape(), [2, 1, 1, 3, 2]);
    volume.reset_state();
    for (of, from) in volume.variables().iter().zip(line.variables()) {
        of.assign(
            from.read().reshape(of.shape().iter().map(|&n| n as i64).collect::<Vec<_>>()).unwrap(),
        )
        .unwrap();
    }
    near("volume", &volume.call(&wide, INFERENCE).unwrap(), &y.to_vec::<f32>().unwrap());
    let dropping = ConvLstm2D::new(2, [2, 2]).dropout(0.5).recurrent_dropout(0.5).seed(1);
    let x = wave(&[2, 3, 4, 4, 2], 0.3);
    assert_ne!(
        dropping.call(&x, TRAINING).unwrap().to_vec::<f32>().unwrap(),
        dropping.call(&x, INFERENCE).unwrap().to_vec::<f32>().unwrap()
    );
}
