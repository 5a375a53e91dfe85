//! Runs a model's requests: those that arrive together as one batch.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use wgrad::HostArray;
use wgrad::saved_model::{SavedFunction, SavedSpec};

/// How requests are collected.
#[derive(Debug, Clone, Copy)]
pub struct Batching {
    /// The most rows of a batch; 1 runs each request alone.
    pub max_size: usize,
    /// How long the first request waits for others.
    pub max_wait: Duration,
    /// How many requests may wait.
    pub queue: usize,
}

/// The results by name, or why there are none.
pub type Answer = Result<Vec<(String, HostArray<'static>)>, String>;

/// A request.
struct Job {
    function: SavedFunction,
    inputs: Vec<HostArray<'static>>,
    /// The rows of all inputs, if the function takes any number of them.
    rows: Option<usize>,
    answer: oneshot::Sender<Answer>,
}

/// Runs requests on a thread of its own, which ends after the last request once this is dropped.
pub struct Runner {
    jobs: SyncSender<Job>,
}

impl Runner {
    pub fn new(batching: Batching) -> std::io::Result<Self> {
        let (jobs, waiting) = sync_channel(batching.queue.max(1));
        std::thread::Builder::new().name("model".into()).spawn(move || run(&waiting, batching))?;
        Ok(Runner { jobs })
    }

    /// Takes a request, unless too many are waiting.
    pub fn submit(
        &self,
        function: &SavedFunction,
        inputs: Vec<HostArray<'static>>,
    ) -> Option<oneshot::Receiver<Answer>> {
        let (answer, result) = oneshot::channel();
        let rows = rows_of(function, &inputs);
        let job = Job { function: function.clone(), inputs, rows, answer };
        match self.jobs.try_send(job) {
            Ok(()) => Some(result),
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => None,
        }
    }
}

/// How many examples the inputs are, if all inputs and results have an axis of examples.
fn rows_of(function: &SavedFunction, inputs: &[HostArray<'_>]) -> Option<usize> {
    let open = |spec: &SavedSpec| matches!(spec.shape.as_deref(), Some([None, ..]));
    let all = function.inputs().iter().all(open) && function.outputs().iter().all(open);
    let first = *inputs.first()?.shape().first()?;
    let same = inputs.iter().all(|input| input.shape().first() == Some(&first));
    (all && same && first > 0).then_some(first)
}

fn run(waiting: &Receiver<Job>, batching: Batching) {
    let mut later: VecDeque<Job> = VecDeque::new();
    while let Some(first) = later.pop_front().or_else(|| waiting.recv().ok()) {
        let mut batch = vec![first];
        collect(&mut batch, &mut later, waiting, batching);
        answer(batch, batching.max_size);
    }
}

/// Adds the requests that arrive in time and fit to the first one.
fn collect(
    batch: &mut Vec<Job>,
    later: &mut VecDeque<Job>,
    waiting: &Receiver<Job>,
    batching: Batching,
) {
    let Some(mut rows) = batch[0].rows.filter(|rows| *rows < batching.max_size) else { return };
    let mut add = |job: Job, batch: &mut Vec<Job>, later: &mut VecDeque<Job>| match job.rows {
        Some(more) if rows + more <= batching.max_size && fits(&batch[0], &job) => {
            rows += more;
            batch.push(job);
            rows < batching.max_size
        }
        _ => {
            later.push_back(job);
            false
        }
    };
    for job in std::mem::take(later) {
        add(job, batch, later);
    }
    let end = Instant::now() + batching.max_wait;
    while later.is_empty() {
        let left = end.saturating_duration_since(Instant::now());
        match waiting.recv_timeout(left) {
            Ok(job) => {
                if !add(job, batch, later) {
                    break;
                }
            }
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => break,
        }
    }
}

/// Whether two requests can be rows of one batch.
fn fits(one: &Job, other: &Job) -> bool {
    let form = |array: &HostArray<'_>| (array.dtype(), array.shape()[1..].to_vec());
    one.function.name() == other.function.name()
        && one.inputs.iter().zip(&other.inputs).all(|(a, b)| form(a) == form(b))
}

/// Runs requests as one batch, and sends each its rows.
fn answer(batch: Vec<Job>, max_size: usize) {
    // Who has closed the connection or waited too long needs no answer.
    let mut batch: Vec<Job> = batch.into_iter().filter(|job| !job.answer.is_closed()).collect();
    let rows: Vec<usize> = batch.iter().filter_map(|job| job.rows).collect();
    if batch.len() < 2 && rows.first().is_none_or(|rows| *rows > max_size) {
        for job in batch {
            let result = call(&job.function, job.inputs);
            let _ = job.answer.send(result);
        }
        return;
    }
    let Some(first) = batch.first() else { return };
    let function = first.function.clone();
    let total: usize = rows.iter().sum();
    // Each size of a batch is planned once, so only powers of two occur.
    let size = total.next_power_of_two().min(max_size.max(total));
    let count = first.inputs.len();
    let mut parts: Vec<Vec<HostArray<'static>>> = vec![Vec::new(); count];
    for job in &mut batch {
        let inputs = std::mem::take(&mut job.inputs).into_iter();
        parts.iter_mut().zip(inputs).for_each(|(parts, input)| parts.push(input));
    }
    let inputs = parts.iter().map(|parts| stacked(parts, size)).collect::<Result<Vec<_>, _>>();
    let results = inputs.and_then(|inputs| call(&function, inputs));
    let mut start = 0;
    for (job, rows) in batch.into_iter().zip(rows) {
        let own = results.as_ref().map_err(Clone::clone).and_then(|results| {
            let part = |(name, array): &(String, HostArray<'static>)| {
                let part = part_of(array, start, rows, size)?;
                Ok((name.clone(), part))
            };
            results.iter().map(part).collect()
        });
        start += rows;
        let _ = job.answer.send(own);
    }
}

fn call(function: &SavedFunction, inputs: Vec<HostArray<'static>>) -> Answer {
    let names = function.inputs().iter().map(|spec| spec.name.clone());
    let results = function.call(names.zip(inputs)).map_err(|error| error.to_string())?;
    results
        .into_iter()
        .map(|(name, value)| {
            let array = value.to_host_array().map_err(|error| error.to_string())?;
            Ok((name.to_string(), array))
        })
        .collect()
}

/// Arrays along their first axis, filled up with the last row to `size` rows.
fn stacked(parts: &[HostArray<'static>], size: usize) -> Result<HostArray<'static>, String> {
    let first = &parts[0];
    let mut shape = first.shape().to_vec();
    let rows: usize = parts.iter().map(|part| part.shape()[0]).sum();
    shape[0] = size;
    let made = if first.strings().is_some() {
        let mut all: Vec<Vec<u8>> =
            parts.iter().filter_map(HostArray::strings).flatten().cloned().collect();
        let row = all.len() / rows;
        let last = all[all.len() - row..].to_vec();
        (rows..size).for_each(|_| all.extend(last.iter().cloned()));
        HostArray::from_strings(shape, all)
    } else {
        let mut all: Vec<u8> = parts.iter().flat_map(HostArray::bytes).copied().collect();
        let row = all.len() / rows;
        let last = all[all.len() - row..].to_vec();
        (rows..size).for_each(|_| all.extend_from_slice(&last));
        HostArray::new(first.dtype(), shape, all)
    };
    made.map_err(|error| error.to_string())
}

/// Some rows of a result of `size` rows.
fn part_of(
    array: &HostArray<'static>,
    start: usize,
    rows: usize,
    size: usize,
) -> Result<HostArray<'static>, String> {
    let mut shape = array.shape().to_vec();
    if shape.first() != Some(&size) {
        return Err(format!("the model returned {shape:?} for a batch of {size}"));
    }
    shape[0] = rows;
    let made = match array.strings() {
        Some(strings) => {
            let row = strings.len() / size;
            HostArray::from_strings(shape, strings[start * row..(start + rows) * row].to_vec())
        }
        None => {
            let row = array.bytes().len() / size;
            let bytes = array.bytes()[start * row..(start + rows) * row].to_vec();
            HostArray::new(array.dtype(), shape, bytes)
        }
    };
    made.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn batches_are_filled_up_and_taken_apart() {
        let array = |rows: &[[f32; 2]]| -> HostArray<'static> { wgrad::ndarray::arr2(rows).into() };
        let whole = stacked(&[array(&[[1.0, 2.0]]), array(&[[3.0, 4.0], [5.0, 6.0]])], 4).unwrap();
        assert_eq!(whole, array(&[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [5.0, 6.0]]));
        assert_eq!(part_of(&whole, 1, 2, 4).unwrap(), array(&[[3.0, 4.0], [5.0, 6.0]]));
        assert!(part_of(&whole, 0, 1, 3).unwrap_err().contains("returned [4, 2] for a batch of 3"));
        let words = |words: &[&str]| {
            let bytes: Vec<Vec<u8>> = words.iter().map(|word| word.as_bytes().to_vec()).collect();
            HostArray::from_strings([words.len()], bytes).unwrap()
        };
        let whole = stacked(&[words(&["a"]), words(&["b", "c"])], 4).unwrap();
        assert_eq!(whole, words(&["a", "b", "c", "c"]));
        assert_eq!(part_of(&whole, 0, 1, 4).unwrap(), words(&["a"]));
    }
}
