//! Control flow by values of tensors: [`cond`], [`switch_case`], [`while_loop`], and loops over the first axis.
//!
//! Eagerly, the host reads the value and runs the chosen closure. In the trace of a function, each closure is recorded once as a
//! block, and each run of the function reads the value and replays the block, so tapes follow the path that was taken. Small
//! branches are computed together, and the device selects; turns of loops that only compute run as plans (`turns.rs`).

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, OnceLock};

use super::nest::{Nest, Signature};
use super::program::{Control, HostCall};
use super::recorder::Recorder;
use crate::dtype::DType;
use crate::eager;
use crate::error::{Error, Result, message};
use crate::graph::Spec;
use crate::ops::{Trace, stack, where_};
use crate::shape::Shape;
use crate::support::options::options;
use crate::tensor::{Tensor, range};

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
    Mapping::refuse("cond", pred)?;
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
    Mapping::refuse("switch_case", branch_index)?;
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

/// The result of the closure whose predicate, a scalar of `bool`, is the first that is true; of `default` if none is.
/// TensorFlow's `tf.case`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let sign = tf::function(|x: tf::Tensor| {
///     tf::case(
///         vec![
///             (x.less(0.0)?, Box::new(|| tf::constant(-1))),
///             (x.greater(0.0)?, Box::new(|| tf::constant(1))),
///         ],
///         || tf::constant(0),
///     )
/// });
/// let of = |x: f32| sign(tf::constant(x)?)?.item::<i32>();
/// assert_eq!([of(-3.0)?, of(0.0)?, of(0.5)?], [-1, 0, 1]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`cond`].
pub fn case<R: Nest>(
    pred_fn_pairs: Vec<(Tensor, Branch<'_, R>)>,
    default: impl FnOnce() -> Result<R>,
) -> Result<R> {
    if pred_fn_pairs.is_empty() {
        return default();
    }
    let (preds, mut branches): (Vec<Tensor>, Vec<Branch<'_, R>>) =
        pred_fn_pairs.into_iter().unzip();
    preds.iter().try_for_each(|pred| check_scalar("case", pred, DType::Bool))?;
    let count = preds.len() as i32;
    let places = preds[0].device().scope(|| range(0, count, 1))?;
    let none = places.ones_like()?.multiply(count)?;
    let first = where_(&stack(&preds, 0)?, &places, &none)?.reduce_min(())?;
    branches.push(Box::new(default));
    switch_case(&first, branches)
}

/// The results of `func`, which runs on the host and may read the values of `inp`; in a function, at each run. TensorFlow's
/// `tf.py_function`. Gradients pass through it if `func` computes its results by ops.
///
/// A function with such calls runs its ops one by one.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let f = tf::function(|x: tf::Tensor| {
///     let sorted = tf::host_call(
///         |inp| {
///             let mut values = inp[0].to_vec::<f32>()?;
///             values.sort_by(f32::total_cmp);
///             Ok(vec![tf::Tensor::from_slice(&values, inp[0].shape())?])
///         },
///         &[&x],
///         &[(x.shape(), x.dtype())],
///     )?;
///     sorted[0].add(1.0)
/// });
/// assert_eq!(f(tf::constant([3.0, 1.0, 2.0])?)?.to_vec::<f32>()?, [2.0, 3.0, 4.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The errors of `func`; [`Error::Shape`] or [`Error::DType`] if its results are not of the shapes and dtypes `tout`.
pub fn host_call(
    func: impl Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
    inp: &[&Tensor],
    tout: &[(&[usize], DType)],
) -> Result<Vec<Tensor>> {
    let specs: Vec<Spec> =
        tout.iter().map(|(shape, dtype)| Spec::new(Shape::new(shape), *dtype)).collect();
    let inputs: Vec<Tensor> = inp.iter().map(|x| (*x).clone()).collect();
    let checked = {
        let specs = specs.clone();
        move |inputs: &[Tensor]| {
            let results = func(inputs)?;
            check_results(&results, &specs)?;
            Ok(results)
        }
    };
    inputs.iter().try_for_each(|x| Mapping::refuse("host_call", x))?;
    let Some(recorder) = recorder() else {
        if eager::in_trace() && inputs.iter().any(|x| eager::release(x).is_err()) {
            return specs.into_iter().map(eager::placeholder).collect();
        }
        return checked(&inputs);
    };
    recorder.host(Arc::new(checked), &inputs, &specs)
}

fn check_results(results: &[Tensor], specs: &[Spec]) -> Result<()> {
    if results.len() != specs.len() {
        return Err(Error::Shape(message!(
            "host_call: func returns {} tensors, and tout has {}.",
            results.len(),
            specs.len()
        )));
    }
    let wrong = results.iter().zip(specs).position(|(result, spec)| result.spec() != spec);
    match wrong {
        None => Ok(()),
        Some(at) => {
            let (result, spec) = (results[at].spec(), &specs[at]);
            let text =
                message!("host_call: result {at} of func is {result}, and tout says {spec}.");
            Err(match result.dtype == spec.dtype {
                true => Error::Shape(text),
                false => Error::DType(text),
            })
        }
    }
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
        Mapping::refuse("while_loop", &again)?;
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
///
/// let scaled = tf::map_fn(|(row, factor)| row.multiply(factor), &(x, tf::constant([10.0, 100.0])?))?;
/// assert_eq!(scaled.to_vec::<f32>()?, [10.0, 20.0, 300.0, 400.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Shape`] if a tensor of `elems` has no axis, if there are no elements along the first axes, or if their sizes differ;
/// if the results differ in structure or shape; the errors of `f`.
pub fn map_fn<E: Nest, R: Nest>(mut f: impl FnMut(E) -> Result<R>, elems: &E) -> Result<R> {
    let mapped = parts("map_fn", elems)?.map(|part| f(part?)).collect::<Result<Vec<R>>>()?;
    stacked("map_fn", &mapped)
}

/// As [`map_fn`], but `f` runs only once: each of its calls is made on all parts together, so few kernels run.
/// TensorFlow's `tf.vectorized_map`.
///
/// Random numbers that `f` draws are the same for all parts. `f` cannot read the parts' values.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])?;
/// let outer = tf::vectorized_map(|row| row.expand_dims(1)?.matmul(row.expand_dims(0)?), &x)?;
/// assert_eq!(outer.shape(), [3, 2, 2]);
/// assert_eq!(outer.to_vec::<f32>()?[4..8], [9.0, 12.0, 12.0, 16.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`map_fn`]; [`Error::Trace`] if `f` reads a part's value, or decides by it with [`cond`] or [`while_loop`].
pub fn vectorized_map<E: Nest, R: Nest>(f: impl FnOnce(E) -> Result<R>, elems: &E) -> Result<R> {
    let count = parts("vectorized_map", elems)?.len();
    let rows = tensors_of(elems);
    // A part without a value, so that no value of one part can stand for all.
    let run = || {
        let spec = |x: &Tensor| Spec::new(Shape::new(&x.shape()[1..]), x.dtype());
        let stand_ins: Vec<Tensor> =
            rows.iter().map(|x| eager::placeholder_on(x.device(), spec(x))).collect();
        let _mapping = Mapping::begin();
        let call = || f(with_tensors(elems, stand_ins.clone()));
        let (trace, result) = Trace::record(&stand_ins.iter().collect::<Vec<_>>(), call)?;
        Ok((stand_ins, trace, result))
    };
    let (stand_ins, trace, result) = match eager::in_trace() {
        // Nothing uses the recorded calls on the stand-ins, so they are not part of the program.
        true => run()?,
        false => eager::traced(run)?,
    };
    let given: Vec<(&Tensor, Tensor)> = stand_ins.iter().zip(rows).collect();
    let results = tensors_of(&result);
    let results = trace.replay(count, &given, &results.iter().collect::<Vec<_>>())?;
    Ok(with_tensors(&result, results))
}

thread_local! {
    /// How many closures of [`vectorized_map`] run on this thread.
    static MAPPING: Cell<usize> = const { Cell::new(0) };
}

pub(super) struct Mapping;

impl Mapping {
    fn begin() -> Self {
        MAPPING.set(MAPPING.get() + 1);
        Mapping
    }

    /// Whether the closure of [`vectorized_map`] runs.
    pub(super) fn is_active() -> bool {
        MAPPING.get() > 0
    }

    /// Refuses a decision by a value that differs from part to part.
    fn refuse(op: &str, x: &Tensor) -> Result<()> {
        if MAPPING.get() == 0 || eager::release(x).is_ok() {
            return Ok(());
        }
        Err(Error::Trace(message!(
            "{op}: vectorized_map runs its closure once for all parts, so it cannot decide by the value of one. Use where_, or \
             map_fn."
        )))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        MAPPING.set(MAPPING.get() - 1);
    }
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
/// As [`map_fn`].
pub fn foldl<E: Nest, A: Nest>(
    mut f: impl FnMut(A, E) -> Result<A>,
    elems: &E,
    initializer: A,
) -> Result<A> {
    parts("foldl", elems)?.try_fold(initializer, |sum, part| f(sum, part?))
}

/// As [`foldl`], from the last element to the first. TensorFlow's `tf.foldr`.
///
/// # Errors
/// As [`map_fn`].
pub fn foldr<E: Nest, A: Nest>(
    mut f: impl FnMut(A, E) -> Result<A>,
    elems: &E,
    initializer: A,
) -> Result<A> {
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
/// As [`map_fn`].
pub fn scan<E: Nest, A: Nest>(
    mut f: impl FnMut(A, E) -> Result<A>,
    elems: &E,
    initializer: A,
) -> Result<A> {
    let mut sum = initializer;
    let mut sums = Vec::new();
    for part in parts("scan", elems)? {
        sum = f(sum, part?)?;
        sums.push(sum.clone());
    }
    stacked("scan", &sums)
}

/// The parts of `elems` along the first axis of each tensor.
fn parts<'a, E: Nest>(
    op: &str,
    elems: &'a E,
) -> Result<impl ExactSizeIterator<Item = Result<E>> + DoubleEndedIterator + 'a> {
    let tensors = tensors_of(elems);
    let counts: Vec<Option<usize>> = tensors.iter().map(|x| x.shape().first().copied()).collect();
    let first = counts.first().copied().flatten().unwrap_or(0);
    if first == 0 || counts.iter().any(|count| *count != Some(first)) {
        let shapes: Vec<&[usize]> = tensors.iter().map(Tensor::shape).collect();
        return Err(Error::Shape(message!(
            "{op}: the tensors of elems are {shapes:?}; each must have a first axis, of one size for all, with at least one \
             element."
        )));
    }
    Ok((0..first).map(move |at| {
        let parts = tensors.iter().map(|x| part(x, at)).collect::<Result<Vec<Tensor>>>()?;
        Ok(with_tensors(elems, parts))
    }))
}

fn part(x: &Tensor, at: usize) -> Result<Tensor> {
    let mut begin = vec![0; x.rank()];
    begin[0] = at;
    // All elements along the other axes.
    let mut size = vec![-1; x.rank()];
    size[0] = 1;
    x.slice(&begin, &size)?.reshape(&x.shape()[1..])
}

/// The results with each tensor stacked along a new first axis.
fn stacked<R: Nest>(op: &str, results: &[R]) -> Result<R> {
    let first = signature_of(&results[0]);
    if let Some(other) = results.iter().map(signature_of).find(|other| *other != first) {
        return Err(Error::Shape(message!(
            "{op}: one part gives {}, another {}; they can be stacked only if structure, shapes, dtypes and plain values are \
             the same.",
            first.0,
            other.0
        )));
    }
    let each: Vec<Vec<Tensor>> = results.iter().map(tensors_of).collect();
    let column = |at: usize| each.iter().map(|row| &row[at]).collect::<Vec<_>>();
    let columns = (0..each[0].len()).map(|at| stack(column(at), 0));
    Ok(with_tensors(&results[0], columns.collect::<Result<_>>()?))
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
fn recorder() -> Option<Rc<Recorder>> {
    eager::traces_function().then(Recorder::current).flatten()
}

impl Recorder {
    /// Records a call on the host.
    fn host(
        self: &Rc<Self>,
        call: HostCall,
        inputs: &[Tensor],
        specs: &[Spec],
    ) -> Result<Vec<Tensor>> {
        let device = inputs.first().map_or_else(|| self.device(), |x| x.device().clone());
        let inputs = inputs.iter().map(|x| self.entry_of(x)).collect();
        let like = specs.iter().map(|spec| eager::placeholder_on(&device, spec.clone()));
        self.control(Control::Host { call, inputs }, &like.collect::<Vec<_>>())
    }

    /// Records a choice among branches.
    fn choose<R: Nest>(
        self: &Rc<Self>,
        op: &str,
        index: &Tensor,
        branches: Vec<Branch<'_, R>>,
    ) -> Result<R> {
        let index = self.entry_of(index);
        let mut blocks = Vec::with_capacity(branches.len());
        let mut first: Option<(R, Signature)> = None;
        for branch in branches {
            let (block, result) = self.block(&[], |_| {
                let result = branch()?.loop_variable()?;
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
            self.control(Control::Choose { index, branches: blocks }, &tensors_of(&result))?;
        Ok(with_tensors(&result, results))
    }

    /// Records a loop.
    fn repeat<V: Nest>(
        self: &Rc<Self>,
        cond: &dyn Fn(&V) -> Result<Tensor>,
        body: &dyn Fn(V) -> Result<V>,
        loop_vars: V,
        most: u64,
    ) -> Result<V> {
        let loop_vars = loop_vars.loop_variable()?;
        let given = tensors_of(&loop_vars);
        let start = given.iter().map(|tensor| self.entry_of(tensor)).collect();
        eager::forget_assigned();
        let (cond, ()) = self
            .block(&given, |symbols| Ok(((), vec![cond(&with_tensors(&loop_vars, symbols))?])))?;
        let (body, result) = self.block(&given, |symbols| {
            let result = body(with_tensors(&loop_vars, symbols))?.loop_variable()?;
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
        let turn = OnceLock::new();
        let results = self.control(Control::Repeat { cond, body, start, most, turn }, &given)?;
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
