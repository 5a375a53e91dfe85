//! [`Parts`]: the visitor to which a [`Trackable`] reports its parts.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use super::{Class, NamedArray, Slot, Trackable};
use crate::error::Result;
use crate::graph::Mixer;
use crate::host_array::HostDType;
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
    /// Addresses and sizes of the parts that several pointers may share.
    entered: HashSet<(usize, usize), BuildHasherDefault<Mixer>>,
    visit: &'a mut dyn FnMut(&str, Leaf<'_>),
}

impl std::fmt::Debug for Parts<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parts").field("path", &self.path).finish_non_exhaustive()
    }
}

/// The root of a walk, as its `track`: one type for all, which compiles each walk once.
pub(crate) type Track<'a> = &'a dyn Fn(&mut Parts<'_>);

/// Returns what a weight's value adds to the training loss.
pub(crate) type Penalty<'a> = &'a dyn Fn(&Tensor) -> Result<Tensor>;

/// An item that a walk visits.
pub(crate) enum Leaf<'a> {
    Variable(&'a Variable),
    /// A variable whose size is not known yet.
    ToBe(&'a Slot),
    /// A penalty on the variable that was visited last.
    Penalty(&'a Variable, Penalty<'a>),
    /// The variables that an optimizer stores for other variables.
    Slots(&'a dyn SlotOwner),
    /// State that a call leaves for the next one, and that no checkpoint includes; calling the function clears it.
    Forget(&'a dyn Fn()),
    /// Numbers on the host.
    State(&'a dyn HostState),
    /// A part; its own parts follow.
    Part {
        part_type: &'a dyn Fn() -> PartType,
        track: Track<'a>,
        /// The model's description of it.
        described: Option<&'a dyn Fn() -> Described>,
    },
}

/// What a part declares of its type.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PartType {
    pub(crate) kind: &'static str,
    pub(crate) class: Option<&'static Class>,
}

impl PartType {
    pub(crate) fn new(part: &(impl Trackable + ?Sized)) -> Self {
        PartType { kind: part.kind(), class: part.class() }
    }
}

/// A model's description of one of its layers, for tables and diagrams. `None` in a shape is a size that varies.
#[derive(Default)]
pub(crate) struct Described {
    pub(crate) inputs: Vec<Vec<Option<usize>>>,
    /// Empty before the first call.
    pub(crate) outputs: Vec<Vec<Option<usize>>>,
    /// The origins of the inputs of all calls.
    pub(crate) from: Vec<Origin>,
    /// Its number in the model's `_operations` in Keras.
    pub(crate) number: Option<usize>,
}

/// A result of another layer of the model.
#[derive(Clone, PartialEq)]
pub(crate) struct Origin {
    /// The layer's name.
    pub(crate) name: String,
    /// The index of the call.
    pub(crate) call: usize,
    /// The index of the result.
    pub(crate) output: usize,
}

/// Numbers on the host that belong to a checkpoint.
pub(crate) trait HostState {
    /// The dtype and the shape; `None` for bytes whose number varies.
    fn form(&self) -> (HostDType, Option<&'static [usize]>);

    /// The numbers, little-endian.
    fn get(&self) -> Result<Vec<u8>>;

    /// Restores bytes that [`get`](HostState::get) returned. States whose form varies may reject them, and are then unchanged.
    fn set(&self, bytes: &[u8]) -> Result<()>;

    /// Resets them, if they belong to a metric.
    fn reset_metric(&self) -> Result<()> {
        Ok(())
    }
}

/// Stores variables for other variables.
pub(crate) trait SlotOwner {
    /// For each slot in order: the identity of the variable that it belongs to, its name, and the slot.
    fn slots(&self) -> Vec<(u64, String, Slot)>;

    /// The identities of the variables that it handles, in order, including those for which it stores nothing.
    fn listed(&self) -> Vec<u64>;

    /// Stores a value for the slot `name` of the variable `of`, which does not exist yet.
    fn leave(&self, of: u64, name: &str, value: NamedArray<'static>);
}

impl<'a> Parts<'a> {
    pub(crate) fn new(visit: &'a mut dyn FnMut(&str, Leaf<'_>)) -> Self {
        let (seen, entered) = (HashSet::default(), HashSet::default());
        Parts { path: String::new(), seen, entered, visit }
    }

    /// Reports a part, and visits it and its own parts.
    pub fn add(&mut self, name: &str, part: &(impl Trackable + ?Sized)) {
        self.part(name, &|| PartType::new(part), &|parts| part.track(parts), None);
    }

    /// As [`Parts::add`], for a layer that its model describes.
    pub(crate) fn add_described(
        &mut self,
        name: &str,
        part: &dyn Trackable,
        described: &dyn Fn() -> Described,
    ) {
        self.part(name, &|| PartType::new(part), &|parts| part.track(parts), Some(described));
    }

    fn part(
        &mut self,
        name: &str,
        part_type: &dyn Fn() -> PartType,
        track: Track<'_>,
        described: Option<&dyn Fn() -> Described>,
    ) {
        self.inside(name, &mut |parts| {
            (parts.visit)(&parts.path, Leaf::Part { part_type, track, described });
            track(parts);
        });
    }

    /// Reports an integer on the host that changes, such as a count, with the functions that read and set it. A checkpoint
    /// includes it.
    pub fn number(&mut self, name: &str, get: impl Fn() -> u64, set: impl Fn(u64)) {
        self.state(name, &Number { get, set });
    }

    pub(crate) fn state(&mut self, name: &str, state: &dyn HostState) {
        self.inside(name, &mut |parts| (parts.visit)(&parts.path, Leaf::State(state)));
    }

    /// Reports a generator that a checkpoint creates if it has not been used before.
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

    /// Reports a variable here, and what it adds to the training loss: `penalty` of its value. The weights of layers
    /// ([`Weight`](crate::keras::Weight)) do this by their regularizer.
    pub fn penalize(&mut self, variable: &Variable, penalty: &dyn Fn(&Tensor) -> Result<Tensor>) {
        let new = !self.seen.contains(&variable.id());
        self.variable(variable);
        if new {
            (self.visit)(&self.path, Leaf::Penalty(variable, penalty));
        }
    }

    /// A variable with a penalty, which may not exist yet.
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

    /// Visits a part that several pointers may share, but only the first time.
    pub(super) fn once<T: Trackable + ?Sized>(&mut self, part: &T) {
        // A struct and its first field share an address; if their sizes are equal, too, they have the same parts.
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

struct Later<'a, 'g>(&'a dyn Fn() -> &'g Generator);

impl HostState for Later<'_, '_> {
    fn form(&self) -> (HostDType, Option<&'static [usize]>) {
        (HostDType::U64, Some(&[3]))
    }

    fn get(&self) -> Result<Vec<u8>> {
        self.0().get()
    }

    fn set(&self, bytes: &[u8]) -> Result<()> {
        self.0().set(bytes)
    }
}

struct Number<G, S> {
    get: G,
    set: S,
}

impl<G: Fn() -> u64, S: Fn(u64)> HostState for Number<G, S> {
    fn form(&self) -> (HostDType, Option<&'static [usize]>) {
        (HostDType::U64, Some(&[]))
    }

    fn get(&self) -> Result<Vec<u8>> {
        Ok((self.get)().to_le_bytes().into())
    }

    fn set(&self, bytes: &[u8]) -> Result<()> {
        (self.set)(u64::from_le_bytes(bytes.try_into().unwrap_or_default()));
        Ok(())
    }
}
