//! Gradients of gradients, where a missing part would look like a small error: gradient penalties, and ops without a gradient.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use wgrad::autodiff::{ForwardAccumulator, gradients_function, hessian, hvp};
use wgrad::inventory::{self, Gradient};
use wgrad::keras::layers::{
    Attention, BatchNormalization, Bidirectional, Conv2D, Conv2DTranspose, Dense, DepthwiseConv2D,
    GroupNormalization, Gru, LayerNormalization, Lstm, MultiHeadAttention, RmsNormalization,
    ScoreMode, SeparableConv2D, SimpleRnn,
};
use wgrad::keras::{Context, INFERENCE, Layer, TRAINING};
use wgrad::linalg::{QrOptions, SvdOptions, qr_with, svd_with};
use wgrad::random::Generator;
use wgrad::{Error, GradientTape, LstmOptions, Padding, Result, Tensor, Variable, constant, lstm};

/// Numbers from -0.5 to 0.5, as in the NumPy script.
fn numbers(shape: &[usize], step: usize) -> Tensor {
    let count: usize = shape.iter().product();
    let values: Vec<f32> = (0..count).map(|i| ((i * step) % 31) as f32 / 30.0 - 0.5).collect();
    Tensor::from_slice(&values, shape).unwrap()
}

/// The penalty of a critic, `mean((|d critic / dx| - 1)^2)`.
fn gradient_penalty(critic: &dyn Fn(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Tensor> {
    let tape = GradientTape::new();
    tape.watch(x)?;
    let y = critic(x)?;
    let grad = tape.required_gradient(&y, x)?;
    let axes: Vec<i64> = (1..x.rank() as i64).collect();
    let norm = (grad.square()?.reduce_sum(&axes[..])? + 1e-12).sqrt()?;
    (norm - 1.0).square()?.reduce_mean(())
}

/// TensorFlow 2.21's results for a layer of eight units on `[2, 3, 2]`: the penalty, and for its gradients with respect to the
/// kernel, the recurrent kernel and the bias their dot product with `numbers(.., 17)`, their norm and their last element.
struct Known {
    penalty: f32,
    grads: [[f32; 3]; 3],
}

fn check(name: &str, layer: &dyn Layer, mask: Option<&Tensor>, known: &Known) {
    let x = numbers(&[2, 3, 2], 5);
    layer.call(&x, INFERENCE).unwrap();
    let variables = layer.trainable_variables();
    for (variable, step) in variables.iter().zip([7, 9, 11]) {
        variable.assign(numbers(variable.shape(), step)).unwrap();
    }
    let last = numbers(&[8, 1], 13);
    let critic = |x: &Tensor| layer.call(x, INFERENCE.with_mask(mask))?.matmul(&last);
    let tape = GradientTape::new();
    let penalty = gradient_penalty(&critic, &x).unwrap();
    let grads = tape.required_gradient(&penalty, &variables[..]).unwrap();
    let near = |what: &str, got: f32, want: f32| {
        assert!((got - want).abs() <= 2e-5, "{name}, {what}: {got}, TensorFlow {want}");
    };
    near("the penalty", penalty.item::<f32>().unwrap(), known.penalty);
    assert_eq!(grads.len(), 3);
    for (i, (grad, [dot, norm, last])) in grads.iter().zip(known.grads).enumerate() {
        let got = grad.to_vec::<f32>().unwrap();
        let others = numbers(grad.shape(), 17).to_vec::<f32>().unwrap();
        let product: f32 = got.iter().zip(&others).map(|(a, b)| a * b).sum();
        near(&format!("gradient {i}"), product, dot);
        near(&format!("the norm of {i}"), got.iter().map(|v| v * v).sum::<f32>().sqrt(), norm);
        near(&format!("the end of {i}"), *got.last().unwrap(), last);
    }
}

fn some_steps() -> Tensor {
    constant([[true, false, true], [true, true, true]]).unwrap()
}

#[test]
fn the_penalty_of_an_lstm_is_tensorflows() {
    check(
        "LSTM",
        &Lstm::new(8),
        None,
        &Known {
            penalty: 0.762_188_9,
            grads: [
                [0.027_925_914, 0.383_976_63, -0.052_977_346],
                [0.000_480_698_86, 0.071_935_86, 0.003_616_766_8],
                [0.064_356_67, 0.175_856_1, -0.020_865_602],
            ],
        },
    );
    check(
        "LSTM, backwards",
        &Lstm::new(8).go_backwards(true),
        Some(&some_steps()),
        &Known {
            penalty: 0.736_508_13,
            grads: [
                [0.040_419_09, 0.399_737_67, -0.029_113_14],
                [-0.001_113_375, 0.052_100_347, 0.002_878_236],
                [0.065_048_97, 0.161_926_52, -0.025_666_308],
            ],
        },
    );
}

#[test]
fn the_penalty_of_a_gru_is_tensorflows() {
    check(
        "GRU",
        &Gru::new(8),
        None,
        &Known {
            penalty: 0.376_286_45,
            grads: [
                [0.259_513_93, 0.681_585_99, -0.279_305_67],
                [0.021_951_703, 0.128_371_25, -0.009_461_837],
                [-0.120_227_83, 0.205_670_49, -0.061_192_04],
            ],
        },
    );
    check(
        "GRU, backwards",
        &Gru::new(8).go_backwards(true),
        Some(&some_steps()),
        &Known {
            penalty: 0.397_456_05,
            grads: [
                [0.281_470_79, 0.649_077_8, -0.193_978_18],
                [0.020_095_457, 0.106_601_5, -0.007_266_211],
                [-0.073_642, 0.167_815_87, -0.057_964_04],
            ],
        },
    );
}

#[test]
fn the_penalty_of_a_simple_layer_is_tensorflows() {
    check(
        "SimpleRNN",
        &SimpleRnn::new(8),
        None,
        &Known {
            penalty: 0.389_308_1,
            grads: [
                [-0.006_389_414_6, 0.828_709_6, 0.385_535_57],
                [-0.145_493_1, 0.361_065_82, 0.003_923_633_6],
                [0.169_185_36, 0.452_200_9, 0.068_798_39],
            ],
        },
    );
    check(
        "SimpleRNN, backwards",
        &SimpleRnn::new(8).go_backwards(true),
        Some(&some_steps()),
        &Known {
            penalty: 0.267_451_97,
            grads: [
                [0.074_889_9, 0.728_458_34, 0.280_782_46],
                [-0.113_520_66, 0.196_182_35, 0.007_995_347_5],
                [0.100_011_07, 0.233_230_16, 0.067_181_4],
            ],
        },
    );
}

/// A nonlinear function of an LSTM's inputs: the sum of the squares of all its results.
fn bent(x: &[Tensor; 4], unroll: bool) -> Result<Tensor> {
    let [x, kernel, recurrent, start] = x;
    let options = LstmOptions::new()
        .initial_state([start.clone(), start.tanh()?])
        .return_sequences(true)
        .unroll(unroll);
    let run = lstm(x, kernel, recurrent, None, options)?;
    run.output.square()?.reduce_sum(())?.add(run.state[1].reduce_sum(())?)
}

fn all_near(what: &str, got: &Tensor, want: &Tensor) {
    assert_eq!(got.shape(), want.shape(), "{what}");
    let (got, want) = (got.to_vec::<f32>().unwrap(), want.to_vec::<f32>().unwrap());
    let size = want.iter().fold(1e-3f32, |most, v| most.max(v.abs()));
    for (got, want) in got.iter().zip(&want) {
        assert!((got - want).abs() <= 1e-4 * size, "{what}: {got}, not {want}");
    }
    assert!(want.iter().any(|v| v.abs() > 1e-3), "{what}: nothing to compare");
}

#[test]
fn hessians_and_forward_mode_of_an_lstm_are_those_of_its_cells() {
    let x = [&[2, 2, 2][..], &[2, 16], &[4, 16], &[2, 4]];
    let x = [7, 9, 11, 13].into_iter().zip(x).map(|(step, shape)| numbers(shape, step));
    let x: [Tensor; 4] = x.collect::<Vec<_>>().try_into().unwrap();
    let v = x.each_ref().map(|x| numbers(x.shape(), 3));
    let along = |unroll| hvp(|x: &[Tensor; 4]| bent(x, unroll), &x, &v).unwrap();
    let want = along(true);
    for (i, (got, want)) in along(false).iter().zip(&want).enumerate() {
        all_near(&format!("hvp for input {i}"), got, want);
    }
    let of_start = |unroll| {
        let [x, kernel, recurrent, start] = &x;
        let f = |start: &Tensor| {
            bent(&[x.clone(), kernel.clone(), recurrent.clone(), start.clone()], unroll)
        };
        hessian(f, start).unwrap()
    };
    all_near("the Hessian for the state", &of_start(false), &of_start(true));
    // Forward over reverse is also the Hessian times the vector.
    let accumulator = ForwardAccumulator::new(&x[..], &v[..]).unwrap();
    let grads = gradients_function(|x: &[Tensor; 4]| bent(x, false))(&x).unwrap();
    for (i, (grad, want)) in grads.iter().zip(&want).enumerate() {
        let got = accumulator.jvp(grad).unwrap().unwrap();
        all_near(&format!("forward over reverse for input {i}"), &got, want);
    }
}

/// `sum(w hvp(x, v))` of a layer whose every input is an element of `x`, and its gradient.
fn third_order(what: &str, f: &dyn Fn(&[Tensor; 3]) -> Result<Tensor>, x: &[Tensor; 3]) {
    let v = x.each_ref().map(|x| numbers(x.shape(), 3));
    let along = |x: &[Tensor; 3]| -> Result<Tensor> {
        let products = hvp(f, x, &v)?;
        let mut sum = constant(0.0)?;
        for (i, product) in products.iter().enumerate() {
            let weights = numbers(product.shape(), 5 + 2 * i);
            sum = sum.add(product.multiply(weights)?.reduce_sum(())?)?;
        }
        Ok(sum)
    };
    let grads = gradients_function(along)(x).unwrap();
    let (mut product, mut size) = (0.0, 0.0);
    for (i, grad) in grads.iter().enumerate() {
        let by = direction(grad, i).to_vec::<f32>().unwrap();
        for (g, v) in grad.to_vec::<f32>().unwrap().iter().zip(by) {
            product += f64::from(g * v);
            size += f64::from((g * v).abs());
        }
    }
    let step: f32 = 1.0 / 64.0;
    let at = |by: f32| {
        let mut at = 0;
        let moved = x.each_ref().map(|x| {
            at += 1;
            x + direction(x, at - 1) * (by * step)
        });
        f64::from(along(&moved).unwrap().item::<f32>().unwrap())
    };
    let want = (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * f64::from(step));
    assert!((product - want).abs() < 1e-3 * size, "{what}: {product}, differences {want}, {size}");
    assert!(size > 1e-2, "{what}: nothing to compare");
}

#[test]
fn third_derivatives_of_recurrent_layers_agree_with_differences() {
    let shapes = |gates: usize| [vec![1, 2, gates * 4], vec![4, gates * 4], vec![1, 4]];
    let numbers = |gates: usize| {
        let mut step = 5;
        shapes(gates).map(|shape| {
            step += 2;
            numbers(&shape, step)
        })
    };
    // The input is its own product, so that no kernel precedes the layer.
    let own = |gates: usize| Tensor::eye(gates * 4).unwrap();
    let of_lstm = |[x, recurrent, start]: &[Tensor; 3]| {
        let options = LstmOptions::new().initial_state([start.clone(), start.tanh()?]);
        let run = lstm(x, &own(4), recurrent, None, options)?;
        run.state[0].square()?.reduce_sum(())?.add(run.state[1].reduce_sum(())?)
    };
    third_order("LSTM", &of_lstm, &numbers(4));
    let of_gru = |[x, recurrent, start]: &[Tensor; 3]| {
        let bias = wgrad::stack([&x.reduce_sum([0, 1])?, &x.reduce_mean([0, 1])?], 0)?;
        let options = wgrad::GruOptions::new().initial_state(start.clone());
        let run = wgrad::gru(x, &own(3), recurrent, Some(&bias), options)?;
        run.output.square()?.reduce_sum(())
    };
    third_order("GRU", &of_gru, &numbers(3));
}

#[test]
fn a_long_sequence_has_a_penalty() {
    // More steps than one stream holds ops for; with cells the last gradient is the same.
    let [steps, units] = [300, 4];
    let (x, kernel) = (numbers(&[1, steps, 1], 7), numbers(&[1, units], 9));
    let recurrent = numbers(&[units, units], 11);
    let penalty = |unroll: bool| -> Result<Tensor> {
        let options = wgrad::SimpleRnnOptions::new().return_sequences(true).unroll(unroll);
        let tape = GradientTape::new();
        tape.watch(&recurrent)?;
        let critic = |x: &Tensor| {
            let run = wgrad::simple_rnn(x, &kernel, &recurrent, None, options.clone())?;
            run.output.square()?.reduce_sum(())
        };
        let penalty = gradient_penalty(&critic, &x)?;
        tape.required_gradient(&penalty, &recurrent)
    };
    all_near("the recurrent kernel", &penalty(false).unwrap(), &penalty(true).unwrap());
}

/// The ops without a gradient. TensorFlow 2.21 returns None for each: their results are integers, tests, constants, or
/// piecewise constant.
const NONE: [&str; 52] = [
    "argmax",
    "argmin",
    "argsort",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "ceil",
    "confusion_matrix",
    "count_nonzero",
    "equal",
    "eye_of",
    "floor",
    "floordiv",
    "greater",
    "greater_equal",
    "histogram_fixed_width",
    "histogram_fixed_width_bins",
    "in_top_k",
    "invert",
    "invert_permutation",
    "is_finite",
    "is_inf",
    "is_nan",
    "is_non_decreasing",
    "is_strictly_increasing",
    "left_shift",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "matrix_rank",
    "not_equal",
    "one_hot",
    "population_count",
    "reduce_all",
    "reduce_any",
    "right_shift",
    "rint",
    "round",
    "searchsorted",
    "sequence_mask",
    "signal::hamming_window",
    "signal::hann_window",
    "signal::inverse_stft_window",
    "signal::kaiser_window",
    "signal::linear_to_mel_weight_matrix",
    "signal::vorbis_window",
    "truncatediv",
    "where_indices",
    "zero_fraction",
];

#[test]
fn ops_without_a_gradient_are_those_of_tensorflow() {
    let none = inventory::all().filter(|entry| matches!(entry.gradient, Gradient::None(_)));
    let none: BTreeSet<&str> = none.map(|entry| entry.name).collect();
    assert_eq!(none, BTreeSet::from(NONE), "does TensorFlow give None for it?");
}

/// The gradient of `f` at `x`, and its derivative along ones in forward mode.
fn both_ways(x: &Tensor, f: impl Fn(&Tensor) -> Result<Tensor>) -> [Result<Option<Tensor>>; 2] {
    let tape = GradientTape::new();
    tape.watch(x).unwrap();
    let backward = tape.gradient(f(x).unwrap(), x);
    let accumulator = ForwardAccumulator::new(x, x.ones_like().unwrap()).unwrap();
    let forward = accumulator.jvp(f(x).unwrap());
    [backward, forward]
}

#[test]
fn a_gradient_that_is_missing_is_an_error() {
    let draws = || Generator::from_seed(3);
    let alpha = constant([1.5, 2.5]).unwrap();
    let tall = numbers(&[4, 2], 7);
    let full = |x: &Tensor| qr_with(x, QrOptions::new().full_matrices(true));
    let svd = |x: &Tensor| svd_with(x, SvdOptions::new().full_matrices(true));
    type Function<'a> = &'a dyn Fn(&Tensor) -> Result<Tensor>;
    let refused: [(&str, &Tensor, Function); 5] = [
        // The rest of the sum has a gradient, which would be wrong on its own.
        ("Gamma", &alpha, &|a| draws().gamma([2], a, 1.0)?.add(a.square()?)),
        ("Poisson", &alpha, &|a| draws().poisson([2], a)?.add(a.square()?)),
        ("Gamma", &alpha, &|a| draws().dirichlet([2], a)),
        ("Qr", &tall, &|x| full(x)?.0.square()?.add(1.0)?.reduce_sum(())),
        ("Svd", &tall, &|x| svd(x)?.1.square()?.add(1.0)?.reduce_sum(())),
    ];
    for (name, x, f) in refused {
        for result in both_ways(x, f) {
            let error = result.unwrap_err();
            assert!(matches!(error, Error::Gradient(_)), "{name}: {error}");
            let text = error.to_string();
            let says = text.contains(name) && text.contains("has no gradient here");
            assert!(says && text.contains("stop_gradient()"), "{name}: {text}");
        }
    }
    // Draws that do not depend on it have one, in both directions.
    let [_, forward] = both_ways(&alpha, |a| {
        draws().gamma([2], a, 1.0)?;
        a.square()
    });
    assert_eq!(forward.unwrap().unwrap().to_vec::<f32>().unwrap(), [3.0, 5.0]);
    let stopped = both_ways(&alpha, |a| draws().gamma([2], a.stop_gradient(), 1.0)?.multiply(a));
    assert!(stopped.iter().all(|result| matches!(result, Ok(Some(_)))));
    // The derivative of a gamma draw with respect to the rate is known.
    let [by_rate, _] = both_ways(&alpha, |b| draws().gamma([2], 1.5, b));
    assert!(by_rate.unwrap().is_some());
    // r, the singular values and the first columns are unique.
    let sums = [
        both_ways(&tall, |x| full(x)?.1.square()?.reduce_sum(())),
        both_ways(&tall, |x| svd(x)?.0.square()?.reduce_sum(())),
    ];
    for result in sums.into_iter().flatten() {
        // Both are the sum of the squares of x.
        let got = result.unwrap().unwrap();
        let want = match got.rank() {
            0 => &tall.reduce_sum(()).unwrap() * 2.0,
            _ => &tall * 2.0,
        };
        all_near("the sum of squares", &got, &want);
    }
}

#[test]
fn whole_steps_pass_the_gradient_of_their_place() {
    let x = constant([1.5, -2.0]).unwrap();
    let [backward, forward] = both_ways(&x, |x| x.nextafter(0.0)?.multiply(constant([2.0, 3.0])?));
    assert_eq!(backward.unwrap().unwrap().to_vec::<f32>().unwrap(), [2.0, 3.0]);
    assert_eq!(forward.unwrap().unwrap().to_vec::<f32>().unwrap(), [2.0, 3.0]);
    let [backward, _] = both_ways(&x, |x| constant([4.0, 4.0])?.nextafter(x));
    assert_eq!(backward.unwrap().unwrap().to_vec::<f32>().unwrap(), [0.0, 0.0]);
}

#[test]
fn rules_of_the_caller_depend_on_what_they_hold() -> Result<()> {
    // TensorFlow's own example: the rule captures e^x, which the second derivative depends on.
    let log1pexp = wgrad::custom_gradient(|x: &Tensor| {
        let e = x.exp()?;
        let y = e.add(1.0)?.log()?;
        Ok((y, move |dy: &Tensor| dy.multiply(1.0 - 1.0 / (&e + 1.0))))
    });
    let x = constant([0.0, 0.5])?;
    let second = gradients_function(gradients_function(&log1pexp))(&x)?;
    all_near("the second derivative", &second, &constant([0.25, 0.235_003_72])?);
    let of = |x: &Tensor| log1pexp(x)?.reduce_sum(());
    let diagonal = constant([[0.25, 0.0], [0.0, 0.235_003_72]])?;
    all_near("the Hessian", &hessian(of, &x)?, &diagonal);
    let accumulator = ForwardAccumulator::new(&x, &x.ones_like()?)?;
    let grad = gradients_function(&log1pexp)(&x)?;
    all_near("forward mode", &accumulator.jvp(&grad)?.unwrap(), &second);
    drop(accumulator);

    // The rule captures a variable: d/dw (dy w^2) + d/dw (dy x 2 w).
    let w = Variable::new(&constant(2.0)?);
    let f = {
        let w = w.clone();
        wgrad::custom_gradient_with_variables(move |x: &Tensor| {
            let (x, w) = (x.clone(), w.read());
            let y = x.multiply(w.square()?)?;
            Ok((y, move |dy: &Tensor, _: &[Variable]| {
                let of_w = dy.multiply(&x)?.multiply(&w * 2.0)?.reduce_sum(())?;
                Ok((dy.multiply(w.square()?)?, vec![of_w]))
            }))
        })
    };
    let outer = GradientTape::new();
    let inner = GradientTape::new();
    inner.watch(&x)?;
    let y = f(&x)?;
    let sources =
        [wgrad::TensorOrVariable::Tensor(x.clone()), wgrad::TensorOrVariable::Variable(w.clone())];
    let [dx, dw] = inner.required_gradient(&y, sources)?;
    assert_eq!((dx.to_vec::<f32>()?, dw.item::<f32>()?), (vec![4.0, 4.0], 2.0));
    let sum = dx.reduce_sum(())?.add(&dw)?;
    assert_eq!(outer.required_gradient(&sum, &w)?.item::<f32>()?, 9.0);
    Ok(())
}

/// A layer as a function of a tensor, and its variables.
type Critic = (Vec<Variable>, Box<dyn Fn(&Tensor) -> Result<Tensor>>);

fn critic<L: Layer + 'static>(layer: L, cx: Context<'static>, x: &Tensor) -> Critic {
    layer.call(x, cx).unwrap();
    (layer.trainable_variables(), Box::new(move |x| layer.call(x, cx)))
}

/// The gradient of a layer's penalty along one direction, by the tape and by finite differences.
fn along(what: &str, (variables, f): &Critic, x: &Tensor) -> Result<()> {
    for (i, variable) in variables.iter().enumerate() {
        variable.assign(&numbers(variable.shape(), 7 + 2 * i) + 0.2)?;
    }
    let bent = |x: &Tensor| {
        let y = f(x)?;
        y.square()?.add(y.multiply(numbers(y.shape(), 11))?)?.reduce_sum(())
    };
    let start: Vec<Tensor> = variables.iter().map(|v| v.read()).collect();
    let (mut product, mut size) = (0.0, 0.0);
    let outer = GradientTape::new();
    let penalty = gradient_penalty(&bent, x)?;
    for (i, grad) in outer.required_gradient(&penalty, &variables[..])?.iter().enumerate() {
        for (g, v) in grad.to_vec::<f32>()?.iter().zip(direction(grad, i).to_vec::<f32>()?) {
            product += f64::from(g * v);
            size += f64::from((g * v).abs());
        }
    }
    let step = 1.0 / 256.0;
    let at = |by: f32| -> Result<f64> {
        for (i, (variable, start)) in variables.iter().zip(&start).enumerate() {
            variable.assign(start + direction(start, i) * (by * step))?;
        }
        Ok(f64::from(gradient_penalty(&bent, x)?.item::<f32>()?))
    };
    let near = at(1.0)? - at(-1.0)?;
    let far = at(2.0)? - at(-2.0)?;
    let want = (8.0 * near - far) / (12.0 * f64::from(step));
    let most = 2e-3 * (size + penalty.item::<f32>()?.abs() as f64);
    assert!((product - want).abs() < most, "{what}: {product}, differences {want}, of {size}");
    assert!(size > 1e-3, "{what}: nothing to compare");
    Ok(())
}

/// -1 or 1 for each element.
fn direction(x: &Tensor, step: usize) -> Tensor {
    let sign = |i: usize| if (i * 7 + step) % 5 < 2 { -1.0 } else { 1.0 };
    let values: Vec<f32> = (0..x.len()).map(sign).collect();
    Tensor::from_slice(&values, x.shape()).unwrap()
}

#[test]
fn penalties_of_recurrent_layers_and_attention_agree_with_differences() {
    let x = numbers(&[2, 3, 4], 5);
    let both = critic(Bidirectional::new(Gru::new(4).return_sequences(true)), INFERENCE, &x);
    along("Bidirectional", &both, &x).unwrap();
    along("MultiHeadAttention", &critic(MultiHeadAttention::new(2, 3), INFERENCE, &x), &x).unwrap();
    for (what, mode) in [("Attention", ScoreMode::Dot), ("concat", ScoreMode::Concat)] {
        let layer = Attention::new().use_scale(true).score_mode(mode);
        let call = move |x: &Tensor| layer.call(&[x.clone(), x.tanh()?][..], INFERENCE);
        call(&x).unwrap();
        let dense = critic(Dense::new(3), INFERENCE, &x);
        let all = Box::new(move |x: &Tensor| (dense.1)(&call(x)?));
        along(what, &(dense.0, all), &x).unwrap();
    }
}

#[test]
fn penalties_of_convolutions_and_norms_agree_with_differences() {
    let x = numbers(&[2, 5, 4, 2], 5);
    let layers = [
        ("Conv2D", critic(Conv2D::new(3, [3, 3]).padding(Padding::Same), INFERENCE, &x)),
        ("Conv2DTranspose", critic(Conv2DTranspose::new(2, [2, 2]), INFERENCE, &x)),
        ("DepthwiseConv2D", critic(DepthwiseConv2D::new([2, 2]), INFERENCE, &x)),
        ("SeparableConv2D", critic(SeparableConv2D::new(3, [2, 2]), INFERENCE, &x)),
        ("BatchNormalization", critic(BatchNormalization::new(), TRAINING, &x)),
        ("LayerNormalization", critic(LayerNormalization::new(), INFERENCE, &x)),
        ("GroupNormalization", critic(GroupNormalization::new().groups(2), INFERENCE, &x)),
        ("RMSNormalization", critic(RmsNormalization::new(), INFERENCE, &x)),
    ];
    for (what, critic) in &layers {
        along(what, critic, &x).unwrap();
    }
}
