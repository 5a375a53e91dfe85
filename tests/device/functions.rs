//! The programs about functions in TensorFlow's guide, with their results.

use std::sync::Arc;

use wgrad as tf;
use wgrad::keras::layers::{Conv2D, Dense, Flatten, Layer, MaxPooling2D};
use wgrad::keras::losses::{Loss, SparseCategoricalCrossentropy};
use wgrad::keras::optimizers::{Adam, Optimizer};
use wgrad::keras::{Activation, Sequential, TRAINING};
use wgrad::{DType, GradientTape, Operand, Result, Tensor, TensorArray, Variable};

use crate::support::child;

#[test]
#[ignore = "a part of plain_numbers_are_traced_by_value"]
fn traces() {
    let f = tf::function(|x: Operand| {
        eprintln!("The function is running");
        let x = match x {
            Operand::Tensor(x) => x,
            Operand::Scalar(x) => tf::fill([], x)?,
            _ => unreachable!("the program passes none"),
        };
        x.print("")
    });
    let tensor = |x: Result<Tensor>| Operand::from(x.unwrap());
    let array = tf::ndarray::arr0(2_i32);
    let arguments = [
        tensor(tf::constant(1)),
        tensor(tf::constant(2)),
        tensor(Tensor::from_array(&array)),
        tensor(tf::constant(0.1)),
        tensor(tf::constant(0.2)),
        Operand::from(1),
        Operand::from(2),
        Operand::from(1),
        Operand::from(0.1),
        Operand::from(0.2),
        Operand::from(0.1),
    ];
    for argument in arguments {
        f(argument).unwrap();
        tf::Device::current().unwrap().synchronize().unwrap();
    }
}

#[test]
fn plain_numbers_are_traced_by_value() {
    let want = "The function is running\n1\n2\n2\nThe function is running\n0.1\n0.2\nThe function is running\n1\n\
                The function is running\n2\n1\nThe function is running\n0.1\nThe function is running\n0.2\n0.1\n";
    let got = child::stderr(module_path!(), "traces", &[]);
    assert!(got.starts_with(want), "{got}");
}

#[test]
fn a_function_assigns_a_variable() {
    let a = Variable::new(tf::constant(0.0).unwrap());
    let g = tf::function({
        let a = a.clone();
        move || {
            a.assign(a.read().add(1.0)?)?;
            Ok(a.read())
        }
    });
    let results: Vec<f32> = (0..3).map(|_| g().unwrap().item().unwrap()).collect();
    assert_eq!(results, [1.0, 2.0, 3.0]);
}

#[test]
fn a_condition_is_part_of_the_graph() {
    let square_if_positive =
        tf::function(|x: Tensor| tf::cond(&x.greater(0)?, || x.square(), || x.zeros_like()));
    let of = |x: i32| square_if_positive(tf::constant(x).unwrap()).unwrap().item::<i32>().unwrap();
    assert_eq!([of(1), of(-1), of(3)], [1, 0, 9]);
    let text = square_if_positive.graph_text();
    for part in ["(i32[])", "Binary{row: greater}", "choose by", "branch 0", "branch 1"] {
        assert!(text.contains(part), "no {part} in:\n{text}");
    }
    let graph = square_if_positive.graphviz();
    for part in ["digraph", "argument 0", "greater", "subgraph", "->"] {
        assert!(graph.contains(part), "no {part} in:\n{graph}");
    }
}

#[test]
fn a_function_fills_a_tensor_array() {
    let f = tf::function(|| {
        let mut array = TensorArray::new(DType::F32, 3);
        for i in 0..3 {
            array = array.write(i, tf::constant(i as f32)?)?;
        }
        Ok([array.read(0)?, array.read(1)?, array.read(2)?])
    });
    for _ in 0..2 {
        let values = f().unwrap().map(|x| x.item::<f32>().unwrap());
        assert_eq!(values, [0.0, 1.0, 2.0]);
    }
}

#[test]
fn a_training_step_is_a_function() {
    let model = Arc::new(
        Sequential::new()
            .add(Conv2D::new(4, [3, 3]).activation(Activation::Relu))
            .add(MaxPooling2D::new([2, 2]))
            .add(Flatten::new())
            .add(Dense::new(3)),
    );
    let optimizer = Adam::new(0.01);
    let train = tf::function({
        let model = model.clone();
        move |x: Tensor, y: Tensor| {
            let tape = GradientTape::new();
            let loss = SparseCategoricalCrossentropy::new()
                .from_logits(true)
                .call(&y, &model.call(&x, TRAINING)?)?;
            optimizer.minimize(&loss, tape, &*model)?;
            Ok(loss)
        }
    });
    let classes: Vec<i32> = (0..30).map(|i| i % 3).collect();
    let y = Tensor::from_slice(&classes, [30]).unwrap();
    // The class is the brightest third of the image.
    let bright = |class: i32, at: usize| if at / 27 == class as usize { 1.0 } else { 0.1 };
    let pixels: Vec<f32> =
        classes.iter().flat_map(|class| (0..81).map(|at| bright(*class, at))).collect();
    let x = Tensor::from_slice(&pixels, [30, 9, 9, 1]).unwrap();
    let losses: Vec<f32> =
        (0..60).map(|_| train(x.clone(), y.clone()).unwrap().item().unwrap()).collect();
    assert!(losses[59] < 0.1 * losses[0], "{losses:?}");
    assert_eq!(train.tracing_count(), 1);
}

#[test]
#[ignore = "a part of a_check_finds_closures_that_vary"]
fn varying_closures() {
    use std::sync::atomic::{AtomicU32, Ordering};
    let x = tf::constant([1.0, 2.0]).unwrap();
    let same = tf::function(|x: Tensor| x.multiply(2.0)?.add(tf::constant([1.0, 1.0])?));
    for _ in 0..3 {
        assert_eq!(same(x.clone()).unwrap().to_vec::<f32>().unwrap(), [3.0, 5.0]);
    }
    let calls = AtomicU32::new(0);
    let counts = tf::function(move |x: Tensor| x.add(calls.fetch_add(1, Ordering::Relaxed) as f32));
    counts(x.clone()).unwrap();
    eprintln!("{}", counts(x).unwrap_err());
}

#[test]
fn a_check_finds_closures_that_vary() {
    let got = child::stderr(module_path!(), "varying_closures", &[("WGRAD_TRACE_CHECK", "1")]);
    for part in
        ["does not do the same", "Fill with other numbers in the next trace", "WGRAD_TRACE_CHECK"]
    {
        assert!(got.contains(part), "{got}");
    }
}
