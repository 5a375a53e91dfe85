//! Products of tensors specified by labels of their axes: `einsum` and `tensordot`.
//!
//! `equation.rs` parses the text, `order.rs` finds the order of several operands, `product.rs` multiplies two of them:
//! with one batched matmul, or elementwise if nothing is summed. There are no kernels or gradient rules here.

mod equation;
mod order;
mod product;

use std::borrow::Borrow;

use super::inventory::{ANY, Answer, Args, Cases, Entry, OpKind, Stop, Value, one};
use super::{NUMERIC, expect_dtype, same_dtype};
use crate::error::{Error, Result, message};
use crate::shape::{Axes, axis_index};
use crate::tensor::{Operand, Tensor};
use equation::{Equation, LABELS, Label, Set, set};
use product::{Term, product};

/// Multiplies tensors and sums the products, as specified by an equation that labels each axis with a letter: labels that are
/// not in the result are summed over.
///
/// `"ij,jk->ik"` is the matrix product, `"bij,bjk->bik"` the batched matrix product, `"ij->ji"` the transpose, `"ii->i"` the
/// diagonal, `"ii->"` the trace, `"i,j->ij"` the outer product. Without `->` the result has the labels that occur once, in
/// alphabetical order, upper case first. `...` represents all axes without a letter; they are aligned at the last one and
/// broadcast. Spaces are ignored.
///
/// A product of two operands is one batched matmul, with transposes only if no order of the axes fits it. Several operands are
/// multiplied in an efficient order (the cheapest of all orders for up to 5 operands).
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let a = tf::constant([[1.0, 2.0], [3.0, 4.0]])?;
/// let b = tf::constant([10.0, 1.0])?;
/// assert_eq!(tf::einsum("ij,j->i", [&a, &b])?.to_vec::<f32>()?, [12.0, 34.0]);
/// assert_eq!(tf::einsum("ii", [&a])?.item::<f32>()?, 5.0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if the equation is invalid, its number of terms or axes differs from the operands, or a label has two
/// sizes; [`Error::DType`] if dtypes differ or are not numeric.
pub fn einsum<T: Borrow<Tensor>>(equation: &str, operands: impl AsRef<[T]>) -> Result<Tensor> {
    let operands: Vec<&Tensor> = operands.as_ref().iter().map(Borrow::borrow).collect();
    for x in &operands {
        expect_dtype("Einsum", x.spec(), NUMERIC)?;
        same_dtype("Einsum", operands[0].spec(), x.spec())?;
    }
    let shapes: Vec<&[usize]> = operands.iter().map(|x| x.shape()).collect();
    let Equation { inputs, output, sizes } = Equation::read(equation, &shapes)?;
    let terms = operands.into_iter().zip(inputs);
    contract(terms.map(|(x, labels)| Term { x: x.clone(), labels }).collect(), &output, &sizes)
}

/// Multiplies all terms, sums, and puts the axes into the order of `output`.
fn contract(mut terms: Vec<Term>, output: &[Label], sizes: &[usize]) -> Result<Tensor> {
    let wanted = set(output);
    while terms.len() > 1 {
        let labels: Vec<Set> = terms.iter().map(Term::set).collect();
        let (i, j) = match labels.len() {
            2 => (0, 1),
            _ => order::next_pair(&labels, wanted, sizes),
        };
        let keep = order::others(&labels, wanted, i, j);
        let (b, a) = (terms.remove(j), terms.remove(i));
        // Diagonals first: the remaining code expects each label once per operand.
        let shared = a.set() | b.set() | keep;
        let (a, b) = (a.reduced(shared)?, b.reduced(shared)?);
        terms.push(product(a, b, keep, output)?);
    }
    let Some(last) = terms.pop() else {
        return Err(Error::Shape("Einsum: no tensors were given; it needs at least one.".into()));
    };
    Ok(last.reduced(wanted)?.ordered(output)?.x)
}

/// The axes that [`Tensor::tensordot`] sums over: the last `n` of the first tensor with the first `n` of the second, or pairs
/// of axes.
///
/// A number converts to it, as do two axes `[1, 0]` and two lists of axes, `[[0, 1], [1, 0]]` or `([0, 1], [1, 0])`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TensordotAxes {
    /// This many axes.
    Count(usize),
    /// The axes of the first tensor, and the corresponding axes of the second.
    Pairs(Axes, Axes),
}

impl From<usize> for TensordotAxes {
    fn from(count: usize) -> Self {
        TensordotAxes::Count(count)
    }
}

impl From<i32> for TensordotAxes {
    /// A negative number becomes one for which every call returns an error.
    fn from(count: i32) -> Self {
        TensordotAxes::Count(usize::try_from(count).unwrap_or(usize::MAX))
    }
}

impl<A: Into<Axes>> From<[A; 2]> for TensordotAxes {
    fn from([a, b]: [A; 2]) -> Self {
        TensordotAxes::Pairs(a.into(), b.into())
    }
}

impl<A: Into<Axes>, B: Into<Axes>> From<(A, B)> for TensordotAxes {
    fn from((a, b): (A, B)) -> Self {
        TensordotAxes::Pairs(a.into(), b.into())
    }
}

impl Tensor {
    /// Sums the products of two tensors over pairs of axes; the result has the remaining axes of the first tensor, followed by
    /// those of the second.
    ///
    /// `axes` is a number `n` (the last `n` axes of the first tensor with the first `n` of the second; 0 for the outer product)
    /// or two lists of corresponding axes.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// let a = tf::constant([[1.0, 2.0], [3.0, 4.0]])?;
    /// let b = tf::constant([[1.0, 0.0], [0.0, 10.0]])?;
    /// assert_eq!(a.tensordot(&b, 2)?.item::<f32>()?, 41.0);
    /// assert_eq!(a.tensordot(&b, [[0], [1]])?.to_vec::<f32>()?, [1.0, 30.0, 2.0, 40.0]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Shape`] if the lists differ in length, an axis occurs twice, or the sizes of a pair differ; [`Error::Index`] if
    /// an axis does not exist; [`Error::DType`] if dtypes differ or are not numeric.
    pub fn tensordot(
        &self,
        other: impl Into<Operand>,
        axes: impl Into<TensordotAxes>,
    ) -> Result<Tensor> {
        tensordot(self, &other.into().into_tensor_like("Tensordot", self)?, axes.into())
    }
}

fn tensordot(a: &Tensor, b: &Tensor, axes: TensordotAxes) -> Result<Tensor> {
    same_dtype("Tensordot", a.spec(), b.spec())?;
    expect_dtype("Tensordot", a.spec(), NUMERIC)?;
    let shapes = || format!("a is {:?} and b is {:?}", a.shape(), b.shape());
    if a.rank() + b.rank() > LABELS {
        return Err(Error::Shape(message!(
            "Tensordot: a has {} axes and b {}; together it takes {LABELS}.",
            a.rank(),
            b.rank()
        )));
    }
    let pairs: Vec<(usize, usize)> = match axes {
        TensordotAxes::Count(count) => {
            if count > a.rank() || count > b.rank() {
                return Err(Error::Index(message!(
                    "Tensordot: {}; it cannot sum over {} axes of both. Give 0 to {}.",
                    shapes(),
                    if count == usize::MAX {
                        "a negative number of".into()
                    } else {
                        count.to_string()
                    },
                    a.rank().min(b.rank())
                )));
            }
            (0..count).map(|i| (a.rank() - count + i, i)).collect()
        }
        TensordotAxes::Pairs(of_a, of_b) => {
            let list = |axes: &Axes, x: &Tensor| -> Result<Vec<usize>> {
                let all = (0..x.rank() as i64).collect();
                let axes = axes.list.as_ref().unwrap_or(&all);
                let found: Vec<usize> = axes
                    .iter()
                    .map(|&axis| axis_index("Tensordot", crate::shape::Axis(axis), x.rank()))
                    .collect::<Result<_>>()?;
                match (0..found.len()).find(|&i| found[..i].contains(&found[i])) {
                    None => Ok(found),
                    Some(i) => Err(Error::Index(message!(
                        "Tensordot: axis {} is named twice in {:?}.",
                        axes[i],
                        &axes[..]
                    ))),
                }
            };
            let (of_a, of_b) = (list(&of_a, a)?, list(&of_b, b)?);
            if of_a.len() != of_b.len() {
                return Err(Error::Shape(message!(
                    "Tensordot: {} axes of a ({of_a:?}) cannot go with {} of b ({of_b:?}); name as many of each.",
                    of_a.len(),
                    of_b.len()
                )));
            }
            of_a.into_iter().zip(of_b).collect()
        }
    };
    let mut sizes = vec![0; LABELS];
    let labels_a: Vec<Label> = (0..a.rank() as Label).collect();
    let mut labels_b: Vec<Label> = (0..b.rank()).map(|axis| (a.rank() + axis) as Label).collect();
    for &(i, j) in &pairs {
        if a.shape()[i] != b.shape()[j] {
            return Err(Error::Shape(message!(
                "Tensordot: {}; axis {i} of a ({}) goes with axis {j} of b ({}) and must have its size.",
                shapes(),
                a.shape()[i],
                b.shape()[j]
            )));
        }
        labels_b[j] = labels_a[i];
    }
    for (x, labels) in [(a, &labels_a), (b, &labels_b)] {
        for (&size, &label) in x.shape().iter().zip(labels) {
            sizes[usize::from(label)] = size;
        }
    }
    let summed = set(&labels_a) & set(&labels_b);
    let all = labels_a.iter().chain(&labels_b).copied();
    let output: Vec<Label> = all.filter(|&label| summed & (1 << label) == 0).collect();
    let terms =
        vec![Term { x: a.clone(), labels: labels_a }, Term { x: b.clone(), labels: labels_b }];
    contract(terms, &output, &sizes)
}

/// The operands of a golden case: `x0`, `x1`, ...
fn operands(c: &Args) -> Vec<&Tensor> {
    (0..).map_while(|i| c.arg(&format!("x{i}")).ok()).collect()
}

fn axes(c: &Args) -> Answer<TensordotAxes> {
    fn ints(value: &Value) -> Option<Vec<i64>> {
        let int = |value: &Value| if let Value::Int(n) = value { Some(*n) } else { None };
        match value {
            Value::List(list) => list.iter().map(int).collect(),
            one => Some(vec![int(one)?]),
        }
    }
    let read = |value: &Value| match value {
        Value::Int(count) => Some(usize::try_from(*count).ok()?.into()),
        Value::List(lists) => match &lists[..] {
            [a, b] => Some((ints(a)?, ints(b)?).into()),
            _ => None,
        },
        _ => None,
    };
    c.attribute("axes", read)?.ok_or_else(|| Stop::Lacks("axes".into()))
}

fn einsum_cases(cases: &mut Cases) {
    let of_two: [(&str, &'static [usize], &'static [usize]); 10] = [
        ("ij,jk->ik", &[3, 4], &[4, 5]),
        ("ij,kj", &[3, 4], &[5, 4]),
        ("bij,bkj->kbi", &[2, 3, 4], &[2, 5, 4]),
        ("bqhd,bkhd->bhqk", &[2, 3, 2, 4], &[2, 5, 2, 4]),
        ("ijk,k->ij", &[2, 3, 4], &[4]),
        ("ij,ij->i", &[3, 4], &[3, 4]),
        ("i,j->ji", &[3], &[4]),
        ("...ij,jk...->k...i", &[2, 1, 3, 4], &[4, 5, 3]),
        ("iji,jk->k", &[3, 4, 3], &[4, 2]),
        ("ij,kl->jk", &[2, 3], &[3, 2]),
    ];
    for (equation, a, b) in of_two {
        let name = format!("einsum {equation}");
        cases.add(name, &[(a, ANY), (b, ANY)], move |x| einsum(equation, x));
    }
    let of_one: [(&str, &'static [usize]); 4] = [
        ("ijk->ki", &[2, 3, 4]),
        ("ii->i", &[3, 3]),
        ("iji->j", &[3, 4, 3]),
        ("...i->...", &[2, 3]),
    ];
    for (equation, x) in of_one {
        let name = format!("einsum {equation}");
        cases.add(name, &[(x, ANY)], move |x| einsum(equation, x));
    }
    let chain: [super::inventory::Input; 3] = [(&[2, 3], ANY), (&[3, 4], ANY), (&[4, 2], ANY)];
    cases.add("einsum ij,jk,kl->il", &chain, |x| einsum("ij,jk,kl->il", x));
    cases.add("einsum ij,jk,ki->", &chain, |x| einsum("ij,jk,ki->", x));
}

/// The inventory of this file.
pub(super) const ENTRIES: &[Entry] = &[
    Entry::new(OpKind::Composed, "einsum", &["tf.einsum"], |c| {
        let equation = c.need("equation", c.text("equation")?)?;
        one(einsum(&equation, operands(c)))
    })
    .takes(NUMERIC)
    .cases(einsum_cases),
    Entry::new(OpKind::Composed, "tensordot", &["tf.tensordot"], |c| {
        one(c.arg("a")?.tensordot(c.arg("b")?, axes(c)?))
    })
    .takes(NUMERIC)
    .cases(|cases| {
        cases.add("tensordot", &[(&[2, 3, 4], ANY), (&[3, 4, 5], ANY)], |x| {
            x[0].tensordot(&x[1], 2)
        });
        cases.add("tensordot outer", &[(&[2], ANY), (&[3], ANY)], |x| x[0].tensordot(&x[1], 0));
        cases.add("tensordot of pairs", &[(&[3, 2, 5], ANY), (&[5, 3, 4], ANY)], |x| {
            x[0].tensordot(&x[1], [[2, 0], [0, 1]])
        });
    }),
];
