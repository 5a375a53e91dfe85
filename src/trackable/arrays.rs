//! Converts the variables and states of a [`Trackable`] to named arrays on the host, and back.
//!
//! This file decides the contents of a file of arrays; `file` encodes its bytes.

use std::borrow::Cow;

use super::parts::{Leaf, Parts, Track};
use super::{Slot, Trackable, to_tensor_if_exact};
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::graph::{HashIndex, hash_bytes};
use crate::host_array::{HostArray, HostDType};
use crate::tensor::Tensor;
use crate::variable::Variable;

/// A variable's value on the host, as in a weight file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedArray<'a> {
    /// The variable's name, such as `dense/kernel`.
    pub name: Cow<'a, str>,
    /// The value.
    pub array: HostArray<'a>,
}

impl<'a> NamedArray<'a> {
    pub(crate) fn new(name: impl Into<Cow<'a, str>>, array: HostArray<'a>) -> Self {
        NamedArray { name: name.into(), array }
    }

    pub(crate) fn into_owned(self) -> NamedArray<'static> {
        NamedArray::new(self.name.into_owned(), self.array.into_owned())
    }

    /// Makes a tensor from the array, for a variable of this shape and dtype, on the current device.
    pub(crate) fn to_tensor(&self, shape: &[usize], dtype: DType) -> Result<Tensor> {
        let NamedArray { name, array } = self;
        if array.shape() != shape {
            return Err(Error::Checkpoint(message!(
                "load: '{name}' is {:?} in the weights and {shape:?} in the model. Load weights that a model with the \
                 same layers has saved.",
                array.shape()
            )));
        }
        if array.dtype() != dtype {
            return Err(Error::Checkpoint(message!(
                "load: '{name}' is {} in the weights and {} in the model. Convert the weights, or make a model of that \
                 dtype.",
                array.dtype().file_name(),
                HostDType::from(dtype).file_name()
            )));
        }
        array.upload(dtype)
    }
}

/// The scope of a file.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Scope {
    /// Only variables: a file of weights.
    Variables,
    /// Generators and counts, too.
    Checkpoint,
}

impl Scope {
    fn call(self) -> &'static str {
        if self == Scope::Variables { "load" } else { "restore" }
    }

    fn words(self) -> [&'static str; 3] {
        match self {
            Scope::Variables => ["the weights lack", "they hold", "the weights hold"],
            Scope::Checkpoint => ["the checkpoint lacks", "it holds", "the checkpoint holds"],
        }
    }
}

/// All variables and states of a root, under their names.
pub(crate) struct Everything {
    entries: Vec<(String, Item)>,
    /// The paths of the parts that store variables for other variables, such as optimizers.
    owners: Vec<String>,
    /// The entries that such a part stores.
    pub(crate) kept: Vec<Kept>,
    /// The owners, and the names of the variables for which each stores some, in order.
    pub(crate) listed: Vec<(String, Vec<String>)>,
}

/// An entry that an optimizer stores for a variable.
pub(crate) struct Kept {
    /// The entry's name.
    pub(crate) name: String,
    /// The path of the optimizer.
    pub(crate) owner: String,
    /// The optimizer's name for it.
    pub(crate) slot: String,
    /// The name of the variable; a number if it has none.
    pub(crate) of: String,
}

pub(crate) enum Item {
    Variable(Variable),
    ToBe(Slot),
    /// `None` is a shape that varies. The bytes exist if values were requested.
    State {
        dtype: HostDType,
        shape: Option<&'static [usize]>,
        bytes: Option<Result<Vec<u8>>>,
    },
}

impl Everything {
    pub(crate) fn collect(root: &dyn Trackable, scope: Scope) -> Self {
        Everything::found(&|parts| root.track(parts), scope, true)
    }

    /// Only what is below the part `part`.
    #[cfg(feature = "keras-files")]
    pub(crate) fn below(self, part: &str) -> Self {
        self.only(&|name| name.strip_prefix(part).is_some_and(|rest| rest.starts_with('/')))
    }

    /// Only what has these names.
    #[cfg(feature = "keras-files")]
    pub(crate) fn only(mut self, wanted: &dyn Fn(&str) -> bool) -> Self {
        self.entries.retain(|(name, _)| wanted(name));
        self
    }

    /// The same without the values of states.
    pub(crate) fn forms(root: &dyn Trackable, scope: Scope) -> Self {
        Everything::found(&|parts| root.track(parts), scope, false)
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &Item)> {
        self.entries.iter().map(|(name, item)| (&**name, item))
    }

    pub(crate) fn into_entries(self) -> Vec<(String, Item)> {
        self.entries
    }

    pub(super) fn found(track: Track<'_>, scope: Scope, values: bool) -> Self {
        let mut entries = Vec::new();
        let (mut owners, mut slots) = (Vec::new(), Vec::new());
        let mut lists: Vec<(String, Vec<u64>)> = Vec::new();
        let mut visit = |path: &str, leaf: Leaf<'_>| {
            // The root itself has no path.
            let name = if path.is_empty() { "variable" } else { path };
            match leaf {
                Leaf::Variable(variable) => {
                    entries.push((name.to_string(), Item::Variable(variable.clone())))
                }
                Leaf::ToBe(slot) => entries.push((name.to_string(), Item::ToBe(slot.clone()))),
                // Only a checkpoint includes states.
                Leaf::State(state) if scope == Scope::Checkpoint => {
                    let (dtype, shape) = state.form();
                    let bytes = values.then(|| state.get());
                    entries.push((name.to_string(), Item::State { dtype, shape, bytes }));
                }
                Leaf::Slots(owner) => {
                    owners.push(path.to_string());
                    lists.push((path.to_string(), owner.listed()));
                    // The walk may visit their variables later.
                    let kept = owner.slots().into_iter();
                    slots.extend(kept.map(|slot| (entries.len(), path.to_string(), slot)));
                }
                Leaf::State(_) | Leaf::Penalty(..) | Leaf::Forget(_) | Leaf::Part { .. } => {}
            }
        };
        track(&mut Parts::new(&mut visit));
        let mut places = HashIndex::default();
        for (at, (_, item)) in entries.iter().enumerate() {
            if let Some(id) = item.id() {
                places.insert(id, at as u32);
            }
        }
        // A slot's name ends in the path to its variable, or in a number if there is no path.
        let (mut unknown, mut named) = (HashIndex::default(), Vec::new());
        let mut kept = Vec::new();
        for (at, owner, (of, name, slot)) in slots {
            let of = match places.get(&of) {
                Some(&place) => entries[place as usize].0.clone(),
                None => {
                    let next = unknown.len() as u32;
                    unknown.entry(of).or_insert(next).to_string()
                }
            };
            let item = match slot.variable() {
                Some(variable) => Item::Variable(variable.clone()),
                None => Item::ToBe(slot),
            };
            let full = join(&owner, &format!("{name}/{of}"));
            kept.push(Kept { name: full.clone(), owner, slot: name, of });
            named.push((at, (full, item)));
        }
        let listed = {
            let mut name = |id: u64| match places.get(&id) {
                Some(&place) => entries[place as usize].0.clone(),
                None => {
                    let next = unknown.len() as u32;
                    unknown.entry(id).or_insert(next).to_string()
                }
            };
            let mut list = |(owner, ids): (String, Vec<u64>)| {
                (owner, ids.into_iter().map(&mut name).collect())
            };
            lists.into_iter().map(&mut list).collect()
        };
        // This moves each slot to its position in the walk.
        let mut everything = Vec::with_capacity(entries.len() + named.len());
        let mut named = named.into_iter().peekable();
        for (at, entry) in entries.into_iter().enumerate() {
            while let Some((_, slot)) = named.next_if(|(before, _)| *before <= at) {
                everything.push(slot);
            }
            everything.push(entry);
        }
        everything.extend(named.map(|(_, slot)| slot));
        Everything { entries: everything, owners, kept, listed }
    }

    pub(crate) fn variables(&self) -> impl Iterator<Item = (&str, &Variable)> {
        self.entries.iter().filter_map(|(name, item)| match item {
            Item::Variable(variable) => Some((&**name, variable)),
            _ => None,
        })
    }

    /// The values, all at the same moment; messages call their owner `kind`.
    pub(crate) async fn into_arrays(self, kind: &str) -> Result<Vec<NamedArray<'static>>> {
        self.names("save", kind)?;
        let now: Vec<Tensor> = self.variables().map(|(_, variable)| variable.peek()).collect();
        let mut values =
            Tensor::all_bytes_async(&now.iter().collect::<Vec<_>>()).await?.into_iter();
        let array = |(name, item): (String, Item)| {
            let array = match item {
                Item::State { dtype, shape, bytes } => state_array(&name, dtype, shape, bytes)?,
                Item::ToBe(slot) => value_to_be(&slot, &name)?,
                Item::Variable(variable) => {
                    let bytes = values.next().unwrap_or_default();
                    HostArray::from_device(bytes, variable.shape(), variable.dtype())
                }
            };
            Ok(NamedArray::new(name, array))
        };
        self.entries.into_iter().map(array).collect()
    }

    /// The names, after a check that all are different. A model of layers without weights has none.
    pub(crate) fn names(&self, call: &str, kind: &str) -> Result<Names<'_>> {
        let names = Names::new(self.entries.iter().map(|(name, _)| &**name));
        match names.twice {
            None => Ok(names),
            Some(name) => Err(Error::Checkpoint(message!(
                "{call}: two parts of the {kind} are called '{name}'. Give one of them another name."
            ))),
        }
    }
}

/// The value that a variable called `name` will get when it is created.
pub(crate) fn value_to_be(slot: &Slot, name: &str) -> Result<HostArray<'static>> {
    slot.left().map(|left| left.array).ok_or_else(|| {
        Error::Checkpoint(message!(
            "save: '{name}' has no value yet, as its layer has seen no input. Call the model once, or use build."
        ))
    })
}

/// The array of a state called `name`.
pub(crate) fn state_array(
    name: &str,
    dtype: HostDType,
    shape: Option<&[usize]>,
    bytes: Option<Result<Vec<u8>>>,
) -> Result<HostArray<'static>> {
    let bytes = bytes.unwrap_or_else(|| Ok(Vec::new()));
    let array = bytes.and_then(|bytes| match shape {
        Some(shape) => HostArray::new(dtype, shape, bytes),
        None => HostArray::new(dtype, [bytes.len()], bytes),
    });
    array.map_err(|error| error.reworded(|text| message!("save: '{name}': {text}")))
}

/// Finds the indices of names in a list. An index of numbers, which a web page needs anyway, is less code than a map of
/// names.
pub(crate) struct Names<'a> {
    list: Vec<&'a str>,
    /// Maps a name's hash, or the next free number, to its index.
    places: HashIndex,
    /// A name that occurs twice in the list; its first index counts.
    twice: Option<&'a str>,
}

impl<'a> Names<'a> {
    pub(crate) fn new(names: impl Iterator<Item = &'a str>) -> Self {
        let list: Vec<&str> = names.collect();
        let mut found = Names { list, places: HashIndex::default(), twice: None };
        for at in 0..found.list.len() {
            let name = found.list[at];
            match found.find(name) {
                Ok(_) => found.twice = found.twice.or(Some(name)),
                Err(free) => drop(found.places.insert(free, at as u32)),
            }
        }
        found
    }

    pub(crate) fn place(&self, name: &str) -> Option<usize> {
        self.find(name).ok()
    }

    /// The index of `name`, or the free number for inserting it.
    fn find(&self, name: &str) -> Result<usize, u64> {
        let mut hash = hash_bytes(name.as_bytes());
        while let Some(&place) = self.places.get(&hash) {
            if self.list[place as usize] == name {
                return Ok(place as usize);
            }
            hash = hash.wrapping_add(1);
        }
        Err(hash)
    }
}

/// A value for a slot that does not exist yet.
struct SlotValue<'a> {
    /// The index of its owner among the owners and of its variable among the entries.
    owner: usize,
    of: usize,
    /// The variable's identity.
    id: u64,
    /// The owner's name for it.
    slot: &'a str,
    /// The index of its array among those given.
    given: usize,
}

impl<'a> SlotValue<'a> {
    /// Splits an array's name into the owner's path, the slot's name and the variable's.
    fn find(
        name: &'a str,
        given: usize,
        all: &Everything,
        owners: &Names<'_>,
        names: &Names<'_>,
    ) -> Option<Self> {
        let split = |owner: &str, rest: &'a str| {
            let (slot, of) = rest.split_once('/')?;
            let (owner, of) = (owners.place(owner)?, names.place(of)?);
            Some(SlotValue { owner, of, id: all.entries[of].1.id()?, slot, given })
        };
        let below =
            name.match_indices('/').filter_map(|(at, _)| split(&name[..at], &name[at + 1..]));
        split("", name).into_iter().chain(below).min_by_key(|value| value.owner)
    }
}

impl Item {
    fn id(&self) -> Option<u64> {
        match self {
            Item::Variable(variable) => Some(variable.id()),
            Item::ToBe(slot) => Some(slot.id()),
            Item::State { .. } => None,
        }
    }
}

/// Arrays by name, each fetched when a part needs it.
pub(crate) struct Given<'a, 'b> {
    pub(crate) names: Vec<&'a str>,
    /// The array at an index in `names`.
    pub(crate) get: &'b mut dyn FnMut(usize) -> Result<NamedArray<'a>>,
    /// Whether a part of this name stays unchanged if there is no array for it.
    pub(crate) may_lack: &'b dyn Fn(&str) -> bool,
    /// Whether an array of another dtype is accepted if every value is preserved.
    pub(crate) converts: bool,
}

/// Sets every part of `root` to the value under its name. After an error nothing has changed.
pub(crate) fn set(root: &dyn Trackable, scope: Scope, arrays: &[NamedArray<'_>]) -> Result<()> {
    set_with(root, scope, arrays, &|_| false)
}

/// As [`set`]; parts whose names `may_lack` stay unchanged if there is no value for them.
pub(crate) fn set_with(
    root: &dyn Trackable,
    scope: Scope,
    arrays: &[NamedArray<'_>],
    may_lack: &dyn Fn(&str) -> bool,
) -> Result<()> {
    let names = arrays.iter().map(|array| &*array.name).collect();
    let mut get = |at: usize| Ok(NamedArray::new(&*arrays[at].name, arrays[at].array.view()));
    set_given(root, scope, Given { names, get: &mut get, may_lack, converts: false })
}

/// As [`set`], for arrays that are fetched one after another.
pub(crate) fn set_given(root: &dyn Trackable, scope: Scope, arrays: Given<'_, '_>) -> Result<()> {
    let all = Everything::forms(root, scope);
    let (call, kind) = (scope.call(), root.kind());
    let [lacks, hold, holds] = scope.words();
    let names = all.names(call, kind)?;
    let owners = Names::new(all.owners.iter().map(|path| &**path));
    let given = Names::new(arrays.names.iter().copied());
    let mut slots: Vec<Vec<SlotValue<'_>>> = Vec::new();
    slots.resize_with(all.entries.len(), Vec::new);
    for (place, name) in arrays.names.iter().enumerate() {
        if names.place(name).is_some() {
            continue;
        }
        let Some(value) = SlotValue::find(name, place, &all, &owners, &names) else {
            return Err(Error::Checkpoint(message!(
                "{call}: {holds} '{name}' {:?}, and the {kind} has no such variable; it has {}. Give the layers the names \
                 that they had when this was saved.",
                (arrays.get)(place)?.array.shape(),
                list(all.entries.iter().map(|(name, _)| &**name))
            )));
        };
        slots[value.of].push(value);
    }
    // Each owner's slots are in the order of their variables, in which its steps make them.
    let mut owned: Vec<Vec<(SlotValue<'_>, NamedArray<'static>)>> = Vec::new();
    owned.resize_with(all.owners.len(), Vec::new);
    for value in slots.into_iter().flatten() {
        let array = (arrays.get)(value.given)?.into_owned();
        owned[value.owner].push((value, array));
    }
    // All checks come before any change.
    let (mut values, mut left) = (Vec::new(), Vec::new());
    let (mut states, mut state_names) = (Vec::new(), Vec::new());
    for (name, item) in &all.entries {
        let Some(place) = given.place(name) else {
            if (arrays.may_lack)(name) {
                continue;
            }
            let form = match item {
                Item::Variable(variable) => format!(" {:?}", variable.shape()),
                Item::State { dtype, shape: Some(shape), .. } => {
                    format!(" {shape:?} of {}", dtype.file_name())
                }
                _ => String::new(),
            };
            return Err(Error::Checkpoint(message!(
                "{call}: {lacks} '{name}'{form}; {hold} {}. Take a file that the same {kind} has saved.",
                list(arrays.names.iter().copied())
            )));
        };
        let array = (arrays.get)(place)?;
        match item {
            Item::Variable(variable) => {
                let (shape, dtype) = (variable.shape(), variable.dtype());
                let value = match arrays.converts {
                    true => to_tensor_if_exact(&array, shape, dtype)?,
                    false => array.to_tensor(shape, dtype)?,
                };
                values.push((variable, value));
            }
            Item::ToBe(slot) => left.push((slot, array.into_owned())),
            Item::State { dtype, shape, .. } => {
                let array = array.array;
                if array.dtype() != *dtype || shape.is_some_and(|shape| array.shape() != shape) {
                    return Err(Error::Checkpoint(message!(
                        "{call}: '{name}' is {:?} of {}, and {:?} of {} was saved there. Take a file that the same {kind} has \
                         saved.",
                        array.shape(),
                        array.dtype().file_name(),
                        shape.unwrap_or_default(),
                        dtype.file_name()
                    )));
                }
                states.push(array);
                state_names.push(&**name);
            }
        }
    }
    set_states(root, call, &state_names, &states)?;
    for (slot, array) in left {
        // If another thread has made the variable in the meantime, it gets the value like the others.
        if slot.leave(array.clone()) {
            continue;
        }
        if let Some(variable) = slot.variable() {
            values.push((variable, array.to_tensor(variable.shape(), variable.dtype())?));
        }
    }
    values.iter().try_for_each(|(variable, value)| variable.assign(value))?;
    let mut owned = owned.into_iter().map(Some).collect::<Vec<_>>();
    let mut visit = |path: &str, leaf: Leaf<'_>| {
        let Leaf::Slots(owner) = leaf else { return };
        let taken = owners.place(path).and_then(|place| owned[place].take());
        for (value, array) in taken.unwrap_or_default() {
            owner.leave(value.id, value.slot, array);
        }
    };
    root.track(&mut Parts::new(&mut visit));
    Ok(())
}

/// Restores the states of these names from their bytes.
fn set_states(
    root: &dyn Trackable,
    call: &str,
    names: &[&str],
    states: &[HostArray<'_>],
) -> Result<()> {
    let state_names = Names::new(names.iter().copied());
    // States that may reject their bytes are first.
    for varying in [true, false] {
        let mut refused = Ok(());
        let mut visit = |path: &str, leaf: Leaf<'_>| {
            let Leaf::State(state) = leaf else { return };
            let name = if path.is_empty() { "variable" } else { path };
            if let Some(place) = state_names.place(name) {
                if refused.is_ok() && state.form().1.is_none() == varying {
                    refused = state.set(states[place].bytes()).map_err(|error| {
                        error.reworded(|text| message!("{call}: '{name}': {text}"))
                    });
                }
            }
        };
        root.track(&mut Parts::new(&mut visit));
        refused?;
    }
    Ok(())
}

/// The values of `variables` in order, on the host.
pub(super) async fn weights(variables: Vec<Variable>) -> Result<Vec<ndarray::ArrayD<f32>>> {
    // Holding the tensors preserves the values of one moment, however long reading takes.
    let now: Vec<Tensor> = variables.iter().map(|v| v.peek().detached()).collect();
    let mut weights = Vec::with_capacity(now.len());
    for value in now {
        weights.push(value.cast(DType::F32)?.to_array_async::<f32>().await?);
    }
    Ok(weights)
}

/// Sets all variables to these values in order.
pub(super) fn set_weights(root: &dyn Trackable, weights: &[ndarray::ArrayD<f32>]) -> Result<()> {
    let all = Everything::forms(root, Scope::Variables);
    if all.entries.len() != weights.len() {
        return Err(Error::Checkpoint(message!(
            "set_weights: the {} has {} variables, and {} arrays were given. Take the arrays of get_weights of one with \
             the same layers.",
            root.kind(),
            all.entries.len(),
            weights.len()
        )));
    }
    let (mut values, mut left) = (Vec::new(), Vec::new());
    for ((name, item), array) in all.entries.iter().zip(weights) {
        let Item::Variable(variable) = item else {
            left.push((item, name, array));
            continue;
        };
        if variable.shape() != array.shape() {
            return Err(Error::Checkpoint(message!(
                "set_weights: the variable '{name}' is {:?} and its array {:?}. Take the arrays of get_weights of one \
                 with the same layers, in the same order.",
                variable.shape(),
                array.shape()
            )));
        }
        values.push((variable, Tensor::from_array(array)?.cast(variable.dtype())?));
    }
    for (item, name, array) in left {
        if let Item::ToBe(slot) = item {
            slot.leave(NamedArray::new(name.clone(), array.clone().into()));
        }
    }
    values.iter().try_for_each(|(variable, value)| variable.assign(value))
}

/// `name` below `path`.
fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_string() } else { format!("{path}/{name}") }
}

/// A few names for a message.
pub(super) fn list<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(6);
    let shown: Vec<String> = names.take(6).map(|name| format!("'{name}'")).collect();
    match (shown.is_empty(), more) {
        (true, _) => "nothing".to_string(),
        (_, 0) => shown.join(", "),
        _ => format!("{} and {more} more", shown.join(", ")),
    }
}
