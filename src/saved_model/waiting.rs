//! [`wait`]: values that only the device knows.
//!
//! A native call waits for them. A page cannot: there, [`replayed`] ends the call, awaits the value, and calls again. That call takes
//! what nodes computed in the first one instead of computing it once more, and then finds the value.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::future::Future;
use std::pin::Pin;

use super::graph_def::value::Value;
use crate::eager;
use crate::error::{Error, Result, message};
use crate::tensor::Tensor;

#[cfg(not(target_family = "wasm"))]
type Later = Pin<Box<dyn Future<Output = Result<Vec<Value>>> + Send>>;
#[cfg(target_family = "wasm")]
type Later = Pin<Box<dyn Future<Output = Result<Vec<Value>>>>>;

/// A call that is repeated until it has all values.
#[derive(Default)]
struct Replay {
    /// What nodes have computed, by the number of nodes that began before, and that number when they ended. Those that run inside
    /// of another one are removed at its end.
    done: BTreeMap<u64, (Vec<Value>, u64)>,
    begun: u64,
    /// What was awaited, by the number of nodes that had begun, and of values since then.
    values: HashMap<(u64, u64), Vec<Value>>,
    asked: u64,
    wanted: Option<((u64, u64), Later)>,
}

thread_local! {
    static REPLAY: RefCell<Option<Replay>> = const { RefCell::new(None) };
}

/// Calls with the state of the replay, if there is one and the call is not traced.
fn with<R>(f: impl FnOnce(&mut Replay) -> R) -> Option<R> {
    if eager::in_trace() {
        return None;
    }
    REPLAY.with_borrow_mut(|replay| replay.as_mut().map(f))
}

/// The results of a node, or of a function: of a call that is repeated, those of the first time.
pub(super) fn node<R>(run: impl FnOnce() -> Result<R>) -> Result<R>
where
    // A bound on the iterators of `&R` would not compile for Apple's systems, whose objc2 implements them recursively.
    R: FromIterator<Value> + AsRef<[Value]>,
{
    let found = with(|replay| {
        let number = replay.begun;
        replay.asked = 0;
        match replay.done.get(&number) {
            Some((values, next)) => {
                replay.begun = *next;
                Err(values.iter().cloned().collect::<R>())
            }
            None => {
                replay.begun += 1;
                Ok(number)
            }
        }
    });
    let number = match found {
        None => return run(),
        Some(Err(results)) => return Ok(results),
        Some(Ok(number)) => number,
    };
    let results = run()?;
    with(|replay| {
        replay.asked = 0;
        replay.done.split_off(&number);
        replay.done.insert(number, (results.as_ref().to_vec(), replay.begun));
    });
    Ok(results)
}

/// The values that `later` reads from `x`.
///
/// # Errors
/// [`Error::Trace`] in a trace, which has no values, and in a page, unless the call is a [`replayed`] one.
pub(super) fn wait<F>(x: &Tensor, later: F) -> Result<Vec<Value>>
where
    F: Future<Output = Result<Vec<Value>>> + MaybeSend + 'static,
{
    if eager::in_trace() {
        return Err(Error::Trace(message!(
            "it needs the values of {} on the host, which a trace does not have.",
            x.spec()
        )));
    }
    let mut later = Some(later);
    let found = with(|replay| {
        let key = (replay.begun, replay.asked);
        replay.asked += 1;
        let known = replay.values.get(&key).cloned();
        if let (None, Some(later)) = (&known, later.take()) {
            replay.wanted = Some((key, Box::pin(later)));
        }
        known
    });
    match (found, later) {
        (Some(Some(values)), _) => Ok(values),
        // The caller does not see this error.
        (Some(None), _) | (None, None) => Err(Error::Trace("it waits for a value.".into())),
        (None, Some(later)) => now(x, later),
    }
}

#[cfg(not(target_family = "wasm"))]
fn now(_: &Tensor, later: impl Future<Output = Result<Vec<Value>>>) -> Result<Vec<Value>> {
    pollster::block_on(later)
}

#[cfg(target_family = "wasm")]
fn now(x: &Tensor, _: impl Future<Output = Result<Vec<Value>>>) -> Result<Vec<Value>> {
    Err(Error::Trace(message!(
        "it needs the values of {} on the host, for which a page cannot wait. Use call_async.",
        x.spec()
    )))
}

/// The result of a call that may need values of the device. It is called again each time that one has been awaited.
pub(super) async fn replayed<R>(call: impl Fn() -> Result<R>) -> Result<R> {
    let mut replay = Replay::default();
    loop {
        (replay.begun, replay.asked) = (0, 0);
        let outer = REPLAY.replace(Some(replay));
        let result = call();
        replay = REPLAY.replace(outer).unwrap_or_default();
        match replay.wanted.take() {
            Some((key, later)) => {
                let values = later.await?;
                replay.values.insert(key, values);
            }
            None => return result,
        }
    }
}

/// What a thread may give to another one; in a page, everything.
#[cfg(not(target_family = "wasm"))]
pub(super) trait MaybeSend: Send {}
#[cfg(not(target_family = "wasm"))]
impl<T: Send> MaybeSend for T {}
#[cfg(target_family = "wasm")]
pub(super) trait MaybeSend {}
#[cfg(target_family = "wasm")]
impl<T> MaybeSend for T {}
