//! What the processes of a strategy do together in `fit` and `evaluate`, besides their steps.

use super::any_model::AnyModel;
use super::backup::{read_states, write_states};
use super::callback::Callback;
use super::options::Verbose;
use super::phase::Phase;
use super::reading::Sums;
use crate::data::codec::{Reader, Writer};
use crate::distribute::{Strategy, hash_of};
use crate::eager::Workers;
use crate::error::Result;
use crate::host_array::{HostArray, HostDType};
use crate::trackable::NamedArray;

/// The strategy of a model whose replicas are in several processes.
pub(super) struct OfWorkers(Strategy);

type States = Vec<Vec<NamedArray<'static>>>;

impl OfWorkers {
    pub(super) fn of(model: &dyn AnyModel) -> Option<Self> {
        model.trainer().strategy().filter(|strategy| strategy.workers().is_some()).map(OfWorkers)
    }

    fn workers(&self) -> &dyn Workers {
        &**self.0.workers().expect("it was there")
    }

    /// Before the first batch: compares the models of all processes.
    ///
    /// # Errors
    /// As [`Workers::agree`].
    pub(super) fn compare(&self, call: &str, model: &dyn AnyModel) -> Result<()> {
        let mut words: Vec<String> = model
            .named_variables()
            .into_iter()
            .map(|(name, variable)| format!("{name} {}", variable.spec()))
            .collect();
        #[cfg(feature = "mpi")]
        words.extend(model.json());
        // Automatic names count the layers of a process, which may have made others before.
        words.iter_mut().for_each(|text| *text = without_counts(text));
        self.workers().agree(call, hash_of(&words), false).map(drop)
    }

    /// Before a batch: whether one of the processes stops here.
    ///
    /// # Errors
    /// As [`Workers::agree`].
    pub(super) fn stops(
        &self,
        phase: Phase,
        epoch: usize,
        batch: usize,
        stops: bool,
    ) -> Result<bool> {
        let call = match phase {
            Phase::Train => format!("fit: batch {batch} of epoch {epoch}"),
            Phase::Validate => format!("fit: validation batch {batch} of epoch {epoch}"),
            Phase::Test => format!("evaluate: batch {batch}"),
        };
        self.workers().agree(&call, 0, stops)
    }

    /// Whether one of the processes was interrupted.
    ///
    /// # Errors
    /// As [`Workers::agree`].
    pub(super) fn interrupted(&self, interrupted: bool) -> Result<bool> {
        self.workers().agree("fit: whether it is interrupted", 0, interrupted)
    }

    /// After the last batch of a pass.
    ///
    /// # Errors
    /// As [`Workers::agree`].
    pub(super) fn end(&self, phase: Phase, batches: usize) -> Result<()> {
        let call = match phase {
            Phase::Train => format!("fit: the end of an epoch of {batches} batches"),
            Phase::Validate => format!("fit: the end of a validation of {batches} batches"),
            Phase::Test => format!("evaluate: the end, after {batches} batches"),
        };
        self.workers().agree(&call, 0, false).map(drop)
    }

    /// How many of the examples of a batch the replicas of this process compute.
    pub(super) fn own_examples(&self, model: &dyn AnyModel, examples: usize) -> usize {
        if model.trainer().has_own_data() {
            return examples;
        }
        self.0.own_rows(examples).map(|(_, rows)| rows).sum()
    }

    pub(super) fn average_variables(&self, model: &dyn AnyModel) -> Result<()> {
        self.0.average_variables(&model.variables())
    }

    /// The sums over the batches of all processes.
    pub(super) fn sums(&self, own: &Sums) -> Result<Sums> {
        let mut out = Writer::new();
        own.save(&mut out);
        self.workers().agree("fit: the sums of the losses", 0, false)?;
        let parts = self.workers().gather(out.into_bytes())?;
        // In the same order in all processes, so that all see the same bits.
        let mut all: Option<Sums> = None;
        for part in parts {
            let part = Sums::read(&mut Reader::new(&part))?;
            match &mut all {
                None => all = Some(part),
                Some(all) => all.join(part),
            }
        }
        Ok(all.unwrap_or_default())
    }

    /// The metrics' states over the batches of all processes: their sums and counts, added up.
    pub(super) fn metrics(&self, own: &States) -> Result<States> {
        let mut out = Writer::new();
        write_states(&mut out, own);
        self.workers().agree("fit: the sums of the metrics", 0, false)?;
        let mut all: States = Vec::new();
        for part in self.workers().gather(out.into_bytes())? {
            for (at, states) in read_states(&mut Reader::new(&part))?.into_iter().enumerate() {
                if all.len() <= at {
                    all.push(Vec::new());
                }
                for state in states {
                    match all[at].iter_mut().find(|known| known.name == state.name) {
                        Some(known) => add(&mut known.array, &state.array)?,
                        None => all[at].push(state),
                    }
                }
            }
        }
        Ok(all)
    }
}

/// A text without numbers behind underscores: `dense` for `dense_12`.
fn without_counts(text: &str) -> String {
    let mut parts = text.split('_');
    let mut out = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let rest = part.trim_start_matches(|c: char| c.is_ascii_digit());
        if rest.len() == part.len() {
            out.push('_');
        }
        out.push_str(rest);
    }
    out
}

/// Adds up the numbers of two arrays of one shape; other values stay as they are.
fn add(sum: &mut HostArray<'static>, other: &HostArray<'_>) -> Result<()> {
    if sum.dtype() != other.dtype() || sum.shape() != other.shape() {
        return Ok(());
    }
    macro_rules! add {
        ($number:ty, $add:expr) => {{
            let width = size_of::<$number>();
            let words = sum.bytes().chunks_exact(width).zip(other.bytes().chunks_exact(width));
            let number =
                |word: &[u8]| <$number>::from_le_bytes(word.try_into().unwrap_or_default());
            words.flat_map(|(a, b)| $add(number(a), number(b)).to_le_bytes()).collect::<Vec<u8>>()
        }};
    }
    let bytes = match sum.dtype() {
        HostDType::F32 => add!(f32, |a, b| a + b),
        HostDType::F64 => add!(f64, |a, b| a + b),
        HostDType::U64 => add!(u64, u64::saturating_add),
        HostDType::I64 => add!(i64, i64::saturating_add),
        HostDType::U32 => add!(u32, u32::saturating_add),
        HostDType::I32 => add!(i32, i32::saturating_add),
        _ => return Ok(()),
    };
    *sum = HostArray::new(sum.dtype(), sum.shape().to_vec(), bytes)?;
    Ok(())
}

/// In a process other than the chief: drops the callbacks that write files, and shows no progress.
pub(super) fn leave_to_chief(
    model: &dyn AnyModel,
    callbacks: &mut Vec<Box<dyn Callback + '_>>,
    verbose: &mut Verbose,
) {
    if model.trainer().strategy().is_some_and(|strategy| !strategy.is_chief()) {
        callbacks.retain(|callback| !callback.is_for_chief());
        *verbose = Verbose::Silent;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lose_their_counts() {
        assert_eq!(without_counts("dense_12/kernel dense/bias_x_3"), "dense/kernel dense/bias_x");
        assert_eq!(without_counts("max_pooling2d_1: [2, 3]"), "max_pooling2d: [2, 3]");
    }

    #[test]
    fn states_are_added_by_their_numbers() {
        let array = |dtype, bytes: &[u8]| HostArray::new(dtype, vec![2], bytes.to_vec()).unwrap();
        let floats = |a: f32, b: f32| [a.to_le_bytes(), b.to_le_bytes()].concat();
        let mut sum = array(HostDType::F32, &floats(1.5, -2.0));
        add(&mut sum, &array(HostDType::F32, &floats(0.25, 4.0))).unwrap();
        assert_eq!(sum.bytes(), floats(1.75, 2.0));
        let counts = |a: u64, b: u64| [a.to_le_bytes(), b.to_le_bytes()].concat();
        let mut sum = array(HostDType::U64, &counts(u64::MAX, 7));
        add(&mut sum, &array(HostDType::U64, &counts(1, 8))).unwrap();
        assert_eq!(sum.bytes(), counts(u64::MAX, 15));
        // Values of another dtype cannot be added.
        add(&mut sum, &array(HostDType::F32, &floats(1.0, 1.0))).unwrap();
        assert_eq!(sum.bytes(), counts(u64::MAX, 15));
    }
}
