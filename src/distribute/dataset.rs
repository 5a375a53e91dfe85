//! [`DistributedDataset`]: the batches of a dataset in parts for the replicas.

use std::fmt;

use super::{PerReplica, Strategy};
use crate::data::{Dataset, DatasetIter, Item};
use crate::error::{Error, Result, message};

/// Which examples the processes of a strategy train with (`tf.data.experimental.AutoShardPolicy`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AutoShardPolicy {
    /// Each process has the whole data and takes its part of every batch, so that the losses are those of one process.
    #[default]
    Data,
    /// The data of each process are its own: it has read other files, for example. All processes need the same number of batches.
    Off,
}

/// The place of a process among those that read data (`tf.distribute.InputContext`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputContext {
    /// The number of processes.
    pub num_input_pipelines: usize,
    /// The number of this process, from 0.
    pub input_pipeline_id: usize,
    /// The number of replicas in all processes.
    pub num_replicas_in_sync: usize,
}

impl InputContext {
    /// The size of a replica's part of a batch.
    ///
    /// # Errors
    /// [`Error::Shape`] if the batch cannot be split evenly.
    pub fn get_per_replica_batch_size(&self, global_batch_size: usize) -> Result<usize> {
        let replicas = self.num_replicas_in_sync;
        if global_batch_size == 0 || !global_batch_size.is_multiple_of(replicas) {
            return Err(Error::Shape(message!(
                "InputContext: a batch of {global_batch_size} examples cannot be split evenly among {replicas} replicas. Use a multiple of \
                 {replicas}."
            )));
        }
        Ok(global_batch_size / replicas)
    }
}

/// A dataset whose elements are [`PerReplica`] values. Each pass begins with [`DistributedDataset::iter`].
pub struct DistributedDataset<B: Item<Batch = B>> {
    strategy: Strategy,
    dataset: Dataset<B>,
    policy: AutoShardPolicy,
}

impl<B: Item<Batch = B>> fmt::Debug for DistributedDataset<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DistributedDataset")
            .field("strategy", &self.strategy)
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

impl Strategy {
    /// A dataset with the parts of the batches of `dataset`: each replica of this process gets its own rows. If a batch does not split
    /// evenly, the first replicas have one example more.
    ///
    /// With several processes, all have the same dataset, and each takes its part of every batch; a dataset that is shuffled needs the
    /// same seed in all. [`Strategy::distribute_datasets_from_function`] reads only what a process needs.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Device, Tensor, data::Dataset, distribute::MirroredStrategy, ndarray::ArrayD};
    /// let strategy = MirroredStrategy::on(vec![Device::current()?])?;
    /// let numbers = Dataset::from_tensor_slices(vec![1f32, 2.0, 3.0, 4.0])?.batch(2);
    /// let mut sums = Vec::new();
    /// for batch in strategy.experimental_distribute_dataset(&numbers).iter() {
    ///     let step = |batch: ArrayD<f32>| Tensor::from_array(&batch)?.reduce_sum(());
    ///     let sum = strategy.run(step, &batch?)?;
    ///     sums.push(sum.values()[0].item::<f32>()?);
    /// }
    /// assert_eq!(sums, [3.0, 7.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn experimental_distribute_dataset<B: Item<Batch = B>>(
        &self,
        dataset: &Dataset<B>,
    ) -> DistributedDataset<B> {
        let (strategy, dataset) = (self.clone(), dataset.clone());
        DistributedDataset { strategy, dataset, policy: AutoShardPolicy::Data }
    }

    /// A dataset from one that `f` makes for this process alone, from its own files or elements. Its batches are those of single
    /// replicas: each replica of the process gets another one.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Device, data::range, distribute::MirroredStrategy};
    /// let strategy = MirroredStrategy::on(vec![Device::current()?])?;
    /// let dataset = strategy.distribute_datasets_from_function(|context| {
    ///     let numbers = range(0..100).shard(context.num_input_pipelines, context.input_pipeline_id);
    ///     Ok(numbers.batch(context.get_per_replica_batch_size(20)?))
    /// })?;
    /// assert_eq!(dataset.iter().count(), 5);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of `f`; [`Error::Data`] if the dataset is known to be empty.
    pub fn distribute_datasets_from_function<B: Item<Batch = B>>(
        &self,
        f: impl FnOnce(InputContext) -> Result<Dataset<B>>,
    ) -> Result<DistributedDataset<B>> {
        let context = self.input_context();
        let dataset = f(context)?;
        if dataset.cardinality().known() == Some(0) {
            return Err(Error::Data(message!(
                "distribute_datasets_from_function: the dataset of process {} of {} has no element: it is too small for so many shards, or \
                 there are fewer files than processes. Shard elements instead of files, or use fewer processes.",
                context.input_pipeline_id,
                context.num_input_pipelines
            )));
        }
        Ok(DistributedDataset { strategy: self.clone(), dataset, policy: AutoShardPolicy::Off })
    }

    /// The place of this process among those that read data.
    pub fn input_context(&self) -> InputContext {
        let (count, rank) =
            self.workers().map_or((1, 0), |workers| (workers.count(), workers.rank()));
        InputContext {
            num_input_pipelines: count,
            input_pipeline_id: rank,
            num_replicas_in_sync: self.num_replicas_in_sync(),
        }
    }
}

impl<B: Item<Batch = B>> DistributedDataset<B> {
    /// A pass through the dataset.
    pub fn iter(&self) -> DistributedIter<B> {
        DistributedIter {
            strategy: self.strategy.clone(),
            iter: self.dataset.iter(),
            policy: self.policy,
            failed: false,
        }
    }
}

impl<B: Item<Batch = B>> IntoIterator for &DistributedDataset<B> {
    type Item = Result<PerReplica<B>>;
    type IntoIter = DistributedIter<B>;

    fn into_iter(self) -> DistributedIter<B> {
        self.iter()
    }
}

/// The elements of one pass through a [`DistributedDataset`]. All processes make the same number of calls; an error ends the pass.
pub struct DistributedIter<B: Item<Batch = B>> {
    strategy: Strategy,
    iter: DatasetIter<B>,
    policy: AutoShardPolicy,
    failed: bool,
}

impl<B: Item<Batch = B>> fmt::Debug for DistributedIter<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DistributedIter").field("policy", &self.policy).finish_non_exhaustive()
    }
}

impl<B: Item<Batch = B>> DistributedIter<B> {
    fn element(&mut self) -> Result<Option<PerReplica<B>>> {
        let parts = match self.policy {
            AutoShardPolicy::Data => self.parts_of_a_batch(),
            AutoShardPolicy::Off => self.batches(),
        };
        if let Some(workers) = self.strategy.workers() {
            if let Err(error) = &parts {
                workers.fail(error);
            }
            let has = parts.as_ref().is_ok_and(Option::is_some);
            let call = if has { "the next batch of a dataset" } else { "the end of a dataset" };
            let agreed = workers.agree(call, 0, false);
            // Its own error says more.
            return parts.and_then(|parts| agreed.map(|_| parts));
        }
        parts
    }

    fn parts_of_a_batch(&mut self) -> Result<Option<PerReplica<B>>> {
        let Some(batch) = self.iter.next().transpose()? else { return Ok(None) };
        let (rows, replicas) = (batch.rows()?, self.strategy.num_replicas_in_sync());
        if rows < replicas {
            return Err(Error::Shape(message!(
                "DistributedDataset: a batch of {rows} examples cannot be split among {replicas} replicas, which need an example each. Use \
                 larger batches, and drop a smaller last one (drop_remainder)."
            )));
        }
        let part = |(begin, own): (usize, usize)| {
            let rows = (begin..begin + own).map(|at| batch.row(at)).collect::<Result<Vec<B>>>()?;
            B::stack(rows)
        };
        self.strategy.own_rows(rows).map(part).collect::<Result<_>>().map(|v| Some(PerReplica(v)))
    }

    fn batches(&mut self) -> Result<Option<PerReplica<B>>> {
        let replicas = self.strategy.devices().len();
        let batches = self.iter.by_ref().take(replicas).collect::<Result<Vec<B>>>()?;
        match batches.len() {
            0 => Ok(None),
            all if all == replicas => Ok(Some(PerReplica(batches))),
            some => Err(Error::Shape(message!(
                "DistributedDataset: the last element has batches for {some} of {replicas} replicas. Make the number of batches a multiple of \
                 {replicas}."
            ))),
        }
    }
}

impl<B: Item<Batch = B>> Iterator for DistributedIter<B> {
    type Item = Result<PerReplica<B>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let element = self.element();
        self.failed = element.is_err();
        element.transpose()
    }
}
