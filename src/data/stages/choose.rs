//! `choose_from_datasets` and `sample_from_datasets`: each element from one of several datasets.

use std::sync::Arc;

use fastrand::Rng;

use crate::data::cardinality::Cardinality;
use crate::data::codec::{Reader, Writer};
use crate::data::dataset::Dataset;
use crate::data::item::{Item, ItemSpec};
use crate::data::node::{BoxStream, Node, Pass, Stream, expect_name, write_name};
use crate::data::seed::Seed;
use crate::error::{Error, Result, message};
use crate::support::options::options;

options! {
    /// When [`choose_from_datasets_with`] ends.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ChooseOptions {
        /// Whether the result ends when a chosen dataset has no more elements; if not, such choices are skipped.
        stop_on_empty_dataset: bool = true,
    }
}

options! {
    /// How [`sample_from_datasets_with`] draws.
    #[derive(Debug, Clone, PartialEq)]
    pub struct SampleOptions {
        /// The relative frequency of each dataset; equal frequencies without weights.
        weights: Option<Vec<f64>> as impl Into<Option<Vec<f64>>> = None,
        /// The seed; without one it is drawn from the global generator, which [`random::set_seed`](crate::random::set_seed)
        /// sets.
        seed: Option<u64> as impl Into<Option<u64>> = None,
        /// Whether the result ends with the first dataset that ends; if not, it continues with the others.
        stop_on_empty_dataset: bool = false,
        /// Whether each pass draws again; if not, all draw the same as the first.
        rerandomize_each_iteration: bool = false,
    }
}

/// Takes each element from the dataset whose index is the next element of `choice_dataset` (`Dataset.choose_from_datasets`). It
/// ends when a chosen dataset has no more elements.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::data;
/// let datasets = [data::range(0..10), data::range(10..20), data::range(20..30)];
/// let numbers = data::choose_from_datasets(&datasets, &data::range(0..3).repeat(2))?;
/// assert_eq!(numbers.iter().collect::<wgrad::Result<Vec<i64>>>()?, [0, 10, 20, 1, 11, 21]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Data`] without datasets. A choice that is not the index of a dataset is an error in place of the element.
pub fn choose_from_datasets<T: Item>(
    datasets: &[Dataset<T>],
    choice_dataset: &Dataset<i64>,
) -> Result<Dataset<T>> {
    choose_from_datasets_with(datasets, choice_dataset, ChooseOptions::new())
}

/// As [`choose_from_datasets`], but can continue when a dataset has no more elements.
///
/// # Errors
/// As [`choose_from_datasets`].
pub fn choose_from_datasets_with<T: Item>(
    datasets: &[Dataset<T>],
    choice_dataset: &Dataset<i64>,
    options: ChooseOptions,
) -> Result<Dataset<T>> {
    let how = How::Chosen(choice_dataset.clone());
    choose("choose_from_datasets", datasets, how, options.stop_on_empty_dataset)
}

/// Takes each element from a randomly drawn dataset (`Dataset.sample_from_datasets`), until all have ended.
///
/// # Errors
/// [`Error::Data`] without datasets.
pub fn sample_from_datasets<T: Item>(datasets: &[Dataset<T>]) -> Result<Dataset<T>> {
    sample_from_datasets_with(datasets, SampleOptions::new())
}

/// As [`sample_from_datasets`], with weights or a seed.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::data::{self, SampleOptions};
/// let options = SampleOptions::new().weights(vec![0.9, 0.1]).seed(7);
/// let datasets = [data::range(0..1000), data::range(1000..2000)];
/// let numbers = data::sample_from_datasets_with(&datasets, options)?;
/// let small = numbers.take(100).reduce(0, |count, n| count + i64::from(n < 1000))?;
/// assert!((75..100).contains(&small), "{small}");
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Data`] without datasets, or if there is not exactly one weight for each, a weight is negative or not finite, or all
/// are 0.
pub fn sample_from_datasets_with<T: Item>(
    datasets: &[Dataset<T>],
    options: SampleOptions,
) -> Result<Dataset<T>> {
    const NAME: &str = "sample_from_datasets";
    let weights = options.weights.unwrap_or_else(|| vec![1.0; datasets.len()]);
    if weights.len() != datasets.len() {
        return Err(Error::Data(message!(
            "{NAME}: {} weights for {} datasets; give one for each.",
            weights.len(),
            datasets.len()
        )));
    }
    let sum: f64 = weights.iter().sum();
    let wrong = |weight: &f64| !weight.is_finite() || *weight < 0.0;
    if !datasets.is_empty() && (weights.iter().any(wrong) || !(sum > 0.0 && sum.is_finite())) {
        return Err(Error::Data(message!(
            "{NAME}: the weights are {weights:?}; they must be finite and not negative, and at least one above 0."
        )));
    }
    let how = How::Drawn {
        weights: weights.into(),
        seed: Seed::new(options.seed),
        alike: !options.rerandomize_each_iteration,
    };
    choose(NAME, datasets, how, options.stop_on_empty_dataset)
}

fn choose<T: Item>(
    name: &'static str,
    datasets: &[Dataset<T>],
    how: How,
    stop: bool,
) -> Result<Dataset<T>> {
    if datasets.is_empty() {
        return Err(Error::Data(message!("{name}: there is no dataset to take elements from.")));
    }
    Ok(Dataset::new(Choose { name, datasets: datasets.to_vec(), how, stop }))
}

struct Choose<T: Item> {
    name: &'static str,
    datasets: Vec<Dataset<T>>,
    how: How,
    stop: bool,
}

enum How {
    Chosen(Dataset<i64>),
    Drawn { weights: Arc<[f64]>, seed: Seed, alike: bool },
}

enum Choices {
    Chosen(BoxStream<i64>),
    Drawn { weights: Arc<[f64]>, seed: Seed, rng: Rng },
}

struct ChooseStream<T> {
    name: &'static str,
    pass: Pass,
    choices: Choices,
    /// The datasets' streams, and whether they may have more elements.
    streams: Vec<(BoxStream<T>, bool)>,
    stop: bool,
    ended: bool,
}

impl<T: Item> Node<T> for Choose<T> {
    fn open(&self, pass: &Pass) -> Result<BoxStream<T>> {
        let choices = match &self.how {
            How::Chosen(dataset) => Choices::Chosen(dataset.open(pass)?),
            How::Drawn { weights, seed, alike } => Choices::Drawn {
                weights: weights.clone(),
                rng: seed.begin(*alike),
                seed: seed.clone(),
            },
        };
        let streams =
            self.datasets.iter().map(|dataset| dataset.open(pass).map(|stream| (stream, true)));
        Ok(Box::new(ChooseStream {
            name: self.name,
            pass: pass.clone(),
            choices,
            streams: streams.collect::<Result<_>>()?,
            stop: self.stop,
            ended: false,
        }))
    }

    fn cardinality(&self) -> Cardinality {
        let mut all = self.datasets.iter().map(Dataset::cardinality);
        if matches!(self.how, How::Drawn { .. }) && all.all(|count| count == Cardinality::Infinite)
        {
            return Cardinality::Infinite;
        }
        Cardinality::Unknown
    }

    fn spec(&self) -> ItemSpec {
        let specs = self.datasets.iter().map(Dataset::element_spec);
        let merge = |a: ItemSpec, b: ItemSpec| a.merge(b).unwrap_or_else(T::type_spec);
        specs.reduce(merge).unwrap_or_else(T::type_spec)
    }
}

impl<T: Item> ChooseStream<T> {
    /// The next dataset to take an element from.
    fn choice(&mut self) -> Option<Result<usize>> {
        match &mut self.choices {
            Choices::Chosen(choices) => Some(choices.next()?.and_then(|choice| {
                let at = usize::try_from(choice).ok().filter(|at| *at < self.streams.len());
                at.ok_or_else(|| {
                    Error::Data(message!(
                        "{}: the choice is {choice}, and the datasets are 0 to {}.",
                        self.name,
                        self.streams.len() - 1
                    ))
                })
            })),
            Choices::Drawn { weights, rng, .. } => {
                let alive = || (0..weights.len()).filter(|at| self.streams[*at].1);
                let mut left = rng.f64() * alive().map(|at| weights[at]).sum::<f64>();
                let mut drawn = None;
                for at in alive().filter(|at| weights[*at] > 0.0) {
                    drawn = Some(at);
                    left -= weights[at];
                    if left < 0.0 {
                        break;
                    }
                }
                drawn.map(Ok)
            }
        }
    }
}

impl<T: Item> Stream<T> for ChooseStream<T> {
    fn next(&mut self) -> Option<Result<T>> {
        while !self.ended && !self.pass.stopped() {
            let at = match self.choice() {
                Some(Ok(at)) => at,
                Some(Err(error)) => return Some(Err(error)),
                None => break,
            };
            let (stream, more) = &mut self.streams[at];
            if let Some(next) = more.then(|| stream.next()).flatten() {
                return Some(next);
            }
            *more = false;
            self.ended = self.stop || self.streams.iter().all(|(_, more)| !more);
        }
        self.ended = true;
        None
    }

    fn save(&mut self, out: &mut Writer) -> Result<()> {
        write_name(self.name, out);
        out.flag(self.ended);
        match &mut self.choices {
            Choices::Chosen(choices) => choices.save(out)?,
            Choices::Drawn { rng, seed, .. } => {
                out.number(rng.get_seed());
                seed.save(out);
            }
        }
        out.number(self.streams.len() as u64);
        for (stream, more) in &mut self.streams {
            out.flag(*more);
            stream.save(out)?;
        }
        Ok(())
    }

    fn restore(&mut self, from: &mut Reader<'_>) -> Result<()> {
        expect_name(self.name, from)?;
        self.ended = from.flag()?;
        match &mut self.choices {
            Choices::Chosen(choices) => choices.restore(from)?,
            Choices::Drawn { rng, seed, .. } => {
                *rng = Rng::with_seed(from.number()?);
                seed.restore(from)?;
            }
        }
        let count = from.size()?;
        if count != self.streams.len() {
            return Err(Error::Data(message!(
                "resume: the state was saved with {count} datasets to take elements from, and there are {}.",
                self.streams.len()
            )));
        }
        for (stream, more) in &mut self.streams {
            *more = from.flag()?;
            stream.restore(from)?;
        }
        Ok(())
    }
}
