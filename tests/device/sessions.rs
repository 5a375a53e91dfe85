//! The programs of TensorFlow 1's guide: placeholders and sessions.

use wgrad as tf;
use wgrad::compat::v1::{self, Graph, InteractiveSession, Session, train};
use wgrad::data::drawn_digits::draw_digits;
use wgrad::data::mnist::Images;
use wgrad::{DType, Error, Result, Tensor};

#[test]
fn a_product_of_placeholders() -> Result<()> {
    let graph = Graph::new(|g| {
        let x = g.placeholder("x", DType::F32, [Some(1024), Some(1024)])?;
        g.identity("y", &x.matmul(&x)?).map(drop)
    });
    let session = Session::new(&graph)?;
    let error = session.eval("y", &[]).unwrap_err();
    assert!(matches!(error, Error::Data(_)));
    let wanted = "Session::run: you must feed a value for placeholder 'x' with dtype f32 and shape [1024, 1024].";
    assert_eq!(error.to_string(), wanted);
    let x = tf::random::Generator::from_seed(1).uniform([1024, 1024])?;
    let y = session.eval("y", &[("x", x.clone())])?;
    let row = x.slice(&[5, 0], &[1, 1024])?.to_vec::<f32>()?;
    let column = x.slice(&[0, 7], &[1024, 1])?.to_vec::<f32>()?;
    let expected: f64 = row.iter().zip(column).map(|(a, b)| f64::from(*a) * f64::from(b)).sum();
    let found = f64::from(y.slice(&[5, 7], &[1, 1])?.squeeze(())?.item::<f32>()?);
    assert!((found - expected).abs() < 1e-4 * expected, "{found} and {expected}");
    Ok(())
}

/// The softmax regression with which the guide begins, on digits that the program draws.
#[test]
fn mnist_for_beginners() -> Result<()> {
    let graph = Graph::new(|g| {
        let x = g.placeholder("x", DType::F32, [None, Some(784)])?;
        let w = g.variable("W", || Tensor::zeros([784, 10]))?;
        let b = g.variable("b", || Tensor::zeros([10]))?;
        let y = x.matmul(w.read())?.add(b.read())?;
        let y_ = g.placeholder("y_", DType::F32, [None, Some(10)])?;
        let losses = tf::softmax_cross_entropy_with_logits(&y_, &y)?;
        let cross_entropy = g.identity("cross_entropy", &losses.reduce_mean(())?)?;
        g.minimize("train_step", &cross_entropy, || train::gradient_descent_optimizer(0.5))?;
        let correct_prediction = y.argmax(1)?.equal(&y_.argmax(1)?)?;
        g.identity("accuracy", &correct_prediction.cast(DType::F32)?.reduce_mean(())?).map(drop)
    });
    let (digits, others) = (draw_digits(10_000, 1), draw_digits(1000, 2));
    let feeds = |rows: &[usize], part: &Images| -> Result<[(&str, Tensor); 2]> {
        let (x, y) = part.tensors(rows)?;
        let x = x.reshape([rows.len(), 784])?;
        Ok([("x", x), ("y_", tf::one_hot(&y, 10)?)])
    };
    let session = InteractiveSession::new(&graph)?;
    session.run(v1::global_variables_initializer(), &[])?;
    let order = tf::random::Generator::from_seed(2).permutation(digits.len())?;
    let mut losses = Vec::new();
    for rows in order.chunks(100).chain(order.chunks(100)) {
        let [_, loss] = session.run(["train_step", "cross_entropy"], &feeds(rows, &digits)?)?;
        losses.push(loss.expect("a tensor"));
    }
    let (first, last) = (losses[0].item::<f32>()?, losses[199].item::<f32>()?);
    assert!((first - 10_f32.ln()).abs() < 1e-3, "equal probabilities at first, not {first}");
    assert!(last < 0.8 * first, "{first} to {last}");
    let rows: Vec<usize> = (0..1000).collect();
    let accuracy = v1::eval("accuracy", &feeds(&rows, &others)?)?.item::<f32>()?;
    assert!(accuracy > 0.6, "{accuracy}");
    println!("losses {first} to {last}, accuracy {accuracy}");
    // One trace of the training step and one for each shape of the other runs.
    assert_eq!(session.tracing_count(), 3);
    Ok(())
}
