//! [`MultiWorkerMirroredStrategy`]: replicas in several processes, on one machine or on many.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use super::mpi::Mpi;
use super::{Strategy, all_reduce};
use crate::eager::{Replicas, Workers};
#[cfg(doc)]
use crate::error::Error;
use crate::error::Result;
use crate::random;
use crate::runtime::{Device, context};

/// MPI counts in 32 bits.
const MOST_BYTES: usize = 1 << 30;

/// How the processes of a [`MultiWorkerMirroredStrategy`] exchange values.
///
/// ```
/// use wgrad::distribute::CommunicationOptions;
/// let options = CommunicationOptions::new().bytes_per_pack(1 << 20).f16_compression(true);
/// ```
#[derive(Debug, Clone)]
pub struct CommunicationOptions {
    pub(super) bytes_per_pack: usize,
    pub(super) bytes_per_message: usize,
    pub(super) timeout: Duration,
    pub(super) compressed: bool,
}

impl Default for CommunicationOptions {
    fn default() -> Self {
        CommunicationOptions {
            bytes_per_pack: 4 << 20,
            bytes_per_message: MOST_BYTES,
            timeout: Duration::from_secs(600),
            compressed: false,
        }
    }
}

impl CommunicationOptions {
    /// The default options.
    pub fn new() -> Self {
        CommunicationOptions::default()
    }

    /// Gradients are added up in packs of at most so many bytes, or of one tensor: 4 MiB unless set. Small packs begin earlier, large
    /// ones cost less each.
    pub fn bytes_per_pack(self, bytes_per_pack: usize) -> Self {
        CommunicationOptions { bytes_per_pack, ..self }
    }

    /// One call of MPI that gathers or broadcasts has at most so many bytes of all processes together: 1 GiB, unless set to less for a
    /// library or a network that cannot exchange as much. What is larger goes in several calls.
    pub fn bytes_per_message(self, bytes_per_message: usize) -> Self {
        CommunicationOptions { bytes_per_message: bytes_per_message.clamp(1, MOST_BYTES), ..self }
    }

    /// How long a process waits for another one that still answers, but does not come to the same call: 600 s unless set. One that does
    /// not answer at all is given up after 15 s.
    pub fn timeout(self, timeout: Duration) -> Self {
        CommunicationOptions { timeout, ..self }
    }

    /// Whether gradients travel as `f16`, in half the bytes. They are added up as `f32`, and each pack is scaled to the range of `f16`,
    /// so a gradient loses up to 0.1 % of its value, or of a millionth of the largest one in its pack.
    pub fn f16_compression(self, compressed: bool) -> Self {
        CommunicationOptions { compressed, ..self }
    }
}

/// Trains equal copies of a model in several processes that `mpirun` has started, each with a part of every batch
/// (`tf.distribute.MultiWorkerMirroredStrategy`).
///
/// Every process runs the same program. Each has one device, or those that [`MultiWorkerMirroredStrategy::on`] names. Process 0, the
/// chief, writes checkpoints and shows progress.
///
/// ```no_run
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::distribute::MultiWorkerMirroredStrategy;
/// use tf::keras::{Layer, TRAINING, layers::Dense, optimizers::{Optimizer, Sgd}};
/// let strategy = MultiWorkerMirroredStrategy::new()?;
/// let (model, sgd) = strategy.scope(|| (Dense::new(1), Sgd::new(0.1)));
/// let x = tf::Tensor::ones([8, 2])?;                     // the whole batch, in each process
/// let own = strategy.split(&x)?;                         // the part of this process
/// strategy.run(
///     |x: tf::Tensor| {
///         let tape = tf::GradientTape::new();
///         let loss = model.call(&x, TRAINING)?.square()?.reduce_sum(())?.divide(8.0)?;
///         sgd.minimize(&loss, tape, &model)
///     },
///     &own,
/// )?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct MultiWorkerMirroredStrategy {
    strategy: Strategy,
    mpi: Arc<Mpi>,
}

impl Deref for MultiWorkerMirroredStrategy {
    type Target = Strategy;

    fn deref(&self) -> &Strategy {
        &self.strategy
    }
}

impl fmt::Debug for MultiWorkerMirroredStrategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MultiWorkerMirroredStrategy")
            .field("rank", &self.rank())
            .field("num_workers", &self.num_workers())
            .field("devices", &self.strategy)
            .finish()
    }
}

impl MultiWorkerMirroredStrategy {
    /// A strategy of all processes that `mpirun` has started with this one; without `mpirun`, of this process alone. On a machine with
    /// several GPUs, each process takes another one.
    ///
    /// All processes continue from the chief's random state, so that they draw the same initial weights and shuffle alike.
    ///
    /// # Errors
    /// [`Error::Device`] if there is no device; [`Error::Unavailable`] if the other processes do not make the same call, or MPI has ended in
    /// this process.
    pub fn new() -> Result<Self> {
        MultiWorkerMirroredStrategy::with(CommunicationOptions::new())
    }

    /// As [`MultiWorkerMirroredStrategy::new`], with other options. If another strategy is in use, its options hold.
    ///
    /// # Errors
    /// As [`MultiWorkerMirroredStrategy::new`].
    pub fn with(options: CommunicationOptions) -> Result<Self> {
        let mpi = Mpi::begin(options)?;
        let own_device = || {
            let mut logical = context::logical_devices(Some("GPU"))?;
            if logical.is_empty() {
                logical = context::logical_devices(Some("CPU"))?;
            }
            match logical.len() {
                0 => Device::current(),
                devices => logical[mpi.place().local_rank % devices].device(),
            }
        };
        // The others must not wait for a process without a device.
        let device = own_device().inspect_err(|error| mpi.fail(error))?;
        MultiWorkerMirroredStrategy::begin(mpi, vec![device])
    }

    /// A strategy whose part in this process has these devices. All processes need the same number of them.
    ///
    /// # Errors
    /// As [`MultiWorkerMirroredStrategy::new`]; [`Error::Check`] if there are none.
    pub fn on(devices: Vec<Device>, options: CommunicationOptions) -> Result<Self> {
        let mpi = Mpi::begin(options)?;
        let devices = super::strategy::checked("MultiWorkerMirroredStrategy", devices)
            .inspect_err(|error| mpi.fail(error))?;
        MultiWorkerMirroredStrategy::begin(mpi, devices)
    }

    fn begin(mpi: Arc<Mpi>, devices: Vec<Device>) -> Result<Self> {
        let call =
            format!("MultiWorkerMirroredStrategy with {} devices in each process", devices.len());
        mpi.agree(&call, 0, false)?;
        let state: Vec<u8> =
            random::global().state().iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut words = [0; 3];
        for (word, bytes) in words.iter_mut().zip(mpi.broadcast(state)?.chunks_exact(8)) {
            *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        }
        random::global().reset(words);
        let workers: Arc<dyn Workers> = mpi.clone();
        let strategy = Strategy::of_replicas(Replicas::of_workers(devices, workers, all_reduce));
        Ok(MultiWorkerMirroredStrategy { strategy, mpi })
    }

    /// The number of this process, from 0 (`cluster_resolver.task_id`).
    pub fn rank(&self) -> usize {
        self.mpi.rank()
    }

    /// The number of this process among those of its machine, from 0.
    pub fn local_rank(&self) -> usize {
        self.mpi.place().local_rank
    }

    /// The number of processes.
    pub fn num_workers(&self) -> usize {
        self.mpi.count()
    }

    /// Waits until all processes have called this.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if a process has ended, or makes another call.
    pub fn barrier(&self) -> Result<()> {
        self.mpi.agree("barrier", 0, false).map(drop)
    }
}

impl From<&MultiWorkerMirroredStrategy> for Strategy {
    fn from(strategy: &MultiWorkerMirroredStrategy) -> Strategy {
        strategy.strategy.clone()
    }
}
