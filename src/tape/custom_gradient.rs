//! Functions with custom gradients, or that are recomputed in the backward pass.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use super::recorder::Recorder;
use super::sources::OneSource;
use super::tensors::Tensors;
use super::walk;
use crate::eager::{self, Observer};
use crate::error::{Error, Result, message};
use crate::ops::{Operation, Rule, after, with_gradient};
use crate::tensor::Tensor;
use crate::variable::Variable;

/// Gives a function a custom gradient, for stability or speed. `f` returns its value and the gradient function, which maps the
/// gradient of the value to the gradients of the arguments. Arguments and values are a tensor, an array, or a vector of
/// tensors; the gradient function captures what it needs from the forward pass. Gradients do not flow through the ops inside
/// `f`. Tapes still record these ops and the gradient function, so higher-order derivatives differentiate the gradient function
/// and what it captures.
///
/// In a [`function()`](crate::function()), the gradient function is traced with it, whether or not a gradient is wanted; tapes around the
/// function compute derivatives up to order 3.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Tensor};
/// // log(1 + e^x), whose own gradient at 100 would be NaN.
/// let log1pexp = tf::custom_gradient(|x: &Tensor| {
///     let e = x.exp()?;
///     let y = e.add(1.0)?.log()?;
///     Ok((y, move |dy: &Tensor| dy.multiply(1.0 - 1.0 / (&e + 1.0))))
/// });
/// let x = tf::constant(100.0)?;
/// let tape = tf::GradientTape::new();
/// tape.watch(&x)?;
/// let y = log1pexp(&x)?;
/// assert_eq!(tape.required_gradient(&y, &x)?.item::<f32>()?, 1.0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The returned function returns the errors of `f`, and [`Error::Gradient`] if `f` reads a trainable variable, whose gradient
/// would be lost; see [`custom_gradient_with_variables`]. The backward pass returns the errors of the gradient function, and
/// `Error::Gradient` if a gradient does not have the shape and dtype of its argument.
pub fn custom_gradient<X, Y, B>(f: impl Fn(&X) -> Result<(Y, B)>) -> impl Fn(&X) -> Result<Y>
where
    X: Tensors,
    Y: Tensors,
    B: Fn(&Y) -> Result<X> + Send + Sync + 'static,
{
    move |x: &X| {
        let (y, rule, variables) = watching(|| f(x))?;
        if let Some(variable) = variables.first() {
            return Err(Error::Gradient(message!(
                "custom_gradient: the function reads a trainable variable of shape {:?}, for which the rule gives no \
                 gradient. Use custom_gradient_with_variables, or read the variable outside and pass its value.",
                variable.shape()
            )));
        }
        let rule =
            move |dys: Vec<Tensor>, _: &[Variable]| Ok((rule(&Y::from_list(dys))?.list(), vec![]));
        attach(&x.list(), y, variables, rule)
    }
}

/// Like [`custom_gradient`], for a function that reads trainable variables. The gradient function receives them in the order in
/// which they are first read. It returns the gradients of the arguments, and those of the variables in the same order.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Tensor, Variable};
/// let w = Variable::new(&tf::constant(3.0)?);
/// let scaled = tf::custom_gradient_with_variables(|x: &Tensor| {
///     let (x, y) = (x.clone(), x.multiply(&w)?);
///     let rule = move |dy: &Tensor, variables: &[Variable]| {
///         Ok((dy * &variables[0], vec![dy * &x]))
///     };
///     Ok((y, rule))
/// });
/// let tape = tf::GradientTape::new();
/// let y = scaled(&tf::constant(2.0)?)?;
/// assert_eq!(tape.required_gradient(&y, &w)?.item::<f32>()?, 2.0);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Same as [`custom_gradient`].
pub fn custom_gradient_with_variables<X, Y, B>(
    f: impl Fn(&X) -> Result<(Y, B)>,
) -> impl Fn(&X) -> Result<Y>
where
    X: Tensors,
    Y: Tensors,
    B: Fn(&Y, &[Variable]) -> Result<(X, Vec<Tensor>)> + Send + Sync + 'static,
{
    move |x: &X| {
        let (y, rule, variables) = watching(|| f(x))?;
        let rule = move |dys: Vec<Tensor>, variables: &[Variable]| {
            let (grads, of_variables) = rule(&Y::from_list(dys), variables)?;
            Ok((grads.list(), of_variables))
        };
        attach(&x.list(), y, variables, rule)
    }
}

/// Trades time for memory: of the forward pass of `f`, only its arguments are stored; the backward pass computes `f` again. `f`
/// must return the same result each time, and its variables must not change in between.
///
/// Gradients flow to the variables that `f` reads. A chain of such functions needs the memory for the values between them and
/// for the intermediate values of one function.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Tensor};
/// let block = tf::recompute_grad(|x: &Tensor| x.sin()?.exp()?.sin());
/// let x = tf::constant(0.5)?;
/// let tape = tf::GradientTape::new();
/// tape.watch(&x)?;
/// let y = block(&block(&x)?)?;
/// println!("{}", tape.required_gradient(&y, &x)?);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The returned function and the backward pass return the errors of `f`.
pub fn recompute_grad<X, Y>(
    f: impl Fn(&X) -> Result<Y> + Send + Sync + 'static,
) -> impl Fn(&X) -> Result<Y>
where
    X: Tensors,
    Y: Tensors,
{
    let f = Arc::new(f);
    move |x: &X| {
        let (y, (), variables) = eager::unrecorded(|| watching(|| Ok((f(x)?, ()))))?;
        let (f, list) = (f.clone(), x.list());
        let rule =
            move |dys: Vec<Tensor>, variables: &[Variable]| again(&*f, &list, &dys, variables);
        attach(&x.list(), y, variables, rule)
    }
}

/// The gradients of `f` at `x` and for `variables`, from a second run of `f`.
fn again<X: Tensors, Y: Tensors>(
    f: &dyn Fn(&X) -> Result<Y>,
    x: &[Tensor],
    dys: &[Tensor],
    variables: &[Variable],
) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    // Otherwise the planner would identify the second run with the first, and store the values of the first.
    let again = x.iter().map(|x| dys.iter().try_fold(x.clone(), |x, dy| after(&x, dy)));
    let again: Vec<Tensor> = again.collect::<Result<_>>()?;
    let tape = Rc::new(Recorder::new(false));
    again.iter().filter(|x| x.dtype().is_float()).for_each(|x| tape.watch(x.id()));
    variables.iter().for_each(|v| tape.watch_variable(v.id()));
    let y = eager::observed_by(tape.clone(), || f(&X::from_list(again.clone())))?.list();
    if y.len() != dys.len() || y.iter().zip(dys).any(|(y, dy)| y.spec() != dy.spec()) {
        return Err(Error::Gradient(
            "recompute_grad: the second run gave another number of results, or other shapes, than the first. The \
             function must do the same each time."
                .into(),
        ));
    }
    let (y, dys): (Vec<Tensor>, Vec<&Tensor>) =
        y.into_iter().zip(dys).filter(|(y, _)| y.dtype().is_float()).unzip();
    let sources: Vec<_> = again
        .iter()
        .map(OneSource::source)
        .chain(variables.iter().map(OneSource::source))
        .collect();
    let grads = walk::backward(&tape, true, &y, Some(&dys), &sources)?;
    let zero = super::UnconnectedGradients::Zero;
    let each = grads
        .into_iter()
        .zip(&sources)
        .map(|(grad, x)| Ok(zero.instead(grad, [&[], &x.spec.shape], x)?.expect("zeros at least")));
    let mut grads = each.collect::<Result<Vec<Tensor>>>()?;
    let of_variables = grads.split_off(x.len());
    Ok((grads, of_variables))
}

/// Runs `f`. Returns its results and the trainable variables that it read.
fn watching<Y, B>(f: impl FnOnce() -> Result<(Y, B)>) -> Result<(Y, B, Vec<Variable>)> {
    let watcher = Rc::new(Watcher::default());
    let (y, rule) = eager::observed_by(watcher.clone(), f)?;
    Ok((y, rule, watcher.0.take()))
}

/// `y` as results that depend on `x` and `variables` by `rule` alone.
fn attach<Y: Tensors>(
    x: &[Tensor],
    y: Y,
    variables: Vec<Variable>,
    rule: impl Fn(Vec<Tensor>, &[Variable]) -> Result<(Vec<Tensor>, Vec<Tensor>)>
    + Send
    + Sync
    + 'static,
) -> Result<Y> {
    // Tapes record these reads, so that they know the variables.
    let read: Vec<Tensor> = variables.iter().map(Variable::read).collect();
    let inputs: Vec<&Tensor> = x.iter().chain(&read).collect();
    let arguments = x.len();
    let rule: Rule = Arc::new(move |dys| {
        let (grads, of_variables) = rule(dys.to_vec(), &variables)?;
        if grads.len() != arguments || of_variables.len() != variables.len() {
            return Err(Error::Gradient(message!(
                "custom_gradient: the rule gave {} gradients for {arguments} arguments, and {} for {} variables; give one \
                 for each.",
                grads.len(),
                of_variables.len(),
                variables.len()
            )));
        }
        Ok(grads.into_iter().chain(of_variables).collect())
    });
    Ok(Y::from_list(with_gradient(&y.list(), &inputs, rule)?))
}

/// `y` as results that depend on `x` and `variables` by `rule` alone, which gets the gradients of `y` and returns those of `x`,
/// then those of `variables`.
#[cfg(not(target_family = "wasm"))]
pub(crate) fn with_rule(
    x: &[Tensor],
    y: Vec<Tensor>,
    variables: &[Variable],
    rule: impl Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
) -> Result<Vec<Tensor>> {
    let count = x.len();
    attach(x, y, variables.to_vec(), move |dys, _| {
        let mut grads = rule(&dys)?;
        let of_variables = grads.split_off(count.min(grads.len()));
        Ok((grads, of_variables))
    })
}

/// Records the trainable variables that are read.
#[derive(Default)]
struct Watcher(RefCell<Vec<Variable>>);

impl Observer for Watcher {
    fn called(&self, _: &Arc<dyn Operation>, _: &[&Tensor], _: &Tensor) {}

    fn read(&self, variable: &Variable, _: &Tensor) {
        let mut known = self.0.borrow_mut();
        if variable.trainable() && known.iter().all(|v| v.id() != variable.id()) {
            known.push(variable.clone());
        }
    }
}
