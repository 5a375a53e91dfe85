//! The ops that mix elements: products, windows, indices. They are defined by plain loops.

use wgrad::DType;

use super::eval::{Evaluator, Value, broadcast_shape, each, indices, spread, strides, taken};
use super::table::Rounding;

pub fn pad(x: &Value, edges: &[(usize, usize)], fill: f64) -> Value {
    let own = strides(&x.shape);
    let shape: Vec<usize> =
        x.shape.iter().zip(edges).map(|(n, (low, high))| n + low + high).collect();
    let mut y = Value::exact(&shape, x.dtype, Vec::new());
    each(&shape, |at| {
        let inside = |k: usize| at[k] >= edges[k].0 && at[k] < edges[k].0 + x.shape[k];
        if (0..at.len()).all(inside) {
            let i: usize = (0..at.len()).map(|k| (at[k] - edges[k].0) * own[k]).sum();
            y.v.push(x.v[i]);
            y.e.push(x.e[i]);
        } else {
            y.v.push(fill);
            y.e.push(0.0);
        }
    });
    y
}

/// One matrix for each, made of the elements that `source` selects, and zeros.
fn placed(
    x: &Value,
    shape: &[usize],
    source: impl Fn(&[usize], i64, i64) -> Option<usize>,
) -> Value {
    let mut y = Value::exact(shape, x.dtype, Vec::new());
    let rank = shape.len();
    each(shape, |at| match source(at, at[rank - 2] as i64, at[rank - 1] as i64) {
        Some(i) => {
            y.v.push(x.v[i]);
            y.e.push(x.e[i]);
        }
        None => {
            y.v.push(0.0);
            y.e.push(0.0);
        }
    });
    y
}

/// The elements on the diagonals `low` to `high`.
pub fn band(x: &Value, low: i64, high: i64) -> Value {
    let own = strides(&x.shape);
    placed(x, &x.shape, |at, r, c| {
        let i = || at.iter().zip(&own).map(|(at, own)| at * own).sum();
        (low..=high).contains(&(c - r)).then(i)
    })
}

pub fn diag(x: &Value, k: i64) -> Value {
    let (last, lead) = x.shape.split_last().expect("it has an axis");
    let n = last + k.unsigned_abs() as usize;
    let shape = [lead, &[n, n]].concat();
    let own = strides(&x.shape);
    placed(x, &shape, |at, r, c| {
        let i = || {
            let lead: usize = at[..lead.len()].iter().zip(&own).map(|(at, own)| at * own).sum();
            lead + r.min(c) as usize
        };
        (c - r == k).then(i)
    })
}

pub fn diag_part(x: &Value, k: i64) -> Option<Value> {
    let at = x.shape.len().checked_sub(2)?;
    let (down, right) = ((-k).max(0) as usize, k.max(0) as usize);
    let len = x.shape[at].checked_sub(down)?.min(x.shape[at + 1].checked_sub(right)?);
    let shape = [&x.shape[..at], &[len]].concat();
    let own = strides(&x.shape);
    let from = indices(&shape, |place| {
        let lead: usize = place[..at].iter().zip(&own).map(|(at, own)| at * own).sum();
        lead + (place[at] + down) * own[at] + place[at] + right
    });
    Some(taken(x, &shape, &from))
}

pub fn concat(parts: &[&Value], axis: usize) -> Option<Value> {
    let mut shape = parts[0].shape.clone();
    for part in &parts[1..] {
        let others = |s: &[usize]| -> Vec<usize> {
            s.iter().enumerate().filter(|(k, _)| *k != axis).map(|(_, n)| *n).collect()
        };
        (part.shape.len() == shape.len()
            && others(&part.shape) == others(&shape)
            && part.dtype == parts[0].dtype)
            .then_some(())?;
        shape[axis] += part.shape[axis];
    }
    let mut y = Value::exact(&shape, parts[0].dtype, Vec::new());
    each(&shape, |at| {
        let (mut k, mut place) = (0, at[axis]);
        while place >= parts[k].shape[axis] {
            place -= parts[k].shape[axis];
            k += 1;
        }
        let own = strides(&parts[k].shape);
        let i: usize = (0..at.len()).map(|a| if a == axis { place } else { at[a] } * own[a]).sum();
        y.v.push(parts[k].v[i]);
        y.e.push(parts[k].e[i]);
    });
    Some(y)
}

/// One product with its bound.
fn product(by: &Evaluator, a: &Value, i: usize, b: &Value, j: usize) -> (f64, f64) {
    let (p, q, dp, dq) = (a.v[i], b.v[j], a.e[i], b.e[j]);
    let own = by.rounded(Rounding::Once, p * q, dp == 0.0 && dq == 0.0);
    (p * q, p.abs() * dq + q.abs() * dp + dp * dq + own)
}

pub fn matmul(by: &Evaluator, a: &Value, b: &Value, ta: bool, tb: bool) -> Option<Value> {
    let (ra, rb) = (a.shape.len().checked_sub(2)?, b.shape.len().checked_sub(2)?);
    let turned = |s: &[usize], t: bool| if t { (s[1], s[0]) } else { (s[0], s[1]) };
    let ((m, k), (k2, n)) = (turned(&a.shape[ra..], ta), turned(&b.shape[rb..], tb));
    (k == k2).then_some(())?;
    let lead = broadcast_shape(&a.shape[..ra], &b.shape[..rb])?;
    let whole = |x: &Value, r: usize| spread(x, &[&lead[..], &x.shape[r..]].concat());
    let (a, b) = (whole(a, ra)?, whole(b, rb)?);
    let shape = [&lead[..], &[m, n]].concat();
    let mut y = Value::exact(&shape, a.dtype, Vec::new());
    for batch in 0..lead.iter().product() {
        for i in 0..m {
            for j in 0..n {
                let terms = (0..k).map(|l| {
                    let at = batch * m * k + if ta { l * m + i } else { i * k + l };
                    let bt = batch * k * n + if tb { j * k + l } else { l * n + j };
                    product(by, &a, at, &b, bt)
                });
                let (v, e) = by.sum(terms);
                y.v.push(v);
                y.e.push(if a.dtype == DType::F32 { e } else { 0.0 });
            }
        }
    }
    Some(y)
}

/// The number of windows along an axis, and how far the first one starts before the image.
fn windows(
    size: usize,
    window: usize,
    stride: usize,
    dilation: usize,
    same: bool,
) -> (usize, usize) {
    let span = (window - 1) * dilation + 1;
    if same {
        let n = size.div_ceil(stride);
        let total = (n.saturating_sub(1) * stride + span).saturating_sub(size);
        (n, total / 2)
    } else {
        ((size + stride).saturating_sub(span) / stride, 0)
    }
}

pub fn conv(
    by: &Evaluator,
    x: &Value,
    w: &Value,
    [sh, sw]: [usize; 2],
    same: bool,
    [dh, dw]: [usize; 2],
) -> Option<Value> {
    let (&[n, h, wide, c], &[kh, kw, c2, o]) = (&x.shape[..], &w.shape[..]) else { return None };
    (c == c2).then_some(())?;
    let (oh, top) = windows(h, kh, sh, dh, same);
    let (ow, left) = windows(wide, kw, sw, dw, same);
    let shape = [n, oh, ow, o];
    let mut y = Value::exact(&shape, DType::F32, Vec::new());
    each(&shape, |at| {
        let mut terms = Vec::new();
        for u in 0..kh {
            for v in 0..kw {
                let (i, j) = (at[1] * sh + u * dh, at[2] * sw + v * dw);
                if i < top || j < left || i - top >= h || j - left >= wide {
                    continue;
                }
                let pixel = ((at[0] * h + i - top) * wide + j - left) * c;
                for k in 0..c {
                    terms.push(product(by, x, pixel + k, w, ((u * kw + v) * c + k) * o + at[3]));
                }
            }
        }
        let (v, e) = by.sum(terms.into_iter());
        y.v.push(v);
        y.e.push(e);
    });
    Some(y)
}

pub fn pool(
    by: &Evaluator,
    x: &Value,
    max: bool,
    [kh, kw]: [usize; 2],
    [sh, sw]: [usize; 2],
    same: bool,
) -> Option<Value> {
    let &[n, h, w, c] = &x.shape[..] else { return None };
    let (oh, top) = windows(h, kh, sh, 1, same);
    let (ow, left) = windows(w, kw, sw, 1, same);
    let shape = [n, oh, ow, c];
    let mut y = Value::exact(&shape, DType::F32, Vec::new());
    each(&shape, |at| {
        let mut row = Vec::new();
        for u in 0..kh {
            for v in 0..kw {
                let (i, j) = (at[1] * sh + u, at[2] * sw + v);
                if i >= top && j >= left && i - top < h && j - left < w {
                    row.push(((at[0] * h + i - top) * w + j - left) * c + at[3]);
                }
            }
        }
        if max {
            let nan = row.iter().any(|&i| x.v[i].is_nan());
            let v = row.iter().map(|&i| x.v[i]).fold(f64::NEG_INFINITY, f64::max);
            y.v.push(if nan { f64::NAN } else { v });
            y.e.push(row.iter().map(|&i| x.e[i]).fold(0.0, f64::max));
        } else {
            let (v, e) = by.sum(row.iter().map(|&i| (x.v[i], x.e[i])));
            let n = row.len() as f64;
            y.v.push(v / n);
            y.e.push(e / n + by.rounded(Rounding::Units(2.0), v / n, false));
        }
    });
    Some(y)
}

/// An index outside the axis selects zeros.
pub fn gather(x: &Value, ids: &Value, axis: usize) -> Value {
    let own = strides(&x.shape);
    let shape = [&x.shape[..axis], &ids.shape[..], &x.shape[axis + 1..]].concat();
    let (inner, size) = (strides(&ids.shape), x.shape[axis] as f64);
    let mut y = Value::exact(&shape, x.dtype, Vec::new());
    each(&shape, |at| {
        let (lead, rest) = at.split_at(axis);
        let (place, tail) = rest.split_at(ids.shape.len());
        let id = ids.v[place.iter().zip(&inner).map(|(c, s)| c * s).sum::<usize>()];
        if id < 0.0 || id >= size {
            y.v.push(0.0);
            y.e.push(0.0);
            return;
        }
        let i = lead.iter().zip(&own).map(|(c, s)| c * s).sum::<usize>()
            + id as usize * own[axis]
            + tail.iter().zip(&own[axis + 1..]).map(|(c, s)| c * s).sum::<usize>();
        y.v.push(x.v[i]);
        y.e.push(x.e[i]);
    });
    y
}

/// The first of equal elements; NaN is skipped.
pub fn argmax(by: &Evaluator, x: &Value, axis: usize, largest: bool) -> Option<Value> {
    (x.shape[axis] > 0).then_some(())?;
    let sign = if largest { 1.0 } else { -1.0 };
    let (shape, rows) = Evaluator::rows(x, &[axis], false);
    let mut y = Value::exact(&shape, DType::I32, Vec::new());
    for row in &rows {
        let mut best: Option<usize> = None;
        for k in 0..row.len() {
            let v = sign * x.v[row[k]];
            if !v.is_nan() && best.is_none_or(|b| v > sign * x.v[row[b]]) {
                best = Some(k);
            }
        }
        let best = best.unwrap_or(0);
        // Another element that is as large within the bounds might be selected.
        let near = |i: usize| {
            let bound = 4.0 * (x.e[i] + x.e[row[best]]);
            i != row[best] && bound > 0.0 && (x.v[i] - x.v[row[best]]).abs() <= bound
        };
        if by.strict && row.iter().any(|&i| near(i)) {
            return None;
        }
        y.v.push(best as f64);
        y.e.push(0.0);
    }
    Some(y)
}

/// Sums rows by segment number; numbers out of range are ignored.
pub fn segment_sum(by: &Evaluator, x: &Value, ids: &Value, segments: usize) -> Option<Value> {
    let lead = ids.shape.len();
    x.shape.starts_with(&ids.shape).then_some(())?;
    let inner: usize = x.shape[lead..].iter().product();
    let shape = [&[segments], &x.shape[lead..]].concat();
    let mut y = Value::exact(&shape, x.dtype, Vec::new());
    for segment in 0..segments {
        for j in 0..inner {
            let own = ids.v.iter().enumerate().filter(|(_, id)| **id == segment as f64);
            let (v, e) = by.sum(own.map(|(row, _)| (x.v[row * inner + j], x.e[row * inner + j])));
            y.v.push(v);
            y.e.push(if x.dtype == DType::F32 { e } else { 0.0 });
        }
    }
    Some(y)
}
