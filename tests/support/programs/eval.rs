//! Evaluates programs in `f64` with plain loops over vectors, with a bound on the `f32` error of each element. The bound
//! depends on the op: on how it propagates the inputs' bounds, and on its own rounding.

use wgrad::DType;

use super::kernels;
use super::table::{Binary, Rounding, Unary};
use super::{Op, Program};

/// A unit in the last place of a number in 1 to 2.
pub const ULP: f64 = 1.0 / (1u64 << 23) as f64;

/// What a result is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Against {
    /// The true value: a driver's functions have errors.
    Truth,
    /// The same ops in other kernels: a compiler may contract and reorder, but the driver's functions are the same.
    Twin,
}

/// A tensor: values, and bounds of their errors.
#[derive(Clone, Debug)]
pub struct Value {
    pub shape: Vec<usize>,
    pub dtype: DType,
    pub v: Vec<f64>,
    pub e: Vec<f64>,
}

impl Value {
    pub fn exact(shape: &[usize], dtype: DType, v: Vec<f64>) -> Self {
        let e = vec![0.0; v.len()];
        Value { shape: shape.to_vec(), dtype, v, e }
    }

    pub fn largest(&self) -> f64 {
        self.v.iter().fold(0.0, |m, v| m.max(v.abs()))
    }

    /// Whether the bounds are small compared with the values; the values must be finite if `finite`.
    pub fn certain(&self, finite: bool) -> bool {
        let size = self.v.iter().filter(|v| v.is_finite()).fold(1.0, |m: f64, v| m.max(v.abs()));
        let all = !finite || self.all(f64::is_finite);
        all && self.e.iter().all(|&e| e <= 1e-3 * size)
    }

    pub fn all(&self, f: impl Fn(f64) -> bool) -> bool {
        self.v.iter().all(|&v| f(v))
    }
}

/// Row-major strides.
pub fn strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1; shape.len()];
    for k in (1..shape.len()).rev() {
        strides[k - 1] = strides[k] * shape[k].max(1);
    }
    strides
}

/// Calls `f` with the coordinates of every element, in row-major order.
pub fn each(shape: &[usize], mut f: impl FnMut(&[usize])) {
    let count: usize = shape.iter().product();
    let mut at = vec![0; shape.len()];
    for _ in 0..count {
        f(&at);
        for k in (0..shape.len()).rev() {
            at[k] += 1;
            if at[k] < shape[k] {
                break;
            }
            at[k] = 0;
        }
    }
}

/// The flat index that `source` returns for the coordinates of each element of `shape`.
pub fn indices(shape: &[usize], mut source: impl FnMut(&[usize]) -> usize) -> Vec<usize> {
    let mut out = Vec::with_capacity(shape.iter().product());
    each(shape, |at| out.push(source(at)));
    out
}

/// Elements of `x` by flat index.
pub fn taken(x: &Value, shape: &[usize], from: &[usize]) -> Value {
    Value {
        shape: shape.to_vec(),
        dtype: x.dtype,
        v: from.iter().map(|&i| x.v[i]).collect(),
        e: from.iter().map(|&i| x.e[i]).collect(),
    }
}

pub fn broadcast_shape(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let size = |s: &[usize], k: usize| (k + s.len()).checked_sub(rank).map_or(1, |k| s[k]);
    (0..rank)
        .map(|k| match (size(a, k), size(b, k)) {
            (m, n) if m == n => Some(m),
            (1, n) => Some(n),
            (m, 1) => Some(m),
            _ => None,
        })
        .collect()
}

/// `x` repeated to `shape`.
pub fn spread(x: &Value, shape: &[usize]) -> Option<Value> {
    if broadcast_shape(&x.shape, shape)? != shape {
        return None;
    }
    let (own, lead) = (strides(&x.shape), shape.len() - x.shape.len());
    let from = indices(shape, |at| {
        let along = |k: usize| if x.shape[k] == 1 { 0 } else { at[lead + k] * own[k] };
        (0..own.len()).map(along).sum()
    });
    Some(taken(x, shape, &from))
}

/// The smallest bound that is distinguished from 0: smaller numbers are flushed to 0.
pub const TINY: f64 = 1e-36;

pub struct Evaluator {
    pub against: Against,
    /// Refuses values outside an op's domain, and those that jump within their bounds.
    pub strict: bool,
}

impl Evaluator {
    pub fn new(against: Against) -> Self {
        Evaluator { against, strict: true }
    }

    /// All values, or `None` if one of them is not certain.
    pub fn run(&self, program: &Program) -> Option<Vec<Value>> {
        let mut values: Vec<Value> = Vec::with_capacity(program.nodes.len());
        for node in &program.nodes {
            let inputs: Vec<&Value> = node.inputs.iter().map(|&i| &values[i]).collect();
            let value = self.apply(&node.op, &inputs)?;
            values.push(value);
        }
        Some(values)
    }

    /// The error that an op adds to a value `v`, with exact inputs or not.
    pub fn rounded(&self, rounding: Rounding, v: f64, exact: bool) -> f64 {
        let twin = self.against == Against::Twin;
        match rounding {
            Rounding::Exact | Rounding::Step(_) => 0.0,
            Rounding::Once if exact && v as f32 as f64 == v => 0.0,
            Rounding::Once => 0.5 * ULP * v.abs() + TINY,
            Rounding::Units(n) => n * ULP * v.abs() + TINY,
            Rounding::Function if twin => 6.0 * ULP * v.abs() + 1.5e-7,
            Rounding::Function => 1.2e-5 * v.abs() + 2e-6,
        }
    }

    pub fn apply(&self, op: &Op, x: &[&Value]) -> Option<Value> {
        let mut y = self.computed(op, x)?;
        // NaN and infinities are compared by their class.
        y.v.iter().zip(&mut y.e).filter(|(v, _)| !v.is_finite()).for_each(|(_, e)| *e = 0.0);
        Some(y)
    }

    fn computed(&self, op: &Op, x: &[&Value]) -> Option<Value> {
        Some(match op {
            Op::Input { values, shape, dtype, .. } => Value::exact(shape, *dtype, values.clone()),
            Op::Full { value, shape, dtype } => {
                Value::exact(shape, *dtype, vec![*value; shape.iter().product()])
            }
            Op::Range { start, step, n } => {
                let v = (0..*n as i64).map(|i| (start + step * i) as f64).collect();
                Value::exact(&[*n], DType::I32, v)
            }
            Op::Unary(row) => self.unary(row, x[0])?,
            Op::Binary(row) => self.binary(row, x[0], x[1])?,
            Op::Scalar(row, v) => {
                self.binary(row, x[0], &Value::exact(&[], x[0].dtype, vec![*v]))?
            }
            Op::Select => {
                let shape = broadcast_shape(&x[1].shape, &x[2].shape)?;
                let shape = broadcast_shape(&x[0].shape, &shape)?;
                let (c, a, b) =
                    (spread(x[0], &shape)?, spread(x[1], &shape)?, spread(x[2], &shape)?);
                let pick = |t: &[f64], f: &[f64]| -> Vec<f64> {
                    (0..t.len()).map(|i| if c.v[i] != 0.0 { t[i] } else { f[i] }).collect()
                };
                Value { v: pick(&a.v, &b.v), e: pick(&a.e, &b.e), ..a }
            }
            Op::Cast(to) => self.cast(x[0], *to)?,
            Op::Reshape(to) => {
                (to.iter().product::<usize>() == x[0].v.len()).then_some(())?;
                Value { shape: to.clone(), ..x[0].clone() }
            }
            Op::Transpose(order) => {
                let own = strides(&x[0].shape);
                let shape: Vec<usize> = order.iter().map(|&k| x[0].shape[k]).collect();
                let from =
                    indices(&shape, |at| at.iter().zip(order).map(|(c, &k)| c * own[k]).sum());
                taken(x[0], &shape, &from)
            }
            Op::Slice(ranges) => {
                let own = strides(&x[0].shape);
                let shape: Vec<usize> = ranges.iter().map(|r| r.1).collect();
                let from = indices(&shape, |at| {
                    let along =
                        |k: usize| (ranges[k].0 as i64 + at[k] as i64 * ranges[k].2) as usize;
                    (0..own.len()).map(|k| along(k) * own[k]).sum()
                });
                taken(x[0], &shape, &from)
            }
            Op::BroadcastTo(to) => spread(x[0], to)?,
            Op::Reverse(along) => {
                let (shape, own) = (&x[0].shape, strides(&x[0].shape));
                let from = indices(shape, |at| {
                    let place =
                        |k: usize| if along.contains(&k) { shape[k] - 1 - at[k] } else { at[k] };
                    (0..own.len()).map(|k| place(k) * own[k]).sum()
                });
                taken(x[0], shape, &from)
            }
            Op::Roll(by, axis) => {
                let (shape, own) = (&x[0].shape, strides(&x[0].shape));
                let from = indices(shape, |at| {
                    let size = shape[*axis] as i64;
                    let place = |k: usize| match k == *axis {
                        true => (at[k] as i64 - by).rem_euclid(size) as usize,
                        false => at[k],
                    };
                    (0..own.len()).map(|k| place(k) * own[k]).sum()
                });
                taken(x[0], shape, &from)
            }
            Op::Pad(edges, fill) => kernels::pad(x[0], edges, *fill),
            Op::Band(low, high) => kernels::band(x[0], *low, *high),
            Op::DiagPart(k) => kernels::diag_part(x[0], *k)?,
            Op::Diag(k) => kernels::diag(x[0], *k),
            Op::Concat(axis) => kernels::concat(x, *axis)?,
            Op::Reduce(row, axes, keep) => self.reduce(row, x[0], axes, *keep)?,
            Op::Softmax(axis) => self.softmax(x[0], *axis)?,
            Op::LogSoftmax(axis) => self.log_softmax(x[0], *axis)?,
            Op::CrossEntropy => {
                let axis = x[1].shape.len().checked_sub(1)?;
                let classes = x[1].shape[axis];
                (x[0].shape[..] == x[1].shape[..axis] && classes > 0).then_some(())?;
                let log = self.log_softmax(x[1], axis)?;
                let at: Option<Vec<usize>> = (x[0].v.iter().enumerate())
                    .map(|(row, &label)| {
                        (label >= 0.0 && label < classes as f64)
                            .then_some(row * classes + label as usize)
                    })
                    .collect();
                let mut y = taken(&log, &x[0].shape, &at?);
                y.v.iter_mut().for_each(|v| *v = -*v);
                y
            }
            Op::MatMul { ta, tb } => kernels::matmul(self, x[0], x[1], *ta, *tb)?,
            Op::Conv { strides, same, dilations } => {
                kernels::conv(self, x[0], x[1], *strides, *same, *dilations)?
            }
            Op::Pool { max, window, strides, same } => {
                kernels::pool(self, x[0], *max, *window, *strides, *same)?
            }
            Op::Gather(axis) => kernels::gather(x[0], x[1], *axis),
            Op::ArgMax { axis, largest } => kernels::argmax(self, x[0], *axis, *largest)?,
            Op::SegmentSum(n) => kernels::segment_sum(self, x[0], x[1], *n)?,
        })
    }

    fn unary(&self, row: &Unary, x: &Value) -> Option<Value> {
        let mut y = x.clone();
        if row.test {
            y.dtype = DType::Bool;
        }
        for (v, e) in y.v.iter_mut().zip(&mut y.e) {
            let (at, by) = (*v, *e);
            let inside = |x: f64| !x.is_finite() || (row.domain)(x);
            if self.strict && !(inside(at) && inside(at - 2.0 * by) && inside(at + 2.0 * by)) {
                return None;
            }
            *v = self.overflow((row.f)(at), y.dtype)?;
            let moved = |d: f64| ((row.f)(at + d) - *v).abs();
            let spread = if by > 0.0 { moved(by).max(moved(-by)) } else { 0.0 };
            if let Rounding::Step(_) = row.rounding {
                if self.strict
                    && by > 0.0
                    && (moved(4.0 * by + TINY) > 0.0 || moved(-4.0 * by - TINY) > 0.0)
                {
                    return None;
                }
                *e = 0.0;
            } else {
                // Twice, as the function may be curved within the bound.
                *e = 2.0f64.min(1.0 + by) * spread + self.rounded(row.rounding, *v, by == 0.0);
            }
        }
        Some(y)
    }

    pub fn binary(&self, row: &Binary, a: &Value, b: &Value) -> Option<Value> {
        let shape = broadcast_shape(&a.shape, &b.shape)?;
        let (a, b) = (spread(a, &shape)?, spread(b, &shape)?);
        let dtype = if row.test { DType::Bool } else { a.dtype };
        let mut y = Value::exact(&shape, dtype, vec![0.0; a.v.len()]);
        for i in 0..y.v.len() {
            let (p, q, dp, dq) = (a.v[i], b.v[i], a.e[i], b.e[i]);
            let corners = |m: f64| {
                [(m * dp, m * dq), (m * dp, -m * dq), (-m * dp, m * dq), (-m * dp, -m * dq)]
            };
            let special = !p.is_finite() || !q.is_finite();
            let around = || corners(2.0).iter().all(|(s, t)| (row.domain)(p + s, q + t));
            let inside = special || ((row.domain)(p, q) && around());
            if self.strict && !inside {
                return None;
            }
            let v = self.overflow((row.f)(p, q), dtype)?;
            let exact = dp == 0.0 && dq == 0.0;
            y.v[i] = v;
            if dtype != DType::F32 && exact {
                continue;
            }
            if let (Rounding::Step(margin), false) = (row.rounding, special) {
                // The quotient is what jumps; for a remainder it is its integer part.
                let whole =
                    |p: f64, q: f64| if margin > 0.0 { (p / q).floor() } else { (row.f)(p, q) };
                let by = margin * (p.abs() + q.abs());
                let jumps = corners(4.0).iter().any(|(s, t)| {
                    let (s, t) = (s + by * s.signum(), t + by * 0.1 * t.signum());
                    whole(p + s, q + t) != whole(p, q)
                });
                if self.strict && jumps && !(exact && margin == 0.0) {
                    return None;
                }
            }
            let moved = |(s, t): (f64, f64)| ((row.f)(p + s, q + t) - v).abs();
            let spread =
                if exact { 0.0 } else { corners(1.0).map(moved).into_iter().fold(0.0, f64::max) };
            let own = match row.name {
                "floormod" => ULP * (p.abs() + q.abs()) * 2.0,
                _ => self.rounded(row.rounding, v, exact),
            };
            y.e[i] = spread + own;
        }
        Some(y)
    }

    /// A float beyond the range of `f32` is infinite; integers are not tested there.
    pub fn overflow(&self, v: f64, dtype: DType) -> Option<f64> {
        match dtype {
            DType::F32 if v.abs() > f64::from(f32::MAX) => Some(v.signum() * f64::INFINITY),
            DType::I32 if v.abs() > 1e9 => None,
            _ => Some(v),
        }
    }

    fn cast(&self, x: &Value, to: DType) -> Option<Value> {
        let mut y = Value { dtype: to, ..x.clone() };
        let cast = |v: f64| match (x.dtype, to) {
            (_, DType::F32) => f64::from(v as f32),
            (_, DType::Bool) => f64::from(v != 0.0),
            (DType::F32, _) if v.is_nan() => 0.0,
            // Floats are clamped to the range, integers wrap.
            (DType::F32, DType::U8) => v.trunc().clamp(0.0, 255.0),
            (DType::I32, DType::U8) => f64::from(v as i64 as u8),
            _ => v.trunc(),
        };
        for (v, e) in y.v.iter_mut().zip(&mut y.e) {
            let (at, by) = (*v, 4.0 * *e);
            *v = cast(at);
            if to == DType::F32 {
                continue;
            }
            if *e > 0.0 && (cast(at - by) != *v || cast(at + by) != *v) {
                return None;
            }
            *e = 0.0;
        }
        Some(y)
    }
}
