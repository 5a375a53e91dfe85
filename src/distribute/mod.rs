//! TensorFlow's `tf.distribute`: one program on several devices at once.
//!
//! A [`MirroredStrategy`] has a *replica* of the program for each device. Variables that are made in its scope have a value on each
//! device; [`Strategy::run`] runs a step in all replicas, each in a thread of its own and on its part of the batch; an optimizer
//! adds up the gradients of all replicas and changes all values alike.
//!
//! ```standalone_crate
//! # fn main() -> wgrad::Result<()> {
//! use wgrad as tf;
//! use tf::config::{self, LogicalDeviceConfiguration};
//! use tf::distribute::{MirroredStrategy, ReduceOp};
//! use tf::keras::{Layer, TRAINING, layers::Dense, optimizers::{Optimizer, Sgd}};
//! // Two virtual devices, where there is one adapter.
//! let physical = &config::list_physical_devices(None)?[0];
//! let half = LogicalDeviceConfiguration::new();
//! config::set_logical_device_configuration(physical, &[half.clone(), half])?;
//!
//! let kind = physical.device_type();
//! let strategy = MirroredStrategy::of(&[format!("{kind}:0"), format!("{kind}:1")])?;
//! println!("Number of devices: {}", strategy.num_replicas_in_sync());
//! let (model, sgd) = strategy.scope(|| (Dense::new(1), Sgd::new(0.1)));
//!
//! let x = tf::constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])?;
//! let batch = strategy.split(&x)?;                       // two rows for each replica
//! let losses = strategy.run(
//!     |x: tf::Tensor| {
//!         let tape = tf::GradientTape::new();
//!         let loss = model.call(&x, TRAINING)?.square()?.reduce_sum(())?.divide(4.0)?;     // of the whole batch
//!         sgd.minimize(&loss, tape, &model)?;
//!         Ok(loss)
//!     },
//!     &batch,
//! )?;
//! let loss = strategy.reduce(ReduceOp::Sum, &losses, None)?.item::<f32>()?;
//! assert!(loss.is_finite() && sgd.iterations() == 1);
//! # Ok(())
//! # }
//! ```
//!
//! # What differs from TensorFlow
//! - A step is Rust code, so `run` takes a closure, and its arguments as [`PerReplica`] values or tuples of them.
//! - Outside of the replicas, a trainable variable reads as that of the first replica, and another one (a moving average) as the
//!   mean of all replicas.
//! - Functions ([`function()`](crate::function())) work in a replica, but an optimizer's step inside of one is an error.

mod all_reduce;
#[cfg(feature = "data")]
mod dataset;
#[cfg(feature = "mpi")]
mod mpi;
#[cfg(feature = "mpi")]
mod multi_worker;
mod per_replica;
mod signature;
mod strategy;

pub(crate) use all_reduce::all_reduce;
#[cfg(feature = "data")]
pub use dataset::{AutoShardPolicy, DistributedDataset, DistributedIter, InputContext};
#[cfg(feature = "mpi")]
pub use multi_worker::{CommunicationOptions, MultiWorkerMirroredStrategy};
pub use per_replica::{Local, PerReplica};
pub(crate) use signature::hash_of;
pub use strategy::{
    CentralStorageStrategy, MirroredStrategy, OneDeviceStrategy, ReduceOp, ReplicaContext,
    Strategy, StrategyScope, get_replica_context, has_strategy, in_cross_replica_context,
};
