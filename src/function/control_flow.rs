//! Control flow by values of tensors: [`cond`], [`switch_case`], [`while_loop`], and loops over the first axis.
//!
//! Eagerly, the host reads the value and runs the chosen closure. In the trace of a function, each closure is recorded once as a
//! block, and each run of the function reads the value and replays the block, so tapes follow the path that was taken.

use super::nest::{Nest, Signature};
use super::program::{Control, Recorder};
use crate::dtype::DType;
use crate::eager;
use crate::error::{Error, Result, message};
use crate::ops::stack;
use crate::support::options::options;
use crate::tensor::Tensor;

/// A branch of [`switch_case`].
pub type Branch<'a, R> = Box<dyn FnOnce() -> Result<R> + 'a>;

/// The result of `true_fn` if `pred`, a scalar of `bool`, is true, otherwise that of `false_fn`. Only this closure computes and
/// assigns. Gradients pass through the one that ran. TensorFlow's `tf.cond`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let f = tf::function(|x: tf::Tensor| {
///     tf::cond(&x.greater(0.0)?, || x.square(), || x.zeros_like())
/// });
/// assert_eq!(f(tf::constant(-1.0)?)?.item::<f32>()?, 0.0);
/// assert_eq!(f(tf::constant(3.0)?)?.item::<f32>()?, 9.0);
/// assert_eq!(f.tracing_count(), 1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] or [`Error::DType`] if `pred` is no scalar of `bool`; the errors of the closure. In the trace of a function,
/// [`Error::Trace`] if the closures' results differ in structure, shape or dtype.
pub fn cond<R: Nest>(
    pred: &Tensor,
    true_fn: impl FnOnce() -> Result<R>,
    false_fn: impl FnOnce() -> Result<R>,
) -> Result<R> {
    check_scalar("cond", pred, DType::Bool)?;
    let Some(recorder) = recorder() else {
        // A trial has no values: both branches make their weights, and either shows the shapes.
        if eager::in_trace() && eager::release(pred).is_err() {
            false_fn()?;
            return true_fn();
        }
        return if pred.item::<bool>()? { true_fn() } else { false_fn() };
    };
    recorder.choose("cond", pred, vec![Box::new(false_fn), Box::new(true_fn)])
}

/// The result of the closure of index `branch_index`, a scalar of `i32`; of the last one if there is none of this index.
/// TensorFlow's `tf.switch_case`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::constant(3.0)?;
/// let f = |index: i32| {
///     let branches: Vec<tf::Branch<tf::Tensor>> =
///         vec![Box::new(|| x.add(1.0)), Box::new(|| x.square()), Box::new(|| x.negative())];
///     tf::switch_case(&tf::constant(index)?, branches)?.item::<f32>()
/// };
/// assert_eq!([f(0)?, f(1)?, f(7)?, f(-1)?], [4.0, 9.0, -3.0, -3.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`cond`]; [`Error::Index`] if there is no closure.
pub fn switch_case<R: Nest>(branch_index: &Tensor, branches: Vec<Branch<'_, R>>) -> Result<R> {
    check_scalar("switch_case", branch_index, DType::I32)?;
    let none =
        || Error::Index("switch_case: there is no branch. Pass at least one closure.".into());
    let last = branches.len().checked_sub(1).ok_or_else(none)?;
    let Some(recorder) = recorder() else {
        if eager::in_trace() && eager::release(branch_index).is_err() {
            let results =
                branches.into_iter().map(|branch| branch()).collect::<Result<Vec<R>>>()?;
            return results.into_iter().next().ok_or_else(none);
        }
        let index = branch_index.item::<i32>()?;
        let at = usize::try_from(index).map_or(last, |index| index.min(last));
        let chosen = branches.into_iter().nth(at).ok_or_else(none)?;
        return chosen();
    };
    recorder.choose("switch_case", branch_index, branches)
}

options! {
    /// When [`while_loop_with`] ends besides its condition.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct WhileLoopOptions {
        /// The loop ends after this number of iterations; default: never.
        maximum_iterations: Option<u64> as impl Into<Option<u64>> = None,
    }
}

/// Replaces `loop_vars` by `body` of them as long as `cond` of them, a scalar of `bool`, is true. TensorFlow's `tf.while_loop`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// // 2 to the power of n, by a loop whose length only the device knows.
/// let power = tf::function(|n: tf::Tensor| {
///     let start = (tf::constant(0)?, tf::constant(1)?);
///     let (_, y) = tf::while_loop(|(i, _)| i.less(&n), |(i, y)| Ok((i.add(1)?, y.multiply(2)?)), start)?;
///     Ok(y)
/// });
/// assert_eq!(power(tf::constant(10)?)?.item::<i32>()?, 1024);
/// assert_eq!(power(tf::constant(0)?)?.item::<i32>()?, 1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] or [`Error::DType`] if the condition is no scalar of `bool`; the errors of the closures. In the trace of a
/// function, [`Error::Trace`] if `body` changes the structure, a shape or a dtype of the variables.
pub fn while_loop<V: Nest>(
    cond: impl Fn(&V) -> Result<Tensor>,
    body: impl Fn(V) -> Result<V>,
    loop_vars: V,
) -> Result<V> {
    while_loop_with(cond, body, loop_vars, WhileLoopOptions::new())
}

/// As [`while_loop`], with options.
///
/// # Errors
/// As [`while_loop`].
pub fn while_loop_with<V: Nest>(
    cond: impl Fn(&V) -> Result<Tensor>,
    body: impl Fn(V) -> Result<V>,
    loop_vars: V,
    options: WhileLoopOptions,
) -> Result<V> {
    let most = options.maximum_iterations.unwrap_or(u64::MAX);
    let checked = |vars: &V| {
        let again = cond(vars)?;
        check_scalar("while_loop: the condition", &again, DType::Bool)?;
        Ok(again)
    };
    let Some(recorder) = recorder() else {
        let mut vars = loop_vars;
        for _ in 0..most {
            let again = checked(&vars)?;
            // A trial has no values, and needs only the shapes.
            if eager::in_trace() && eager::release(&again).is_err() {
                return body(vars);
            }
            if !again.item::<bool>()? {
                break;
            }
            vars = body(vars)?;
        }
        return Ok(vars);
    };
    recorder.repeat(&checked, &body, loop_vars, most)
}

/// `f` of each part of `elems` along its first axis, stacked. TensorFlow's `tf.map_fn`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::constant([[1.0, 2.0], [3.0, 4.0]])?;
/// let sums = tf::map_fn(|row| row.reduce_sum(()), &x)?;
/// assert_eq!(sums.to_vec::<f32>()?, [3.0, 7.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if `elems` has no axis or no elements along the first one; the errors of `f`.
pub fn map_fn(mut f: impl FnMut(Tensor) -> Result<Tensor>, elems: &Tensor) -> Result<Tensor> {
    let mapped: Vec<Tensor> =
        parts("map_fn", elems)?.map(|part| f(part?)).collect::<Result<_>>()?;
    stack(mapped, 0)
}

/// `f(f(f(initializer, elems[0]), elems[1]), ...)`, along the first axis of `elems`. TensorFlow's `tf.foldl`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::constant([1.0, 2.0, 3.0])?;
/// let digits = tf::foldl(|sum, digit| sum.multiply(10.0)?.add(digit), &x, tf::constant(0.0)?)?;
/// assert_eq!(digits.item::<f32>()?, 123.0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if `elems` has no axis or no elements along the first one; the errors of `f`.
pub fn foldl(
    mut f: impl FnMut(Tensor, Tensor) -> Result<Tensor>,
    elems: &Tensor,
    initializer: Tensor,
) -> Result<Tensor> {
    parts("foldl", elems)?.try_fold(initializer, |sum, part| f(sum, part?))
}

/// As [`foldl`], from the last element to the first. TensorFlow's `tf.foldr`.
///
/// # Errors
/// As [`foldl`].
pub fn foldr(
    mut f: impl FnMut(Tensor, Tensor) -> Result<Tensor>,
    elems: &Tensor,
    initializer: Tensor,
) -> Result<Tensor> {
    parts("foldr", elems)?.rev().try_fold(initializer, |sum, part| f(sum, part?))
}

/// All results of [`foldl`], stacked. TensorFlow's `tf.scan`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::constant([1.0, 2.0, 3.0])?;
/// let sums = tf::scan(|sum, x| sum.add(x), &x, tf::constant(10.0)?)?;
/// assert_eq!(sums.to_vec::<f32>()?, [11.0, 13.0, 16.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`foldl`].
pub fn scan(
    mut f: impl FnMut(Tensor, Tensor) -> Result<Tensor>,
    elems: &Tensor,
    initializer: Tensor,
) -> Result<Tensor> {
    let mut sum = initializer;
    let mut sums = Vec::new();
    for part in parts("scan", elems)? {
        sum = f(sum, part?)?;
        sums.push(sum.clone());
    }
    stack(sums, 0)
}

/// The parts of `x` along its first axis.
fn parts<'a>(
    op: &str,
    x: &'a Tensor,
) -> Result<impl DoubleEndedIterator<Item = Result<Tensor>> + 'a> {
    match x.shape().first().copied() {
        Some(count) if count > 0 => Ok((0..count).map(|at| {
            let mut begin = vec![0; x.rank()];
            begin[0] = at;
            // All elements along the other axes.
            let mut size = vec![-1; x.rank()];
            size[0] = 1;
            x.slice(&begin, &size)?.reshape(&x.shape()[1..])
        })),
        _ => Err(Error::Shape(message!(
            "{op}: elems is {:?}; it must have at least one element along a first axis.",
            x.shape()
        ))),
    }
}

fn check_scalar(op: &str, x: &Tensor, dtype: DType) -> Result<()> {
    if x.rank() != 0 {
        return Err(Error::Shape(message!(
            "{op}: {:?} is not a scalar. Reduce it, for example with reduce_all.",
            x.shape()
        )));
    }
    if x.dtype() != dtype {
        return Err(Error::DType(message!(
            "{op}: the dtype is {}; it must be {dtype}. Compare or cast the value.",
            x.dtype()
        )));
    }
    Ok(())
}

/// The recorder of the function that this thread traces.
fn recorder() -> Option<std::rc::Rc<Recorder>> {
    eager::traces_function().then(Recorder::current).flatten()
}

impl Recorder {
    /// Records a choice among branches.
    fn choose<R: Nest>(&self, op: &str, index: &Tensor, branches: Vec<Branch<'_, R>>) -> Result<R> {
        let index = self.entry_of(index);
        let mut blocks = Vec::with_capacity(branches.len());
        let mut first: Option<(R, Signature)> = None;
        for branch in branches {
            let (block, result) = self.block(&[], |_| {
                let result = branch()?;
                let tensors = tensors_of(&result);
                Ok((result, tensors))
            })?;
            blocks.push(block);
            let signature = signature_of(&result);
            match &first {
                Some((_, known)) if *known != signature => {
                    return Err(Error::Trace(message!(
                        "{op}: one branch returns {}, another {}; in a function, all must return the same structure, shapes, \
                         dtypes and plain values.",
                        known.0,
                        signature.0
                    )));
                }
                Some(_) => {}
                None => first = Some((result, signature)),
            }
        }
        let Some((result, _)) = first else { unreachable!("there is a branch") };
        let results =
            self.control(Control::Choose { index, branches: blocks }, &tensors_of(&result));
        Ok(with_tensors(&result, results))
    }

    /// Records a loop.
    fn repeat<V: Nest>(
        &self,
        cond: &dyn Fn(&V) -> Result<Tensor>,
        body: &dyn Fn(V) -> Result<V>,
        loop_vars: V,
        most: u64,
    ) -> Result<V> {
        let given = tensors_of(&loop_vars);
        let start = given.iter().map(|tensor| self.entry_of(tensor)).collect();
        let (cond, ()) = self
            .block(&given, |symbols| Ok(((), vec![cond(&with_tensors(&loop_vars, symbols))?])))?;
        let (body, result) = self.block(&given, |symbols| {
            let result = body(with_tensors(&loop_vars, symbols))?;
            let tensors = tensors_of(&result);
            Ok((result, tensors))
        })?;
        let (before, after) = (signature_of(&loop_vars), signature_of(&result));
        if before != after {
            return Err(Error::Trace(message!(
                "while_loop: the variables are {} before an iteration and {} after it; in a function, their structure, shapes, \
                 dtypes and plain values may not change.",
                before.0,
                after.0
            )));
        }
        let results = self.control(Control::Repeat { cond, body, start, most }, &given);
        Ok(with_tensors(&loop_vars, results))
    }
}

fn tensors_of(nest: &impl Nest) -> Vec<Tensor> {
    let mut tensors = Vec::new();
    nest.map_tensors(&mut |tensor| {
        tensors.push(tensor.clone());
        tensor.clone()
    });
    tensors
}

/// The same structure with other tensors, in the same number.
fn with_tensors<N: Nest>(nest: &N, tensors: Vec<Tensor>) -> N {
    let mut tensors = tensors.into_iter();
    nest.map_tensors(&mut |_| tensors.next().expect("as many tensors as there were"))
}

fn signature_of(nest: &impl Nest) -> Signature {
    let mut signature = Signature::default();
    nest.write_signature(&mut signature);
    signature
}
