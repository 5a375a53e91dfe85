//! TensorFlow's guides "Eager execution" and "Introduction to gradients and automatic differentiation", step by
//! step.
//!
//! `cargo example eager` runs it; on two processor cores without a GPU it takes a few seconds. It ends with an error if a
//! gradient is wrong, if a regression does not get within 0.1 of W = 3 and B = 2, or if the line search does not go down.

#[path = "support/say.rs"]
mod say;

use std::process::ExitCode;
use std::time::Instant;

use say::{Result, say};
use wgrad as tf;
use wgrad::keras::metrics::Mean;
use wgrad::keras::optimizers::{Optimizer, Sgd};

fn main() -> ExitCode {
    say::exit_code(guide())
}

fn guide() -> Result<()> {
    say!("Setup and basic usage");
    let x = tf::constant([[2.0]])?;
    let m = x.matmul(&x)?;
    say!("hello, {m}");
    let a = tf::constant([[1, 2], [3, 4]])?;
    say!("{a}");
    // Broadcasting and operators. `a.add(1)?` is the same as `&a + 1`, which panics where `add` returns an error.
    let b = a.add(1)?;
    say!("{b}");
    say!("{}", &a * &b);
    // ndarray corresponds to NumPy.
    say!("{}", a.to_array::<i32>()? * b.to_array::<i32>()?);

    say!("\nDynamic control flow");
    fizzbuzz(&tf::constant(15)?)?;

    say!("\nEager training: computing gradients");
    let w = tf::Variable::new(&tf::constant([[1.0]])?);
    let tape = tf::GradientTape::new();
    let loss = &w * &w;
    let grad = tape.gradient(&loss, &w)?.ok_or("the loss depends on w")?;
    say!("{grad}");
    check(grad.item::<f32>()? == 2.0, "d(w * w)/dw at 1 is 2")?;

    say!("\nTrain a model: linear regression with a tape");
    let (inputs, outputs) = noisy_line(2000)?;
    let model = Linear::new()?;
    say!("Initial loss: {:.3}", model.loss(&inputs, &outputs)?.item::<f32>()?);
    for step in 0..300 {
        let tape = tf::GradientTape::new();
        let loss = model.loss(&inputs, &outputs)?;
        let [dw, db] = tape.required_gradient(&loss, [&model.w, &model.b])?;
        model.w.assign_sub(dw * 0.01)?;
        model.b.assign_sub(db * 0.01)?;
        if step % 20 == 0 {
            say!("Loss at step {step:03}: {:.3}", loss.item::<f32>()?);
        }
    }
    model.report(&inputs, &outputs)?;

    say!("\nVariables and optimizers");
    let model = Linear::new()?;
    let optimizer = Sgd::new(0.01);
    let mean_loss = Mean::new("loss");
    for step in 0..300 {
        let tape = tf::GradientTape::new();
        let loss = model.loss(&inputs, &outputs)?;
        mean_loss.update_state(&loss)?;
        optimizer.minimize(&loss, tape, &[model.w.clone(), model.b.clone()])?;
        if step % 100 == 99 {
            say!("Mean loss to step {step}: {:.3}", mean_loss.result()?.item::<f32>()?);
        }
    }
    model.report(&inputs, &outputs)?;

    say!("\nDynamic models: a backtracking line search");
    let start = tf::constant([3.0, -2.0])?;
    let bowl = |x: &tf::Tensor| (x * x * tf::constant([1.0, 10.0])?).reduce_sum(());
    let (x, value) = line_search_step(bowl, &start, 1.0)?;
    say!("from {start}\nto   {x}\nwhere the value is {value}");
    check(value.less(bowl(&start)?)?.item()?, "the line search must go down")?;

    say!("\nA persistent tape");
    let x = tf::constant([1.0, 3.0])?;
    let tape = tf::GradientTape::persistent();
    tape.watch(&x)?;
    let y = &x * &x;
    let z = &y * &y;
    let dz_dx = tape.gradient(&z, &x)?.ok_or("z depends on x")?;
    let dy_dx = tape.gradient(&y, &x)?.ok_or("y depends on x")?;
    say!("{dz_dx}\n{dy_dx}");
    check(dz_dx.to_vec::<f32>()? == [4.0, 108.0], "d(x^4)/dx is 4 x^3")?;
    check(dy_dx.to_vec::<f32>()? == [2.0, 6.0], "d(x^2)/dx is 2 x")?;

    say!("\nNested tapes: higher-order gradients");
    let x = tf::Variable::new(&tf::constant(1.0)?);
    let outer = tf::GradientTape::new();
    let inner = tf::GradientTape::new();
    let y = &x * &x * &x;
    let dy_dx = inner.required_gradient(&y, &x)?;
    let d2y_dx2 = outer.required_gradient(&dy_dx, &x)?;
    say!("dy_dx: {dy_dx}\nd2y_dx2: {d2y_dx2}");
    check(dy_dx.item::<f32>()? == 3.0, "d(x^3)/dx at 1 is 3")?;
    check(d2y_dx2.item::<f32>()? == 6.0, "the second derivative of x^3 at 1 is 6")?;

    say!("\nPerformance");
    let steps = 10;
    let x = tf::random::global().normal([1000, 1000])?;
    measure(&x, 1)?; // compiles the kernels
    let seconds = measure(&x, steps)?;
    say!("Time to multiply a (1000, 1000) matrix by itself {steps} times:");
    say!("{}: {seconds:.3} s", x.device().adapter());
    Ok(())
}

/// Counts up to a tensor, reading values in each iteration.
fn fizzbuzz(max_num: &tf::Tensor) -> Result<()> {
    let mut counter = tf::constant(0)?;
    for _ in 0..max_num.item::<i32>()? {
        counter = counter + 1;
        let by = |n: i32| (&counter % n).item::<i32>().map(|rest| rest == 0);
        match (by(3)?, by(5)?) {
            (true, true) => say!("FizzBuzz"),
            (true, false) => say!("Fizz"),
            (false, true) => say!("Buzz"),
            (false, false) => say!("{}", counter.item::<i32>()?),
        }
    }
    Ok(())
}

/// Points about `3 x + 2`, with noise of deviation 1.
fn noisy_line(count: usize) -> tf::Result<(tf::Tensor, tf::Tensor)> {
    tf::random::set_seed(1);
    let inputs = tf::random::global().normal([count])?;
    let noise = tf::random::global().normal([count])?;
    Ok((inputs.clone(), inputs * 3.0 + 2.0 + noise))
}

/// `W x + B`.
struct Linear {
    w: tf::Variable,
    b: tf::Variable,
}

impl Linear {
    fn new() -> tf::Result<Self> {
        let w = tf::Variable::new(&tf::constant(5.0)?);
        let b = tf::Variable::new(&tf::constant(10.0)?);
        Ok(Linear { w, b })
    }

    /// The mean squared error.
    fn loss(&self, inputs: &tf::Tensor, targets: &tf::Tensor) -> tf::Result<tf::Tensor> {
        let error = inputs.multiply(&self.w)?.add(&self.b)?.subtract(targets)?;
        error.square()?.reduce_mean(())
    }

    fn report(&self, inputs: &tf::Tensor, outputs: &tf::Tensor) -> Result<()> {
        say!("Final loss: {:.3}", self.loss(inputs, outputs)?.item::<f32>()?);
        let (w, b) = (self.w.read().item::<f32>()?, self.b.read().item::<f32>()?);
        say!("W = {w:.3}, B = {b:.3}");
        check((w - 3.0).abs() < 0.1 && (b - 2.0).abs() < 0.1, "W should be 3 and B 2")
    }
}

/// Halves the step until the value falls by at least half the step times the squared length of the gradient.
fn line_search_step(
    f: impl Fn(&tf::Tensor) -> tf::Result<tf::Tensor>,
    start: &tf::Tensor,
    mut rate: f32,
) -> tf::Result<(tf::Tensor, tf::Tensor)> {
    let tape = tf::GradientTape::new();
    tape.watch(start)?;
    let start_value = f(start)?;
    let grad = tape.required_gradient(&start_value, start)?;
    let grad_norm = (&grad * &grad).reduce_sum(())?;
    let (mut x, mut value) = (start.clone(), start_value.clone());
    while value.greater(&start_value - &grad_norm * rate)?.item::<bool>()? {
        x = start - &grad * rate;
        value = f(&x)?;
        rate /= 2.0;
    }
    Ok((x, value))
}

/// Seconds for `steps` products with `x`.
fn measure(x: &tf::Tensor, steps: usize) -> tf::Result<f64> {
    x.device().synchronize()?;
    let start = Instant::now();
    let mut product = x.clone();
    for _ in 0..steps {
        product = product.matmul(x)?;
    }
    // The products are pending until something needs them. They would never run if `product` were dropped before.
    x.device().synchronize()?;
    Ok(start.elapsed().as_secs_f64())
}

fn check(holds: bool, what: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(what.into()) }
}
