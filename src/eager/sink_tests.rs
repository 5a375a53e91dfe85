//! Tests of traces: what runs, what can be read, and what variables hold.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::dtype::DType;
use crate::error::Error;
use crate::keras::{Context, Input, Layer, LayerExt};
use crate::random::Generator;
use crate::tape::GradientTape;
use crate::tensor::constant;

fn symbol(shape: &[usize]) -> Tensor {
    placeholder(Spec::new(shape, DType::F32)).unwrap()
}

#[test]
fn a_trace_runs_nothing_and_knows_shapes() -> Result<()> {
    let device = Device::open(&Default::default())?;
    device.scope(|| {
        let w = constant([[1.0, 2.0], [3.0, 4.0]])?;
        let shape = traced(|| -> Result<_> {
            assert!(in_trace());
            let x = symbol(&[7, 2]);
            let y = x.matmul(&w)?.relu()?.add(1.0)?;
            assert!(matches!(
                x.matmul(constant([1.0, 2.0, 3.0])?.expand_dims(1)?),
                Err(Error::Shape(_))
            ));
            Ok(y.shape().to_vec())
        })?;
        assert_eq!(shape, [7, 2]);
        assert!(!in_trace());
        device.synchronize()?;
        assert_eq!(device.stats().kernels, 0);
        assert_eq!(w.matmul(&w)?.to_vec::<f32>()?, [7.0, 10.0, 15.0, 22.0]);
        Ok(())
    })
}

#[test]
fn what_depends_on_no_placeholder_can_be_read_and_kept() -> Result<()> {
    let generator = Generator::from_seed(3);
    let expected = Generator::from_seed(3).normal([4])?.multiply(2.0)?.to_vec::<f32>()?;
    let (kept, variable) = traced(|| -> Result<_> {
        let a = constant([1.0, 2.0])?.add(1.0)?;
        let b = a.square()?;
        // A read in the middle, of a value that later calls use too.
        assert_eq!(b.to_vec::<f32>()?, [4.0, 9.0]);
        assert_eq!(
            pollster::block_on(Tensor::to_vecs_async::<f32>(&[&a, &b]))?,
            [[2.0, 3.0], [4.0, 9.0]]
        );
        let both = symbol(&[2]).add(&b)?;
        assert_eq!(both.shape(), [2]);
        let noise = generator.normal([4])?.multiply(2.0)?;
        Ok((b.subtract(&a)?, Variable::new(&noise)))
    })?;
    assert_eq!(kept.to_vec::<f32>()?, [2.0, 6.0]);
    assert_eq!(variable.read().to_vec::<f32>()?, expected);
    Ok(())
}

#[test]
fn what_depends_on_a_placeholder_has_no_value() -> Result<()> {
    let text = "Relu: this tensor, f32[3], has no value yet: it belongs to a function that is being traced, or depends on \
                the input of a model that is being built. Use it only in the call that made it. To decide by it, use cond or \
                while_loop; if the call must store it or read it, compute it from tensors that do not depend on the input.";
    let says = |error: Error| {
        assert!(matches!(&error, Error::Trace(m) if m.starts_with(text)), "{error}");
    };
    let leaked = traced(|| -> Result<_> {
        let y = symbol(&[3]).relu()?;
        says(y.to_vec::<f32>().unwrap_err());
        says(pollster::block_on(Tensor::to_vecs_async::<f32>(&[&y, &y])).unwrap_err());
        // Another thread does not trace.
        let other = y.clone();
        let sum = std::thread::spawn(move || other.add(1.0)?.to_vec::<f32>()).join().unwrap();
        says(sum.unwrap_err());
        says(lifted(|| y.add(1.0)?.to_vec::<f32>()).unwrap_err());
        Ok(y)
    })?;
    says(leaked.to_vec::<f32>().unwrap_err());
    says(leaked.add(1.0)?.to_vec::<f32>().unwrap_err());
    assert!(symbol(&[2]).add(1.0)?.to_vec::<f32>().is_err());
    // The device reports the failed calls, and works.
    let _ = leaked.device().flush();
    assert_eq!(constant([1.0, 2.0])?.add(1.0)?.to_vec::<f32>()?, [2.0, 3.0]);
    Ok(())
}

#[test]
fn assignments_change_a_variable_in_the_trace_only() -> Result<()> {
    let v = Variable::new(&constant([1.0, 2.0])?);
    traced(|| -> Result<()> {
        v.assign_add(&constant([1.0, 1.0])?)?;
        v.assign_add(&constant([1.0, 1.0])?)?;
        assert_eq!(v.read().to_vec::<f32>()?, [3.0, 4.0]);
        v.assign(symbol(&[2]))?;
        assert!(v.read().to_vec::<f32>().is_err());
        assert!(v.assign(&constant([1.0])?).is_err());
        // Calls that are lifted see and change the variable itself.
        lifted(|| {
            assert_eq!(v.read().to_vec::<f32>()?, [1.0, 2.0]);
            v.assign_sub(&constant([1.0, 0.0])?)
        })
    })?;
    assert_eq!(v.read().to_vec::<f32>()?, [0.0, 2.0]);
    Ok(())
}

#[test]
fn traces_nest_and_survive_panics() -> Result<()> {
    let panicked = catch_unwind(AssertUnwindSafe(|| traced(|| panic!("in a trace"))));
    assert!(panicked.is_err() && !in_trace());
    let sum = traced(|| -> Result<_> {
        let outer = constant([1.0, 2.0])?.add(1.0)?;
        let (inner, shape) = traced(|| -> Result<_> {
            let inner = outer.square()?;
            let mixed = symbol(&[2]).add(&inner)?;
            Ok((inner, mixed.shape().to_vec()))
        })?;
        assert_eq!((shape, inner.to_vec::<f32>()?), (vec![2], vec![4.0, 9.0]));
        // A value that the inner trace made from one of the outer trace outlives both.
        let kept = traced(|| outer.multiply(2.0))?;
        lifted(|| traced(|| symbol(&[3]).relu()).map(drop))?;
        kept.reduce_sum(())
    })?;
    assert_eq!(sum.item::<f32>()?, 10.0);
    Ok(())
}

#[test]
fn gradients_and_checks_are_traced_too() -> Result<()> {
    let w = Variable::new(&constant([1.0, 2.0])?);
    let shape = traced(|| -> Result<_> {
        let x = symbol(&[5, 2]);
        x.print("never printed")?;
        let tape = GradientTape::new();
        let loss = x.multiply(&w)?.square()?.reduce_mean(())?;
        Ok(tape.gradient(&loss, &w)?.unwrap().shape().to_vec())
    })?;
    assert_eq!(shape, [2]);
    w.read().device().synchronize()
}

#[test]
fn a_long_trace_ends_in_linear_time() -> Result<()> {
    let last = traced(|| -> Result<_> {
        let (mut x, mut y) = (symbol(&[2]), constant([1.0, 1.0])?);
        for _ in 0..20_000 {
            (x, y) = (x.add(&y)?, y.multiply(0.5)?.add(0.5)?);
        }
        Ok(y)
    })?;
    assert_eq!(last.to_vec::<f32>()?, [1.0, 1.0]);
    Ok(())
}

/// A layer that keeps at most 64 steps, and caches a tensor.
#[derive(Default, crate::Trackable)]
struct AtMost64 {
    #[track(skip)]
    cached: std::sync::OnceLock<Tensor>,
}

impl Layer for AtMost64 {
    fn call(&self, x: &Tensor, _: Context<'_>) -> Result<Tensor> {
        let steps = x.shape()[1].min(64);
        let ones = match self.cached.get() {
            Some(ones) => ones.clone(),
            None => {
                let ones = constant([2.0])?.multiply(0.5)?;
                self.cached.get_or_init(|| ones).clone()
            }
        };
        x.slice(&[0, 0], &[-1, steps as i64])?.multiply(&ones)
    }
}

#[test]
fn sizes_are_proven_at_a_third_size() -> Result<()> {
    let x = Input::new([None]);
    let y = AtMost64::default().on(&x)?;
    // It is 64 for two of the sizes.
    assert_eq!(y.shape(), [None, None]);
    Ok(())
}
