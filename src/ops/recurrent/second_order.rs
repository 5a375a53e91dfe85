//! The gradient of the gradient in `fused.rs`, composed of ordinary ops, so that it has gradients of every order.
//!
//! A step of the backward pass (shaders/recurrent_step_grad.wgsl) is linear in the gradients that it passes on, so its
//! transpose runs from the first step to the last: a product of the recurrent kernel with the previous step's result,
//! and sums of products with slopes. Only this part is sequential; the slopes before it and the gradients after it are
//! computed for all steps at once.

use super::layout::{Cell, SequenceAttributes};
use super::steps::along;
use crate::dtype::DType;
use crate::error::Result;
use crate::ops::{Backward, Grads, MatmulOptions, concat, fill, stack};
use crate::tensor::Tensor;

/// The gradients of `y`, `dy` and the transposed recurrent kernel `w` from that of `q`. `whole`: `dy` includes
/// gradients of the gates.
pub(super) fn grad(walk: &SequenceAttributes, whole: bool, back: &Backward) -> Result<Grads> {
    let call = Call::new(walk, whole, back)?;
    let results = match walk.cell {
        Cell::Lstm => lstm(&call)?,
        Cell::Gru => gru(&call)?,
        Cell::Simple => simple(&call)?,
    };
    let mut grads = Grads::new();
    grads.push(if back.needs(0) {
        let own = concat(each(&results.own)?, 2)?.pad(&[(1, 0), (0, 0), (0, 0), (0, 0)])?;
        Some(match results.before {
            Some((part, old)) => {
                let behind = walk.cell.stored() - part - 1;
                let old = old.expand_dims(2)?.pad(&[(0, 1), (0, 0), (part, behind), (0, 0)])?;
                own.add(old)?
            }
            None => own,
        })
    } else {
        None
    });
    grads.push(if back.needs(1) {
        Some(concat(each(&results.upstream)?, 2)?.pad(&[(1, 0), (0, 0), (0, 0), (0, 0)])?)
    } else {
        None
    });
    grads.push(if back.needs(2) { Some(call.by_kernel(&results.upstream[0])?) } else { None });
    Ok(grads)
}

/// The parts `[T,B,U]` of a gradient.
struct Results {
    /// Of `y[1..]`.
    own: Vec<Tensor>,
    /// Of `y[..T]`: the index of the part that has one, and its gradient.
    before: Option<(usize, Tensor)>,
    /// Of `dy[1..]`, as `own`.
    upstream: Vec<Tensor>,
}

fn each(parts: &[Tensor]) -> Result<Vec<Tensor>> {
    parts.iter().map(|part| part.expand_dims(2)).collect()
}

/// A call of the gradient: tensors of all steps, in the order of the steps.
struct Call<'a> {
    walk: &'a SequenceAttributes,
    whole: bool,
    back: &'a Backward<'a>,
    /// `[G*U,U]`.
    kernel: Tensor,
    /// Which steps count, as 1 and 0, `[T,B,1]`.
    seen: Option<Tensor>,
    /// The gradient of h after each step, if the step counts.
    dh: Tensor,
}

impl<'a> Call<'a> {
    fn new(walk: &'a SequenceAttributes, whole: bool, back: &'a Backward<'a>) -> Result<Self> {
        let kernel = back.x(2).cast(DType::F32)?;
        let seen = match walk.masked {
            true => {
                let mask = back.x(3).transpose([1, 0])?;
                let mask = if walk.backwards { mask.reverse(0)? } else { mask };
                Some(mask.cast(DType::F32)?.expand_dims(-1)?)
            }
            false => None,
        };
        let dh = walk.states(back.x(1), 0, 1, walk.steps)?;
        let mut call = Call { walk, whole, back, kernel, seen, dh };
        let (_, carry) = walk.cell.passed();
        if walk.steps > 1 {
            let [steps, batch, units] = [walk.steps - 1, walk.batch, walk.units];
            let product = call.slopes_behind()?.matmul(&call.kernel)?;
            let product = product.reshape_to([steps, batch, units].into())?;
            call.dh = call.dh.add(product.pad(&[(0, 1), (0, 0), (0, 0)])?)?;
        }
        call.dh = call.dh.add(call.behind(carry)?)?;
        call.dh = call.counted(&call.dh)?;
        Ok(call)
    }

    /// Part `part` of `q`, the gradient's result, of the step after each; zeros after the last.
    fn behind(&self, part: usize) -> Result<Tensor> {
        let steps = self.walk.steps - 1;
        let part = self.walk.states(self.back.y(), part, 1, steps)?;
        part.pad(&[(0, 1), (0, 0), (0, 0)])
    }

    /// The gates' slopes of all steps but the first, `[(T-1)*B,G*U]`.
    fn slopes_behind(&self) -> Result<Tensor> {
        let SequenceAttributes { steps, batch, units, .. } = *self.walk;
        let gates = self.walk.cell.gates();
        let slopes = self.back.y().slice(&[1, 0, 0, 0], &[-1, -1, gates as i64, -1])?;
        slopes.reshape_to([(steps - 1) * batch, gates * units].into())
    }

    /// `x` where the steps count, else 0.
    fn counted(&self, x: &Tensor) -> Result<Tensor> {
        self.seen.as_ref().map_or_else(|| Ok(x.clone()), |seen| x.multiply(seen))
    }

    /// Part `part` of `y` after each step.
    fn own(&self, part: usize) -> Result<Tensor> {
        self.walk.states(self.back.x(0), part, 1, self.walk.steps)
    }

    /// Part `part` of `y` before each step.
    fn old(&self, part: usize) -> Result<Tensor> {
        self.walk.states(self.back.x(0), part, 0, self.walk.steps)
    }

    /// Part `part` of `dy`.
    fn upstream(&self, part: usize) -> Result<Tensor> {
        self.walk.states(self.back.x(1), part, 1, self.walk.steps)
    }

    /// `x` plus the gradient in `dy` of part `part`, a gate.
    fn with_gate(&self, x: Tensor, part: usize) -> Result<Tensor> {
        if self.whole { x.add(self.upstream(part)?) } else { Ok(x) }
    }

    /// The gradient of the transposed kernel from those of `dh`.
    fn by_kernel(&self, dh: &Tensor) -> Result<Tensor> {
        let SequenceAttributes { steps, batch, units, .. } = *self.walk;
        let dtype = self.back.spec(2).dtype;
        if steps == 1 {
            let shape = self.back.spec(2).shape.clone();
            return fill(dh.device(), "RecurrentLayer", shape, 0.into(), dtype);
        }
        let dh = dh.slice(&[0, 0, 0], &[steps as i64 - 1, -1, -1])?;
        let dh = dh.reshape_to([(steps - 1) * batch, units].into())?;
        let product =
            self.slopes_behind()?.matmul_with(dh, MatmulOptions::new().transpose_a(true))?;
        product.cast(dtype)
    }

    /// The parts of the gradient of `q`, each `[T,B,U]`.
    fn given(&self, part: usize) -> Result<Tensor> {
        self.walk.states(self.back.dy, part, 0, self.walk.steps)
    }

    /// Runs from the first step to the last. `step` receives slices of `slopes` and the parts of the gradient of `q`,
    /// to which the previous step has added; it returns the gradients of its sums: of `dh`, and of the LSTM's `dc`.
    /// Returns the gradients of `q` of all steps, and the results of `step`.
    fn forth(
        &self,
        slopes: &[&Tensor],
        step: impl Fn(&[Tensor], &[Tensor]) -> Result<Vec<Tensor>>,
    ) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
        let SequenceAttributes { cell, steps, .. } = *self.walk;
        let (parts, carry) = cell.passed();
        let gates = cell.gates();
        let given: Vec<Vec<Tensor>> =
            (0..parts).map(|part| along(&self.given(part)?, 0)).collect::<Result<_>>()?;
        let slopes: Vec<Vec<Tensor>> = slopes.iter().map(|x| along(x, 0)).collect::<Result<_>>()?;
        let seen = self.seen.as_ref().map(|seen| along(seen, 0)).transpose()?;
        let mut all: Vec<Vec<Tensor>> = vec![Vec::new(); parts];
        let mut results: Vec<Vec<Tensor>> = vec![Vec::new(); cell.states()];
        let mut before: Option<Vec<Tensor>> = None;
        for t in 0..steps {
            let mut q: Vec<Tensor> = given.iter().map(|part| part[t].clone()).collect();
            if let Some(before) = &before {
                let right = MatmulOptions::new().transpose_b(true);
                let product = before[0].matmul_with(&self.kernel, right)?;
                let products = product.split(gates, 1)?;
                for (part, product) in q.iter_mut().zip(&products) {
                    *part = part.add(product)?;
                }
                for (part, before) in q[carry..].iter_mut().zip(before) {
                    *part = part.add(before)?;
                }
            }
            let own: Vec<Tensor> = slopes.iter().map(|x| x[t].clone()).collect();
            let mut given = step(&own, &q)?;
            if let Some(seen) = &seen {
                // A step that does not count passes its input on unchanged.
                for (given, passed) in given.iter_mut().zip(&q[carry..]) {
                    *given = given.multiply(&seen[t])?.add(passed.multiply(1.0 - &seen[t])?)?;
                }
            }
            all.iter_mut().zip(q).for_each(|(all, q)| all.push(q));
            results.iter_mut().zip(&given).for_each(|(all, one)| all.push(one.clone()));
            before = Some(given);
        }
        let whole = |lists: Vec<Vec<Tensor>>| -> Result<Vec<Tensor>> {
            lists.into_iter().map(|list| stack(list, 0)).collect()
        };
        Ok((whole(all)?, whole(results)?))
    }
}

/// Sums of products.
fn sum(terms: &[(&Tensor, &Tensor)]) -> Result<Tensor> {
    let mut sum: Option<Tensor> = None;
    for (a, b) in terms {
        let product = a.multiply(*b)?;
        sum = Some(match sum {
            Some(sum) => sum.add(product)?,
            None => product,
        });
    }
    Ok(sum.expect("a sum has terms"))
}

/// The derivative of a sigmoid from its value, `s (1 - s)`.
fn of_sigmoid(s: &Tensor) -> Result<Tensor> {
    s.multiply(1.0 - s)
}

/// The derivative of tanh from its value, `1 - t^2`.
fn of_tanh(t: &Tensor) -> Result<Tensor> {
    Ok(1.0 - t.square()?)
}

// A step back is
//   dc' = dc + dh o (1 - k^2), k = tanh(c)
//   q = ((dc' g + gi) i (1 - i); (dc' c_old + gf) f (1 - f); (dc' i + gg) (1 - g^2); (dh k + go) o (1 - o); 0; dc' f)
// where gi.. are what dy has for the gates.
fn lstm(call: &Call) -> Result<Results> {
    let [c, i, f, g, o] = [1, 2, 3, 4, 5].map(|part| call.own(part));
    let (c, i, f, g, o) = (c?, i?, f?, g?, o?);
    let old = call.old(1)?;
    let k = c.tanh()?;
    let (slope_i, slope_f, slope_o) = (of_sigmoid(&i)?, of_sigmoid(&f)?, of_sigmoid(&o)?);
    let (slope_g, slope_k) = (of_tanh(&g)?, of_tanh(&k)?);
    let dh = &call.dh;
    let by_h = o.multiply(&slope_k)?;
    let dc = call.counted(&call.upstream(1)?.add(call.behind(5)?)?)?.add(dh.multiply(&by_h)?)?;
    // The factors of dc' in q, and of dh in its fourth part.
    let by_c = [g.multiply(&slope_i)?, old.multiply(&slope_f)?, i.multiply(&slope_g)?, f.clone()];
    let by_o = k.multiply(&slope_o)?;
    let slopes = [&by_c[0], &by_c[1], &by_c[2], &by_c[3], &by_o, &by_h];
    let (q, given) = call.forth(&slopes, |s, q| {
        let dc = sum(&[(&q[0], &s[0]), (&q[1], &s[1]), (&q[2], &s[2]), (&q[5], &s[3])])?;
        Ok(vec![sum(&[(&q[3], &s[4]), (&dc, &s[5])])?, dc])
    })?;
    let dc_of_q = sum(&[(&q[0], &by_c[0]), (&q[1], &by_c[1]), (&q[2], &by_c[2]), (&q[5], &f)])?;
    // The sums that the slopes multiply.
    let sum_i = call.with_gate(dc.multiply(&g)?, 2)?;
    let sum_f = call.with_gate(dc.multiply(&old)?, 3)?;
    let sum_g = call.with_gate(dc.multiply(&i)?, 4)?;
    let sum_o = call.with_gate(dh.multiply(&k)?, 5)?;
    let by_dc = |q: &Tensor, slope: &Tensor| q.multiply(slope)?.multiply(&dc);
    let bent = |x: &Tensor, sum: &Tensor| sum.multiply(1.0 - 2.0 * x);
    let of_i = q[0].multiply(bent(&i, &sum_i)?)?.add(by_dc(&q[2], &slope_g)?)?;
    let of_f = q[1].multiply(bent(&f, &sum_f)?)?.add(q[5].multiply(&dc)?)?;
    let of_g = by_dc(&q[0], &slope_i)?.subtract(q[2].multiply(2.0 * &g)?.multiply(&sum_g)?)?;
    let dc_dh = dc_of_q.multiply(dh)?;
    let of_o = q[3].multiply(bent(&o, &sum_o)?)?.add(dc_dh.multiply(&slope_k)?)?;
    let of_k = q[3].multiply(&slope_o)?.multiply(dh)?;
    let of_k = of_k.subtract(dc_dh.multiply(2.0 * &o)?.multiply(&k)?)?;
    let of_old = by_dc(&q[1], &slope_f)?;
    let zero = c.zeros_like()?;
    let mut upstream = given;
    upstream.extend(match call.whole {
        true => vec![
            q[0].multiply(&slope_i)?,
            q[1].multiply(&slope_f)?,
            q[2].multiply(&slope_g)?,
            q[3].multiply(&slope_o)?,
        ],
        false => vec![zero.clone(); 4],
    });
    let own = vec![zero, of_k.multiply(&slope_k)?, of_i, of_f, of_g, of_o];
    Ok(Results { own, before: Some((1, of_old)), upstream })
}

// A step back is
//   dn' = dh (1 - z) + gn, dn = dn' (1 - n^2)
//   q = ((dh (h_old - n) + gz) z (1 - z); (dn a + gr) r (1 - r); dn r + ga; dn; dh z)
// where gz.. are what dy has for the gates.
fn gru(call: &Call) -> Result<Results> {
    let [z, r, n, a] = [1, 2, 3, 4].map(|part| call.own(part));
    let (z, r, n, a) = (z?, r?, n?, a?);
    let old = call.old(0)?;
    let dh = &call.dh;
    let (slope_z, slope_r, slope_n) = (of_sigmoid(&z)?, of_sigmoid(&r)?, of_tanh(&n)?);
    let rest = 1.0 - &z;
    let change = old.subtract(&n)?;
    let (by_z, by_r) = (change.multiply(&slope_z)?, a.multiply(&slope_r)?);
    let by_n = rest.multiply(&slope_n)?;
    let (q, given) = call.forth(&[&by_z, &by_r, &r, &by_n, &z], |s, q| {
        let dn = sum(&[(&q[1], &s[1]), (&q[2], &s[2])])?.add(&q[3])?;
        Ok(vec![sum(&[(&q[0], &s[0]), (&dn, &s[3]), (&q[4], &s[4])])?])
    })?;
    let before_tanh = call.with_gate(dh.multiply(&rest)?, 3)?;
    let dn = before_tanh.multiply(&slope_n)?;
    let dn_of_q = sum(&[(&q[1], &by_r), (&q[2], &r)])?.add(&q[3])?;
    let tanh_of_q = dn_of_q.multiply(&slope_n)?;
    let sum_z = call.with_gate(dh.multiply(&change)?, 1)?;
    let sum_r = call.with_gate(dn.multiply(&a)?, 2)?;
    let bent = |x: &Tensor, sum: &Tensor| sum.multiply(1.0 - 2.0 * x);
    let through = q[0].multiply(&slope_z)?.multiply(dh)?;
    let of_z = q[0].multiply(bent(&z, &sum_z)?)?;
    let of_z = of_z.add(q[4].subtract(&tanh_of_q)?.multiply(dh)?)?;
    let of_r = q[1].multiply(bent(&r, &sum_r)?)?.add(q[2].multiply(&dn)?)?;
    let of_n = dn_of_q.multiply(-2.0 * &n)?.multiply(&before_tanh)?.subtract(&through)?;
    let of_a = q[1].multiply(&slope_r)?.multiply(&dn)?;
    let zero = z.zeros_like()?;
    let mut upstream = given;
    upstream.extend(match call.whole {
        true => vec![q[0].multiply(&slope_z)?, q[1].multiply(&slope_r)?, tanh_of_q, q[2].clone()],
        false => vec![zero.clone(); 4],
    });
    let own = vec![zero, of_z, of_r, of_n, of_a];
    Ok(Results { own, before: Some((0, through)), upstream })
}

// A step back is q = (dh (1 - h^2); 0).
fn simple(call: &Call) -> Result<Results> {
    let h = call.own(0)?;
    let slope = of_tanh(&h)?;
    let (q, given) = call.forth(&[&slope], |s, q| Ok(vec![q[0].multiply(&s[0])?]))?;
    let of_h = q[0].multiply(-2.0 * &h)?.multiply(&call.dh)?;
    Ok(Results { own: vec![of_h], before: None, upstream: given })
}
