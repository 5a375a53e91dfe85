//! Programs that a planner got wrong once, as small as they became.

#![allow(clippy::unwrap_used)]

use ndarray::s;
use wgrad as tf;
use wgrad::{DType, Device, GradientTape, Tensor};

#[test]
fn a_view_that_is_held_beside_another_reader_of_what_it_shows() -> tf::Result<()> {
    let device = Device::new()?;
    device.scope(|| {
        let (scaled, slice) = {
            let values: Vec<f32> = (0..20).map(|i| i as f32 / 4.0 - 2.0).collect();
            let wide = Tensor::from_slice(&values, [1, 2, 10])?.relu()?.broadcast_to([4, 2, 10])?;
            (wide.divide(-0.25)?, wide.strided_slice(s![1..4;-2, 0..2, 2..5])?)
        };
        device.flush()?;
        let relu = |i: usize| (i as f32 / 4.0 - 2.0).max(0.0);
        let want: Vec<f32> = (0..80).map(|i| relu(i % 20) / -0.25).collect();
        assert_eq!(scaled.to_vec::<f32>()?, want);
        assert_eq!(slice.shape(), [2, 2, 3]);
        let want: Vec<f32> = (0..12).map(|i| relu(i / 3 % 2 * 10 + 2 + i % 3)).collect();
        assert_eq!(slice.to_vec::<f32>()?, want);
        Ok(())
    })
}

#[test]
fn the_gradient_of_a_softmax_that_is_read_backwards() -> tf::Result<()> {
    let run = |fusion: bool| -> tf::Result<Vec<f32>> {
        let device = Device::new()?;
        device.set_fusion(fusion);
        device.scope(|| {
            let (grads, loss) = {
                let x = tf::constant([-1.5, 0.25, -1.25])?;
                let tape = GradientTape::new();
                tape.watch(&x)?;
                let c = tf::constant([-1.5])?;
                let w = tf::constant([-1.5, 0.25, -1.25])?;
                let y = c.divide(x.softmax(0)?.reverse(&[0])?)?.multiply(&w)?;
                let (c, w) = (tf::constant(-1.5)?, tf::constant(0.5)?);
                tape.watch(&c)?;
                tape.watch(&w)?;
                let loss = c.add(y.reduce_sum([0], false)?)?.add(&w)?;
                (tape.gradient(&loss, [&x, &c, &w])?, loss)
            };
            device.flush()?;
            let mut values = loss.to_vec::<f32>()?;
            for grad in grads {
                values.extend(grad.unwrap().to_vec::<f32>()?);
            }
            Ok(values)
        })
    };
    let (fused, apart) = (run(true)?, run(false)?);
    assert_eq!(fused.len(), 6);
    for (fused, apart) in fused.iter().zip(&apart) {
        assert!((fused - apart).abs() <= 1e-5 * apart.abs().max(1.0), "{fused} and {apart}");
    }
    Ok(())
}

#[test]
fn a_range_of_one_beside_columns() -> tf::Result<()> {
    for n in [8usize, 7] {
        let y = {
            let x = Tensor::from_slice(&vec![1f32; n], [n, 1])?;
            let ids = Tensor::from_slice(&vec![0i32; n], [n, 1])?;
            let hit = ids.equal(&Tensor::arange(0, 1, 1)?)?.cast(DType::F32)?;
            x.subtract(&hit)?.multiply(0.125)?
        };
        assert_eq!(y.to_vec::<f32>()?, vec![0.0; n]);
    }
    Ok(())
}
