//! [`Strategy`] and its kinds.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::signature::hash_of;
use super::{Local, PerReplica, all_reduce};
use crate::dtype::DType;
use crate::eager::{self, Replica, Replicas, Workers};
use crate::error::{Error, Result, message};
use crate::host_array::HostArray;
use crate::ops::concat;
use crate::random::replicated;
use crate::runtime::{Device, context};
use crate::shape::Axis;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// A way to run a program on several devices: what [`MirroredStrategy`] and [`OneDeviceStrategy`] have in common. A clone is another
/// handle to the same strategy.
#[derive(Clone)]
pub struct Strategy {
    replicas: Arc<Replicas>,
}

/// Trains equal copies of a model on several devices of this machine, each with a part of every batch.
#[derive(Debug, Clone)]
pub struct MirroredStrategy(Strategy);

/// Trains on several devices with one copy of the model's weights and of the optimizer's slots, on the first device: each replica copies
/// the weights that it reads, and the first device makes the steps (`tf.distribute.experimental.CentralStorageStrategy`). It needs
/// less memory on the other devices than a [`MirroredStrategy`], and copies more.
#[derive(Debug, Clone)]
pub struct CentralStorageStrategy(Strategy);

impl Deref for CentralStorageStrategy {
    type Target = Strategy;

    fn deref(&self) -> &Strategy {
        &self.0
    }
}

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
        let devices = checked("MirroredStrategy", devices)?;
        Ok(MirroredStrategy(Strategy { replicas: Replicas::new(devices, all_reduce::all_reduce) }))
    }
}

/// The devices of replicas, if there is one and none occurs twice.
pub(super) fn checked(strategy: &str, devices: Vec<Device>) -> Result<Vec<Device>> {
    if devices.is_empty() {
        return Err(Error::Check(message!(
            "{strategy}: there is no device in the list. Name at least one, or call {strategy}::new for all."
        )));
    }
    let twice = (1..devices.len()).find(|&at| devices[..at].contains(&devices[at]));
    if let Some(at) = twice {
        return Err(Error::Check(message!(
            "{strategy}: {} occurs twice. Each replica needs a device of its own; set_logical_device_configuration makes several \
             of one.",
            devices[at].name().unwrap_or_else(|| devices[at].adapter().to_string())
        )));
    }
    Ok(devices)
}

impl CentralStorageStrategy {
    /// A strategy on all logical GPUs, or where there is none on the logical CPUs. The first device has the variables.
    ///
    /// # Errors
    /// As [`MirroredStrategy::new`].
    pub fn new() -> Result<Self> {
        let mirrored = MirroredStrategy::new()?;
        CentralStorageStrategy::on(mirrored.devices().to_vec())
    }

    /// A strategy on the logical devices of these names, of which the first one has the variables.
    ///
    /// # Errors
    /// As [`MirroredStrategy::of`].
    pub fn of<N: AsRef<str>>(names: &[N]) -> Result<Self> {
        let device = |name: &N| context::exact_device(name.as_ref());
        CentralStorageStrategy::on(names.iter().map(device).collect::<Result<_>>()?)
    }

    /// A strategy on these devices, of which the first one has the variables.
    ///
    /// # Errors
    /// As [`MirroredStrategy::on`].
    pub fn on(devices: Vec<Device>) -> Result<Self> {
        let devices = checked("CentralStorageStrategy", devices)?;
        Ok(CentralStorageStrategy(Strategy {
            replicas: Replicas::central(devices, all_reduce::all_reduce),
        }))
    }
}

impl OneDeviceStrategy {
    /// A strategy on the device of this name, such as `"/gpu:0"`.
    ///
    /// # Errors
    /// As [`device`](crate::device()).
    pub fn new(device: &str) -> Result<Self> {
        let devices = vec![context::device_named(device)?];
        Ok(OneDeviceStrategy(Strategy { replicas: Replicas::new(devices, all_reduce::all_reduce) }))
    }
}

/// The time in which a thread is in the scope of a strategy: [`Strategy::enter`].
#[must_use = "the scope ends when this value is dropped"]
pub struct StrategyScope {
    _time: eager::ScopeTime,
}

impl fmt::Debug for StrategyScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StrategyScope").finish_non_exhaustive()
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

    #[cfg(feature = "mpi")]
    pub(super) fn of_replicas(replicas: Arc<Replicas>) -> Self {
        Strategy { replicas }
    }

    /// The processes of the strategy, if there are several.
    pub(crate) fn workers(&self) -> Option<&Arc<dyn Workers>> {
        self.replicas.workers()
    }

    /// Whether this process is the one that writes files and shows progress: the only one, or the first of several.
    pub fn is_chief(&self) -> bool {
        self.workers().is_none_or(|workers| workers.rank() == 0)
    }

    /// The number of replicas, in all processes.
    pub fn num_replicas_in_sync(&self) -> usize {
        self.replicas.in_sync()
    }

    /// The devices of this process, one for each replica.
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

    /// As [`Strategy::scope`], until the returned value is dropped, for callers that cannot pass a closure. Scopes of a thread must
    /// end in the reverse order.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::distribute::{MirroredStrategy, has_strategy};
    /// let strategy = MirroredStrategy::new()?;
    /// let scope = strategy.enter();
    /// assert!(has_strategy());
    /// drop(scope);
    /// assert!(!has_strategy());
    /// # Ok(())
    /// # }
    /// ```
    pub fn enter(&self) -> StrategyScope {
        StrategyScope { _time: eager::enter_scope_of(&self.replicas) }
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
        self.send_new_variables()?;
        let draws = Arc::default();
        let first = self.replicas.first();
        let results = eager::run_replicas(&self.replicas, |index| {
            replicated::drawing(&draws, first + index, || step(args.local(index)))
        });
        draws.advance();
        results.map(PerReplica)
    }

    /// The parts of a batch, along the first axis, on the devices of the replicas. If the number of examples is not a multiple of
    /// the number of replicas, the first parts have one example more.
    ///
    /// With several processes, `batch` is the whole batch in each of them, and the result has the parts of this process.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are fewer examples than replicas; the errors of the copies.
    pub fn split(&self, batch: &Tensor) -> Result<PerReplica<Tensor>> {
        let replicas = self.replicas.in_sync();
        let rows = batch.shape().first().copied().unwrap_or(0);
        if rows < replicas {
            return Err(Error::Shape(message!(
                "Strategy::split: a batch of shape {:?} cannot be split among {replicas} replicas, which need an example each. \
                 Use larger batches, and drop a smaller last one (drop_remainder).",
                batch.shape()
            )));
        }
        self.split_at(batch, self.own_rows(rows))
    }

    /// The parts of a batch with these rows, on the devices of this process.
    pub(crate) fn split_at(
        &self,
        batch: &Tensor,
        rows: impl Iterator<Item = (usize, usize)>,
    ) -> Result<PerReplica<Tensor>> {
        let whole = batch.shape().first().copied().unwrap_or(0);
        let part = |((begin, own), device): ((usize, usize), &Device)| {
            let (mut from, mut size) = (vec![0; batch.rank()], vec![-1; batch.rank()]);
            (from[0], size[0]) = (begin, own as i64);
            let part = if own == whole { batch.clone() } else { batch.slice(&from, &size)? };
            part.to(device)
        };
        rows.zip(self.replicas.devices()).map(part).collect::<Result<_>>().map(PerReplica)
    }

    /// The rows of a batch that each replica of this process computes: where they begin, and how many there are.
    pub(crate) fn own_rows(&self, rows: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (replicas, first) = (self.replicas.in_sync(), self.replicas.first());
        let begin = move |index: usize| rows / replicas * index + index.min(rows % replicas);
        (first..first + self.replicas.count())
            .map(move |index| (begin(index), begin(index + 1) - begin(index)))
    }

    /// The number, among the replicas of all processes, of the first one of this process.
    pub(crate) fn first_replica(&self) -> usize {
        self.replicas.first()
    }

    /// The value `f` for each replica of this process, made on its device. `f` receives the number of the replica among those of all
    /// processes.
    ///
    /// # Errors
    /// Those of `f`.
    pub fn distribute_values_from_function<T>(
        &self,
        f: impl Fn(usize) -> Result<T>,
    ) -> Result<PerReplica<T>> {
        let (devices, first) = (self.replicas.devices().iter().enumerate(), self.replicas.first());
        devices
            .map(|(index, device)| device.scope(|| f(first + index)))
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
        let mut total = total.expect("a strategy has a replica");
        if let Some(workers) = self.workers() {
            let sums =
                all_reduce::of_workers("Strategy::reduce", &**workers, device, &[Some(total)], 0)?;
            total = sums.into_iter().flatten().next().expect("there is a sum for each value");
            let counts = workers.gather((count as u64).to_le_bytes().to_vec())?;
            let count_of = |bytes: Vec<u8>| bytes.try_into().map_or(0, u64::from_le_bytes);
            count = counts.into_iter().map(count_of).sum::<u64>() as usize;
        }
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
        let axis = axis.into();
        let own = concat(&values, axis)?;
        gather_from_workers(&self.replicas, "Strategy::gather", &own, axis)
    }

    /// Sets variables, in all processes, to the values that the chief has: after it alone has loaded them, for example. All processes
    /// make this call. Variables that are made in the scope are sent by the first step that follows.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the processes have other variables, or one has ended.
    pub fn broadcast_variables(&self, variables: &[Variable]) -> Result<()> {
        let Some(workers) = self.workers() else { return Ok(()) };
        let words: Vec<String> = variables.iter().map(|v| v.spec().to_string()).collect();
        workers.agree("broadcast_variables", hash_of(&words), false)?;
        let send = || {
            let mut own = Vec::new();
            for variable in variables {
                own.extend(variable.peek().to_bytes()?);
            }
            let sent = workers.broadcast(own.clone())?;
            if sent == own {
                return Ok(());
            }
            let mut rest = &sent[..];
            for variable in variables {
                let spec = variable.spec();
                let bytes = spec.dtype.size() * spec.elements();
                let (own, later) = rest.split_at_checked(bytes).unwrap_or_default();
                rest = later;
                let array = HostArray::from_device(own.to_vec(), spec.shape.clone(), spec.dtype);
                let value = variable.device().scope(|| array.to_tensor())?;
                variable.replace(&value)?;
            }
            Ok(())
        };
        send().inspect_err(|error| workers.fail(error))
    }

    /// Sets the variables that each replica changes on its own, such as the moving averages of batch normalization, to their means over
    /// all processes. All processes make this call. `fit` makes it after each epoch and before each backup; a loop of one's own
    /// makes it before the chief saves the model.
    ///
    /// # Errors
    /// [`Error::Unavailable`] if the processes have other variables, or one has ended.
    pub fn average_variables(&self, variables: &[Variable]) -> Result<()> {
        let Some(workers) = self.workers() else { return Ok(()) };
        let is_own = |variable: &&Variable| {
            variable.changes_in_replicas()
                && matches!(variable.spec().dtype, DType::F32 | DType::F16)
        };
        let own: Vec<&Variable> = variables.iter().filter(is_own).collect();
        if own.is_empty() {
            return Ok(());
        }
        let values: Vec<Option<Tensor>> =
            own.iter().map(|variable| Some(variable.peek())).collect();
        let device = &self.replicas.devices()[0];
        let sums = all_reduce::of_workers("average_variables", &**workers, device, &values, 0)?;
        for (variable, sum) in own.iter().zip(sums.into_iter().flatten()) {
            variable.replace(&sum.divide(workers.count() as f32)?)?;
        }
        Ok(())
    }

    /// Sends the variables that were made since the last call from the chief to the other processes.
    pub(crate) fn send_new_variables(&self) -> Result<()> {
        match self.workers() {
            None => Ok(()),
            Some(_) => match &self.replicas.take_made()[..] {
                [] => Ok(()),
                made => self.broadcast_variables(made),
            },
        }
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

/// The values of all processes joined along an axis, on the first device of this one.
fn gather_from_workers(
    replicas: &Replicas,
    what: &str,
    own: &Tensor,
    axis: Axis,
) -> Result<Tensor> {
    let Some(workers) = replicas.workers() else { return Ok(own.clone()) };
    let words = vec![own.dtype().to_string(), own.rank().to_string()];
    workers.agree(what, hash_of(&words), false)?;
    let gather = || {
        let mut message = Vec::new();
        own.shape().iter().for_each(|size| message.extend((*size as u64).to_le_bytes()));
        message.extend(own.to_bytes()?);
        let part = |message: Vec<u8>| {
            let (sizes, bytes) = message.split_at_checked(8 * own.rank()).unwrap_or_default();
            let size = |size: &[u8]| u64::from_le_bytes(size.try_into().unwrap_or_default());
            let shape: Vec<usize> = sizes.chunks_exact(8).map(|own| size(own) as usize).collect();
            let array = HostArray::from_device(bytes.to_vec(), shape, own.dtype());
            own.device().scope(|| array.to_tensor())
        };
        workers.gather(message)?.into_iter().map(part).collect::<Result<Vec<Tensor>>>()
    };
    let parts = gather().inspect_err(|error| workers.fail(error))?;
    concat(&parts, axis)
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
    /// The number of this replica among those of all processes, from 0.
    pub fn replica_id_in_sync_group(&self) -> usize {
        self.0.replicas.first() + self.0.index
    }

    /// The number of replicas, in all processes.
    pub fn num_replicas_in_sync(&self) -> usize {
        self.0.replicas.in_sync()
    }

    /// The sum or the mean of `value` over all replicas, which all make this call. No gradient passes through it.
    ///
    /// # Errors
    /// [`Error::Check`] if a replica ends without making the call; [`Error::Shape`] if the shapes differ.
    pub fn all_reduce(&self, op: ReduceOp, value: &Tensor) -> Result<Tensor> {
        let replicas = self.0.replicas.clone();
        let sum = self.0.meet("all_reduce", value.stop_gradient(), move |values| {
            let values = values.into_iter().map(|value| vec![Some(value)]).collect();
            all_reduce::all_reduce("all_reduce", &replicas, values, 0, replicas.count())
        })?;
        let sum = sum.into_iter().flatten().next().expect("there is a sum for each value");
        match op {
            ReduceOp::Sum => Ok(sum),
            ReduceOp::Mean => sum.divide(self.0.replicas.in_sync() as f32),
        }
    }

    /// The values of all replicas joined along an axis. No gradient passes through it.
    ///
    /// # Errors
    /// As [`ReplicaContext::all_reduce`]; the shapes may differ along the axis.
    pub fn all_gather(&self, value: &Tensor, axis: impl Into<Axis>) -> Result<Tensor> {
        let (replicas, axis) = (self.0.replicas.clone(), axis.into());
        self.0.meet("all_gather", value.stop_gradient(), move |values| {
            let first = &replicas.devices()[0];
            let here: Vec<Tensor> =
                values.iter().map(|value| value.to(first)).collect::<Result<_>>()?;
            let own = concat(&here, axis)?;
            let all = gather_from_workers(&replicas, "all_gather", &own, axis)?;
            replicas.devices().iter().map(|device| all.to(device)).collect()
        })
    }
}
