//! Gradients of functions: each takes a closure and returns one that computes the closure's gradients.

use super::tensors::Tensors;
use super::{GradientTape, JacobianOptions, PersistentTape, UnconnectedGradients};
use crate::error::Result;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// Returns a function that computes the gradients of `f` (of its sum, if the result is not a scalar) with respect to its
/// arguments: a tensor, an array, or a vector of tensors. Apply it repeatedly for higher-order derivatives.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Tensor, autodiff::gradients_function};
/// let power = |[x, y]: &[Tensor; 2]| x.pow(y);
/// let [dx, dy] = gradients_function(power)(&[tf::constant(2.0)?, tf::constant(3.0)?])?;
/// assert_eq!(dx.item::<f32>()?, 12.0);
/// assert_eq!(dy.item::<f32>()?, 8.0 * 2f32.ln());
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The returned function returns the errors of `f`, and [`Error::Gradient`](crate::Error::Gradient) if an argument is not float
/// or the result does not depend on it.
pub fn gradients_function<X: Tensors, Y: Tensors>(
    f: impl Fn(&X) -> Result<Y>,
) -> impl Fn(&X) -> Result<X> {
    let f = value_and_gradients_function(f);
    move |x: &X| f(x).map(|(_, grads)| grads)
}

/// Like [`gradients_function`]; the returned function also returns the value of `f`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Tensor, autodiff::value_and_gradients_function};
/// let f = value_and_gradients_function(|x: &Tensor| x.square());
/// let (y, dy) = f(&tf::constant(3.0)?)?;
/// assert_eq!((y.item::<f32>()?, dy.item::<f32>()?), (9.0, 6.0));
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Same as [`gradients_function`].
pub fn value_and_gradients_function<X: Tensors, Y: Tensors>(
    f: impl Fn(&X) -> Result<Y>,
) -> impl Fn(&X) -> Result<(Y, X)> {
    move |x: &X| {
        let (tape, y) = GradientTape::record(|tape| {
            x.list().iter().try_for_each(|x| tape.watch(x))?;
            f(x)
        })?;
        let grads = tape.required_gradient(y.list(), x.list())?;
        Ok((y, X::from_list(grads)))
    }
}

/// Returns a function that computes the gradients of `f` with respect to all trainable variables that it reads, and returns
/// them with these variables. The argument of `f` may have any type: for example a tuple of tensors, or `()`.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, autodiff::implicit_gradients};
/// let w = tf::Variable::new(&tf::constant(3.0)?);
/// let grads = implicit_gradients(|x: &tf::Tensor| w.read().multiply(x));
/// let (grads, variables) = grads(&tf::constant(2.0)?)?;
/// assert_eq!(grads[0].as_ref().expect("connected").item::<f32>()?, 2.0);
/// assert_eq!(variables.len(), 1);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The returned function returns the errors of `f`, and [`Error::Gradient`](crate::Error::Gradient) if it reads no trainable
/// variable.
pub fn implicit_gradients<X: ?Sized, Y: Tensors>(
    f: impl Fn(&X) -> Result<Y>,
) -> impl Fn(&X) -> Result<VariableGradients> {
    let f = implicit_value_and_gradients(f);
    move |x: &X| f(x).map(|(_, grads)| grads)
}

/// The gradients for variables, in order, and the variables: the arguments of
/// [`apply_gradients`](crate::keras::optimizers::Optimizer::apply_gradients).
pub type VariableGradients = (Vec<Option<Tensor>>, Vec<Variable>);

/// Like [`implicit_gradients`]; the returned function also returns the value of `f`.
///
/// # Errors
/// Same as [`implicit_gradients`].
pub fn implicit_value_and_gradients<X: ?Sized, Y: Tensors>(
    f: impl Fn(&X) -> Result<Y>,
) -> impl Fn(&X) -> Result<(Y, VariableGradients)> {
    move |x: &X| {
        let (tape, y) = GradientTape::record(|_| f(x))?;
        let variables = tape.watched_variables();
        if variables.is_empty() {
            return Err(crate::error::Error::Gradient(
                "implicit_gradients: the function read no trainable variable. Make variables by Variable::new, and read \
                 them in the function."
                    .into(),
            ));
        }
        let grads = tape.gradient(y.list(), &variables)?;
        Ok((y, (grads, variables)))
    }
}

/// The matrix of second derivatives of `f` at `x`: a tensor whose shape is that of `x`, twice. It is the Jacobian of the
/// gradient; all rows are computed at once.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let x = tf::constant([1.0, 2.0])?;
/// let h = tf::autodiff::hessian(|x| x.pow(3.0)?.reduce_sum(()), &x)?;
/// assert_eq!(h.to_vec::<f32>()?, [6.0, 0.0, 0.0, 12.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The errors of `f`; [`Error::Gradient`](crate::Error::Gradient) if `x` is not float, or `f` does not depend on it.
pub fn hessian(f: impl Fn(&Tensor) -> Result<Tensor>, x: &Tensor) -> Result<Tensor> {
    let (tape, grad) = PersistentTape::record(|tape| {
        tape.watch(x)?;
        gradients_function(f)(x)
    })?;
    // That of a linear function is zeros.
    let zero = JacobianOptions::new().unconnected_gradients(UnconnectedGradients::Zero);
    Ok(tape.jacobian_with(&grad, x, zero)?.expect("zeros at least"))
}

/// The Hessian of `f` at `x` times `v`, at the cost of about two gradients: the gradient of the gradient, with `v` as its
/// output gradient.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let (x, v) = (tf::constant([1.0, 2.0])?, tf::constant([1.0, 0.5])?);
/// let hv = tf::autodiff::hvp(|x: &tf::Tensor| x.pow(3.0)?.reduce_sum(()), &x, &v)?;
/// assert_eq!(hv.to_vec::<f32>()?, [6.0, 6.0]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// Same as [`hessian`], and an error if the shapes or dtypes of `v` differ from those of `x`.
pub fn hvp<X: Tensors, Y: Tensors>(f: impl Fn(&X) -> Result<Y>, x: &X, v: &X) -> Result<X> {
    let sources = x.list();
    let (tape, grads) = PersistentTape::record(|tape| {
        sources.iter().try_for_each(|x| tape.watch(x))?;
        gradients_function(f)(x)
    })?;
    let (grads, v) = (grads.list(), v.list());
    let upstream: Vec<&Tensor> = v.iter().collect();
    let products = tape.gradient_from(&grads, Some(&upstream), &sources)?;
    let each = products.into_iter().zip(&sources).map(|(product, x)| match product {
        Some(product) => Ok(product),
        None => x.zeros_like(),
    });
    each.collect::<Result<Vec<Tensor>>>().map(X::from_list)
}
