//! Models made with `mixed_float16`. The policy is shared by all threads, so this test has its own process.
#![allow(clippy::unwrap_used)]

use wgrad::keras::layers::Dense;
use wgrad::keras::optimizers::{Adam, LossScaleOptimizer};
use wgrad::keras::{
    CompileOptions, DTypePolicy, FitOptions, Model, Sequential, dtype_policy, set_dtype_policy,
};
use wgrad::{DType, Tensor, constant};

// Keras: compile(auto_scale_loss=True) wraps the optimizer if the model's policy is mixed_float16.
#[test]
fn mixed_float16_scales_the_loss() {
    let policy = dtype_policy();
    let made = |policy: DTypePolicy| {
        set_dtype_policy(policy);
        Sequential::new().add(Dense::new(1))
    };
    let mixed = made(DTypePolicy::MIXED_FLOAT16);
    let single = made(DTypePolicy::FLOAT32);
    set_dtype_policy(policy);
    let kind = |model: &Sequential, options: CompileOptions, scaled: bool| {
        match scaled {
            true => model.compile(LossScaleOptimizer::new(Adam::new(0.1)), "mse", options).unwrap(),
            false => model.compile("adam", "mse", options).unwrap(),
        }
        let optimizer = model.trainer().optimizer().unwrap();
        let scale = optimizer.scale_loss(&constant(2.0).unwrap()).unwrap().item::<f32>().unwrap();
        scale / 2.0
    };
    assert_eq!(kind(&mixed, CompileOptions::new(), false), 32768.0);
    assert_eq!(kind(&mixed, CompileOptions::new().auto_scale_loss(false), false), 1.0);
    assert_eq!(kind(&mixed, CompileOptions::new(), true), 32768.0);
    assert_eq!(kind(&single, CompileOptions::new(), false), 1.0);
    // The weights stay finite during training if the adapter has f16.
    if constant(1.0).unwrap().cast(DType::F16).is_ok() {
        mixed.compile("sgd", "mse", CompileOptions::new()).unwrap();
        let (x, y) = (Tensor::ones([32, 4]).unwrap(), Tensor::ones([32, 1]).unwrap());
        let history = mixed.fit((&x, &y), FitOptions::new().epochs(60).verbose(0)).unwrap();
        let losses = history.get("loss").unwrap();
        assert!(losses[59] < 0.1 * losses[0].max(1e-3), "{losses:?}");
    }
}
