//! An optimizer's state in Keras's files: its count of steps, learning rate and slots, as `optimizer/vars/N`.
//!
//! Source: `keras.src.optimizers.base_optimizer`: `save_own_variables` numbers the optimizer's list of variables.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, Result, message};
use crate::hdf5::File;
use crate::host_array::HostArray;
use crate::keras::optimizers::{LossScaleOptimizer, Optimizer};
use crate::trackable::arrays::{Everything, Scope, set_with};
use crate::trackable::slot_names::{group, unlisted};
use crate::trackable::{Class, NamedArray, Parts, Role, Trackable};

/// The model and its optimizer, as a checkpoint names them.
struct Whole<'a> {
    model: &'a dyn Trackable,
    optimizer: &'a dyn Optimizer,
}

impl Trackable for Whole<'_> {
    fn track(&self, parts: &mut Parts<'_>) {
        parts.add("model", self.model);
        parts.add(OPTIMIZER, self.optimizer);
    }
}

const OPTIMIZER: &str = "optimizer";
const ITERATIONS: &str = "optimizer/iterations";
const LEARNING_RATE: &str = "optimizer/learning_rate";

/// What Keras stores under one number.
#[derive(Debug, Clone, PartialEq)]
enum Entry {
    /// The value of this name.
    Value(String),
    /// A 0 in place of what a variable of this shape has none of.
    Zero,
}

/// The step count, and the learning rate unless a schedule decides it: all that Keras stores of an optimizer that was never called.
fn numbers(all: &Everything) -> Vec<Entry> {
    let has = |wanted: &&str| all.entries().any(|(name, _)| name == *wanted);
    let names = [ITERATIONS, LEARNING_RATE].into_iter().filter(has);
    names.map(|name| Entry::Value(name.to_string())).collect()
}

/// The entries in Keras's order: the numbers, the slots, and what else the optimizer has.
fn order(all: &Everything, class: Option<&'static Class>) -> Vec<Entry> {
    let mut entries = numbers(all);
    let listed = all.listed.iter().filter(|(owner, _)| owner == OPTIMIZER);
    let listed = listed.flat_map(|(_, names)| names).enumerate();
    let of: HashMap<&str, usize> = listed.map(|(number, name)| (&**name, number)).collect();
    let mut slots: Vec<(usize, usize, Entry)> = Vec::with_capacity(all.kept.len());
    for kept in all.kept.iter().filter(|kept| kept.owner == OPTIMIZER) {
        let (group, number) = (group(class, &kept.slot), of[&*kept.of]);
        let first = slots.last().is_none_or(|(_, last, _)| *last != number);
        if first && kept.slot == "velocity" && unlisted(class).contains(&&*kept.slot) {
            slots.extend([(group, number, Entry::Zero), (group, number, Entry::Zero)]);
        }
        slots.push((group, number, Entry::Value(kept.name.clone())));
    }
    // The slots of a variable stay together within a group.
    slots.sort_by_key(|(group, number, _)| (*group, *number));
    entries.extend(slots.into_iter().map(|(.., entry)| entry));
    let kept: HashSet<&str> = all.kept.iter().map(|kept| &*kept.name).collect();
    let others = all.entries().map(|(name, _)| name).filter(|name| {
        let own = name.strip_prefix(OPTIMIZER).is_some_and(|rest| rest.starts_with('/'));
        own && ![ITERATIONS, LEARNING_RATE].contains(name) && !kept.contains(name)
    });
    entries.extend(others.map(|name| Entry::Value(name.to_string())));
    entries
}

/// Whether Keras's list consists of these entries: an optimizer inside of another has a list of its own.
fn is_listed(class: Option<&Class>) -> bool {
    class.is_none_or(|class| class.role != Role::OuterOptimizer)
}

/// What scales the loss for an optimizer.
pub(super) type Scaling = LossScaleOptimizer<Arc<dyn Optimizer>>;

const COUNTER: &str = "step_counter";
const SCALE: &str = "dynamic_scale";
/// The numbers that Keras's LossScaleOptimizer has before those of the optimizer inside.
const OWN: usize = 4;

/// The optimizer's variables at their paths in a file; none of an optimizer that contains another. With `scaling`, the file has them
/// as those of the optimizer inside, and the scale.
pub(super) async fn state(
    model: &dyn Trackable,
    optimizer: &dyn Optimizer,
    scaling: Option<&Scaling>,
) -> Result<Vec<(String, HostArray<'static>)>> {
    let class = optimizer.class();
    if !is_listed(class) {
        return Ok(Vec::new());
    }
    let all = Everything::collect(&Whole { model, optimizer }, Scope::Checkpoint);
    let entries = order(&all, class);
    let arrays = all.below(OPTIMIZER).into_arrays(OPTIMIZER).await?;
    let mut of: HashMap<String, HostArray<'static>> =
        arrays.into_iter().map(|array| (array.name.into_owned(), array.array)).collect();
    let array = |entry: Entry| match &entry {
        Entry::Value(name) => Some(of.remove(name)?.signed()),
        Entry::Zero => Some(ndarray::arr0(0f32).into()),
    };
    let arrays: Vec<HostArray<'static>> = entries.into_iter().filter_map(array).collect();
    let Some(scaling) = scaling else { return Ok(numbered("optimizer", 0, arrays)) };
    let own = Everything::collect(scaling, Scope::Checkpoint);
    let own = own.only(&|name| [COUNTER, SCALE].contains(&name)).into_arrays("LossScaleOptimizer");
    let mut own: HashMap<String, HostArray<'static>> =
        own.await?.into_iter().map(|array| (array.name.into_owned(), array.array)).collect();
    // Keras's optimizer has a count of steps and a learning rate that it does not use.
    let mut all = vec![ndarray::arr0(0i64).into(), ndarray::arr0(0f32).into()];
    all.extend([COUNTER, SCALE].into_iter().filter_map(|name| own.remove(name)));
    let mut found = numbered("optimizer", 0, all);
    found.extend(numbered("optimizer", OWN, arrays.clone()));
    found.extend(numbered("optimizer/inner_optimizer", 0, arrays));
    Ok(found)
}

fn numbered(
    owner: &str,
    first: usize,
    arrays: Vec<HostArray<'static>>,
) -> Vec<(String, HostArray<'static>)> {
    let place = |(at, array)| (format!("{owner}/vars/{at}"), array);
    (first..).zip(arrays).map(place).collect()
}

/// The places of an optimizer's variables in a file, and those of the optimizer around it.
fn stored(file: &File<'_>) -> Result<(Vec<String>, Vec<String>)> {
    let list = |owner: &str| -> Vec<String> {
        let paths = (0..).map(|at| format!("{owner}/vars/{at}"));
        paths.take_while(|path| file.get(path).is_some()).collect()
    };
    // An old file has the names of the variables in their order.
    if let Some(node) = file.get("optimizer_weights") {
        let names = file.texts(node, "weight_names")?.unwrap_or_default();
        let mut paths: Vec<String> =
            names.iter().map(|name| format!("optimizer_weights/{name}")).collect();
        let scales = names.iter().take(OWN).any(|name| name.ends_with(SCALE));
        let inner = if scales { paths.split_off(OWN.min(paths.len())) } else { Vec::new() };
        return Ok(if scales { (inner, paths) } else { (paths, inner) });
    }
    let inner = list("optimizer/inner_optimizer");
    let own = list("optimizer");
    Ok(if inner.is_empty() { (own, inner) } else { (inner, own) })
}

/// Sets the scale of the loss to that in a file.
fn restore_scale(file: &File<'_>, scaling: &Scaling, own: &[String]) -> Result<()> {
    let mut arrays = Vec::new();
    for (name, path) in [COUNTER, SCALE].into_iter().zip(own.iter().skip(2)) {
        let Some(node) = file.get(path) else { continue };
        let value = file.values(node)?.to_f64().and_then(|value| value.first().copied());
        let value = value.unwrap_or_default();
        // The counter has 64 bits there.
        let array = match name {
            COUNTER => ndarray::arr0(value as i32).into(),
            _ => ndarray::arr0(value as f32).into(),
        };
        arrays.push(NamedArray::new(name, array));
    }
    set_with(scaling, Scope::Checkpoint, &arrays, &|_| true)
}

/// Restores the state that the weights of a file hold, if they hold any.
pub(super) fn restore(
    model: &dyn Trackable,
    optimizer: &dyn Optimizer,
    scaling: Option<&Scaling>,
    weights: &[u8],
    path: &Path,
) -> Result<()> {
    let file = File::parse(weights, path)?;
    let (paths, around) = stored(&file)?;
    let stored = |at: usize| file.get(paths.get(at)?);
    let count = paths.len();
    if count == 0 {
        return Ok(());
    }
    if let Some(scaling) = scaling {
        restore_scale(&file, scaling, &around)?;
    }
    let (class, whole) = (optimizer.class(), Whole { model, optimizer });
    let name = class.map_or_else(|| optimizer.name(), |class| class.name().to_string());
    if !is_listed(class) {
        return Err(Error::Data(message!(
            "{}: load_model: the file has the state of the optimizer {name}, which cannot be restored. Load the model with \
             compile(false), and compile it.",
            path.display()
        )));
    }
    let mut entries = numbers(&Everything::forms(&whole, Scope::Checkpoint));
    if count != entries.len() {
        optimizer.build(model)?;
        entries = order(&Everything::forms(&whole, Scope::Checkpoint), class);
    }
    if count != entries.len() {
        // A layer was frozen or thawed after the steps of the optimizer. Keras leaves the state out, too.
        crate::warnings::warn_user!(
            "{}: load_model: the file has {count} variables of the optimizer, and {name} has {} for this model, so its state is \
             not loaded: its steps begin again.",
            path.display(),
            entries.len()
        );
        return Ok(());
    }
    let mut arrays = Vec::with_capacity(count);
    for (at, entry) in entries.into_iter().enumerate() {
        if let (Entry::Value(name), Some(node)) = (entry, stored(at)) {
            let array = file.values(node)?;
            // The step count is unsigned here.
            let array = if name == ITERATIONS { array.unsigned() } else { array };
            arrays.push(NamedArray::new(name, array));
        }
    }
    set_with(&whole, Scope::Checkpoint, &arrays, &|_| true)
}
