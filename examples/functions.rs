//! TensorFlow's guide to `tf.function`, step by step: when a function is traced, variables, conditions, loops and what it saves.
//!
//! `cargo example functions` runs it; on two processor cores without a GPU it takes about 20 seconds. It ends with an error if a
//! function computes something else than eager code.

#[path = "support/say.rs"]
mod say;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use say::{Result, say};
use wgrad as tf;
use wgrad::data::drawn_digits::draw_digits;
use wgrad::keras::layers::{Conv2D, Dense, Flatten, MaxPooling2D, Reshape};
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{Activation, Layer, Sequential, TRAINING};

fn main() -> ExitCode {
    say::exit_code(guide())
}

fn guide() -> Result<()> {
    say!("Tracing: once for each shape and dtype of a tensor, and for each value of a number");
    let double = tf::function(|x: tf::Operand| match x {
        tf::Operand::Tensor(x) => x.add(&x),
        number => tf::constant(1.0)?.multiply(number)?.multiply(2.0),
    });
    let arguments: [tf::Operand; 6] = [
        tf::constant(1)?.into(),
        tf::constant(2)?.into(),
        tf::constant([1.5, 2.5])?.into(),
        3.into(),
        4.into(),
        3.into(),
    ];
    for argument in arguments {
        let doubled = double(argument)?;
        say!("  {doubled}, after {} traces", double.tracing_count());
    }
    check(double.tracing_count() == 4, "four signatures")?;

    say!("\nVariables keep their values between runs");
    let a = tf::Variable::new(tf::constant(0.0)?);
    let count = tf::function({
        let a = a.clone();
        move || {
            a.assign_add(1.0)?;
            Ok(a.read())
        }
    });
    for want in [1.0, 2.0, 3.0] {
        let now = count()?.item::<f32>()?;
        say!("  {now}");
        check(now == want, "each run adds one")?;
    }

    say!("\nA condition on a value, and the graph");
    let square_if_positive =
        tf::function(|x: tf::Tensor| tf::cond(&x.greater(0)?, || x.square(), || x.zeros_like()));
    for x in [1, -1] {
        say!("  square_if_positive({x}) = {}", square_if_positive(tf::constant(x)?)?);
    }
    say!("{}", square_if_positive.graph_text());

    say!("A loop whose length the device decides, and its gradient");
    let collatz = tf::function(|start: tf::Tensor| {
        let step = |(n, steps): (tf::Tensor, tf::Tensor)| {
            let odd = n.floormod(2)?.equal(1)?;
            let next = tf::cond(&odd, || n.multiply(3)?.add(1), || n.floordiv(2))?;
            Ok((next, steps.add(1)?))
        };
        let (_, steps) = tf::while_loop(|(n, _)| n.greater(1), step, (start, tf::constant(0)?))?;
        Ok(steps)
    });
    let steps = collatz(tf::constant(27)?)?.item::<i32>()?;
    say!("  27 reaches 1 after {steps} steps");
    check(steps == 111, "the Collatz sequence of 27 has 111 steps")?;
    let power = tf::function(|x: tf::Tensor, n: tf::Tensor| {
        let tape = tf::GradientTape::new();
        tape.watch(&x)?;
        let turn = |(i, y): (tf::Tensor, tf::Tensor)| Ok((i.add(1)?, y.multiply(&x)?));
        let start = (tf::constant(0)?, x.ones_like()?);
        let (_, y) = tf::while_loop(|(i, _)| i.less(&n), turn, start)?;
        tape.required_gradient(&y, &x)
    });
    let derivative = power(tf::constant(2.0)?, tf::constant(5)?)?.item::<f32>()?;
    say!("  d(x^5)/dx at 2 is {derivative}");
    check(derivative == 80.0, "5 * 2^4 is 80")?;

    say!("\nA training step of a CNN, batches of 50");
    let (eager, eager_loss) = train(&training_step())?;
    let as_function = tf::function(training_step());
    let (function, function_loss) = train(&*as_function)?;
    say!("  eager:       {:.3} s, loss {eager_loss:.4}", eager.as_secs_f64());
    say!("  as function: {:.3} s, loss {function_loss:.4}", function.as_secs_f64());
    check(eager_loss == function_loss, "both ways have the same losses, bit for bit")
}

/// A training step of a new CNN, which always has the same first weights.
fn training_step() -> impl Fn(tf::Tensor, tf::Tensor) -> tf::Result<tf::Tensor> + Send + Sync {
    tf::random::set_seed(1);
    let model = Sequential::new()
        .add(Reshape::new([28, 28, 1]))
        .add(Conv2D::new(8, [5, 5]).activation(Activation::Relu))
        .add(MaxPooling2D::new([2, 2]))
        .add(Flatten::new())
        .add(Dense::new(10));
    let adam = Adam::new(1e-3);
    move |x, y| {
        let tape = tf::GradientTape::new();
        let logits = model.call(&x, TRAINING)?;
        let loss = tf::sparse_softmax_cross_entropy_with_logits(&y, &logits)?.reduce_mean(())?;
        adam.minimize(&loss, tape, &model)?;
        Ok(loss)
    }
}

/// The time of a hundred steps, and the last loss.
fn train(
    step: &dyn Fn(tf::Tensor, tf::Tensor) -> tf::Result<tf::Tensor>,
) -> Result<(Duration, f32)> {
    let digits = draw_digits(1000, 1);
    let mut loss = tf::constant(0.0)?;
    let mut began = Instant::now();
    for number in 0..120 {
        // The first steps make the plans.
        if number == 20 {
            loss.item::<f32>()?;
            began = Instant::now();
        }
        let places: Vec<usize> = (0..50).map(|at| (number * 50 + at) % 1000).collect();
        let (x, y) = digits.tensors(&places)?;
        loss = step(x, y)?;
    }
    let loss = loss.item::<f32>()?;
    Ok((began.elapsed(), loss))
}

fn check(right: bool, what: &str) -> Result<()> {
    if right { Ok(()) } else { Err(format!("a result is wrong: {what}").into()) }
}
