//! Families of graphs that grow with a number: deep, wide, crossed, random. Values stay near 1, so that two ways to compute
//! them can be compared.

use wgrad::{Result, Tensor, add_n, concat, stack};

pub mod random;

/// Builds a graph of a given size; the results are held until they are flushed.
pub type Build = fn(usize) -> Result<Vec<Tensor>>;

/// Some numbers of either sign, of at most 1.
pub fn ramp(shape: &[usize], from: usize) -> Result<Tensor> {
    let n: usize = shape.iter().product();
    let values: Vec<f32> = (from..from + n).map(|i| (i * 7 % 33) as f32 / 16.0 - 1.0).collect();
    Tensor::from_slice(&values, shape)
}

fn levels(
    n: usize,
    shape: &[usize],
    level: impl Fn(&Tensor) -> Result<Tensor>,
) -> Result<Vec<Tensor>> {
    Ok(vec![(0..n).try_fold(ramp(shape, 0)?, |x, _| level(&x))?])
}

/// `x = f(x) + g(x)`.
pub fn diamonds(n: usize) -> Result<Vec<Tensor>> {
    levels(n, &[4, 6], |x| x.multiply(0.5)?.add(x.tanh()?.abs()?))
}

/// `x = x - x.mean()`, whole and along an axis.
pub fn diamonds_with_folds(n: usize) -> Result<Vec<Tensor>> {
    let whole = levels(n, &[4, 6], |x| x.subtract(x.reduce_mean(())?.multiply(0.5)?))?;
    let rows = levels(n, &[4, 6], |x| {
        x.subtract(x.reduce_mean(wgrad::Axes::from(-1).keepdims(true))?)?.tanh()
    })?;
    Ok([whole, rows].concat())
}

/// `x = x / 2 + softmax(x)`.
pub fn diamonds_with_softmax(n: usize) -> Result<Vec<Tensor>> {
    levels(n, &[4, 6], |x| x.multiply(0.5)?.add(x.softmax(-1)?))
}

/// `x = x w / 4 + x`.
pub fn diamonds_with_products(n: usize) -> Result<Vec<Tensor>> {
    let w = ramp(&[6, 6], 3)?.multiply(0.125)?;
    levels(n, &[4, 6], |x| x.matmul(&w)?.add(x)?.tanh())
}

/// Two chains that read each other.
pub fn ladder(n: usize) -> Result<Vec<Tensor>> {
    let (mut a, mut b) = (ramp(&[5], 0)?, ramp(&[5], 11)?);
    for _ in 0..n {
        let sum = a.add(&b)?.multiply(0.5)?;
        let difference = a.subtract(&b)?.multiply(0.5)?;
        a = sum;
        b = difference.add(1.0)?;
    }
    Ok(vec![a, b])
}

/// A ladder in which each chain reads reductions of the other.
pub fn ladder_with_folds(n: usize) -> Result<Vec<Tensor>> {
    let (mut a, mut b) = (ramp(&[5, 3], 0)?, ramp(&[5, 3], 11)?);
    for _ in 0..n {
        let next =
            a.subtract(b.reduce_mean(wgrad::Axes::from(0).keepdims(true))?)?.multiply(0.5)?;
        b = b.add(a.reduce_max(wgrad::Axes::from(1).keepdims(true))?)?.multiply(0.5)?;
        a = next;
    }
    Ok(vec![a, b])
}

/// A grid in which each element combines those above and to its left, by a sum or a maximum in alternate rows.
pub fn grid(rows: usize) -> Result<Vec<Tensor>> {
    const COLUMNS: usize = 40;
    let mut row: Vec<Tensor> = (0..COLUMNS).map(|j| ramp(&[3], j)).collect::<Result<_>>()?;
    for i in 0..rows {
        let mut left = ramp(&[3], 5 * i)?;
        for above in &mut row {
            // The tanh of the sums keeps values small.
            left = if i % 2 == 0 { above.add(&left)?.tanh()? } else { above.maximum(&left)? };
            *above = left.clone();
        }
    }
    Ok(row)
}

/// One value with `n` readers, all of which are held.
pub fn fan_out(n: usize) -> Result<Vec<Tensor>> {
    let x = ramp(&[7], 0)?.tanh()?;
    (0..n).map(|k| x.multiply(k as f32)).collect()
}

/// One value with `n` readers, which are combined by a tree and by a chain of sums.
pub fn fan_in(n: usize) -> Result<Vec<Tensor>> {
    let x = ramp(&[7], 0)?.tanh()?;
    let parts: Vec<Tensor> =
        (0..n / 2).map(|k| x.add(k as f32 / n as f32)).collect::<Result<_>>()?;
    let chain = parts[1..].iter().try_fold(parts[0].clone(), |sum, part| sum.add(part))?;
    Ok(vec![chain.multiply(2.0 / n as f32)?])
}

/// `n` uploads that are summed.
pub fn sum_of_inputs(n: usize) -> Result<Vec<Tensor>> {
    let parts: Vec<Tensor> = (0..n).map(|k| ramp(&[7], k)).collect::<Result<_>>()?;
    Ok(vec![add_n(parts.iter().collect::<Vec<_>>())?.multiply(1.0 / n as f32)?])
}

/// `n` slices of one tensor, each halved, then stacked.
pub fn slices(n: usize) -> Result<Vec<Tensor>> {
    let x = ramp(&[n, 6], 0)?.tanh()?;
    let rows: Vec<Tensor> = (0..n)
        .map(|k| x.slice(&[k, 0], &[1, 6])?.reshape([6])?.multiply(0.5))
        .collect::<Result<_>>()?;
    Ok(vec![stack(rows.iter().collect::<Vec<_>>(), 0)?])
}

/// A roll by one, `n` times: two slices and a concatenation each.
pub fn rolls(n: usize) -> Result<Vec<Tensor>> {
    levels(n, &[4, 6], |x| {
        let (head, tail) = (x.slice(&[0, 0], &[4, 1])?, x.slice(&[0, 1], &[4, 5])?);
        concat([&tail, &head], 1)?.add(x)?.multiply(0.5)
    })
}

/// The gradients of a net of `n` layers.
pub fn net(n: usize) -> Result<Vec<Tensor>> {
    let x = ramp(&[4, 6], 0)?;
    let tape = wgrad::GradientTape::new();
    let mut weights = Vec::new();
    let mut y = x;
    for k in 0..n {
        let (w, b) = (ramp(&[6, 6], k)?, ramp(&[6], 2 * k)?);
        tape.watch(&w)?;
        tape.watch(&b)?;
        y = y.matmul(&w)?.multiply(0.5)?.add(&b)?.tanh()?;
        weights.extend([w, b]);
    }
    let loss = y.square()?.reduce_mean(())?;
    let mut gradients = tape.required_gradient(&loss, &weights)?;
    gradients.push(loss);
    Ok(gradients)
}

/// The mean of the last two values.
pub fn mean_of_two(n: usize) -> Result<Vec<Tensor>> {
    let (mut a, mut b) = (ramp(&[5], 0)?, ramp(&[5], 11)?);
    for _ in 0..n {
        let c = a.add(&b)?.multiply(0.5)?;
        a = b;
        b = c;
    }
    Ok(vec![b])
}

/// `n` iterations of gradient descent, each with its own gradient.
pub fn descent(n: usize) -> Result<Vec<Tensor>> {
    let (mut x, target) = (ramp(&[3, 4], 0)?, ramp(&[3, 4], 7)?.add(4.0)?);
    for _ in 0..n {
        let tape = wgrad::GradientTape::new();
        tape.watch(&x)?;
        let d = x.subtract(&target)?.square()?;
        let far = d.sqrt()?.add(0.1)?.log()?.reduce_sum(())?;
        let y = far.add(d.reduce_mean(())?)?;
        x = x.subtract(tape.required_gradient(&y, &x)?.multiply(1e-3)?)?;
    }
    Ok(vec![x])
}

/// Diamonds followed by a reduction, a softmax, and a product with another reader.
pub fn diamonds_before_folds(n: usize) -> Result<Vec<Tensor>> {
    let x = &diamonds(n)?[0];
    let y = levels(n, &[4, 6], |y| y.multiply(0.5)?.add(y.sigmoid()?))?.remove(0);
    let centred = y.subtract(y.reduce_mean(wgrad::Axes::from(-1).keepdims(true))?)?;
    Ok(vec![x.reduce_sum(())?, x.softmax(-1)?, centred.multiply(&y)?])
}
