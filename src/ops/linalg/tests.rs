//! Tests of the kernels' loops: no invocation makes more iterations than its kernel states.

use super::*;
use crate::error::Result;
use crate::runtime::Device;
use crate::tensor::Tensor;

/// Numbers between -1 and 1, with more on the diagonal.
fn matrix(rows: usize, columns: usize) -> Tensor {
    let value = |i: usize| {
        (i as f32 * 1.7 + 0.3).sin() + if i / columns == i % columns { 3.0 } else { 0.0 }
    };
    let values: Vec<f32> = (0..rows * columns).map(value).collect();
    Tensor::from_slice(&values, [rows, columns]).unwrap()
}

fn results() -> Result<Vec<Vec<f32>>> {
    let mut all = Vec::new();
    for n in [1, 7, 64, 130] {
        let x = matrix(n, n);
        let definite = x.matmul(matrix_transpose(&x)?)?;
        let (order, tall) = (lu(&x)?.1, matrix(3 * n, n));
        for y in [
            cholesky(&definite)?,
            triangular_solve(&x, &matrix(n, 5))?,
            lu(&x)?.0,
            order.cast(crate::DType::F32)?,
            qr(&tall)?.0,
            qr(&x)?.1,
            svdvals(&x)?,
            eigvalsh(&definite)?,
        ] {
            all.push(y.to_vec::<f32>()?);
        }
    }
    Ok(all)
}

/// A driver that ends loops at the stated number of iterations does not change a bit.
#[test]
fn loops_make_no_more_iterations_than_they_state() {
    let (plain, strict) = (Device::new().unwrap(), Device::new().unwrap());
    strict.change_caps(|caps| caps.strict = true);
    for device in [&plain, &strict] {
        device.set_tuning(crate::plan::Tuning::Off);
    }
    let (want, got) = (plain.scope(results).unwrap(), strict.scope(results).unwrap());
    for (k, (got, want)) in got.iter().zip(&want).enumerate() {
        let far = got.iter().zip(want).position(|(a, b)| a.to_bits() != b.to_bits());
        assert_eq!(far.map(|at| (at, got[at], want[at])), None, "result {k}");
    }
}
