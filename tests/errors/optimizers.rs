//! Errors of optimizers and schedules, which leave the variables unchanged.

use wgrad::keras::layers::Dense;
use wgrad::keras::optimizers::schedules::{
    self, CosineDecay, CosineDecayRestarts, ExponentialDecay, InverseTimeDecay,
    PiecewiseConstantDecay, PolynomialDecay, Schedule,
};
use wgrad::keras::optimizers::{
    self, Adadelta, Adafactor, Adagrad, Adam, AdamW, Adamax, Ftrl, Lamb, Lion, LossScaleOptimizer,
    Muon, Nadam, Optimizer, OptimizerState, RmsProp, Sgd, Step,
};
use wgrad::keras::{Config, INFERENCE, Layer};
use wgrad::{Trackable, Variable};

use super::*;

/// The error of a step; it must change nothing.
#[track_caller]
fn refused(optimizer: &dyn Optimizer) -> String {
    let w = Variable::new(floats([1.0, 2.0]));
    let text = text(optimizer.apply_gradients(&[Some(floats([0.5, 0.5]))], &w));
    assert_eq!(w.read().to_vec::<f32>().unwrap(), [1.0, 2.0]);
    assert_eq!(optimizer.iterations(), 0);
    text
}

#[test]
fn options_out_of_range_are_refused_at_the_step() {
    let nan = f64::NAN;
    let cases: Vec<(Box<dyn Optimizer>, &str)> = vec![
        (Box::new(Sgd::new(0.1).momentum(-0.1)), "sgd: momentum is -0.1; it must be from 0 to 1."),
        (Box::new(Sgd::new(0.1).momentum(nan)), "sgd: momentum is NaN; it must be from 0 to 1."),
        (
            Box::new(Adam::new(0.1).beta_1(1.0)),
            "adam: beta_1 is 1; it must be at least 0 and below 1.",
        ),
        (
            Box::new(Adam::new(0.1).beta_2(-1.0)),
            "adam: beta_2 is -1; it must be at least 0 and below 1.",
        ),
        (
            Box::new(Adam::new(0.1).epsilon(-1e-7)),
            "adam: epsilon is -0.0000001; it must be a number, at least 0.",
        ),
        (
            Box::new(AdamW::new(0.1).weight_decay(-1.0)),
            "adamw: weight_decay is -1; it must be a number, at least 0.",
        ),
        (
            Box::new(Adamax::new(0.1).beta_1(2.0)),
            "adamax: beta_1 is 2; it must be at least 0 and below 1.",
        ),
        (
            Box::new(Nadam::new(0.1).beta_2(1.0)),
            "nadam: beta_2 is 1; it must be at least 0 and below 1.",
        ),
        (
            Box::new(Adagrad::new(0.1).initial_accumulator_value(-1.0)),
            "adagrad: initial_accumulator_value is -1; it must be a number, at least 0.",
        ),
        (
            Box::new(Adadelta::new(0.1).rho(1.5)),
            "adadelta: rho is 1.5; it must be at least 0 and below 1.",
        ),
        (
            Box::new(RmsProp::new(0.1).rho(1.0)),
            "rmsprop: rho is 1; it must be at least 0 and below 1.",
        ),
        (
            Box::new(Ftrl::new(0.1).learning_rate_power(0.5)),
            "ftrl: learning_rate_power is 0.5; it must be a number, at most 0.",
        ),
        (
            Box::new(Ftrl::new(0.0)),
            "ftrl: the learning rate is 0; this optimizer divides by it. Give it one above 0.",
        ),
        (
            Box::new(Lion::new(0.1).beta_1(0.0)),
            "lion: beta_1 is 0; it must be above 0 and at most 1.",
        ),
        (
            Box::new(Lamb::new(0.1).beta_2(7.0)),
            "lamb: beta_2 is 7; it must be at least 0 and below 1.",
        ),
        (
            Box::new(Muon::new(0.1).adam_beta_1(1.0)),
            "muon: adam_beta_1 is 1; it must be at least 0 and below 1.",
        ),
        (
            Box::new(Adafactor::new(0.1).clip_threshold(0.0)),
            "adafactor: clip_threshold is 0; it must be a number above 0.",
        ),
        (Box::new(Sgd::new(0.1).clipnorm(0.0)), "sgd: clipnorm is 0; it must be a number above 0."),
        (
            Box::new(Sgd::new(0.1).clipvalue(f64::INFINITY)),
            "sgd: clipvalue is inf; it must be a number above 0.",
        ),
        (
            Box::new(Sgd::new(0.1).clipnorm(1.0).global_clipnorm(1.0)),
            "sgd: clipnorm and global_clipnorm are both set; set only one of them.",
        ),
        (
            Box::new(Sgd::new(0.1).use_ema(true).ema_momentum(1.1)),
            "sgd: ema_momentum is 1.1; it must be from 0 to 1.",
        ),
        (
            Box::new(Sgd::new(0.1).ema_overwrite_frequency(0)),
            "sgd: ema_overwrite_frequency is 0; it must be a number above 0.",
        ),
        (
            Box::new(Sgd::new(0.1).loss_scale_factor(0.0)),
            "sgd: loss_scale_factor is 0; it must be a number above 0.",
        ),
        (
            Box::new(Sgd::new(0.1).gradient_accumulation_steps(1)),
            "sgd: gradient_accumulation_steps is 1; it must be at least 2.",
        ),
        (
            Box::new(LossScaleOptimizer::new(Sgd::new(0.1)).initial_scale(-2.0)),
            "sgd: initial_scale is -2; it must be a number above 0.",
        ),
        (
            Box::new(LossScaleOptimizer::new(Sgd::new(0.1)).dynamic_growth_steps(0)),
            "sgd: dynamic_growth_steps is 0; it must be a number above 0.",
        ),
        (
            Box::new(Sgd::new(0.1).with_name("head").momentum(2.0)),
            "head: momentum is 2; it must be from 0 to 1.",
        ),
    ];
    for (optimizer, words) in cases {
        assert_eq!(refused(&*optimizer), words);
    }
    // The first of several errors is reported; setting a clipping twice is not a contradiction.
    let sgd = Sgd::new(0.1).momentum(2.0).clipnorm(-1.0);
    assert!(refused(&sgd).starts_with("sgd: momentum is 2"));
    let w = Variable::new(floats([1.0]));
    Sgd::new(0.1).clipnorm(2.0).clipnorm(1.0).apply_gradients(&[Some(floats([1.0]))], &w).unwrap();
}

#[test]
fn learning_rates_are_numbers_that_are_not_negative() {
    let words = |rate: &str| {
        format!(
            "sgd: the learning rate after 0 steps is {rate}; it must be a number, at least 0. Set another, or fix \
             the schedule."
        )
    };
    assert_eq!(refused(&Sgd::new(-0.5)), words("-0.5"));
    assert_eq!(refused(&Sgd::new(f32::NAN)), words("NaN"));
    assert_eq!(refused(&Sgd::new(|_: u64| f64::INFINITY)), words("inf"));
    let sgd = Sgd::new(0.1);
    sgd.set_learning_rate(-2.0).unwrap();
    assert_eq!(refused(&sgd), words("-2"));
    // It continues with another value.
    sgd.set_learning_rate(0.0).unwrap();
    let w = Variable::new(floats([1.0]));
    sgd.apply_gradients(&[Some(floats([1.0]))], &w).unwrap();

    assert_eq!(
        text(Adam::new(ExponentialDecay::new(0.1, 10, 0.5)).set_learning_rate(0.25)),
        "adam: the learning rate follows a schedule, so it cannot be set to 0.25. Make the optimizer with a number, or \
         let the schedule give that rate."
    );
}

#[test]
fn schedules_say_what_is_wrong_with_them() {
    let cases: Vec<(Sgd, &str)> = vec![
        (
            Sgd::new(ExponentialDecay::new(0.1, 0, 0.5)),
            "ExponentialDecay: decay_steps is 0; it must be at least 1.",
        ),
        (
            Sgd::new(InverseTimeDecay::new(0.1, 0, 0.5)),
            "InverseTimeDecay: decay_steps is 0; it must be at least 1.",
        ),
        (
            Sgd::new(PolynomialDecay::new(0.1, 0)),
            "PolynomialDecay: decay_steps is 0; it must be at least 1.",
        ),
        (
            Sgd::new(CosineDecay::new(0.1, 0)),
            "CosineDecay: decay_steps is 0; it must be at least 1.",
        ),
        (
            Sgd::new(CosineDecayRestarts::new(0.1, 0)),
            "CosineDecayRestarts: first_decay_steps is 0; it must be at least 1.",
        ),
        (
            Sgd::new(CosineDecayRestarts::new(0.1, 10).t_mul(0.5)),
            "CosineDecayRestarts: t_mul is 0.5; it must be a number, at least 1.",
        ),
        (
            Sgd::new(PiecewiseConstantDecay::new([5, 9], [0.1, 0.2])),
            "PiecewiseConstantDecay: there are 2 boundaries and 2 values; there must be one value more than boundaries.",
        ),
        (
            Sgd::new(PiecewiseConstantDecay::new([9, 5], [0.1, 0.2, 0.3])),
            "PiecewiseConstantDecay: the boundaries are [9, 5]; they must not decrease.",
        ),
    ];
    for (sgd, words) in cases {
        assert_eq!(refused(&sgd), words);
    }
}

#[test]
fn names_are_keras_s() {
    assert_eq!(
        text(optimizers::get("sdg").map(drop)),
        "optimizers.get: there is no 'sdg'; the optimizers are adadelta, adafactor, adagrad, adam, adamax, adamw, ftrl, \
         lamb, lion, muon, nadam, rmsprop, sgd."
    );
    for name in ["Adam", "RMSprop", "sgd", "Lion"] {
        assert!(optimizers::get(name).is_ok());
    }
}

#[test]
fn what_goes_by_names_needs_names() {
    let layer = Dense::new(1);
    layer.call(&zeros([1, 1]), INFERENCE).unwrap();
    let grads = [Some(zeros([1, 1])), Some(zeros([1]))];
    let adamw = AdamW::new(0.1).exclude_from_weight_decay(["bias", "gamma"]);
    assert_eq!(
        text(adamw.apply_gradients(&grads, &layer.trainable_variables())),
        "adamw: exclude_from_weight_decay uses names, [bias, gamma], and the step was given variables without names. \
         Give it the model, or exclude variables."
    );
    adamw.apply_gradients(&grads, &layer).unwrap();
}

#[test]
fn averages_need_steps() {
    let layer = Dense::new(1);
    layer.call(&zeros([1, 1]), INFERENCE).unwrap();
    assert_eq!(
        text(Sgd::new(0.1).use_ema(true).finalize_variable_values(&layer)),
        "sgd: finalize_variable_values has no average of 'kernel'; the optimizer has made no step with it."
    );
}

#[derive(Debug, tf::Trackable)]
struct Forgetful(#[track(flatten)] OptimizerState);

impl Optimizer for Forgetful {
    fn state(&self) -> &OptimizerState {
        &self.0
    }

    fn slot_names(&self, _: &Variable) -> Vec<&'static str> {
        vec!["kept"]
    }

    fn update(
        &self,
        _: &Step,
        w: &Tensor,
        _: &Tensor,
        _: &[Tensor],
    ) -> Result<(Tensor, Vec<Tensor>)> {
        Ok((w.clone(), vec![]))
    }
}

#[test]
fn slots_are_as_many_as_named() {
    assert_eq!(
        refused(&Forgetful(OptimizerState::new("forgetful", 0.1))),
        "forgetful: update gave 0 slots; slot_names lists 1."
    );
    // A manually called formula.
    let step = |optimizer: &dyn Optimizer| {
        let w = Variable::new(floats([1.0]));
        optimizer.build(&w).unwrap();
        optimizer.slot_names(&w).len()
    };
    assert_eq!([step(&Adam::new(0.1)), step(&Adam::new(0.1).amsgrad(true))], [2, 3]);
    assert_eq!([step(&Adafactor::new(0.1)), step(&Ftrl::new(0.1))], [1, 2]);
}

#[test]
fn constraints_keep_the_shape() {
    let w = Variable::with_constraint(floats([1.0, 2.0]), |w| w.reduce_sum(()));
    let error = text(Sgd::new(0.1).apply_gradients(&[Some(floats([0.5, 0.5]))], &w));
    assert_eq!(
        error,
        "AssignVariableOp: the variable is [2] and the value is []; a variable keeps its shape. Make a new variable, or \
         reshape the value."
    );
}

#[test]
fn configs_of_schedules_are_checked() {
    let config = |class: &str, key: &str, value: i64| {
        let mut config = Config::new(class);
        config.set(key, &value).unwrap();
        schedules::from_config(&config).map(drop)
    };
    assert_eq!(
        text(config("CosineDecay", "decay_steps", 3)),
        "from_config: CosineDecay needs 'initial_learning_rate', and the config lacks it."
    );
    assert!(text(config("CosineDecay", "steps", 3)).contains("has no option 'steps'; it has "));
    assert_eq!(
        text(config("Cosine", "decay_steps", 3)),
        "from_config: there is no schedule 'Cosine'; there are ExponentialDecay, InverseTimeDecay, PiecewiseConstantDecay, \
         PolynomialDecay, CosineDecay and CosineDecayRestarts."
    );
    let own = |step: u64| step as f64;
    assert_eq!(
        text(own.get_config()),
        "get_config: this schedule does not say what its options are. Give its `impl Schedule` a get_config."
    );
    // Python writes NaN into JSON, and reads it.
    let config = ExponentialDecay::new(f64::NAN, 1, 1.0).get_config().unwrap();
    assert!(config.need::<f64>("initial_learning_rate").unwrap().is_nan());
}
