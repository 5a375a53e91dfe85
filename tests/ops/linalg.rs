//! Linear algebra: TensorFlow's values and gradients, properties of the factors at all sizes, and the documented error bounds.

#![allow(clippy::unwrap_used)]

use serde_json::Value as Json;
use wgrad as tf;
use wgrad::inventory::{self, Args, Value};
use wgrad::linalg::{self, QrOptions, SvdOptions, TriangularSolveOptions};
use wgrad::{DType, GradientTape, Tensor};

// ---- TensorFlow's values, with inputs from a formula (tests/data/linalg.json) ----

/// `sin(1.7 i + 0.3 + at)` for input number `at`, as matrices of these sizes, prepared as the case specifies.
fn input(shape: &[usize], how: &str, at: usize) -> Vec<f64> {
    let count: usize = shape.iter().product();
    let x: Vec<f64> = (0..count).map(|i| (1.7 * i as f64 + 0.3 + at as f64).sin()).collect();
    let [.., rows, columns] = *shape else { return x };
    let mut y = x.clone();
    for (b, x) in x.chunks_exact(rows * columns).enumerate() {
        for r in 0..rows {
            for c in 0..columns {
                let unit = |v: f64| if r == c { v } else { 0.0 };
                let step = 3.0 * (r + 1) as f64;
                y[(b * rows + r) * columns + c] = match how {
                    "plain" => x[r * columns + c],
                    "definite" => {
                        (0..columns).map(|k| x[r * columns + k] * x[c * columns + k]).sum::<f64>()
                            + unit(2.0)
                    }
                    "firm" => x[r * columns + c] + unit(4.0),
                    "exchanged" => {
                        let r = rows - 1 - r;
                        x[r * columns + c] + if r == c { 4.0 } else { 0.0 }
                    }
                    "graded" => x[r * columns + c] + unit(step),
                    "symmetric" => (x[r * columns + c] + x[c * columns + r]) / 2.0 + unit(step),
                    _ => panic!("{how}"),
                };
            }
        }
    }
    y
}

fn tensor(values: &[f64], shape: &[usize]) -> Tensor {
    let values: Vec<f32> = values.iter().map(|&v| v as f32).collect();
    Tensor::from_slice(&values, shape).unwrap()
}

fn attribute(value: &Json) -> Value {
    match value {
        Json::Bool(yes) => Value::Bool(*yes),
        Json::Number(n) => n.as_i64().map_or_else(|| Value::Float(n.as_f64().unwrap()), Value::Int),
        Json::String(text) => Value::Text(text.clone()),
        other => panic!("{other}"),
    }
}

fn sizes(value: &Json) -> Vec<usize> {
    value.as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect()
}

fn numbers(value: &Json) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|n| n.as_f64().unwrap()).collect()
}

fn host(x: &Tensor) -> Vec<f64> {
    match x.dtype() {
        DType::I32 => x.to_vec::<i32>().unwrap().into_iter().map(f64::from).collect(),
        _ => x.to_vec::<f32>().unwrap().into_iter().map(f64::from).collect(),
    }
}

/// The inputs have magnitudes of 1 to 15 and are well conditioned, so results have errors of some tens of 6e-8 of that.
const TOLERANCE: f64 = 2e-5;

fn misses(got: &[f64], want: &[f64]) -> Option<String> {
    let size = want.iter().fold(1f64, |most, v| most.max(v.abs()));
    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= TOLERANCE * size;
    let fits = got.len() == want.len() && got.iter().zip(want).all(near);
    (!fits).then(|| format!("{got:.6?}\n    is not {want:.6?}"))
}

#[test]
fn tensorflow_has_the_same_values_and_gradients() {
    let text = include_str!("../data/linalg.json");
    let cases: Json = serde_json::from_str(text).unwrap();
    let cases = cases["cases"].as_array().unwrap();
    assert!(cases.len() > 60, "{} cases", cases.len());
    let mut failures = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let op = case["op"].as_str().unwrap();
        let entry = inventory::find(op).unwrap_or_else(|| panic!("{op}"));
        let mut inputs = Vec::new();
        for (at, input_of) in case["inputs"].as_array().unwrap().iter().enumerate() {
            let shape = sizes(&input_of[1]);
            let values = input(&shape, input_of[2].as_str().unwrap(), at);
            inputs.push((input_of[0].as_str().unwrap().to_string(), vec![tensor(&values, &shape)]));
        }
        let x: Vec<Tensor> = inputs.iter().map(|(_, x)| x[0].clone()).collect();
        let attributes = case["attrs"].as_object().unwrap().iter();
        let attributes = attributes.map(|(key, value)| (key.clone(), attribute(value)));
        let args = Args::new(inputs, attributes);
        let name = format!("case {number}, {op} {}", case["attrs"]);
        let tape = GradientTape::new();
        x.iter().for_each(|x| tape.watch(x).unwrap());
        let y = (entry.call)(&args).unwrap_or_else(|stop| panic!("{name}: {stop:?}"));
        assert_eq!(args.unread(), None, "{name}");
        let (mut targets, mut seeds) = (Vec::new(), Vec::new());
        for (at, (y, want)) in y.iter().zip(case["out"].as_array().unwrap()).enumerate() {
            if want.is_null() {
                continue;
            }
            assert_eq!(y.shape(), sizes(&want["shape"]), "{name}");
            if let Some(miss) = misses(&host(y), &numbers(&want["values"])) {
                failures.push(format!("{name}, result {at}: {miss}"));
            }
            if y.dtype().is_float() {
                let weights: Vec<f64> =
                    (0..y.len()).map(|i| (0.9 * i as f64 + 0.2 + at as f64).cos()).collect();
                targets.push(y);
                seeds.push(tensor(&weights, y.shape()));
            }
        }
        let Some(wanted) = case["grads"].as_array() else { continue };
        if targets.is_empty() {
            continue;
        }
        let seeds: Vec<&Tensor> = seeds.iter().collect();
        let grads = tape.gradient_from(&targets[..], Some(&seeds), &x[..]).unwrap();
        for (at, (grad, want)) in grads.iter().zip(wanted).enumerate() {
            let miss = match (grad, want.is_null()) {
                (Some(grad), false) => misses(&host(grad), &numbers(want)),
                (None, true) => None,
                (grad, _) => Some(format!("{grad:?} is not {want}")),
            };
            failures.extend(miss.map(|miss| format!("{name}, gradient {at}: {miss}")));
        }
    }
    assert!(failures.is_empty(), "{} failures:\n  {}", failures.len(), failures.join("\n  "));
}

// ---- properties of the factors, at all sizes ----

/// A matrix on the host.
#[derive(Clone)]
struct Matrix {
    rows: usize,
    columns: usize,
    values: Vec<f64>,
}

impl Matrix {
    fn new(rows: usize, columns: usize, f: impl Fn(usize, usize) -> f64) -> Self {
        let values = (0..rows * columns).map(|i| f(i / columns, i % columns)).collect();
        Matrix { rows, columns, values }
    }

    /// Numbers between -1 and 1, exact in `f32`.
    fn random(rows: usize, columns: usize, seed: u64) -> Self {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            f64::from(((state >> 40) as f32 / (1u32 << 23) as f32) - 1.0)
        };
        Matrix { rows, columns, values: (0..rows * columns).map(|_| next()).collect() }
    }

    fn read(x: &Tensor) -> Self {
        let [rows, columns] = *x.shape() else { panic!("{:?}", x.shape()) };
        Matrix { rows, columns, values: host(x) }
    }

    fn at(&self, r: usize, c: usize) -> f64 {
        self.values[r * self.columns + c]
    }

    fn t(&self) -> Self {
        Matrix::new(self.columns, self.rows, |r, c| self.at(c, r))
    }

    fn times(&self, other: &Matrix) -> Self {
        let mut values = vec![0.0; self.rows * other.columns];
        for (r, row) in values.chunks_exact_mut(other.columns.max(1)).enumerate() {
            for k in 0..self.columns {
                let v = self.at(r, k);
                let line = &other.values[k * other.columns..(k + 1) * other.columns];
                row.iter_mut().zip(line).for_each(|(y, x)| *y += v * x);
            }
        }
        Matrix { rows: self.rows, columns: other.columns, values }
    }

    fn size(&self) -> f64 {
        self.values.iter().map(|v| v * v).sum::<f64>().sqrt()
    }

    fn device(&self) -> Tensor {
        tensor(&self.values, &[self.rows, self.columns])
    }

    /// The difference from `other`, relative to the magnitude of `other`.
    fn off(&self, other: &Matrix) -> f64 {
        assert_eq!((self.rows, self.columns), (other.rows, other.columns));
        let apart = self.values.iter().zip(&other.values).map(|(a, b)| (a - b).powi(2));
        apart.sum::<f64>().sqrt() / other.size().max(1e-30)
    }

    fn unit(n: usize) -> Self {
        Matrix::new(n, n, |r, c| f64::from(u8::from(r == c)))
    }

    /// How far its columns are from orthonormal.
    fn skewness(&self) -> f64 {
        self.t().times(self).off(&Matrix::unit(self.columns))
    }
}

/// Sizes below and above a block and two blocks, and large ones.
const SIZES: [usize; 10] = [1, 2, 3, 17, 31, 64, 65, 130, 257, 512];
/// The relative rounding error of `f32`.
const ROUND: f64 = 6e-8;

/// Checks an error of `n` roundings, which grows with the square root of `n` for random errors, with a margin.
#[track_caller]
fn small(off: f64, n: usize, what: &str) {
    let bound = 8.0 * ROUND * (n as f64).sqrt().max(2.0);
    assert!(off <= bound, "{what} of size {n}: off by {off:.2e}, more than {bound:.2e}");
}

#[test]
fn cholesky_factors_give_the_matrix_back() {
    for n in SIZES {
        let x = Matrix::random(n, n, n as u64);
        let mut x = x.times(&x.t());
        (0..n).for_each(|i| x.values[i * n + i] += 1.0);
        // The part above the diagonal is not read.
        let lower = Matrix::new(n, n, |r, c| if c <= r { x.at(r, c) } else { 7.0 });
        let y = Matrix::read(&linalg::cholesky(&lower.device()).unwrap());
        assert!((0..n).all(|r| (r + 1..n).all(|c| y.at(r, c) == 0.0)), "{n}");
        small(y.times(&y.t()).off(&x), n, "cholesky");
    }
}

#[test]
fn lu_factors_give_the_rows_back_in_order() {
    for n in SIZES {
        let x = Matrix::random(n, n, n as u64 + 7);
        let (lu, order) = linalg::lu(&x.device()).unwrap();
        let (lu, order) = (Matrix::read(&lu), order.to_vec::<i32>().unwrap());
        let l = Matrix::new(n, n, |r, c| match r.cmp(&c) {
            std::cmp::Ordering::Greater => lu.at(r, c),
            std::cmp::Ordering::Equal => 1.0,
            std::cmp::Ordering::Less => 0.0,
        });
        assert!(l.values.iter().all(|v| v.abs() <= 1.0), "pivots are the largest");
        let u = Matrix::new(n, n, |r, c| if r <= c { lu.at(r, c) } else { 0.0 });
        let moved = Matrix::new(n, n, |r, c| x.at(order[r] as usize, c));
        small(l.times(&u).off(&moved), n, "lu");
    }
}

#[test]
fn orthogonal_factors_are_orthogonal() {
    for n in SIZES {
        for (rows, columns) in [(n, n), (n + 40, n), (n, n + 3)] {
            let x = Matrix::random(rows, columns, n as u64 + 11);
            for full in [false, true] {
                let options = QrOptions::new().full_matrices(full);
                let (q, r) = linalg::qr_with(&x.device(), options).unwrap();
                let (q, r) = (Matrix::read(&q), Matrix::read(&r));
                let kept = if full { rows } else { rows.min(columns) };
                assert_eq!((q.columns, r.rows, r.columns), (kept, kept, columns));
                assert!((0..kept).all(|i| (0..i.min(columns)).all(|j| r.at(i, j) == 0.0)));
                small(q.times(&r).off(&x), n, "qr");
                small(q.skewness(), n, "q^T q");
            }
        }
    }
}

#[test]
fn systems_are_solved_to_their_residual() {
    for n in SIZES {
        let x = Matrix::random(n, n, n as u64 + 13);
        let b = Matrix::random(n, 3, n as u64 + 17);
        let y = Matrix::read(&linalg::solve(&x.device(), &b.device()).unwrap());
        // The residual is small compared with |x| |y|, whatever the condition number.
        let residual = x.times(&y);
        let apart = Matrix::new(n, 3, |r, c| residual.at(r, c) - b.at(r, c)).size();
        small(apart / (x.size() * y.size()), n, "solve");
        for (lower, adjoint) in [(true, false), (true, true), (false, false), (false, true)] {
            let kept = |r: usize, c: usize| if lower { c <= r } else { r <= c };
            // Far from singular: the diagonal is larger than the sum of the rest of its row.
            let t = Matrix::new(n, n, |r, c| match r == c {
                true => 2.0,
                false => x.at(r, c) / n as f64,
            });
            let options = TriangularSolveOptions::new().lower(lower).adjoint(adjoint);
            let y = linalg::triangular_solve_with(&t.device(), &b.device(), options).unwrap();
            let own = Matrix::new(n, n, |r, c| if kept(r, c) { t.at(r, c) } else { 0.0 });
            let own = if adjoint { own.t() } else { own };
            small(own.times(&Matrix::read(&y)).off(&b), n, "triangular_solve");
        }
    }
}

#[test]
fn singular_vectors_and_eigenvectors_give_the_matrix_back() {
    for n in [1, 2, 3, 8, 17, 33, 64, 130] {
        for (rows, columns) in [(n, n), (n + 5, n), (n, 2 * n)] {
            let x = Matrix::random(rows, columns, n as u64 + 19);
            let (s, u, v) = linalg::svd(&x.device()).unwrap();
            let (s, u, v) = (host(&s), Matrix::read(&u), Matrix::read(&v));
            assert!(s.is_sorted_by(|a, b| a >= b) && s[n - 1] >= 0.0, "{s:?}");
            let scaled = Matrix::new(rows, n, |r, c| u.at(r, c) * s[c]);
            small(scaled.times(&v.t()).off(&x), n, "svd");
            small(u.skewness(), n, "u^T u");
            small(v.skewness(), n, "v^T v");
        }
        let x = Matrix::random(n, n, n as u64 + 23);
        let x = Matrix::new(n, n, |r, c| x.at(r.max(c), r.min(c)));
        let (e, v) = linalg::eigh(&x.device()).unwrap();
        let (e, v) = (host(&e), Matrix::read(&v));
        assert!(e.is_sorted(), "{e:?}");
        let scaled = Matrix::new(n, n, |r, c| v.at(r, c) * e[c]);
        small(scaled.times(&v.t()).off(&x), n, "eigh");
        small(v.skewness(), n, "v^T v");
    }
}

#[test]
fn batches_are_matrices_by_themselves() {
    let parts: Vec<Matrix> = (0..6).map(|i| Matrix::random(5, 5, i + 40)).collect();
    let values: Vec<f64> = parts.iter().flat_map(|x| x.values.clone()).collect();
    let x = tensor(&values, &[3, 2, 5, 5]);
    let det = host(&linalg::det(&x).unwrap());
    let inverse = linalg::inv(&x).unwrap();
    let s = host(&linalg::svdvals(&x).unwrap());
    for (i, part) in parts.iter().enumerate() {
        let own = part.device();
        assert!((det[i] - host(&linalg::det(&own).unwrap())[0]).abs() < 1e-6);
        assert!((s[5 * i] - host(&linalg::svdvals(&own).unwrap())[0]).abs() < 1e-6);
        let inverse = host(&inverse);
        let inverse = Matrix { values: inverse[25 * i..25 * i + 25].to_vec(), ..part.clone() };
        assert!(part.times(&inverse).off(&Matrix::unit(5)) < 1e-4);
    }
    // One matrix for several right-hand sides, and the reverse.
    let (a, b) = (tf::fill([1, 4, 2, 2], 0.0).unwrap(), Tensor::ones([3, 1, 2, 5]).unwrap());
    let a = linalg::set_diag(&a, &tf::fill([1, 4, 2], 2.0).unwrap()).unwrap();
    for y in [linalg::solve(&a, &b).unwrap(), linalg::triangular_solve(&a, &b).unwrap()] {
        assert_eq!(y.shape(), [3, 4, 2, 5]);
        assert!(host(&y).iter().all(|&v| v == 0.5));
    }
}

// ---- matrices that are ill-conditioned, or have no factors ----

/// The Hilbert matrix has a condition number of about e^(3.5 n).
fn hilbert(n: usize) -> Matrix {
    Matrix::new(n, n, |r, c| f64::from(1.0 / (r + c + 1) as f32))
}

#[test]
fn ill_conditioned_matrices_keep_the_bounds() {
    // Backward errors do not depend on the condition number (n = 5: 5e5; n = 8: 1.5e10).
    for n in [5, 8] {
        let x = hilbert(n);
        let (q, r) = linalg::qr(&x.device()).unwrap();
        small(Matrix::read(&q).times(&Matrix::read(&r)).off(&x), n, "qr of a Hilbert matrix");
        small(Matrix::read(&q).skewness(), n, "its q^T q");
        let (s, u, v) = linalg::svd(&x.device()).unwrap();
        let (s, u, v) = (host(&s), Matrix::read(&u), Matrix::read(&v));
        let scaled = Matrix::new(n, n, |r, c| u.at(r, c) * s[c]);
        small(scaled.times(&v.t()).off(&x), n, "svd of a Hilbert matrix");
        small(u.skewness(), n, "its u^T u");
    }
    let y = Matrix::read(&linalg::cholesky(&hilbert(5).device()).unwrap());
    small(y.times(&y.t()).off(&hilbert(5)), 5, "cholesky of a Hilbert matrix");
    // Solutions lose as many digits as the condition number has.
    let (x, ones) = (hilbert(4), Matrix::new(4, 1, |_, _| 1.0));
    let y = Matrix::read(&linalg::solve(&x.device(), &x.times(&ones).device()).unwrap());
    assert!(y.off(&ones) < 1.6e4 * 1e-7 * 4.0, "{:?}", y.values);
    // Numbers whose squares overflow or underflow.
    for scale in [1e30, 1e-30] {
        let x = Matrix::random(6, 6, 3);
        let scaled = Matrix::new(6, 6, |r, c| x.at(r, c) * scale);
        let s = host(&linalg::svdvals(&x.device()).unwrap());
        let large = host(&linalg::svdvals(&scaled.device()).unwrap());
        assert!(s.iter().zip(&large).all(|(a, b)| (a * scale / b - 1.0).abs() < 1e-4), "{large:?}");
    }
}

#[test]
fn matrices_without_factors_give_what_is_documented() {
    // Not positive definite: NaN from the first impossible column on.
    let y = linalg::cholesky(
        &tf::constant([[4.0, 0.0, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, 1.0]]).unwrap(),
    );
    let y = host(&y.unwrap());
    assert_eq!((y[0], y[3]), (2.0, 1.0));
    assert!(y[4].is_nan(), "{y:?}");
    // Singular: the determinant is 0, the inverse not finite.
    let flat = tf::constant([[1.0, 2.0], [2.0, 4.0]]).unwrap();
    assert_eq!(linalg::det(&flat).unwrap().item::<f32>().unwrap(), 0.0);
    let (sign, log) = linalg::slogdet(&flat).unwrap();
    assert_eq!(sign.item::<f32>().unwrap(), 0.0);
    assert_eq!(log.item::<f32>().unwrap(), f32::NEG_INFINITY);
    assert!(host(&linalg::inv(&flat).unwrap()).iter().any(|v| !v.is_finite()));
    assert_eq!(linalg::matrix_rank(&flat).unwrap().item::<i32>().unwrap(), 1);
    // Zeros: the vectors are still valid.
    for n in [1, 3, 20] {
        let zeros = Tensor::zeros([n, n]).unwrap();
        let (s, u, v) = linalg::svd(&zeros).unwrap();
        assert!(host(&s).iter().all(|&s| s == 0.0));
        assert!(Matrix::read(&u).skewness() < 1e-6 && Matrix::read(&v).skewness() < 1e-6);
        let (e, v) = linalg::eigh(&zeros).unwrap();
        assert!(host(&e).iter().all(|&e| e == 0.0) && Matrix::read(&v).skewness() < 1e-6);
        let (q, _) = linalg::qr(&zeros).unwrap();
        assert!(Matrix::read(&q).skewness() < 1e-6);
    }
    // Equal eigenvalues, of either sign.
    let (e, v) = linalg::eigh(&tf::constant([[0.0, 1.0], [1.0, 0.0]]).unwrap()).unwrap();
    let e = host(&e);
    assert!((e[0] + 1.0).abs() < 1e-6 && (e[1] - 1.0).abs() < 1e-6);
    assert!(Matrix::read(&v).skewness() < 1e-6);
    // A column sum beyond the number of squarings.
    let far = linalg::expm(&tf::constant([[-5000.0]]).unwrap()).unwrap();
    assert!(far.item::<f32>().unwrap().is_nan());
    let near = linalg::expm(&tf::constant([[-20.0]]).unwrap()).unwrap().item::<f32>().unwrap();
    assert!((f64::from(near) / (-20f64).exp() - 1.0).abs() < 1e-4);
}

/// Sizes that are not given: a square matrix, or the other side as short as possible.
#[test]
fn diagonals_choose_tensorflows_sizes() {
    use wgrad::linalg::{DiagOptions, diag_with};
    let x = tf::constant([1, 2]).unwrap();
    let shape = |options: DiagOptions| diag_with(&x, options).unwrap().shape().to_vec();
    assert_eq!(shape(DiagOptions::new().k(1)), [3, 3]);
    assert_eq!(shape(DiagOptions::new().k(-2)), [4, 4]);
    assert_eq!(shape(DiagOptions::new().num_rows(5)), [5, 2]);
    assert_eq!(shape(DiagOptions::new().k(1).num_cols(3)), [2, 3]);
    assert_eq!(shape(DiagOptions::new().k(-1).num_cols(4)), [3, 4]);
    let y = diag_with(&x, DiagOptions::new().k(-1)).unwrap();
    assert_eq!(y.to_vec::<i32>().unwrap(), [0, 0, 0, 1, 0, 0, 0, 2, 0]);
}

#[test]
fn full_singular_vectors_complete_the_space() {
    for (rows, columns) in [(7, 3), (3, 7)] {
        let x = Matrix::random(rows, columns, 5);
        let options = SvdOptions::new().full_matrices(true);
        let (s, u, v) = linalg::svd_with(&x.device(), options).unwrap();
        let (s, u, v) = (host(&s), Matrix::read(&u), Matrix::read(&v));
        assert_eq!((u.columns, v.columns), (rows, columns));
        small(u.skewness(), rows, "u");
        small(v.skewness(), columns, "v");
        let middle = Matrix::new(rows, columns, |r, c| if r == c { s[r] } else { 0.0 });
        small(u.times(&middle).times(&v.t()).off(&x), 3, "full svd");
    }
}

#[test]
fn empty_matrices_have_tensorflows_results() {
    let none = Tensor::zeros([0, 0]).unwrap();
    assert_eq!(linalg::det(&none).unwrap().item::<f32>().unwrap(), 1.0);
    for y in [
        linalg::cholesky(&none),
        linalg::inv(&none),
        linalg::expm(&none),
        linalg::lu(&none).map(|y| y.0),
    ] {
        assert_eq!(y.unwrap().shape(), [0, 0]);
    }
    let batch = Tensor::zeros([0, 3, 3]).unwrap();
    assert_eq!(linalg::det(&batch).unwrap().shape(), [0]);
    assert_eq!(linalg::svdvals(&batch).unwrap().shape(), [0, 3]);
    let flat = Tensor::zeros([0, 3]).unwrap();
    let (q, r) = linalg::qr(&flat).unwrap();
    assert_eq!((q.shape(), r.shape()), (&[0, 0][..], &[0, 3][..]));
    let (s, u, v) = linalg::svd(&flat).unwrap();
    assert_eq!((s.shape(), u.shape(), v.shape()), (&[0][..], &[0, 0][..], &[3, 0][..]));
    assert_eq!(host(&linalg::trace(&Tensor::zeros([2, 0, 3]).unwrap()).unwrap()), [0.0, 0.0]);
    assert_eq!(linalg::diag(&Tensor::zeros([0]).unwrap()).unwrap().shape(), [0, 0]);
    let y =
        tf::einsum("ij,jk->ik", [&Tensor::zeros([2, 0]).unwrap(), &Tensor::zeros([0, 3]).unwrap()]);
    assert_eq!(host(&y.unwrap()), [0.0; 6]);
}
