//! [`Parts`]: the visitor to which a [`Trackable`] names its parts.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use super::{NamedArray, Slot, Trackable};
use crate::error::Result;
use crate::graph::Mixer;
use crate::random::Generator;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// Receives the names of the parts that a [`Trackable`] owns.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Parts, Trackable, Variable};
/// struct Tied(Variable);
/// impl Trackable for Tied {
///     fn track(&self, parts: &mut Parts<'_>) {
///         parts.add("encoder", &self.0);
///         parts.add("decoder", &self.0); // the same one, which has a name already
///     }
/// }
/// let tied = Tied(Variable::new(&tf::constant([1.0, 2.0])?));
/// assert_eq!(tied.named_variables()[0].0, "encoder");
/// assert_eq!(tied.variables().len(), 1);
/// # Ok(())
/// # }
/// ```
pub struct Parts<'a> {
    /// The names from the root to here, separated by `/`.
    path: String,
    /// The identities of the variables visited.
    seen: HashSet<u64, BuildHasherDefault<Mixer>>,
    /// Addresses and sizes of the parts that several pointers may lead to.
    entered: HashSet<(usize, usize), BuildHasherDefault<Mixer>>,
    visit: &'a mut dyn FnMut(&str, Leaf<'_>),
}

/// The root of a walk, as its `track`: one type for all, so that each walk is compiled once.
pub(crate) type Track<'a> = &'a dyn Fn(&mut Parts<'_>);

/// What a weight's value adds to the loss of a training.
pub(crate) type Penalty<'a> = &'a dyn Fn(&Tensor) -> Result<Tensor>;

/// What a walk meets.
pub(crate) enum Leaf<'a> {
    Variable(&'a Variable),
    /// A variable that has no size yet.
    ToBe(&'a Slot),
    /// A penalty on the variable that was met last.
    Penalty(&'a Variable, Penalty<'a>),
    /// The variables that an optimizer keeps for variables.
    Slots(&'a dyn SlotOwner),
    /// What a call leaves for the next one, and no checkpoint includes: called, it is forgotten.
    Forget(&'a dyn Fn()),
    /// Numbers on the host.
    State(&'a dyn HostState),
    /// A part; its own parts follow.
    Part {
        kind: &'a dyn Fn() -> &'static str,
        track: Track<'a>,
        /// What a model tells of it.
        described: Option<&'a dyn Fn() -> Described>,
    },
}

/// What a model tells of a layer in it, for tables and pictures. `None` in a shape is a size that varies.
#[derive(Default)]
pub(crate) struct Described {
    pub(crate) inputs: Vec<Vec<Option<usize>>>,
    /// Empty before the first call.
    pub(crate) outputs: Vec<Vec<Option<usize>>>,
    /// Where the inputs of all calls come from.
    pub(crate) from: Vec<Origin>,
    /// Keras's number of it in the model's `_operations`.
    #[cfg(feature = "checkpoint")]
    pub(crate) number: Option<usize>,
}

/// A result of a layer beside.
#[derive(Clone, PartialEq)]
pub(crate) struct Origin {
    /// The layer's name.
    pub(crate) name: String,
    /// Which of its calls.
    pub(crate) call: usize,
    /// Which of the results.
    pub(crate) output: usize,
}

/// Numbers on the host that belong to a checkpoint.
#[cfg_attr(not(feature = "checkpoint"), allow(dead_code))]
pub(crate) trait HostState {
    /// The dtype by safetensors' name, and the shape; `None` for bytes whose number varies.
    fn form(&self) -> (&'static str, Option<&'static [usize]>);

    /// The numbers, little-endian.
    fn get(&self) -> Result<Vec<u8>>;

    /// Restores the bytes that [`get`](HostState::get) once gave. States whose form varies may refuse them, and are as they were
    /// then.
    fn set(&self, bytes: &[u8]) -> Result<()>;

    /// Begins again from nothing, if these are a metric's.
    fn reset_metric(&self) -> Result<()> {
        Ok(())
    }
}

/// Keeps variables for other variables.
pub(crate) trait SlotOwner {
    /// For each slot in order: the identity of the variable it serves, its name, and the slot.
    fn slots(&self) -> Vec<(u64, String, Slot)>;

    /// The identities of the variables that it serves, in order, also of those for which it keeps nothing.
    #[cfg(feature = "checkpoint")]
    fn listed(&self) -> Vec<u64>;

    /// Leaves a value for the slot `name` of the variable `of`, which does not exist yet.
    fn leave(&self, of: u64, name: &str, value: NamedArray<'static>);
}

impl<'a> Parts<'a> {
    pub(crate) fn new(visit: &'a mut dyn FnMut(&str, Leaf<'_>)) -> Self {
        let (seen, entered) = (HashSet::default(), HashSet::default());
        Parts { path: String::new(), seen, entered, visit }
    }

    /// Names a part, and visits it and its own parts.
    pub fn add(&mut self, name: &str, part: &(impl Trackable + ?Sized)) {
        self.part(name, &|| part.kind(), &|parts| part.track(parts), None);
    }

    /// As [`Parts::add`], for a layer of which a model tells more.
    pub(crate) fn add_described(
        &mut self,
        name: &str,
        part: &dyn Trackable,
        described: &dyn Fn() -> Described,
    ) {
        self.part(name, &|| part.kind(), &|parts| part.track(parts), Some(described));
    }

    fn part(
        &mut self,
        name: &str,
        kind: &dyn Fn() -> &'static str,
        track: Track<'_>,
        described: Option<&dyn Fn() -> Described>,
    ) {
        self.inside(name, &mut |parts| {
            (parts.visit)(&parts.path, Leaf::Part { kind, track, described });
            track(parts);
        });
    }

    /// Names a whole number on the host that changes, such as a count, with the functions that read and set it. A
    /// checkpoint includes it.
    pub fn number(&mut self, name: &str, get: impl Fn() -> u64, set: impl Fn(u64)) {
        self.state(name, &Number { get, set });
    }

    pub(crate) fn state(&mut self, name: &str, state: &dyn HostState) {
        self.inside(name, &mut |parts| (parts.visit)(&parts.path, Leaf::State(state)));
    }

    /// Names a generator that a checkpoint makes if nothing has used it before.
    pub(crate) fn generator<'g>(&mut self, name: &str, make: &dyn Fn() -> &'g Generator) {
        self.state(name, &Later(make));
    }

    pub(crate) fn state_here(&mut self, state: &dyn HostState) {
        (self.visit)(&self.path, Leaf::State(state));
    }

    pub(super) fn variable(&mut self, variable: &Variable) {
        if self.seen.insert(variable.id()) {
            (self.visit)(&self.path, Leaf::Variable(variable));
        }
    }

    /// A variable, or one to be, on which there is a penalty.
    pub(crate) fn penalized(&mut self, slot: &Slot, penalty: Penalty<'_>) {
        let new = !self.seen.contains(&slot.id());
        self.slot(slot);
        if let Some(variable) = slot.variable().filter(|_| new) {
            (self.visit)(&self.path, Leaf::Penalty(variable, penalty));
        }
    }

    pub(crate) fn slot(&mut self, slot: &Slot) {
        match slot.variable() {
            Some(variable) => self.variable(variable),
            None if self.seen.insert(slot.id()) => (self.visit)(&self.path, Leaf::ToBe(slot)),
            None => {}
        }
    }

    pub(crate) fn forgets(&mut self, forget: &dyn Fn()) {
        (self.visit)(&self.path, Leaf::Forget(forget));
    }

    pub(crate) fn slots(&mut self, owner: &dyn SlotOwner) {
        (self.visit)(&self.path, Leaf::Slots(owner));
    }

    /// Visits a part that several pointers may lead to, the first time only.
    pub(super) fn once<T: Trackable + ?Sized>(&mut self, part: &T) {
        // A struct and its first field share an address; if their sizes are equal too, they have the same parts.
        let (address, size) = (std::ptr::from_ref(part).cast::<u8>().addr(), size_of_val(part));
        if size == 0 || self.entered.insert((address, size)) {
            part.track(self);
        }
    }

    fn inside(&mut self, name: &str, f: &mut dyn FnMut(&mut Self)) {
        let end = self.path.len();
        if end > 0 {
            self.path.push('/');
        }
        self.path.push_str(name);
        f(self);
        self.path.truncate(end);
    }
}

#[cfg_attr(not(feature = "checkpoint"), allow(dead_code))]
struct Later<'a, 'g>(&'a dyn Fn() -> &'g Generator);

impl HostState for Later<'_, '_> {
    fn form(&self) -> (&'static str, Option<&'static [usize]>) {
        ("U64", Some(&[3]))
    }

    fn get(&self) -> Result<Vec<u8>> {
        self.0().get()
    }

    fn set(&self, bytes: &[u8]) -> Result<()> {
        self.0().set(bytes)
    }
}

#[cfg_attr(not(feature = "checkpoint"), allow(dead_code))]
struct Number<G, S> {
    get: G,
    set: S,
}

impl<G: Fn() -> u64, S: Fn(u64)> HostState for Number<G, S> {
    fn form(&self) -> (&'static str, Option<&'static [usize]>) {
        ("U64", Some(&[]))
    }

    fn get(&self) -> Result<Vec<u8>> {
        Ok((self.get)().to_le_bytes().into())
    }

    fn set(&self, bytes: &[u8]) -> Result<()> {
        (self.set)(u64::from_le_bytes(bytes.try_into().unwrap_or_default()));
        Ok(())
    }
}
