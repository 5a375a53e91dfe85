//! [`Parts`]: the way of a walk, which what is walked over tells of its parts.

use std::collections::HashSet;
use std::hash::BuildHasherDefault;

use super::walk::Track;
use super::{NamedArray, Slot, Trackable};
use crate::graph::Mixer;
use crate::random::Generator;
use crate::variable::Variable;

/// Takes down what a [`Trackable`] owns.
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
    /// From the root to here, parted by `/`.
    path: String,
    /// Identities of what was visited.
    seen: HashSet<u64, BuildHasherDefault<Mixer>>,
    /// Addresses and sizes of what several pointers may lead to.
    entered: HashSet<(usize, usize), BuildHasherDefault<Mixer>>,
    visit: &'a mut dyn FnMut(&str, Leaf<'_>),
}

/// What a walk comes by.
pub(super) enum Leaf<'a> {
    Variable(&'a Variable),
    /// A variable that has no size yet.
    ToBe(&'a Slot),
    /// What an optimizer keeps for variables.
    Slots(&'a dyn SlotOwner),
    /// Numbers on the host.
    State(&'a dyn HostState),
    /// A part, before what it owns.
    Part {
        kind: &'a dyn Fn() -> &'static str,
        output: Option<&'a [usize]>,
    },
}

/// Numbers on the host, as a checkpoint holds them.
pub(crate) trait HostState {
    /// The dtype by safetensors' name, and the shape.
    fn form(&self) -> (&'static str, &'static [usize]);

    /// The numbers, little-endian.
    fn get(&self) -> Vec<u8>;

    /// Puts in what [`get`](HostState::get) once gave.
    fn set(&self, bytes: &[u8]);
}

/// One who keeps variables for other variables.
pub(crate) trait SlotOwner {
    /// For whom (its identity), as what, and the variable; in order.
    fn slots(&self) -> Vec<(u64, String, Slot)>;

    /// Leaves a value for the slot `name` of the variable `of`, which is still to be made.
    fn leave(&self, of: u64, name: &str, value: NamedArray<'static>);
}

impl<'a> Parts<'a> {
    pub(super) fn new(visit: &'a mut dyn FnMut(&str, Leaf<'_>)) -> Self {
        let (seen, entered) = (HashSet::default(), HashSet::default());
        Parts { path: String::new(), seen, entered, visit }
    }

    /// A part and what it owns, under `name`.
    pub fn add(&mut self, name: &str, part: &(impl Trackable + ?Sized)) {
        self.part(name, &|| part.kind(), &|parts| part.track(parts), None);
    }

    /// As [`Parts::add`], of a layer whose last result had this shape.
    pub(crate) fn add_with_output(
        &mut self,
        name: &str,
        part: &dyn Trackable,
        output: Option<&[usize]>,
    ) {
        self.part(name, &|| part.kind(), &|parts| part.track(parts), output);
    }

    fn part(
        &mut self,
        name: &str,
        kind: &dyn Fn() -> &'static str,
        track: Track<'_>,
        output: Option<&[usize]>,
    ) {
        self.inside(name, &mut |parts| {
            (parts.visit)(&parts.path, Leaf::Part { kind, output });
            track(parts);
        });
    }

    /// A whole number on the host that changes, such as a count, by the functions that read and set it. It belongs to
    /// checkpoints.
    pub fn number(&mut self, name: &str, get: impl Fn() -> u64, set: impl Fn(u64)) {
        self.state(name, &Number { get, set });
    }

    pub(crate) fn state(&mut self, name: &str, state: &dyn HostState) {
        self.inside(name, &mut |parts| (parts.visit)(&parts.path, Leaf::State(state)));
    }

    /// A generator that is made when a checkpoint asks for it, if it was not needed before.
    pub(crate) fn generator<'g>(&mut self, name: &str, make: &dyn Fn() -> &'g Generator) {
        self.state(name, &Later(make));
    }

    pub(super) fn state_here(&mut self, state: &dyn HostState) {
        (self.visit)(&self.path, Leaf::State(state));
    }

    pub(super) fn variable(&mut self, variable: &Variable) {
        if self.seen.insert(variable.id()) {
            (self.visit)(&self.path, Leaf::Variable(variable));
        }
    }

    pub(super) fn slot(&mut self, slot: &Slot) {
        match slot.variable() {
            Some(variable) => self.variable(variable),
            None if self.seen.insert(slot.id()) => (self.visit)(&self.path, Leaf::ToBe(slot)),
            None => {}
        }
    }

    pub(crate) fn slots(&mut self, owner: &dyn SlotOwner) {
        (self.visit)(&self.path, Leaf::Slots(owner));
    }

    /// Walks over what several pointers may lead to, unless one has.
    pub(super) fn once<T: Trackable + ?Sized>(&mut self, part: &T) {
        // A struct and its first field have one address; of one size they have the same parts.
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
    fn form(&self) -> (&'static str, &'static [usize]) {
        ("U64", &[3])
    }

    fn get(&self) -> Vec<u8> {
        self.0().get()
    }

    fn set(&self, bytes: &[u8]) {
        self.0().set(bytes);
    }
}

struct Number<G, S> {
    get: G,
    set: S,
}

impl<G: Fn() -> u64, S: Fn(u64)> HostState for Number<G, S> {
    fn form(&self) -> (&'static str, &'static [usize]) {
        ("U64", &[])
    }

    fn get(&self) -> Vec<u8> {
        (self.get)().to_le_bytes().into()
    }

    fn set(&self, bytes: &[u8]) {
        (self.set)(u64::from_le_bytes(bytes.try_into().unwrap_or_default()));
    }
}
