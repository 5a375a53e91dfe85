//! Properties of every optimizer and each of its options: no growth after warm-up, exact resuming, Keras's semantics.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;

use wgrad as tf;
use wgrad::keras::layers::{Dense, Dropout};
use wgrad::keras::optimizers::schedules::{
    self, CosineDecay, CosineDecayRestarts, ExponentialDecay, InverseTimeDecay,
    PiecewiseConstantDecay, PolynomialDecay, Schedule,
};
use wgrad::keras::optimizers::{
    self, Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax, Ftrl, Lamb, Lion, LossScaleOptimizer,
    Muon, Nadam, Optimizer, RmsProp, Sgd,
};
use wgrad::keras::{INFERENCE, Layer, Sequential, TRAINING};
use wgrad::random::Generator;
use wgrad::train::Checkpoint;
use wgrad::{Device, GradientTape, Tensor, Trackable, Variable, constant};

type Made = Box<dyn Optimizer>;

/// Every optimizer, and every option of one of them.
type Named = (&'static str, fn() -> Made);

fn all() -> Vec<Named> {
    vec![
        ("sgd", || Box::new(Sgd::new(0.01))),
        ("nesterov", || Box::new(Sgd::new(0.01).momentum(0.9).nesterov(true))),
        ("adam", || Box::new(Adam::new(0.01))),
        ("amsgrad", || Box::new(Adam::new(0.01).amsgrad(true))),
        ("adamw", || Box::new(AdamW::new(0.01).exclude_from_weight_decay(["bias"]))),
        ("adamax", || Box::new(Adamax::new(0.01))),
        ("nadam", || Box::new(Nadam::new(0.01))),
        ("adagrad", || Box::new(Adagrad::new(0.01))),
        ("adadelta", || Box::new(Adadelta::new(1.0))),
        ("rmsprop", || Box::new(RmsProp::new(0.01).momentum(0.5).centered(true))),
        ("ftrl", || Box::new(Ftrl::new(0.05).l1_regularization_strength(0.001).beta(0.1))),
        ("lion", || Box::new(Lion::new(0.001))),
        ("lamb", || Box::new(Lamb::new(0.01))),
        ("muon", || Box::new(Muon::new(0.01))),
        ("adafactor", || Box::new(Adafactor::new(0.01))),
        ("schedule", || Box::new(Adam::new(ExponentialDecay::new(0.05, 3, 0.5)))),
        ("clipnorm", || Box::new(Sgd::new(0.01).clipnorm(0.1))),
        ("clipvalue", || Box::new(Sgd::new(0.01).clipvalue(0.01))),
        ("global_clipnorm", || Box::new(Adam::new(0.01).global_clipnorm(0.1))),
        ("ema", || Box::new(Adam::new(0.01).use_ema(true).ema_momentum(0.9))),
        ("ema overwrites", || Box::new(Sgd::new(0.01).use_ema(true).ema_overwrite_frequency(2))),
        ("accumulation", || Box::new(Adam::new(0.01).gradient_accumulation_steps(2))),
        ("loss_scale_factor", || Box::new(Adam::new(0.01).loss_scale_factor(1024.0))),
        ("loss scale", || Box::new(LossScaleOptimizer::new(Adam::new(0.01)))),
        ("all at once", || {
            let adam = Adam::new(CosineDecay::new(0.0, 100).warmup_target(0.01).warmup_steps(5));
            let adam = adam.weight_decay(0.01).global_clipnorm(1.0).use_ema(true);
            Box::new(LossScaleOptimizer::new(adam.gradient_accumulation_steps(2)))
        }),
    ]
}

/// A model whose numbers do not depend on other tests' random draws.
fn model() -> tf::Result<Sequential> {
    let model =
        Sequential::new().add(Dense::new(9)).add(Dropout::new(0.2).seed(3)).add(Dense::new(3));
    model.build([1, 5])?;
    let generator = Generator::from_seed(4);
    for variable in model.variables() {
        variable.assign(&generator.normal(variable.shape())?.multiply(0.3)?)?;
    }
    Ok(model)
}

fn step(model: &Sequential, optimizer: &dyn Optimizer, number: u64) -> tf::Result<()> {
    let x = Generator::from_seed(100 + number).normal([8, 5])?;
    let tape = GradientTape::new();
    let loss = model.call(&x, TRAINING)?.subtract(1.0)?.square()?.reduce_mean(())?;
    optimizer.minimize(&loss, tape, model)
}

/// The bits of all weights and slots, in order.
fn bits(model: &Sequential, optimizer: &Made) -> tf::Result<Vec<(String, Vec<u32>)>> {
    let bits = |(name, v): (String, Variable)| {
        let values = v.read().cast(tf::DType::F32)?.to_vec::<f32>()?;
        Ok((name, values.into_iter().map(f32::to_bits).collect()))
    };
    (model, optimizer).named_variables().into_iter().map(bits).collect()
}

#[test]
fn every_optimizer_settles_and_lets_the_loss_fall() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        for (name, make) in all() {
            let (model, optimizer) = (model()?, make());
            let loss = || {
                let y = model.call(&Generator::from_seed(7).normal([64, 5])?, INFERENCE)?;
                y.subtract(1.0)?.square()?.reduce_mean(())?.item::<f32>()
            };
            optimizer.build(&model)?;
            let before = loss()?;
            let stats = |_| device.stats();
            let steps = (0..12).map(|number| step(&model, &*optimizer, number).map(stats));
            let steps = steps.collect::<tf::Result<Vec<_>>>()?;
            // If every second step is different, the third of each kind has run by then.
            let several = ["ema overwrites", "accumulation", "all at once"].contains(&name);
            let (early, late) = (&steps[if several { 5 } else { 1 }], &steps[11]);
            assert_eq!(late.plan_misses, early.plan_misses, "{name} plans");
            assert_eq!(late.pipelines, early.pipelines, "{name} compiles");
            assert_eq!(late.buffers, early.buffers, "{name} allocates");
            assert_eq!(late.reads, steps[0].reads, "{name} reads");
            let after = loss()?;
            assert!(after < before, "{name}: {before} became {after}");
        }
        Ok(())
    })
}

#[test]
fn every_optimizer_goes_on_from_a_checkpoint_bit_for_bit() -> tf::Result<()> {
    let device = Device::new()?;
    for (name, make) in all() {
        let path = std::env::temp_dir().join(format!(
            "wgrad-optimizers-{}-{}",
            name.replace(' ', "-"),
            std::process::id()
        ));
        let run = |resumes: bool| {
            device.scope(|| {
                let (mut model, mut optimizer) = (model()?, make());
                for number in 0..8 {
                    // Also in the middle of an accumulation.
                    if number == 3 {
                        Checkpoint::new()
                            .with("model", &model)
                            .with("optimizer", &optimizer)
                            .write(&path)?;
                        if resumes {
                            model = self::model()?;
                            optimizer = make();
                            let checkpoint = Checkpoint::new().with("model", &model);
                            checkpoint
                                .with("optimizer", &optimizer)
                                .read(&path)?
                                .assert_consumed()?;
                        }
                    }
                    step(&model, &*optimizer, number)?;
                }
                bits(&model, &optimizer)
            })
        };
        let (resumed, whole) = (run(true)?, run(false)?);
        assert_eq!(resumed.len(), whole.len(), "{name}");
        for (resumed, whole) in resumed.iter().zip(&whole) {
            assert_eq!(resumed.0, whole.0, "{name}");
            assert!(resumed.1 == whole.1, "{name}: {}", whole.0);
        }
        for ending in [".index", ".data-00000-of-00001"] {
            std::fs::remove_file(format!("{}{ending}", path.display())).unwrap();
        }
    }
    Ok(())
}

#[test]
fn pointers_to_optimizers_are_optimizers() -> tf::Result<()> {
    let w = Variable::new(constant(4.0)?);
    let g = [Some(constant(1.0)?)];
    let sgd = Sgd::new(1.0);
    let borrowed: &dyn Optimizer = &sgd;
    (&borrowed).apply_gradients(&g, &w)?;
    let boxed: Box<dyn Optimizer> = Box::new(Sgd::new(1.0));
    boxed.apply_gradients(&g, &w)?;
    let shared: Arc<dyn Optimizer> = Arc::new(Sgd::new(1.0));
    shared.clone().apply_gradients(&g, &w)?;
    assert_eq!((w.read().item::<f32>()?, sgd.iterations(), shared.iterations()), (1.0, 1, 1));
    let tape = GradientTape::new();
    let loss = &w * 1.0;
    optimizers::get("SGD")?.minimize(&loss, tape, &w)?;
    assert_eq!(w.read().item::<f32>()?, 0.99);
    Ok(())
}

/// `w` after steps with these gradients.
fn path(optimizer: &dyn Optimizer, start: f32, grads: &[f32]) -> tf::Result<Vec<f32>> {
    let w = Variable::new(constant(start)?);
    let step = |g: &f32| {
        optimizer.apply_gradients(&[Some(constant(*g)?)], &w)?;
        w.read().item::<f32>()
    };
    grads.iter().map(step).collect()
}

#[test]
fn gradients_are_added_up_and_schedules_go_by_gradients() -> tf::Result<()> {
    // The means are (1 + 3) / 2 and (5 + 7) / 2; the rates 1 / 2 and 1 / 4.
    let sgd = Sgd::new(|step: u64| 1.0 / (step as f64 + 1.0)).gradient_accumulation_steps(2);
    assert_eq!(path(&sgd, 0.0, &[1.0, 3.0, 5.0, 7.0])?, [0.0, -1.0, -1.0, -2.5]);
    assert_eq!(sgd.iterations(), 2);
    sgd.set_iterations(5);
    assert_eq!((sgd.iterations(), sgd.learning_rate()), (5, 1.0 / 11.0));
    // The mean is clipped, not each part: (3 + 1) / 2 is 2, and the limit is 1.
    let sgd = Sgd::new(1.0).clipvalue(1.0).gradient_accumulation_steps(2);
    assert_eq!(path(&sgd, 0.0, &[3.0, 1.0])?, [0.0, -1.0]);
    Ok(())
}

#[test]
fn averages_follow_the_weights_and_become_them() -> tf::Result<()> {
    let sgd = Sgd::new(1.0).use_ema(true).ema_momentum(0.5);
    let w = Variable::new(constant(0.0)?);
    for _ in 0..3 {
        sgd.apply_gradients(&[Some(constant(-1.0)?)], &w)?;
    }
    // The weights were 1, 2, 3; the averages 1, 1.5, 2.25.
    assert_eq!(w.read().item::<f32>()?, 3.0);
    sgd.finalize_variable_values(&w)?;
    assert_eq!(w.read().item::<f32>()?, 2.25);
    // With the average as the weight after every second step: 1 (1), 2 -> 1.5, 2.5 (2), 3.5 -> 2.75.
    let sgd = Sgd::new(1.0).use_ema(true).ema_momentum(0.5).ema_overwrite_frequency(2);
    assert_eq!(path(&sgd, 0.0, &[-1.0; 4])?, [1.0, 1.5, 2.5, 2.75]);
    // Without the option nothing happens.
    Sgd::new(1.0).finalize_variable_values(&w)?;
    assert_eq!(w.read().item::<f32>()?, 2.25);
    Ok(())
}

#[test]
fn weights_decay_unless_they_are_excluded() -> tf::Result<()> {
    let layer = Dense::new(1);
    layer.call(&Tensor::ones([1, 1])?, TRAINING)?;
    let ones = [Tensor::ones([1, 1])?, Tensor::ones([1])?];
    let zeros = [Some(Tensor::zeros([1, 1])?), Some(Tensor::zeros([1])?)];
    let after = |optimizer: &dyn Optimizer| -> tf::Result<Vec<f32>> {
        for (variable, one) in layer.variables().iter().zip(&ones) {
            variable.assign(one)?;
        }
        optimizer.apply_gradients(&zeros, &layer)?;
        layer.variables().iter().map(|v| v.read().reduce_sum(())?.item::<f32>()).collect()
    };
    let sgd = || Sgd::new(0.5).weight_decay(0.5);
    assert_eq!(after(&sgd())?, [0.75, 0.75]);
    assert_eq!(after(&sgd().exclude_from_weight_decay(["bias", "gamma"]))?, [0.75, 1.0]);
    let kernel = layer.variables()[..1].to_vec();
    assert_eq!(after(&sgd().exclude_variables_from_weight_decay(&kernel))?, [1.0, 0.75]);
    Ok(())
}

#[test]
fn the_scale_of_the_loss_goes_its_way() -> tf::Result<()> {
    let new = || LossScaleOptimizer::new(Sgd::new(1.0)).initial_scale(8.0).dynamic_growth_steps(2);
    let optimizer = new();
    let w = Variable::new(constant(0.0)?);
    let (mut scales, mut weights) = (Vec::new(), Vec::new());
    for g in [8.0, 8.0, 16.0, f32::NAN, 8.0, f32::NEG_INFINITY, 4.0, 4.0] {
        optimizer.apply_gradients(&[Some(constant(g)?)], &w)?;
        scales.push(optimizer.dynamic_scale()?.item::<f32>()?);
        weights.push(w.read().item::<f32>()?);
    }
    // Two good steps double the scale; a bad one halves it and restarts the count.
    assert_eq!(scales, [8.0, 16.0, 16.0, 8.0, 8.0, 4.0, 4.0, 8.0]);
    assert_eq!(weights, [-1.0, -2.0, -3.0, -3.0, -4.0, -4.0, -5.0, -6.0]);
    // Slots stay unchanged, too.
    let adam = LossScaleOptimizer::new(Adam::new(0.1));
    let v = Variable::new(constant([1.0, 1.0])?);
    adam.apply_gradients(&[Some(constant([1.0, 2.0])?)], &v)?;
    let before = adam.state_bits(&v)?;
    adam.apply_gradients(&[Some(constant([f32::INFINITY, 2.0])?)], &v)?;
    assert_eq!(adam.state_bits(&v)?, before);
    Ok(())
}

trait StateBits {
    fn state_bits(&self, w: &Variable) -> tf::Result<Vec<f32>>;
}

impl<O: Optimizer> StateBits for LossScaleOptimizer<O> {
    fn state_bits(&self, w: &Variable) -> tf::Result<Vec<f32>> {
        let slots = self.named_variables();
        let slots = slots.iter().filter(|(name, _)| name.ends_with("/0")).map(|(_, v)| v);
        let values = std::iter::once(w).chain(slots).map(|v| v.read().to_vec::<f32>());
        Ok(values.collect::<tf::Result<Vec<_>>>()?.concat())
    }
}

#[test]
fn a_loss_is_scaled_once_whoever_scales_it() -> tf::Result<()> {
    let makes: [fn() -> Made; 2] = [
        || Box::new(Sgd::new(0.25).loss_scale_factor(64.0)),
        || Box::new(LossScaleOptimizer::new(Sgd::new(0.25))),
    ];
    for make in makes {
        for ways in 0..3 {
            let (optimizer, w) = (make(), Variable::new(constant(1.0)?));
            let tape = GradientTape::new();
            let mut loss = &w * &w;
            if ways > 0 {
                loss = optimizer.scale_loss(&loss)?;
                assert!(loss.item::<f32>()? >= 64.0);
            }
            match ways {
                2 => {
                    let grad = tape.gradient(&loss, &w)?;
                    optimizer.apply_gradients(&[grad], &w)?;
                }
                _ => optimizer.minimize(&loss, tape, &w)?,
            }
            assert_eq!(w.read().item::<f32>()?, 0.5, "{ways}");
        }
    }
    Ok(())
}

#[test]
fn a_constraint_comes_after_the_step_and_the_average() -> tf::Result<()> {
    let w = Variable::with_constraint(constant([1.0, 1.0])?, |w| w.maximum(0.5));
    let sgd = Sgd::new(1.0).use_ema(true).ema_momentum(0.5);
    sgd.apply_gradients(&[Some(constant([1.0, 0.25])?)], &w)?;
    assert_eq!(w.read().to_vec::<f32>()?, [0.5, 0.75]);
    assert_eq!(sgd.variables()[0].read().to_vec::<f32>()?, [0.0, 0.75]);
    // An assigned value stays unchanged.
    w.assign(&constant([-1.0, -1.0])?)?;
    assert_eq!(w.read().to_vec::<f32>()?, [-1.0, -1.0]);
    Ok(())
}

#[test]
fn a_step_that_fails_leaves_options_slots_as_they_were() -> tf::Result<()> {
    let w = Variable::with_constraint(constant([1.0, 1.0])?, |w| w.reshape([2, 1]));
    let adam = Adam::new(0.1).use_ema(true).weight_decay(0.1);
    assert!(adam.apply_gradients(&[Some(constant([1.0, 1.0])?)], &w).is_err());
    assert_eq!((adam.iterations(), adam.variables().len()), (0, 0));
    assert_eq!(w.read().to_vec::<f32>()?, [1.0, 1.0]);
    Ok(())
}

#[test]
fn f16_weights_and_gradients_of_another_dtype() -> tf::Result<()> {
    let Ok(start) = Tensor::ones([4, 3])?.cast(tf::DType::F16) else {
        println!("the adapter has no f16: not run");
        return Ok(());
    };
    for (name, make) in all() {
        if name == "adamw" {
            continue; // A list of variables has no names.
        }
        let w = Variable::new(&start);
        let g = Tensor::full([4, 3], 0.25)?;
        make().apply_gradients(&[Some(g)], &w).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(w.read().to_vec::<tf::f16>()?.iter().all(|w| w.is_finite()), "{name}");
    }
    Ok(())
}

/// Keras's numbers beyond the golden cases, which have ten steps.
#[test]
fn schedules_hold_at_their_ends() {
    let last = CosineDecay::new(0.1, 200).at(u64::MAX);
    assert!(last.abs() < 1e-17, "{last}");
    assert_eq!(ExponentialDecay::new(0.1, 1, 0.5).at(u64::MAX), 0.0);
}

#[test]
fn schedules_come_back_from_their_configs() -> tf::Result<()> {
    let all: Vec<Box<dyn Schedule>> = vec![
        Box::new(ExponentialDecay::new(0.1, 7, 0.9).staircase(true)),
        Box::new(InverseTimeDecay::new(0.1, 7, 0.9).staircase(true)),
        Box::new(PiecewiseConstantDecay::new([3, 9], [0.3, 0.2, 0.1])),
        Box::new(PolynomialDecay::new(0.1, 7).end_learning_rate(0.02).power(2.0).cycle(true)),
        Box::new(CosineDecay::new(0.0, 7).alpha(0.1).warmup_target(0.2).warmup_steps(4)),
        Box::new(CosineDecayRestarts::new(0.1, 3).t_mul(1.5).m_mul(0.5).alpha(0.2)),
    ];
    for schedule in all {
        let config = schedule.get_config()?;
        let again = schedules::from_config(&config)?;
        assert_eq!(again.get_config()?, config);
        for step in 0..40 {
            assert_eq!(again.at(step), schedule.at(step), "{} at {step}", config.class());
        }
    }
    Ok(())
}

/// Combined options after eight steps: `sum (i + 1) w[i]` of each variable in Keras 3.15. The variable `k` starts at `sin(i +
/// 10 k)`, its gradient at step `s` is `2 cos(i + 100 k + 7 s)`.
#[test]
fn options_together_do_what_keras_s_do() -> tf::Result<()> {
    let all = |adam: Adam| adam.amsgrad(true).weight_decay(0.02).global_clipnorm(2.0).use_ema(true);
    let sgd = Sgd::new(0.1).momentum(0.9).nesterov(true).weight_decay(0.05).clipnorm(1.0);
    let sgd = sgd.use_ema(true).ema_momentum(0.8).ema_overwrite_frequency(3);
    let ftrl = Ftrl::new(0.3).learning_rate_power(-0.3).l1_regularization_strength(0.5).beta(0.3);
    let ftrl = ftrl.l2_regularization_strength(0.2).l2_shrinkage_regularization_strength(0.1);
    let rmsprop = RmsProp::new(0.1).rho(0.5).momentum(0.5).centered(true).epsilon(1e-2);
    let ema = Adadelta::new(1.0).rho(0.5).epsilon(1e-2).use_ema(true).ema_momentum(0.5);
    let decay = PolynomialDecay::new(0.1, 5).end_learning_rate(0.01).power(2.0);
    let adafactor = Adafactor::new(0.05).clip_threshold(0.7).beta_2_decay(-0.5).epsilon_2(0.5);
    let cases: Vec<(Made, [f32; 3])> = vec![
        (Box::new(sgd.gradient_accumulation_steps(2)), [6.9848, 4.19199, -22.1918]),
        (
            Box::new(all(Adam::new(decay)).gradient_accumulation_steps(3)),
            [7.13545, 4.13851, -21.27701],
        ),
        (Box::new(adafactor.weight_decay(0.01)), [7.94719, 4.17569, -23.0804]),
        (Box::new(Adafactor::new(5.0).relative_step(false)), [51.57899, -10.47019, 0.76555]),
        (Box::new(ftrl.clipvalue(1.0)), [1.93913, 0.49949, -3.34848]),
        (Box::new(Lamb::new(0.1).weight_decay(0.1).epsilon(1e-3)), [9.93301, 1.31574, -13.45104]),
        (
            Box::new(
                Nadam::new(0.1).beta_1(0.8).gradient_accumulation_steps(2).loss_scale_factor(4.0),
            ),
            [8.78376, 3.49456, -24.42158],
        ),
        (
            Box::new(Lion::new(0.1).beta_1(0.95).beta_2(0.9).weight_decay(0.3)),
            [8.82151, 1.30492, -7.21192],
        ),
        (Box::new(ema.ema_overwrite_frequency(1)), [8.11058, 4.11426, -21.87062]),
        (
            Box::new(Adamax::new(0.1).beta_1(0.5).beta_2(0.6).epsilon(0.1).clipnorm(0.3)),
            [7.9743, 3.69229, -21.32453],
        ),
        (Box::new(rmsprop.weight_decay(0.1)), [12.33317, -1.46995, -0.97132]),
        (
            Box::new(
                LossScaleOptimizer::new(Sgd::new(0.1).momentum(0.5))
                    .initial_scale(8.0)
                    .dynamic_growth_steps(2),
            ),
            [7.27833, 3.99711, -20.99913],
        ),
        (
            Box::new(
                Adagrad::new(0.5).initial_accumulator_value(0.0).epsilon(0.1).weight_decay(0.01),
            ),
            [8.34047, 1.27163, -8.41577],
        ),
    ];
    let shapes: [&[usize]; 3] = [&[5, 3], &[7], &[2, 3, 4]];
    let formula = |shape: &[usize], from: usize, f: fn(f64) -> f64| {
        let size: usize = shape.iter().product();
        let values: Vec<f32> = (from..from + size).map(|i| f(i as f64) as f32).collect();
        Tensor::from_slice(&values, shape)
    };
    for (number, (optimizer, want)) in cases.into_iter().enumerate() {
        let variables = shapes.iter().enumerate();
        let variables =
            variables.map(|(k, shape)| Ok(Variable::new(formula(shape, 10 * k, f64::sin)?)));
        let variables = variables.collect::<tf::Result<Vec<_>>>()?;
        for s in 0..8 {
            let grads = shapes.iter().enumerate();
            let grads = grads.map(|(k, shape)| {
                formula(shape, 100 * k + 7 * s, |i| 2.0 * f64::from(i.cos() as f32)).map(Some)
            });
            optimizer.apply_gradients(&grads.collect::<tf::Result<Vec<_>>>()?, &variables)?;
        }
        for (k, (variable, want)) in variables.iter().zip(want).enumerate() {
            let values = variable.read().to_vec::<f32>()?;
            let sum: f32 = values.iter().enumerate().map(|(i, w)| (i + 1) as f32 * w).sum();
            // Signs of sums near 0 and the order of additions: a few units in the fourth decimal place.
            assert!((sum - want).abs() < 1e-3, "case {number}, variable {k}: {sum}, not {want}");
        }
    }
    Ok(())
}

/// Muon after eight steps, as `options_together_do_what_keras_s_do`; the first and the last variable are matrices.
#[test]
fn muon_does_what_keras_s_does() -> tf::Result<()> {
    let plain = Muon::new(0.1).nesterov(false).rms_rate(None).momentum(0.8).adam_lr_ratio(0.3);
    let tuned = Muon::new(0.05).muon_a(3.0).muon_b(-3.2).muon_c(1.2).epsilon(1e-2);
    let cases = [
        (Muon::new(0.1), [7.199268, 2.44318, -11.180986, -13.718002]),
        (
            plain.weight_decay(0.1).adam_weight_decay(0.02),
            [6.352835, 3.727087, -19.305727, -13.698154],
        ),
        (tuned.adam_beta_1(0.8).adam_beta_2(0.9), [7.311652, 3.472081, -18.226213, -13.461843]),
    ];
    let shapes: [&[usize]; 4] = [&[5, 3], &[7], &[2, 3, 4], &[3, 5]];
    let formula = |shape: &[usize], from: usize, f: fn(f64) -> f64| {
        let size: usize = shape.iter().product();
        let values: Vec<f32> = (from..from + size).map(|i| f(i as f64) as f32).collect();
        Tensor::from_slice(&values, shape)
    };
    for (number, (muon, want)) in cases.into_iter().enumerate() {
        let variables = shapes.iter().enumerate();
        let variables =
            variables.map(|(k, shape)| Ok(Variable::new(formula(shape, 10 * k, f64::sin)?)));
        let variables = variables.collect::<tf::Result<Vec<_>>>()?;
        for s in 0..8 {
            let grads = shapes.iter().enumerate();
            let grads = grads.map(|(k, shape)| {
                formula(shape, 100 * k + 7 * s, |i| 2.0 * f64::from(i.cos() as f32)).map(Some)
            });
            muon.apply_gradients(&grads.collect::<tf::Result<Vec<_>>>()?, &variables)?;
        }
        for (k, (variable, want)) in variables.iter().zip(want).enumerate() {
            let values = variable.read().to_vec::<f32>()?;
            let sum: f32 = values.iter().enumerate().map(|(i, w)| (i + 1) as f32 * w).sum();
            // The iteration multiplies rounding errors by up to 3.4 each time.
            assert!((sum - want).abs() < 2e-3, "case {number}, variable {k}: {sum}, not {want}");
        }
    }
    Ok(())
}

#[test]
fn muon_knows_variables_by_their_names() -> tf::Result<()> {
    let slots = |muon: Muon| -> tf::Result<Vec<String>> {
        let model =
            Sequential::new().add_named("body", Dense::new(2)).add_named("head", Dense::new(2));
        model.call(&Tensor::zeros([1, 3])?, TRAINING)?;
        muon.build(&model)?;
        Ok(muon.named_variables().into_iter().map(|(name, _)| name).collect())
    };
    // The kernels are variables 0 and 2. A velocity shows AdamW.
    let has = |names: &[String], name: &str| names.iter().any(|known| known == name);
    let names = slots(Muon::new(0.1))?;
    assert!(
        !has(&names, "velocity/0") && has(&names, "velocity/1") && !has(&names, "velocity/2"),
        "{names:?}"
    );
    let names = slots(Muon::new(0.1).exclude_layers(["head"]))?;
    assert!(
        !has(&names, "velocity/0") && has(&names, "velocity/2") && has(&names, "momentum/2"),
        "{names:?}"
    );
    // A matrix without a name cannot be excluded by one.
    let w = Variable::new(constant([[1.0]])?);
    let error = Muon::new(0.1).exclude_layers(["head"]).build(&w).unwrap_err().to_string();
    assert!(error.contains("exclude_layers uses names, [head]"), "{error}");
    Ok(())
}

/// A program that imports no trait can set the options of every optimizer.
mod without_the_trait {
    use wgrad::keras::optimizers as o;

    macro_rules! set_all {
        ($($optimizer:expr),* $(,)?) => {
            [$(Box::new(
                $optimizer
                    .with_name("mine")
                    .weight_decay(0.1)
                    .exclude_variables_from_weight_decay(&Vec::<wgrad::Variable>::new())
                    .clipnorm(1.0)
                    .use_ema(true)
                    .ema_momentum(0.5)
                    .ema_overwrite_frequency(3)
                    .gradient_accumulation_steps(2),
            ) as Box<dyn o::Optimizer>),*]
        };
    }

    pub fn all() -> [Box<dyn o::Optimizer>; 14] {
        set_all![
            o::Adadelta::new(0.1),
            o::Adafactor::new(0.1),
            o::Adagrad::new(0.1),
            o::Adam::new(0.1),
            o::AdamW::new(0.1),
            o::Adamax::new(0.1),
            o::Ftrl::new(0.1),
            o::Lamb::new(0.1),
            o::Lion::new(0.1),
            o::LossScaleOptimizer::new(o::Sgd::new(0.1)),
            o::Muon::new(0.1).adam_weight_decay(0.1),
            o::Nadam::new(0.1),
            o::RmsProp::new(0.1),
            o::Sgd::new(0.1),
        ]
    }

    pub fn clipped() -> [o::Adam; 3] {
        [
            o::Adam::new(0.1).clipvalue(0.5).exclude_from_weight_decay([""; 0]),
            o::Adam::new(0.1).global_clipnorm(0.5),
            o::Adam::new(0.1).loss_scale_factor(8.0),
        ]
    }
}

#[test]
fn options_need_no_trait() {
    for optimizer in without_the_trait::all() {
        assert_eq!(optimizer.name(), "mine");
        let w = Variable::new(constant([1.0, 2.0]).unwrap());
        for _ in 0..2 {
            optimizer.apply_gradients(&[Some(constant([0.0, 0.0]).unwrap())], &w).unwrap();
        }
        // Gradients of 0: only the decay changes the weights, in the second call, which completes an accumulation of two.
        let got = w.read().to_vec::<f32>().unwrap();
        // Ftrl computes weights from its sums only, which are 0.
        assert!(got[0] < 1.0 && got[1] < 2.0 && (got[0] > 0.9 || got == [0.0, 0.0]), "{got:?}");
        assert_eq!(optimizer.iterations(), 1);
    }
    for optimizer in without_the_trait::clipped() {
        let w = Variable::new(constant(1.0).unwrap());
        optimizer.apply_gradients(&[Some(constant(3.0).unwrap())], &w).unwrap();
        assert!(w.read().item::<f32>().unwrap() < 1.0);
    }
}
