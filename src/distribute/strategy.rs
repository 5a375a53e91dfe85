//! [`Strategy`] and its kinds.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::all_reduce::all_reduce;
use super::{Local, PerReplica};
use crate::eager::{self, Replica, Replicas};
use crate::error::{Error, Result, message};
use crate::ops::concat;
use crate::random::replicated;
use crate::runtime::{Device, context};
use crate::shape::Axis;
use crate::tensor::Tensor;

/// A way to run a program on several devices: what [`MirroredStrategy`] and [`OneDeviceStrategy`] have in common. A clone is another
/// handle to the same strategy.
#[derive(Clone)]
pub struct Strategy {
    replicas: Arc<Replicas>,
}

/// Trains equal copies of a model on several devices of this machine, each with a part of every batch.
#[derive(Debug, Clone)]
pub struct MirroredStrategy(Strategy);

/// Runs everything on one device, by the calls of a strategy.
#[derive(Debug, Clone)]
pub struct OneDeviceStrategy(Strategy);

impl Deref for MirroredStrategy {
    type Target = Strategy;

    fn deref(&self) -> &Strategy {
        &self.0
    }
}

impl Deref for OneDeviceStrategy {
    type Target = Strategy;

    fn deref(&self) -> &Strategy {
        &self.0
    }
}

impl MirroredStrategy {
    /// A strategy on all logical GPUs, or where there is none on the logical CPUs.
    ///
    /// # Errors
    /// [`Error::Device`] if there is no device, or one does not open.
    pub fn new() -> Result<Self> {
        let mut logical = context::logical_devices(Some("GPU"))?;
        if logical.is_empty() {
            logical = context::logical_devices(Some("CPU"))?;
        }
        if logical.is_empty() {
            // Its error says what is missing.
            Device::current()?;
        }
        let devices = logical.iter().map(context::LogicalDevice::device).collect::<Result<_>>()?;
        MirroredStrategy::on(devices)
    }

    /// A strategy on the logical devices of these names, such as `["GPU:0", "GPU:1"]`.
    ///
    /// # Errors
    /// [`Error::Device`] if there is no device of a name; [`Error::Check`] if there are none or one occurs twice.
    pub fn of<N: AsRef<str>>(names: &[N]) -> Result<Self> {
        let device = |name: &N| context::exact_device(name.as_ref());
        MirroredStrategy::on(names.iter().map(device).collect::<Result<_>>()?)
    }

    /// A strategy on these devices.
    ///
    /// # Errors
    /// [`Error::Check`] if there are none or one occurs twice.
    pub fn on(devices: Vec<Device>) -> Result<Self> {
        if devices.is_empty() {
            return Err(Error::Check(message!(
                "MirroredStrategy: there is no device in the list. Name at least one, or call MirroredStrategy::new for all."
            )));
        }
        let twice = (1..devices.len()).find(|&at| devices[..at].contains(&devices[at]));
        if let Some(at) = twice {
            return Err(Error::Check(message!(
                "MirroredStrategy: {} occurs twice. Each replica needs a device of its own; \
                 set_logical_device_configuration makes several of one.",
                devices[at].name().unwrap_or_else(|| devices[at].adapter().to_string())
            )));
        }
        Ok(MirroredStrategy(Strategy { replicas: Replicas::new(devices) }))
    }
}

impl OneDeviceStrategy {
    /// A strategy on the device of this name, such as `"/gpu:0"`.
    ///
    /// # Errors
    /// As [`device`](crate::device()).
    pub fn new(device: &str) -> Result<Self> {
        let devices = vec![context::device_named(device)?];
        Ok(OneDeviceStrategy(Strategy { replicas: Replicas::new(devices) }))
    }
}

/// How values of replicas become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReduceOp {
    /// Their sum.
    Sum,
    /// Their mean.
    Mean,
}

impl fmt::Debug for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.replicas.devices()).finish()
    }
}

impl Strategy {
    /// The strategy whose scope this thread is in.
    pub(crate) fn of_scope() -> Option<Self> {
        eager::replicas().map(|replicas| Strategy { replicas })
    }

    /// The number of replicas.
    pub fn num_replicas_in_sync(&self) -> usize {
        self.replicas.count()
    }

    /// The devices, one for each replica.
    pub fn devices(&self) -> &[Device] {
        self.replicas.devices()
    }

    /// Runs `f` in the strategy's scope: variables that it makes are mirrored, tensors are made on the first device.
    ///
    /// Models and optimizers make variables at their first call; for these it is enough that they are built, or used by
    /// [`Strategy::run`], with the strategy.
    pub fn scope<R>(&self, f: impl FnOnce() -> R) -> R {
        eager::in_scope_of(&self.replicas, f)
    }

    /// Runs `step` in every replica, with its part of `args`, and returns the results. The replicas run at the same time, each in
    /// a thread of its own; tensors that they make are on their own devices.
    ///
    /// # Errors
    /// The error of the replica that failed first; [`Error::Check`] if an argument has not a part for each replica, or this is
    /// called in a replica or in the trace of a function.
    pub fn run<A: Local, R: Send>(
        &self,
        step: impl Fn(A::Value) -> Result<R> + Sync,
        args: A,
    ) -> Result<PerReplica<R>> {
        if eager::replica().is_some() {
            return Err(Error::Check(message!(
                "Strategy::run: this is called in a replica. A step computes for one replica; call run outside of it."
            )));
        }
        if eager::in_trace() {
            return Err(Error::Check(message!(
                "Strategy::run: a function cannot be traced on several devices at once. Call run outside of the function; \
                 the step may call functions."
            )));
        }
        let replicas = self.replicas.count();
        if let Some(wrong) = args.parts().into_iter().find(|&parts| parts != replicas) {
            return Err(Error::Check(message!(
                "Strategy::run: an argument has {wrong} parts, and the strategy {replicas} replicas. Split it with this strategy."
            )));
        }
        let draws = Arc::default();
        let results = eager::run_replicas(&self.replicas, |index| {
            replicated::drawing(&draws, index, || step(args.local(index)))
        });
        draws.advance();
        results.map(PerReplica)
    }

    /// The parts of a batch, along the first axis, on the devices of the replicas. If the number of examples is not a multiple of
    /// the number of replicas, the first parts have one example more.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are fewer examples than replicas; the errors of the copies.
    pub fn split(&self, batch: &Tensor) -> Result<PerReplica<Tensor>> {
        let replicas = self.replicas.count();
        let rows = batch.shape().first().copied().unwrap_or(0);
        if rows < replicas {
            return Err(Error::Shape(message!(
                "Strategy::split: a batch of shape {:?} cannot be split among {replicas} replicas, which need an example each. \
                 Use larger batches, and drop a smaller last one (drop_remainder).",
                batch.shape()
            )));
        }
        let mut begin = 0;
        let part = |(index, device): (usize, &Device)| {
            let own = rows / replicas + usize::from(index < rows % replicas);
            let (mut from, mut size) = (vec![0; batch.rank()], vec![-1; batch.rank()]);
            (from[0], size[0]) = (begin, own as i64);
            begin += own;
            let part = if replicas == 1 { batch.clone() } else { batch.slice(&from, &size)? };
            part.to(device)
        };
        self.replicas.devices().iter().enumerate().map(part).collect::<Result<_>>().map(PerReplica)
    }

    /// The value `f` for each replica, made on its device.
    ///
    /// # Errors
    /// Those of `f`.
    pub fn distribute_values_from_function<T>(
        &self,
        f: impl Fn(usize) -> Result<T>,
    ) -> Result<PerReplica<T>> {
        let devices = self.replicas.devices().iter().enumerate();
        devices
            .map(|(index, device)| device.scope(|| f(index)))
            .collect::<Result<_>>()
            .map(PerReplica)
    }

    /// The sum or the mean of the replicas' values, on the first device. With an axis, each value is reduced along it, too: the
    /// mean is then that of all elements, however many each replica has.
    ///
    /// # Errors
    /// [`Error::Shape`] if the values do not fit together; the errors of the copies.
    pub fn reduce(
        &self,
        op: ReduceOp,
        values: &PerReplica<Tensor>,
        axis: Option<i32>,
    ) -> Result<Tensor> {
        self.check(values, "reduce")?;
        let device = &self.replicas.devices()[0];
        let mut total: Option<Tensor> = None;
        let mut count = 0;
        for value in &values.0 {
            let (value, rows) = match axis {
                None => (value.clone(), 1),
                Some(axis) => {
                    let at = if axis < 0 { axis + value.rank() as i32 } else { axis };
                    let rows =
                        usize::try_from(at).ok().and_then(|at| value.shape().get(at).copied());
                    // The sum reports an axis that does not exist.
                    (value.reduce_sum(axis)?, rows.unwrap_or(0))
                }
            };
            count += rows;
            let value = value.to(device)?;
            total = Some(match total {
                None => value,
                Some(total) => total.add(value)?,
            });
        }
        let total = total.expect("a strategy has a replica");
        match op {
            ReduceOp::Sum => Ok(total),
            ReduceOp::Mean => total.divide(count as f32),
        }
    }

    /// The replicas' values joined along an axis, on the first device.
    ///
    /// # Errors
    /// As [`concat`](crate::concat); the errors of the copies.
    pub fn gather(&self, values: &PerReplica<Tensor>, axis: impl Into<Axis>) -> Result<Tensor> {
        self.check(values, "gather")?;
        let device = &self.replicas.devices()[0];
        let values: Vec<Tensor> =
            values.0.iter().map(|value| value.to(device)).collect::<Result<_>>()?;
        concat(&values, axis)
    }

    fn check(&self, values: &PerReplica<Tensor>, call: &str) -> Result<()> {
        match values.0.len() == self.replicas.count() {
            true => Ok(()),
            false => Err(Error::Check(message!(
                "Strategy::{call}: there are {} values, and the strategy has {} replicas.",
                values.0.len(),
                self.replicas.count()
            ))),
        }
    }
}

/// What a step can do besides computing: the context of the replica that this thread computes for.
pub struct ReplicaContext(Replica);

impl fmt::Debug for ReplicaContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReplicaContext({} of {})", self.0.index, self.0.replicas.count())
    }
}

/// The context of this thread's replica; `None` outside of [`Strategy::run`].
pub fn get_replica_context() -> Option<ReplicaContext> {
    eager::replica().map(ReplicaContext)
}

/// Whether this thread is in the scope of a strategy, or in one of its replicas.
pub fn has_strategy() -> bool {
    eager::replicas().is_some()
}

/// Whether this thread is outside of any replica.
pub fn in_cross_replica_context() -> bool {
    eager::replica().is_none()
}

impl ReplicaContext {
    /// The number of this replica, from 0.
    pub fn replica_id_in_sync_group(&self) -> usize {
        self.0.index
    }

    /// The number of replicas.
    pub fn num_replicas_in_sync(&self) -> usize {
        self.0.replicas.count()
    }

    /// The sum or the mean of `value` over all replicas, which all make this call. No gradient passes through it.
    ///
    /// # Errors
    /// [`Error::Check`] if a replica ends without making the call; [`Error::Shape`] if the shapes differ.
    pub fn all_reduce(&self, op: ReduceOp, value: &Tensor) -> Result<Tensor> {
        let replicas = self.0.replicas.clone();
        let sum = self.0.meet("all_reduce", value.stop_gradient(), move |values| {
            let values = values.into_iter().map(|value| vec![Some(value)]).collect();
            all_reduce("all_reduce", replicas.devices(), values)
        })?;
        let sum = sum.into_iter().flatten().next().expect("there is a sum for each value");
        match op {
            ReduceOp::Sum => Ok(sum),
            ReduceOp::Mean => sum.divide(self.0.replicas.count() as f32),
        }
    }

    /// The values of all replicas joined along an axis. No gradient passes through it.
    ///
    /// # Errors
    /// As [`ReplicaContext::all_reduce`]; the shapes may differ along the axis.
    pub fn all_gather(&self, value: &Tensor, axis: impl Into<Axis>) -> Result<Tensor> {
        let (replicas, axis) = (self.0.replicas.clone(), axis.into());
        self.0.meet("all_gather", value.stop_gradient(), move |values| {
            let joined = |device: &Device| {
                let here: Vec<Tensor> =
                    values.iter().map(|value| value.to(device)).collect::<Result<_>>()?;
                concat(&here, axis)
            };
            replicas.devices().iter().map(joined).collect()
        })
    }
}
