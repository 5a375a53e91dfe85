//! Draws of the replicas of a strategy: each replica has a stream of its own, so that the numbers do not depend on which replica
//! draws first. What replicas make once for all, such as the weights of a layer, has another stream. A run advances a generator
//! once, when all replicas have ended.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::philox::{counter_words, key_words, philox};
use super::state::{State, lock};

/// How far draws have advanced each generator.
#[derive(Default)]
struct Advanced(Vec<(Arc<Mutex<State>>, u128)>);

impl Advanced {
    /// Advances a generator; returns how far it was before.
    fn add(&mut self, state: &Arc<Mutex<State>>, counters: u128) -> u128 {
        let at =
            self.0.iter().position(|(known, _)| Arc::ptr_eq(known, state)).unwrap_or_else(|| {
                self.0.push((state.clone(), 0));
                self.0.len() - 1
            });
        let advanced = &mut self.0[at].1;
        let before = *advanced;
        *advanced = before.wrapping_add(counters);
        before
    }
}

/// The draws of the replicas of a run.
#[derive(Default)]
pub(crate) struct Draws {
    /// By the replicas that have ended: of each generator, the most that one has drawn.
    most: Mutex<Advanced>,
    for_all: Mutex<Advanced>,
}

/// The draws of this thread's replica.
struct Own {
    index: u64,
    advanced: Advanced,
    run: Arc<Draws>,
    /// What is drawn is for all replicas.
    for_all: bool,
}

thread_local! {
    static OWN: RefCell<Option<Own>> = const { RefCell::new(None) };
}

/// The stream for all replicas.
const FOR_ALL: u64 = u64::MAX;

/// Runs `f`, which draws as the replica of this index.
pub(crate) fn drawing<R>(run: &Arc<Draws>, index: usize, f: impl FnOnce() -> R) -> R {
    struct End(Option<Own>);
    impl Drop for End {
        fn drop(&mut self) {
            let Some(own) = OWN.replace(self.0.take()) else { return };
            let mut most = locked(&own.run.most);
            for (state, by) in own.advanced.0 {
                let before = most.add(&state, 0);
                most.add(&state, by.saturating_sub(before));
            }
        }
    }
    let own = Own {
        index: index as u64,
        advanced: Advanced::default(),
        run: run.clone(),
        for_all: false,
    };
    let _end = End(OWN.replace(Some(own)));
    f()
}

/// Runs `f`, which makes something once for all replicas, whichever replica does it.
pub(crate) fn for_all<R>(f: impl FnOnce() -> R) -> R {
    struct End(bool);
    impl Drop for End {
        fn drop(&mut self) {
            set_for_all(self.0);
        }
    }
    let _end = End(set_for_all(true));
    f()
}

fn set_for_all(on: bool) -> bool {
    let set = |own: &RefCell<Option<Own>>| {
        own.borrow_mut().as_mut().is_some_and(|own| std::mem::replace(&mut own.for_all, on))
    };
    OWN.try_with(set).unwrap_or(false)
}

impl Draws {
    /// Advances the generators that the replicas of the run have drawn from.
    pub(crate) fn advance(&self) {
        for advanced in [&self.most, &self.for_all] {
            for (state, by) in std::mem::take(&mut locked(advanced).0) {
                let mut state = lock(&state);
                state.counter = state.counter.wrapping_add(by);
            }
        }
    }
}

/// The state from which this thread's replica draws, if it computes for one, before `counters` more are taken.
pub(super) fn take(state: &Arc<Mutex<State>>, counters: u128) -> Option<State> {
    let draw = |own: &RefCell<Option<Own>>| {
        let mut own = own.borrow_mut();
        let own = own.as_mut()?;
        let (index, before) = match own.for_all {
            true => (FOR_ALL, locked(&own.run.for_all).add(state, counters)),
            false => (own.index, own.advanced.add(state, counters)),
        };
        // The run does not change the state itself.
        let State { counter, key } = *lock(state);
        Some(State { counter: counter.wrapping_add(before), key: key_of(key, index) })
    };
    OWN.try_with(draw).ok().flatten()
}

/// The key of a replica's stream. The first replica draws what a program without replicas draws.
fn key_of(key: u64, index: u64) -> u64 {
    match index {
        0 => key,
        _ => {
            let mixed = philox(counter_words(u128::from(index) << 64), key_words(key));
            u64::from(mixed[0]) | u64::from(mixed[1]) << 32
        }
    }
}

fn locked(advanced: &Mutex<Advanced>) -> MutexGuard<'_, Advanced> {
    advanced.lock().unwrap_or_else(PoisonError::into_inner)
}
