//! The state of a thread until a guard is dropped: the default writer, the default step, whether summaries are recorded, the
//! scope of their names.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;

use super::batch::{Entry, wall_time};
use super::payload::Payload;
use super::queue::Queue;
use super::step::{Moment, Step};
use crate::error::{Error, Result, message};

thread_local! {
    static SCOPES: RefCell<Scopes> = RefCell::default();
}

#[derive(Default)]
struct Scopes {
    /// The active guards, the innermost last.
    open: Vec<(u64, Scope)>,
    count: u64,
    /// The step that `set_step` has set outside of all writers' steps.
    step: Option<Step>,
}

enum Scope {
    /// A writer, and its own default step.
    Writer(Arc<Queue>, Option<Option<Step>>),
    Condition(Rc<dyn Fn() -> bool>),
    Every(u64),
    Name(String),
}

/// A guard: dropping it ends its effect.
#[derive(Debug)]
struct Guard {
    id: u64,
    /// The scopes belong to one thread.
    thread: PhantomData<*const ()>,
}

impl Guard {
    fn open(scope: Scope) -> Self {
        let id = SCOPES.with_borrow_mut(|scopes| {
            scopes.count += 1;
            scopes.open.push((scopes.count, scope));
            scopes.count
        });
        Guard { id, thread: PhantomData }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // A thread that is ending has no scopes. The contents of a scope are dropped after the list is released.
        let scope = SCOPES.try_with(|scopes| {
            let mut scopes = scopes.try_borrow_mut().ok()?;
            let at = scopes.open.iter().position(|(id, _)| *id == self.id)?;
            Some(scopes.open.remove(at))
        });
        drop(scope);
    }
}

/// While it exists, the thread's summaries go to its writer.
#[derive(Debug)]
#[must_use = "the writer is the default until this is dropped"]
pub struct DefaultWriter(#[allow(dead_code)] Guard); // It acts by being dropped.

pub(super) fn make_default(queue: Arc<Queue>, step: Option<Step>) -> DefaultWriter {
    DefaultWriter(Guard::open(Scope::Writer(queue, step.map(Some))))
}

/// While it exists, the condition of [`record_if`] or [`record_every`] applies.
#[derive(Debug)]
#[must_use = "the condition holds until this is dropped"]
pub struct Recording(#[allow(dead_code)] Guard);

/// A condition under which summaries are recorded: a `bool`, or a function that is called at each summary.
pub trait Condition {
    #[doc(hidden)]
    fn function(self) -> Rc<dyn Fn() -> bool>;
}

impl Condition for bool {
    fn function(self) -> Rc<dyn Fn() -> bool> {
        Rc::new(move || self)
    }
}

impl<F: Fn() -> bool + 'static> Condition for F {
    fn function(self) -> Rc<dyn Fn() -> bool> {
        Rc::new(self)
    }
}

/// Records the thread's summaries only if `condition` is true, until the result is dropped. Only the innermost condition
/// counts, as in TensorFlow.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::summary::{self, MemoryWriter};
/// let writer = MemoryWriter::new();
/// let _default = writer.as_default();
/// for step in 0..100 {
///     let _recording = summary::record_if(step % 10 == 0);
///     let recorded = summary::scalar("loss", 0.5, step)?;
///     assert_eq!(recorded, step % 10 == 0);
/// }
/// # Ok(())
/// # }
/// ```
pub fn record_if(condition: impl Condition) -> Recording {
    Recording(Guard::open(Scope::Condition(condition.function())))
}

/// Records only the thread's summaries whose step is a multiple of `steps`, until the result is dropped. A step that is still
/// on the device is checked once it has been read. Only the innermost condition counts.
pub fn record_every(steps: u64) -> Recording {
    Recording(Guard::open(Scope::Every(steps)))
}

/// Whether a summary would be recorded now, as far as that does not depend on its step.
pub fn should_record_summaries() -> bool {
    writer().is_some() && allowed().0
}

/// While it exists, the names of summaries begin with its name.
#[derive(Debug)]
#[must_use = "the scope ends when this is dropped"]
pub struct NameScope(#[allow(dead_code)] Guard);

/// Prepends `name` and a slash to the names of the thread's summaries, until the result is dropped. TensorBoard groups by the
/// part before the last slash.
pub fn name_scope(name: &str) -> NameScope {
    NameScope(Guard::open(Scope::Name(name.to_string())))
}

/// Sets the step of the thread's summaries that have no step of their own: a number, or an integer variable or a counter, whose
/// current value each summary uses. `()` unsets it. Within [`as_default_at`](super::FileWriter::as_default_at) it applies until
/// that ends.
pub fn set_step(step: impl Into<Step>) {
    let step = step.into();
    let step = Some(step).filter(|step| !matches!(step.0, super::step::StepSource::Default));
    let before = SCOPES.with_borrow_mut(|scopes| {
        let own = scopes.open.iter_mut().rev().find_map(|(_, scope)| match scope {
            Scope::Writer(_, step @ Some(_)) => step.as_mut(),
            _ => None,
        });
        match own {
            Some(own) => std::mem::replace(own, step),
            None => std::mem::replace(&mut scopes.step, step),
        }
    });
    drop(before);
}

/// The step of summaries that have no step of their own.
pub fn get_step() -> Option<Step> {
    SCOPES.with_borrow(|scopes| {
        let own = scopes.open.iter().rev().find_map(|(_, scope)| match scope {
            Scope::Writer(_, step) => step.clone(),
            _ => None,
        });
        own.unwrap_or_else(|| scopes.step.clone())
    })
}

fn writer() -> Option<Arc<Queue>> {
    SCOPES.with_borrow(|scopes| {
        scopes.open.iter().rev().find_map(|(_, scope)| match scope {
            Scope::Writer(queue, _) => Some(queue.clone()),
            _ => None,
        })
    })
}

/// Whether summaries are recorded, and for which steps.
fn allowed() -> (bool, u64) {
    enum Found {
        Function(Rc<dyn Fn() -> bool>),
        Every(u64),
    }
    let found = SCOPES.with_borrow(|scopes| {
        scopes.open.iter().rev().find_map(|(_, scope)| match scope {
            Scope::Condition(condition) => Some(Found::Function(condition.clone())),
            Scope::Every(steps) => Some(Found::Every(*steps)),
            _ => None,
        })
    });
    match found {
        // Called after the scopes are released, so that it may write summaries itself.
        Some(Found::Function(condition)) => (condition(), 1),
        Some(Found::Every(steps)) => (true, steps),
        None => (true, 1),
    }
}

/// The name with its scopes.
fn tag(name: &str) -> String {
    SCOPES.with_borrow(|scopes| {
        let mut tag = String::new();
        for (_, scope) in &scopes.open {
            if let Scope::Name(outer) = scope {
                tag += outer;
                tag.push('/');
            }
        }
        tag + name
    })
}

/// Passes the result of `payload` to the thread's default writer, if there is one and it records. `scoped`: the name is in
/// scopes.
pub(super) fn write(
    function: &str,
    name: &str,
    description: String,
    step: Step,
    scoped: bool,
    payload: impl FnOnce() -> Result<Payload>,
) -> Result<bool> {
    let Some(queue) = writer() else { return Ok(false) };
    if name.is_empty() {
        return Err(Error::Data(message!("{function}: the name of the summary is empty.")));
    }
    let moment = match step.now(function)? {
        Some(moment) => Some(moment),
        None => get_step().map(|step| step.now(function)).transpose()?.flatten(),
    };
    let Some(moment) = moment else {
        return Err(Error::Data(message!(
            "{function}: the summary \"{name}\" has no step. Pass one, or set a default by set_step or as_default_at."
        )));
    };
    let (recorded, every) = allowed();
    let due = match moment {
        Moment::Known(step) => step.unsigned_abs() % every.max(1) == 0,
        Moment::Unread(_) => true,
    };
    if !recorded || !due {
        return Ok(false);
    }
    let tag = if scoped { tag(name) } else { name.to_string() };
    let (wall_time, payload) = (wall_time(), payload()?);
    queue.put(Entry { wall_time, step: moment, every, tag, description, payload })?;
    Ok(true)
}
