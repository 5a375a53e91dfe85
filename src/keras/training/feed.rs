//! [`Feed`]: the batches of one epoch after another.

use std::ops::Range;
use std::rc::Rc;

use crate::data::IteratorState;
use crate::data::codec::{Reader, Writer};
use crate::data::{
    Arrays, Batch, BatchSource, Batches, Cardinality, DataKind, ItemSpec, ModelData, Origin,
};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::ops::where_;
use crate::random::{self, Generator};
use crate::tensor::Tensor;

/// The name of the validation data of `fit` in messages.
pub(super) const VALIDATION: &str = "fit: validation data";

/// The default batch size.
const BATCH: usize = 32;

/// Provides a model with batches.
pub(super) struct Feed<'a> {
    /// The name of the call with which messages begin.
    call: &'static str,
    data: Data<'a>,
    /// The number of batches of an epoch, if the caller specifies it.
    steps: Option<usize>,
    class_weight: Option<Tensor>,
    /// The number of batches provided in this epoch, and in this pass through the data.
    given: usize,
    passed: usize,
}

enum Data<'a> {
    Arrays {
        arrays: Rc<Arrays<'a>>,
        /// The examples that this feed provides.
        range: Range<usize>,
        size: usize,
        shuffle: bool,
        /// The order of this pass, and the index of the next example in it.
        order: Vec<usize>,
        at: usize,
        /// The state of the generator from which the order was drawn.
        drawn_from: [u64; 3],
    },
    Batches {
        source: BatchSource<'a>,
        pass: Option<Batches<'a>>,
        /// The pass has ended. It is kept until the next one begins, because a backup saves the seeds of the next pass with it.
        ended: bool,
    },
}

impl<'a> Feed<'a> {
    pub(super) fn new(
        call: &'static str,
        source: ModelData<'a>,
        batch_size: Option<usize>,
        steps: Option<usize>,
        shuffle: bool,
    ) -> Result<Self> {
        let data = match source.0 {
            DataKind::Arrays(arrays) => {
                let range = 0..arrays.len();
                let size = batch_size.unwrap_or(BATCH);
                Data::Arrays {
                    arrays,
                    range,
                    size,
                    shuffle,
                    order: Vec::new(),
                    at: 0,
                    drawn_from: [0; 3],
                }
            }
            DataKind::Batches(source) => {
                if let Some(size) = batch_size {
                    return Err(Error::Data(message!(
                        "{call}: batch_size is {size}, and the data come in batches of their own. Leave it out."
                    )));
                }
                Data::Batches { source, pass: None, ended: false }
            }
        };
        let feed = Feed { call, data, steps, class_weight: None, given: 0, passed: 0 };
        feed.check()?;
        Ok(feed)
    }

    /// Splits the examples into two feeds; the second one has the fraction `share` of all, the last ones.
    pub(super) fn split(
        mut self,
        share: f64,
        batch_size: Option<usize>,
        steps: Option<usize>,
    ) -> Result<(Self, Self)> {
        let call = self.call;
        let Data::Arrays { arrays, range, size, .. } = &mut self.data else {
            return Err(Error::Data(message!(
                "{call}: validation_split needs arrays, and the data come in batches. Give validation_data."
            )));
        };
        let count = range.len();
        let split = (count as f64 * (1.0 - share)).floor() as usize;
        if split == 0 || split == count {
            return Err(Error::Data(message!(
                "{call}: validation_split {share} of {count} examples leaves {split} to train on and {} to validate. \
                 Choose another share.",
                count - split
            )));
        }
        let rest = Data::Arrays {
            arrays: arrays.clone(),
            range: split..count,
            size: batch_size.unwrap_or(*size),
            shuffle: false,
            order: Vec::new(),
            at: 0,
            drawn_from: [0; 3],
        };
        *range = 0..split;
        let call = VALIDATION;
        let rest = Feed { call, data: rest, steps, class_weight: None, given: 0, passed: 0 };
        self.check()?;
        rest.check()?;
        Ok((self, rest))
    }

    /// Weights the examples by their labels.
    pub(super) fn weigh_classes(&mut self, weights: &[(usize, f32)]) -> Result<()> {
        let Some(last) = weights.iter().map(|(class, _)| *class).max() else { return Ok(()) };
        // Other classes have the weight 1; classes above the last share the entry after it.
        let size = last.checked_add(2).filter(|size| *size <= 1 << 24).ok_or_else(|| {
            Error::Data(message!("{}: class_weight names the class {last}.", self.call))
        })?;
        let mut table = vec![1.0f32; size];
        for (class, weight) in weights {
            table[*class] = *weight;
        }
        if let Data::Arrays { arrays, .. } = &self.data {
            if !arrays.sample_weight.is_empty() {
                return Err(Error::Data(message!(
                    "{}: class_weight and sample weights cannot be given together. Multiply them into one.",
                    self.call
                )));
            }
        }
        self.class_weight = Some(Tensor::from_slice(&table, [size])?);
        Ok(())
    }

    fn check(&self) -> Result<()> {
        let call = self.call;
        let range = match &self.data {
            Data::Arrays { range, .. } => range,
            Data::Batches { source, .. } => return self.check_count(source.count),
        };
        if range.is_empty() {
            return Err(Error::Data(message!(
                "{call}: there are no examples: the first axis of the arrays is 0."
            )));
        }
        let batches = self.batches_of_a_pass().unwrap_or(0);
        match self.steps {
            Some(steps) if steps > batches => Err(Error::Data(message!(
                "{call}: {steps} steps are requested, and {} examples make {batches} batches. Ask for fewer, or \
                 leave the number out.",
                range.len()
            ))),
            _ => Ok(()),
        }
    }

    /// Checks that there are enough batches, if their number is known, and that they end.
    fn check_count(&self, count: Cardinality) -> Result<()> {
        let call = self.call;
        match (count, self.steps) {
            (Cardinality::Known(0), _) => Err(Error::Data(message!(
                "{call}: the dataset has no batch. Look at what it leaves out: take, skip, filter, drop_remainder."
            ))),
            (Cardinality::Known(count), Some(steps)) if steps > count => {
                Err(Error::Data(message!(
                    "{call}: {steps} steps are requested, and the dataset has {count} batches. Ask for fewer, or \
                     repeat it: dataset.repeat(None)."
                )))
            }
            (Cardinality::Infinite, None) => {
                let option = match call {
                    "fit" => "steps_per_epoch",
                    VALIDATION => "validation_steps",
                    _ => "steps",
                };
                Err(Error::Data(message!(
                    "{call}: the dataset never ends. Say how many batches to take with {option}, or end it: dataset.take(100)."
                )))
            }
            _ => Ok(()),
        }
    }

    fn batches_of_a_pass(&self) -> Option<usize> {
        match &self.data {
            Data::Arrays { range, size, .. } => Some(range.len().div_ceil(*size)),
            Data::Batches { source, .. } => source.count.known(),
        }
    }

    /// The number of batches of an epoch, if it is known before the end.
    pub(super) fn steps(&self) -> Option<usize> {
        self.steps.or_else(|| self.batches_of_a_pass())
    }

    /// The name of the call with which messages begin.
    pub(super) fn call(&self) -> &'static str {
        self.call
    }

    /// The arrays, if the examples are not in batches.
    pub(super) fn arrays(&self) -> Option<&Arrays<'a>> {
        match &self.data {
            Data::Arrays { arrays, .. } => Some(arrays),
            Data::Batches { .. } => None,
        }
    }

    /// Appends the targets to the inputs. Returns the number of inputs before.
    pub(super) fn join_targets(&mut self) -> usize {
        let Data::Arrays { arrays, .. } = &mut self.data else { return 0 };
        let inputs = arrays.x.len();
        if let Some(arrays) = Rc::get_mut(arrays) {
            arrays.x.append(&mut arrays.y);
            arrays.x.append(&mut arrays.sample_weight);
        }
        inputs
    }

    /// Reverses [`Feed::join_targets`].
    pub(super) fn part_targets(&mut self, inputs: usize) {
        if let Data::Arrays { arrays, .. } = &mut self.data {
            if let Some(arrays) = Rc::get_mut(arrays) {
                arrays.y = arrays.x.split_off(inputs);
            }
        }
    }

    /// A batch like those of the epoch, if they are known: the first examples of arrays, zeros for a dataset.
    pub(super) fn sample(&self) -> Result<Option<Batch>> {
        match &self.data {
            Data::Arrays { arrays, range, size, .. } => {
                let end = range.end.min(range.start.saturating_add(*size));
                let places: Vec<usize> = (range.start..end).collect();
                arrays.batch(&places).map(Some)
            }
            Data::Batches { source, .. } => source.spec.as_ref().map_or(Ok(None), batch_of),
        }
    }

    /// Begins an epoch: at the beginning of the data, or where the last epoch stopped if the caller has specified the number of
    /// batches of an epoch.
    pub(super) fn begin(&mut self) {
        self.given = 0;
        if self.steps.is_some() {
            return;
        }
        self.passed = 0;
        match &mut self.data {
            Data::Arrays { order, at, .. } => (*order, *at) = (Vec::new(), 0),
            Data::Batches { ended, .. } => *ended = true,
        }
    }

    /// The next batch of the epoch, if there is one.
    pub(super) fn next(&mut self) -> Result<Option<Batch>> {
        if self.steps.is_some_and(|steps| self.given >= steps) {
            return Ok(None);
        }
        let began_earlier = self.steps.is_some() && self.passed > self.given;
        let mut next = self.next_of_pass();
        if matches!(next, Ok(None)) && began_earlier {
            // The pass began in an earlier epoch; this epoch continues with the next pass.
            next = self.next_of_pass();
        }
        let (call, given) = (self.call, self.given);
        let next = match &self.data {
            Data::Arrays { .. } => next?,
            Data::Batches { .. } => next.map_err(|error| {
                error.reworded(|text| message!("{call}: batch {given}: {}", &**text))
            })?,
        };
        let Some(mut batch) = next else {
            return self.ended().map(|()| None);
        };
        self.check_axes(&batch)?;
        if batch.is_empty() {
            return Err(Error::Data(message!(
                "{}: batch {} has no examples: x is {:?}. Leave empty batches out.",
                self.call,
                self.given,
                batch.x.first().map_or(&[][..], Tensor::shape)
            )));
        }
        if let Some(table) = &self.class_weight {
            weigh(self.call, &mut batch, table)?;
        }
        self.given += 1;
        Ok(Some(batch))
    }

    /// Refuses elements of a dataset without an axis of examples, which are not batched. Batches from a closure or an iterator
    /// are not checked.
    fn check_axes(&self, batch: &Batch) -> Result<()> {
        match &self.data {
            Data::Batches { source, .. } if source.origin == Origin::Dataset => {}
            _ => return Ok(()),
        }
        let parts = [("x", &batch.x), ("y", &batch.y), ("sample_weight", &batch.sample_weight)];
        match parts.iter().find(|(_, part)| part.iter().any(|tensor| tensor.rank() == 0)) {
            None => Ok(()),
            Some((name, _)) => Err(Error::Shape(message!(
                "{}: batch {}: {name} is a scalar, so the dataset's elements are single examples. Batch them: \
                 dataset.batch(32).",
                self.call,
                self.given
            ))),
        }
    }

    /// Refuses an epoch without a batch, or with fewer batches than requested.
    fn ended(&self) -> Result<()> {
        let (call, given) = (self.call, self.given);
        let dataset =
            matches!(&self.data, Data::Batches { source, .. } if source.origin == Origin::Dataset);
        let (kind, remedy) = match dataset {
            true => ("dataset", "Look at what it reads and leaves out"),
            false => ("data", "Give a closure that makes a new iterator for each epoch"),
        };
        if given == 0 {
            return Err(Error::Data(message!("{call}: the {kind} gave no batch. {remedy}.")));
        }
        match self.steps {
            Some(steps) => Err(Error::Data(message!(
                "{call}: {steps} steps are requested, and the {kind} ended after {given} batches. Ask for fewer, or \
                 repeat the data."
            ))),
            None => Ok(()),
        }
    }

    fn next_of_pass(&mut self) -> Result<Option<Batch>> {
        let batch = match &mut self.data {
            Data::Arrays { arrays, range, size, shuffle, order, at, drawn_from } => {
                if order.is_empty() {
                    *drawn_from = random::global().state();
                    *order = draw(random::global(), range, *shuffle)?;
                    *at = 0;
                }
                let end = order.len().min(at.saturating_add(*size));
                let places = order.get(*at..end).filter(|places| !places.is_empty());
                let batch = places.map(|places| arrays.batch(places)).transpose()?;
                *at = end;
                if batch.is_none() {
                    order.clear();
                }
                batch
            }
            Data::Batches { source, pass, ended } => {
                let current = match pass {
                    Some(current) if !*ended => current,
                    _ => {
                        *pass = None;
                        pass.insert((source.begin)())
                    }
                };
                let batch = current.next().transpose()?;
                *ended = batch.is_none();
                batch
            }
        };
        self.passed = if batch.is_some() { self.passed.saturating_add(1) } else { 0 };
        Ok(batch)
    }
}

impl Feed<'_> {
    /// Writes the position of the feed.
    pub(super) fn save(&self, out: &mut Writer) -> Result<()> {
        out.number(self.given as u64);
        out.number(self.passed as u64);
        match &self.data {
            Data::Arrays { order, at, drawn_from, .. } => {
                out.flag(!order.is_empty());
                out.number(*at as u64);
                drawn_from.iter().for_each(|word| out.number(*word));
            }
            Data::Batches { pass, ended, .. } => {
                out.flag(pass.is_some());
                out.flag(*ended);
                let state = pass.as_ref().map_or(Ok(None), |pass| pass.state())?;
                out.flag(state.is_some());
                out.block(state.as_ref().map_or(&[], IteratorState::as_bytes));
            }
        }
        Ok(())
    }

    /// Restores the position written by [`Feed::save`] in a new feed.
    pub(super) fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        (self.given, self.passed) = (from.size()?, from.size()?);
        let passed = self.passed;
        match &mut self.data {
            Data::Arrays { range, shuffle, order, at, drawn_from, .. } => {
                let begun = from.flag()?;
                *at = from.size()?;
                *drawn_from = [from.number()?, from.number()?, from.number()?];
                *order = match begun {
                    true => draw(&Generator::from_state(*drawn_from), range, *shuffle)?,
                    false => Vec::new(),
                };
                *at = (*at).min(order.len());
            }
            Data::Batches { source, pass, ended } => {
                let begun = from.flag()?;
                *ended = from.flag()?;
                let has_state = from.flag()?;
                let state = IteratorState::from_bytes(from.block()?);
                *pass = None;
                if begun {
                    let current = pass.insert((source.begin)());
                    current.go_on(has_state.then_some(&state), if *ended { 0 } else { passed })?;
                }
            }
        }
        Ok(())
    }
}

/// The order of a pass.
fn draw(generator: &Generator, range: &Range<usize>, shuffle: bool) -> Result<Vec<usize>> {
    let mut order: Vec<usize> = match shuffle {
        true => generator.permutation(range.len())?,
        false => (0..range.len()).collect(),
    };
    order.iter_mut().for_each(|place| *place += range.start);
    Ok(order)
}

/// A batch of zeros in the shapes of these elements of a dataset, if the shapes are known except for the number of examples.
fn batch_of(spec: &ItemSpec) -> Result<Option<Batch>> {
    let of_part = |part: Option<&ItemSpec>| -> Result<Option<Vec<Tensor>>> {
        let mut arrays = Vec::new();
        if !part.is_none_or(|part| zeros_of(part, &mut arrays)) {
            return Ok(None);
        }
        arrays
            .into_iter()
            .map(|(dtype, shape)| Tensor::zeros(&shape)?.cast(dtype))
            .collect::<Result<_>>()
            .map(Some)
    };
    let parts = match spec {
        ItemSpec::Tuple(parts) if parts.len() <= 3 => parts.iter().collect(),
        ItemSpec::Array { .. } => vec![spec],
        _ => return Ok(None),
    };
    let [x, y, sample_weight] = [0, 1, 2].map(|at| of_part(parts.get(at).copied()));
    Ok(match (x?, y?, sample_weight?) {
        (Some(x), Some(y), Some(sample_weight)) => Some(Batch { x, y, sample_weight }),
        _ => None,
    })
}

/// Collects the dtypes and shapes of the arrays of a part; false if one is not known.
fn zeros_of(part: &ItemSpec, found: &mut Vec<(DType, Vec<usize>)>) -> bool {
    match part {
        ItemSpec::Array { dtype, shape: Some(shape) } => {
            let dtype = match *dtype {
                "f32" | "f64" => DType::F32,
                "i32" | "i64" => DType::I32,
                "u32" | "u64" => DType::U32,
                "u8" => DType::U8,
                "bool" => DType::Bool,
                _ => return false,
            };
            let sizes = shape.iter().enumerate().map(|(axis, size)| match axis {
                0 => Some(size.unwrap_or(1)),
                _ => *size,
            });
            let Some(sizes) = sizes.collect::<Option<Vec<usize>>>() else { return false };
            found.push((dtype, sizes));
            true
        }
        ItemSpec::Tuple(parts) => parts.iter().all(|part| zeros_of(part, found)),
        _ => false,
    }
}

/// Gives each example the weight of its class.
fn weigh(call: &str, batch: &mut Batch, table: &Tensor) -> Result<()> {
    let [y] = batch.y.as_slice() else {
        return Err(Error::Data(message!(
            "{call}: class_weight needs one target, and the batch has {}. Give sample weights.",
            batch.y.len()
        )));
    };
    if !batch.sample_weight.is_empty() {
        return Err(Error::Data(message!(
            "{call}: class_weight and sample weights cannot be given together. Multiply them into one."
        )));
    }
    let labels = match y.shape() {
        [_] => y.clone(),
        [_, .., 1] => y.squeeze([-1])?,
        _ => y.argmax(-1)?,
    };
    let labels = match labels.dtype().is_float() {
        true => labels.round()?.cast(DType::I32)?,
        false => labels.cast(DType::I32)?,
    };
    let last = (table.len() - 1) as i32;
    // A negative label has no class either.
    let known = labels.greater_equal(0)?.logical_and(labels.less(last)?)?;
    let labels = where_(&known, &labels, &Tensor::full([], last)?)?;
    batch.sample_weight = vec![table.gather(&labels, 0)?];
    Ok(())
}
