//! Random pipelines compared with a model of plain vectors: on one thread and on several, with random errors and panics, and
//! saved and resumed at a random position.
//!
//! `WGRAD_PROPERTY_CASES=8` runs eight times as many.

#![allow(clippy::unwrap_used)]

use crate::support::datasets;

use datasets::texts;
use fastrand::Rng;
use wgrad::data::{
    self, AUTOTUNE, BatchOptions, Dataset, InterleaveOptions, MapOptions, WindowOptions,
};
use wgrad::{Error, Result};

/// An element, or the text of an error.
type Element = std::result::Result<i64, String>;

/// The longest pass that is extended.
const LONG: usize = 150;

struct Pipeline {
    dataset: Dataset<i64>,
    model: Vec<Element>,
    words: Vec<String>,
    /// Whether the order of elements is preserved.
    in_order: bool,
    /// Whether an error occurred on the way, which counts do not predict.
    failed: bool,
}

fn fail(n: i64) -> Result<i64> {
    match n.rem_euclid(11) {
        3 => Err(Error::Data(format!("no {n}").into())),
        7 => panic!("panic at {n}"),
        _ => Ok(n),
    }
}

fn failed(n: i64) -> Element {
    match n.rem_euclid(11) {
        3 => Err(format!("no {n}")),
        7 => Err(format!("map: the closure panicked: panic at {n}")),
        _ => Ok(n),
    }
}

/// Passes errors on at once, and groups the other elements.
fn grouped(
    model: &[Element],
    size: usize,
    drop: bool,
) -> Vec<std::result::Result<Vec<i64>, String>> {
    let (mut groups, mut group) = (Vec::new(), Vec::new());
    for element in model {
        match element {
            Ok(n) => group.push(*n),
            Err(text) => groups.push(Err(text.clone())),
        }
        if group.len() == size {
            groups.push(Ok(std::mem::take(&mut group)));
        }
    }
    if !group.is_empty() && !drop {
        groups.push(Ok(group));
    }
    groups
}

/// TensorFlow's loop: slots take turns, each returning a block.
fn interleaved(model: &[Element], cycle: usize, block: usize) -> Vec<Element> {
    let mut input = model.iter();
    let mut places: Vec<Option<std::vec::IntoIter<i64>>> = vec![None; cycle];
    let (mut found, mut place, mut given, mut ended) = (Vec::new(), 0, 0, false);
    while !ended || places.iter().any(Option::is_some) {
        let mut next_place = true;
        match &mut places[place] {
            Some(inner) => match inner.next() {
                Some(n) => {
                    found.push(Ok(n));
                    given += 1;
                    next_place = given == block;
                }
                None => places[place] = None,
            },
            None if ended => {}
            None => match input.next() {
                Some(Ok(n)) => {
                    places[place] = Some(inner_values(*n).into_iter());
                    next_place = false;
                }
                Some(Err(text)) => found.push(Err(text.clone())),
                None => ended = true,
            },
        }
        if next_place {
            (place, given) = ((place + 1) % cycle, 0);
        }
    }
    found
}

fn inner_values(n: i64) -> Vec<i64> {
    (0..n.rem_euclid(5)).map(|k| n.wrapping_mul(7) + k).collect()
}

fn inner(n: i64) -> Dataset<i64> {
    data::range(0..n.rem_euclid(5)).map(move |k| n.wrapping_mul(7) + k)
}

impl Pipeline {
    fn new(rng: &mut Rng) -> Self {
        let count = rng.i64(0..40);
        Pipeline {
            dataset: data::range(0..count),
            model: (0..count).map(Ok).collect(),
            words: vec![format!("range({count})")],
            in_order: true,
            failed: false,
        }
    }

    fn set(&mut self, words: String, dataset: Dataset<i64>, model: Vec<Element>) {
        self.words.push(words);
        self.failed |= model.iter().any(Result::is_err);
        (self.dataset, self.model) = (dataset, model);
    }

    /// Adds a random stage.
    fn stage(&mut self, rng: &mut Rng, calls: usize) {
        let (dataset, model) = (self.dataset.clone(), self.model.clone());
        let k = rng.usize(0..9);
        let size = rng.usize(1..5);
        let parallel = MapOptions::new().num_parallel_calls(calls);
        match rng.u32(0..23) {
            0 | 1 => {
                let f = move |n: i64| n.wrapping_mul(3) + k as i64;
                let model = model.into_iter().map(|n| n.map(f)).collect();
                self.set("map".into(), dataset.map_with(parallel, f), model);
            }
            2 | 3 => {
                let model = model.into_iter().map(|n| n.and_then(failed)).collect();
                self.set("map(fail)".into(), dataset.map_with(parallel, fail), model);
            }
            4 => {
                let keep = move |n: &i64| n.rem_euclid(4) != k as i64 % 4;
                let model = model.into_iter().filter(|n| n.as_ref().map_or(true, keep)).collect();
                self.set("filter".into(), dataset.filter(keep), model);
            }
            5 => {
                self.set(format!("take({k})"), dataset.take(k), model.into_iter().take(k).collect())
            }
            6 => {
                self.set(format!("skip({k})"), dataset.skip(k), model.into_iter().skip(k).collect())
            }
            7 if model.len() < LONG => {
                let model = std::iter::repeat_n(model, size).flatten().collect();
                self.set(format!("repeat({size})"), dataset.repeat(size), model);
            }
            8 => {
                let drop = rng.bool();
                let options = BatchOptions::new().drop_remainder(drop);
                let sums = grouped(&model, size, drop)
                    .into_iter()
                    .map(|group| group.map(|g| g.iter().sum()));
                let dataset = dataset.batch_with(size, options).map(|batch| batch.sum());
                self.set(format!("batch({size}, {drop})"), dataset, sums.collect());
            }
            9 => {
                let flat = |group: std::result::Result<Vec<i64>, String>| match group {
                    Ok(group) => group.into_iter().map(Ok).collect(),
                    Err(text) => vec![Err(text)],
                };
                let model = grouped(&model, size, false).into_iter().flat_map(flat).collect();
                let dataset = dataset.batch(size).unbatch().map(|row| row.sum());
                self.set(format!("batch({size}).unbatch()"), dataset, model);
            }
            10 => {
                let (shift, stride, drop) = (rng.usize(1..6), rng.usize(1..4), rng.bool());
                let options = WindowOptions::new().shift(shift).stride(stride).drop_remainder(drop);
                let windows = windowed(&model, size, shift, stride, drop);
                let dataset =
                    dataset.window_with(size, options).map(|window| window.iter().sum::<i64>());
                self.set(format!("window({size}, {shift}, {stride}, {drop})"), dataset, windows);
            }
            11 => {
                let at = k % size;
                let model = model.into_iter().skip(at).step_by(size).collect();
                self.set(format!("shard({size}, {at})"), dataset.shard(size, at), model);
            }
            12 => {
                let small = move |n: &i64| n.rem_euclid(13) != k as i64;
                let model =
                    model.into_iter().take_while(|n| n.as_ref().map_or(true, small)).collect();
                self.set("take_while".into(), dataset.take_while(small), model);
            }
            13 => {
                let mut sum = 0i64;
                let mut add = |n: i64| {
                    sum = sum.wrapping_add(n) % 1000;
                    sum
                };
                let model = model.into_iter().map(|n| n.map(&mut add)).collect();
                let dataset = dataset.scan(0i64, |sum, n| {
                    let sum = sum.wrapping_add(n) % 1000;
                    (sum, sum)
                });
                self.set("scan".into(), dataset, model);
            }
            14 => {
                let more = (0..k as i64).map(Ok);
                let model = model.into_iter().chain(more).collect();
                self.set(
                    "concatenate".into(),
                    dataset.concatenate(&data::range(0..k as i64)),
                    model,
                );
            }
            15 => {
                let pairs = model.into_iter().zip(0..5 * k as i64);
                let model = pairs.map(|(n, k)| n.map(|n| n.wrapping_add(k))).collect();
                let dataset =
                    dataset.zip(&data::range(0..5 * k as i64)).map(|(n, k)| n.wrapping_add(k));
                self.set("zip".into(), dataset, model);
            }
            16 => {
                let model = model
                    .into_iter()
                    .zip(0..)
                    .map(|(n, at)| n.map(|n| n % 100 + 100 * at))
                    .collect();
                let dataset = dataset.enumerate(0).map(|(at, n)| n % 100 + 100 * at);
                self.set("enumerate".into(), dataset, model);
            }
            17 if model.len() < LONG => {
                let flat = |n: Element| match n {
                    Ok(n) => inner_values(n).into_iter().map(Ok).collect(),
                    Err(text) => vec![Err(text)],
                };
                let model = model.into_iter().flat_map(flat).collect();
                self.set("flat_map".into(), dataset.flat_map(inner), model);
            }
            18 | 19 if model.len() < LONG => {
                let block = rng.usize(1..4);
                let options = InterleaveOptions::new().cycle_length(size).block_length(block);
                let dataset = dataset.interleave_with(options.num_parallel_calls(calls), inner);
                self.set(
                    format!("interleave({size}, {block})"),
                    dataset,
                    interleaved(&model, size, block),
                );
            }
            20 => {
                let ahead = if k == 0 { AUTOTUNE } else { k };
                self.set(format!("prefetch({ahead})"), dataset.prefetch(ahead), model);
            }
            21 => self.set("cache".into(), dataset.cache(), model),
            _ => {
                let model = model.into_iter().filter(Element::is_ok).collect();
                self.set("ignore_errors".into(), dataset.ignore_errors(), model);
            }
        }
    }

    /// Adds a last stage that may change the order.
    fn unordered(&mut self, rng: &mut Rng, calls: usize) {
        let (dataset, model) = (self.dataset.clone(), self.model.clone());
        self.in_order = false;
        if rng.bool() && model.len() < LONG {
            let options = InterleaveOptions::new().cycle_length(3).num_parallel_calls(calls);
            let dataset = dataset.interleave_with(options.deterministic(false), inner);
            self.set("interleave(any order)".into(), dataset, interleaved(&model, 3, 1));
        } else {
            let options = MapOptions::new().num_parallel_calls(calls).deterministic(false);
            let model = model.into_iter().map(|n| n.and_then(failed)).collect();
            self.set("map(any order)".into(), dataset.map_with(options, fail), model);
        }
    }
}

fn windowed(
    model: &[Element],
    size: usize,
    shift: usize,
    stride: usize,
    drop: bool,
) -> Vec<Element> {
    let (mut found, mut buffer, mut skip) = (Vec::new(), Vec::new(), 0);
    let span = (size - 1) * stride + 1;
    let cut = |buffer: &mut Vec<i64>, found: &mut Vec<Element>| {
        found.push(Ok(buffer.iter().take(span).step_by(stride).sum()));
        let gone = shift.min(buffer.len());
        buffer.drain(..gone);
        shift - gone
    };
    for element in model {
        match element {
            Err(text) => found.push(Err(text.clone())),
            Ok(_) if skip > 0 => skip -= 1,
            Ok(n) => buffer.push(*n),
        }
        if buffer.len() == span {
            skip = cut(&mut buffer, &mut found);
        }
    }
    while !drop && !buffer.is_empty() {
        cut(&mut buffer, &mut found);
    }
    found
}

fn build(seed: u64, calls: usize) -> Pipeline {
    let mut rng = Rng::with_seed(seed);
    let mut pipeline = Pipeline::new(&mut rng);
    for _ in 0..rng.usize(1..=8) {
        pipeline.stage(&mut rng, calls);
    }
    if rng.u32(0..4) == 0 {
        pipeline.unordered(&mut rng, calls);
    }
    pipeline
}

fn text(element: Result<i64>) -> String {
    element.map_or_else(|e| e.to_string(), |n| n.to_string())
}

fn sorted(mut texts: Vec<String>) -> Vec<String> {
    texts.sort();
    texts
}

#[test]
fn pipelines_give_what_plain_vectors_give() {
    let factor: f64 =
        std::env::var("WGRAD_PROPERTY_CASES").map_or(1.0, |text| text.parse().unwrap());
    // Panics are expected; their messages would fill the log.
    std::panic::set_hook(Box::new(|_| {}));
    let cases = (300.0 * factor) as u64;
    let outcome = std::panic::catch_unwind(|| (0..cases).for_each(check));
    let _ = std::panic::take_hook();
    if let Err(panic) = outcome {
        let words = panic.downcast_ref::<String>().cloned();
        panic!("{}", words.unwrap_or_else(|| "a panic without words".into()));
    }
}

fn check(seed: u64) {
    for calls in [1, 2, 4, AUTOTUNE] {
        let Pipeline { dataset, model, words, in_order, failed } = build(seed, calls);
        let about = format!("case {seed} with {calls} calls: {}", words.join("."));
        let model: Vec<String> =
            model.into_iter().map(|n| n.map_or_else(|e| e, |n| n.to_string())).collect();
        let order = |texts: Vec<String>| if in_order { texts } else { sorted(texts) };
        let expected = order(model);
        for pass in 0..2 {
            assert_eq!(order(texts(&dataset)), expected, "{about}, pass {pass}");
        }
        if let Some(count) = dataset.cardinality().known().filter(|_| !failed) {
            assert_eq!(count, expected.len(), "{about}");
        }
        let mut rng = Rng::with_seed(seed);
        let place = rng.usize(0..=expected.len());
        let mut iter = build(seed, calls).dataset.iter();
        let mut found: Vec<String> = iter.by_ref().take(place).map(text).collect();
        let state = iter.save().unwrap();
        let rest: Vec<String> = iter.map(text).collect();
        assert_eq!(
            order([&found[..], &rest].concat()),
            expected,
            "{about}: saved at {place}, and went on"
        );
        found.extend(build(seed, calls).dataset.resume(&state).unwrap().map(text));
        assert_eq!(order(found), expected, "{about}: resumed at {place}");
    }
}
