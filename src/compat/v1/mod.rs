//! TensorFlow 1: graphs with placeholders, and sessions that run parts of them. TensorFlow's `tf.compat.v1`.
//!
//! A [`Graph`] is a closure that builds nodes, each under a name. [`Session::run`] takes the names of the nodes to fetch and the
//! values of placeholders. A session is a [`function`](crate::function()) underneath: it calls the closure once for each set of
//! fetches and each shape of the feeds, keeps what the fetched nodes need, and runs that as one plan from then on.
//!
//! ```
//! # fn main() -> wgrad::Result<()> {
//! use wgrad::compat::v1::{self, Graph, Session, train};
//! use wgrad::{self as tf, DType};
//!
//! let graph = Graph::new(|g| {
//!     let x = g.placeholder("x", DType::F32, [None, Some(2)])?;
//!     let target = g.placeholder("target", DType::F32, [None, Some(1)])?;
//!     let w = g.variable("w", || tf::Tensor::zeros([2, 1]))?;
//!     let y = g.identity("y", &x.matmul(w.read())?)?;
//!     let loss = g.identity("loss", &y.subtract(&target)?.square()?.reduce_mean(())?)?;
//!     g.minimize("train_step", &loss, || train::gradient_descent_optimizer(0.1))
//! });
//! let session = Session::new(&graph)?;
//! session.run([v1::global_variables_initializer()], &[])?;
//! let x = tf::constant([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])?;
//! let target = tf::constant([[2.0], [-1.0], [1.0]])?;
//! for _ in 0..100 {
//!     session.run(["train_step", "loss"], &[("x", x.clone()), ("target", target.clone())])?;
//! }
//! let y = session.eval("y", &[("x", tf::constant([[3.0, 2.0]])?)])?;
//! assert!((y.item::<f32>()? - 4.0).abs() < 0.1);
//! let error = session.eval("y", &[]).unwrap_err();
//! assert!(error.to_string().contains("a value for placeholder 'x' with dtype f32 and shape [?, 2]"));
//! # Ok(())
//! # }
//! ```
//!
//! Rust has no `with graph.as_default():` whose lines could be run again for other shapes, so they stand in a closure, and nodes
//! have names in place of Python's variables.

mod graph;
mod known;
#[cfg(feature = "checkpoint")]
mod saver;
mod session;
pub mod train;

pub use graph::{Graph, GraphBuilder};
#[cfg(feature = "checkpoint")]
pub use saver::Saver;
pub use session::{Fetches, InteractiveSession, Session, eval, get_default_session};

/// The name of the operation that assigns the initial values of all variables. A session runs it before anything that reads
/// variables.
pub fn global_variables_initializer() -> &'static str {
    "init"
}

#[cfg(test)]
mod tests;
