//! Tests every row of the elementwise tables with various shapes and extreme numbers: compares its values with its
//! `f64` reference, and its gradient with central differences of the reference.

use super::{Keep, binary, unary};
use crate::dtype::DType;
use crate::tape::GradientTape;
use crate::tensor::Tensor;

/// Shapes: a scalar, no elements, one element, odd sizes around a vector and a workgroup, more axes.
const SHAPES: [&[usize]; 8] = [&[], &[0], &[1], &[3], &[4], &[65], &[257], &[2, 3, 5]];

/// Numbers spread over -3 to 3, none of them near a whole or half number.
fn spread(n: usize) -> Vec<f32> {
    (0..n).map(|i| (i * 37 % 61) as f32 / 10.0 - 3.013).collect()
}

/// Numbers at the limits of f32, and at the edges of functions' domains.
const EXTREMES: [f32; 17] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1e-6,
    -1e-6,
    20.0,
    -20.0,
    80.0,
    -80.0,
    1e10,
    -1e10,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
];

/// The tolerance of a result. `tests/accuracy.rs` measures the accuracy of each row.
fn close(got: f64, want: f64) -> bool {
    let want32 = f64::from(want as f32);
    if want.is_nan() || want32.is_infinite() {
        return got.is_nan() == want.is_nan() && (want.is_nan() || got == want32);
    }
    (got - want).abs() <= 2e-6 + 2e-5 * want.abs()
}

/// Values as `f64`, booleans as 0 and 1.
fn read(y: &Tensor) -> Vec<f64> {
    let y = y.cast(DType::F32).unwrap();
    y.to_vec::<f32>().unwrap().into_iter().map(f64::from).collect()
}

/// The dtype that a row is tested with: floats, or integers or booleans if it does not accept floats.
fn tested(takes: impl Fn(DType) -> bool) -> DType {
    [DType::F32, DType::I32, DType::Bool].into_iter().find(|&dtype| takes(dtype)).unwrap()
}

fn argument(values: &[f32], shape: &[usize], dtype: DType) -> Tensor {
    let x = Tensor::from_slice(values, shape).unwrap();
    if dtype == DType::Bool { x.greater(0.0).unwrap() } else { x.cast(dtype).unwrap() }
}

fn as_seen(value: f32, dtype: DType) -> f64 {
    match dtype {
        DType::Bool => f64::from(value > 0.0),
        DType::I32 => f64::from(value as i32),
        _ => f64::from(value),
    }
}

#[test]
fn unary_rows_match_their_references() {
    let mut bad = Vec::new();
    for &row in unary::ROWS {
        let dtype = tested(|dtype| row.takes(dtype));
        let call = |values: &[f32], shape: &[usize]| {
            let x = argument(values, shape, dtype);
            read(&crate::eager::dispatch(unary::Unary { row }, &[&x]).unwrap())
        };
        let cases = SHAPES.iter().map(|s| (spread(s.iter().product()), *s));
        for (values, shape) in cases.chain([(EXTREMES.to_vec(), &[EXTREMES.len()][..])]) {
            let got = call(&values, shape);
            assert_eq!(got.len(), values.len(), "{} {shape:?}", row.method);
            for (&x, &got) in values.iter().zip(&got) {
                let want = (row.reference)(as_seen(x, dtype));
                if !close(got, want) {
                    bad.push(format!("{}({x}) = {got}, not {want}", row.method));
                }
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn unary_gradients_match_differences_of_the_reference() {
    let mut bad = Vec::new();
    for &row in unary::ROWS {
        if matches!(row.keep(), Keep::NoGradient(_)) {
            continue;
        }
        let values = spread(61);
        let x = argument(&values, &[61], DType::F32);
        let tape = GradientTape::new();
        tape.watch(&x).unwrap();
        let y = crate::eager::dispatch(unary::Unary { row }, &[&x]).unwrap();
        let dx = read(&tape.gradient(&y, &x).unwrap().expect("the row has a gradient"));
        for (&x, &got) in values.iter().zip(&dx) {
            let (x, h) = (f64::from(x), 1e-5);
            let want = ((row.reference)(x + h) - (row.reference)(x - h)) / (2.0 * h);
            // Outside a function's domain neither side has a derivative.
            let ok = if want.is_nan() {
                !got.is_finite() || got == 0.0 || (row.reference)(x).is_nan()
            } else {
                (got - want).abs() <= 1e-5 + 2e-4 * want.abs()
            };
            if !ok {
                bad.push(format!("d {}({x}) = {got}, not {want}", row.method));
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

/// Pairs of shapes: equal, broadcast on either side, scalars, no elements, odd sizes.
const PAIRS: [(&[usize], &[usize]); 9] = [
    (&[], &[]),
    (&[0], &[1]),
    (&[5], &[5]),
    (&[67], &[]),
    (&[], &[67]),
    (&[4, 1], &[1, 6]),
    (&[3, 8], &[8]),
    (&[3, 7], &[3, 1]),
    (&[2, 1, 5], &[3, 1]),
];

/// The flat index into `shape` that belongs to element `i` of the broadcast shape `out`.
fn source(i: usize, out: &[usize], shape: &[usize]) -> usize {
    let (mut rest, mut at, mut stride) = (i, 0, 1);
    for k in 1..=out.len() {
        let coordinate = rest % out[out.len() - k];
        rest /= out[out.len() - k];
        if k <= shape.len() && shape[shape.len() - k] != 1 {
            at += coordinate * stride;
        }
        if k <= shape.len() {
            stride *= shape[shape.len() - k];
        }
    }
    at
}

#[test]
fn binary_rows_match_their_references() {
    let mut bad = Vec::new();
    for &row in binary::ROWS {
        let dtype = tested(|dtype| row.takes(dtype));
        for (sa, sb) in PAIRS {
            let va = spread(sa.iter().product());
            let vb: Vec<f32> =
                spread(sb.iter().product::<usize>() + 7)[7..].iter().map(|v| v * 0.9).collect();
            let (a, b) = (argument(&va, sa, dtype), argument(&vb, sb, dtype));
            let y = crate::eager::dispatch(binary::Binary { row }, &[&a, &b]).unwrap();
            for (i, got) in read(&y).into_iter().enumerate() {
                let x = as_seen(va[source(i, y.shape(), sa)], dtype);
                let z = as_seen(vb[source(i, y.shape(), sb)], dtype);
                let want = (row.reference)(x, z);
                if !close(got, want) {
                    bad.push(format!("{}({x}, {z}) = {got}, not {want}", row.method));
                }
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn binary_gradients_match_differences_of_the_reference() {
    let mut bad = Vec::new();
    for &row in binary::ROWS {
        if matches!(row.keep(), Keep::NoGradient(_)) {
            continue;
        }
        let va = spread(61);
        let vb: Vec<f32> = spread(61).iter().rev().map(|v| v * 0.9 + 0.05).collect();
        let (a, b) = (argument(&va, &[61], DType::F32), argument(&vb, &[61], DType::F32));
        let tape = GradientTape::new();
        tape.watch(&a).unwrap();
        tape.watch(&b).unwrap();
        let y = crate::eager::dispatch(binary::Binary { row }, &[&a, &b]).unwrap();
        let [da, db] = tape.gradient(&y, [&a, &b]).unwrap();
        let da = da.map(|g| read(&g)).expect("the row has a gradient");
        let db = db.map(|g| read(&g)).expect("the row has a gradient");
        for i in 0..61 {
            let (a, b, h) = (f64::from(va[i]), f64::from(vb[i]), 1e-6);
            let f = row.reference;
            let wants =
                [(f(a + h, b) - f(a - h, b)) / (2.0 * h), (f(a, b + h) - f(a, b - h)) / (2.0 * h)];
            for (got, want) in [da[i], db[i]].into_iter().zip(wants) {
                if !want.is_nan() && (got - want).abs() > 1e-4 + 5e-4 * want.abs() {
                    bad.push(format!("d {}({a}, {b}) = {got}, not {want}", row.method));
                }
            }
        }
    }
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}
