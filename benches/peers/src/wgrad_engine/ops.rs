//! Ops of many kinds in wgrad.

use wgrad as tf;
use wgrad::Tensor;

use super::Results;
use crate::Result;
use crate::cases::Op;
use crate::inputs;

pub fn computation(op: Op) -> Result<Results> {
    let uniform = |shape: &[usize], seed| {
        Tensor::from_slice(&inputs::uniform(shape.iter().product(), seed), shape)
    };
    Ok(match op {
        Op::Einsum { length } => {
            let shape = [8, 8, length, 64];
            let (q, k) = (uniform(&shape, 1)?, uniform(&shape, 2)?);
            Box::new(move || Ok(vec![tf::einsum("bhqd,bhkd->bhqk", [&q, &k])?]))
        }
        Op::Attention { heads, length } => {
            let shape = [1, heads, length, 64];
            let [q, k, v] = [uniform(&shape, 1)?, uniform(&shape, 2)?, uniform(&shape, 3)?];
            Box::new(move || {
                let options = tf::AttentionOptions::new();
                let attend = || tf::scaled_dot_product_attention(&q, &k, &v, options.clone());
                with_gradients(&[&q, &k, &v], attend)
            })
        }
        Op::Lstm { batch, steps, units, gradients } => {
            let x = uniform(&[batch, steps, 28], 1)?;
            let kernel = uniform(&[28, 4 * units], 2)?.multiply(0.1)?;
            let recurrent = uniform(&[units, 4 * units], 3)?.multiply(0.1)?;
            Box::new(move || {
                let options = tf::LstmOptions::new().return_sequences(true);
                let layer = || Ok(tf::lstm(&x, &kernel, &recurrent, None, options.clone())?.output);
                match gradients {
                    true => with_gradients(&[&kernel, &recurrent], layer),
                    false => Ok(vec![layer()?]),
                }
            })
        }
        Op::Sort { len } => {
            let x = uniform(&[len], 1)?;
            Box::new(move || Ok(vec![x.sort(0)?]))
        }
        Op::TopK { len, k } => {
            let x = uniform(&[len], 1)?;
            Box::new(move || {
                let (values, places) = x.top_k(k)?;
                Ok(vec![values, places])
            })
        }
        Op::CumSum { rows, columns } => {
            let x = Tensor::from_slice(&inputs::positive(rows * columns, 1), [rows, columns])?;
            Box::new(move || Ok(vec![x.cumsum(1)?]))
        }
        Op::ScatterAdd { len, rows } => {
            let x = uniform(&[len], 1)?;
            let places = Tensor::from_slice(&inputs::indices(len, rows, 2), [len, 1])?;
            let zeros = Tensor::zeros([rows])?;
            Box::new(move || Ok(vec![zeros.tensor_scatter_nd_add(&places, &x)?]))
        }
        Op::Resize { count, side, to } => {
            let x = uniform(&[count, side, side, 3], 1)?;
            Box::new(move || Ok(vec![tf::image::resize(&x, [to, to])?]))
        }
        Op::LayerNormalization { rows, columns } => {
            let x = uniform(&[rows, columns], 1)?;
            let (scale, offset) = (uniform(&[columns], 2)?, uniform(&[columns], 3)?);
            Box::new(move || {
                let options = tf::NormalizationOptions::new()
                    .scale(scale.clone())
                    .offset(offset.clone())
                    .epsilon(1e-5);
                let layer = || x.layer_normalization(-1, options.clone());
                with_gradients(&[&x, &scale, &offset], layer)
            })
        }
        Op::Cholesky { count, n } => {
            let a = uniform(&[count, n, n], 1)?;
            let square = a.matmul_with(&a, tf::MatmulOptions::new().transpose_b(true))?;
            let x = square.add(&Tensor::eye(n)?)?;
            Box::new(move || Ok(vec![tf::linalg::cholesky(&x)?]))
        }
    })
}

/// The result of `work`, and the gradients of the sum of its squares.
fn with_gradients(
    sources: &[&Tensor],
    work: impl FnOnce() -> tf::Result<Tensor>,
) -> Result<Vec<Tensor>> {
    let tape = tf::GradientTape::new();
    for source in sources {
        tape.watch(*source)?;
    }
    let y = work()?;
    let loss = y.square()?.reduce_sum(())?;
    let gradients = tape.gradient(&loss, sources)?;
    Ok(gradients.into_iter().flatten().chain([y]).collect())
}
