//! Matches the layers of a model with those of a file.
//!
//! wgrad's files identify a layer by its name. Keras's identify it by its number in the model, so that a model with other
//! layers would get the wrong values: a number counts only if the layers' weights, their shapes and their names do not
//! contradict it.

use std::collections::{HashMap, HashSet};

use super::graph::{Graph, NumberedLayer};
use super::saved::{Content, Form, Saved};
use crate::error::{Error, Result, message};

/// A layer, and the object of the file that it was saved from.
pub(super) type Pair = (usize, usize);

/// The layers of a model and the objects of a file's model.
pub(super) struct Layers<'a, 'b> {
    pub(super) graph: &'b Graph,
    pub(super) saved: &'b Saved<'a>,
    /// Whether each part, or a part of it, has values.
    pub(super) valued: &'b [bool],
    /// The known shapes of the program's values.
    pub(super) shapes: &'b HashMap<&'b str, &'b [usize]>,
}

/// How well a layer matches one of a file.
enum Fit {
    /// It has the same weights, with the same shapes as far as they are known.
    Whole,
    /// One has weights that the other does not have.
    Partly,
    /// The shapes of a weight differ.
    Not(String),
}

impl<'a> Layers<'a, '_> {
    /// The pairs of the model at `part` and the object `object`.
    pub(super) fn pairs(&self, part: usize, object: usize) -> Result<Vec<Pair>> {
        let layers = self.graph.nodes[part].layers.iter();
        let ours: Vec<&NumberedLayer> = layers.filter(|layer| self.valued[layer.node]).collect();
        let named = |layer: &&&NumberedLayer| self.saved.child(object, &layer.name).is_some();
        match ours.iter().any(|layer| named(&layer)) {
            true => self.by_names(part, object, &ours),
            false => self.by_numbers(part, object, &ours),
        }
    }

    /// For a file of wgrad. A renamed layer is identified by its position if it is the only candidate.
    fn by_names(&self, part: usize, object: usize, ours: &[&NumberedLayer]) -> Result<Vec<Pair>> {
        let mut pairs: Vec<Pair> = Vec::with_capacity(ours.len());
        let (mut taken, mut left) = (HashSet::new(), Vec::new());
        for layer in ours {
            match self.saved.child(object, &layer.name) {
                Some(found) => {
                    taken.insert(found);
                    pairs.push((layer.node, found));
                }
                None => left.push(*layer),
            }
        }
        if left.is_empty() {
            return Ok(pairs);
        }
        let theirs = self.saved.numbered(object, "layer_with_weights-");
        let free: Vec<(usize, usize)> =
            theirs.into_iter().filter(|(_, found)| !taken.contains(found)).collect();
        let forms: Vec<Content<'_>> =
            free.iter().map(|(_, found)| self.saved.content(*found)).collect();
        let mut alike: HashMap<&[Form], usize> = HashMap::new();
        forms.iter().for_each(|content| *alike.entry(&content.form).or_default() += 1);
        for layer in left {
            let Some(number) = layer.with_weights else { continue };
            let Ok(at) = free.binary_search_by_key(&number, |(number, _)| *number) else {
                continue;
            };
            let found = free[at].1;
            if !matches!(self.fit(layer.node, found), Fit::Whole) {
                continue;
            }
            if alike[&*forms[at].form] > 1 {
                let same = (0..free.len())
                    .find(|other| *other != at && forms[*other].form == forms[at].form);
                let [one, other] = [at, same.unwrap_or(at)].map(|at| self.name_at(free[at].1));
                return Err(self.ambiguous(part, layer, &one, &other));
            }
            pairs.push((layer.node, found));
        }
        Ok(pairs)
    }

    /// For a file of Keras, or of wgrad if all layers have been renamed.
    fn by_numbers(&self, part: usize, object: usize, ours: &[&NumberedLayer]) -> Result<Vec<Pair>> {
        let with_weights = self.saved.numbered(object, "layer_with_weights-");
        let (theirs, mut ours): (Vec<_>, Vec<(usize, &NumberedLayer)>) = if with_weights.is_empty()
        {
            let below = self.saved.child(object, "_functional").unwrap_or(object);
            let list = self.saved.child(below, "_operations");
            let all = list.map_or_else(Vec::new, |list| self.saved.numbered(list, ""));
            (all, ours.iter().map(|layer| (layer.number, *layer)).collect())
        } else {
            let number = |layer: &&&NumberedLayer| layer.with_weights;
            let ours = ours.iter().filter_map(|layer| Some((number(&layer)?, *layer)));
            (with_weights, ours.collect())
        };
        let theirs: Vec<(usize, usize)> =
            theirs.into_iter().filter(|(_, found)| self.saved.is_valued(*found)).collect();
        ours.sort_by_key(|(number, _)| *number);
        let exact = theirs.iter().map(|(number, _)| number).eq(ours.iter().map(|(n, _)| n));
        let mut pairs: Vec<(&NumberedLayer, usize)> = match ours.len() == theirs.len() {
            true => {
                ours.iter().zip(&theirs).map(|((_, layer), (_, found))| (*layer, *found)).collect()
            }
            // One model is a part of the other.
            false => {
                let numbers: HashMap<usize, usize> = theirs.iter().copied().collect();
                let found = ours.iter().map(|(number, layer)| (*layer, numbers.get(number)));
                found.filter_map(|(layer, found)| Some((layer, *found?))).collect()
            }
        };
        if !exact {
            for (layer, found) in &pairs {
                let what = match self.fit(layer.node, *found) {
                    Fit::Whole => continue,
                    Fit::Not(what) => what,
                    Fit::Partly => "they do not have the same weights".to_string(),
                };
                return Err(Error::Checkpoint(message!(
                    "restore: '{}' would be {} of the checkpoint by its number, but {what}; the model has {} layers \
                     with weights, and the checkpoint's has {}, which have other numbers. Build the model from the \
                     same layers.",
                    self.path(part, layer),
                    self.name_at(*found),
                    ours.len(),
                    theirs.len()
                )));
            }
        }
        self.ask_names(part, exact, &mut pairs)?;
        Ok(pairs.into_iter().map(|(layer, found)| (layer.node, found)).collect())
    }

    /// If layers have the same weights, their names must not contradict their numbers.
    fn ask_names(
        &self,
        part: usize,
        exact: bool,
        pairs: &mut [(&NumberedLayer, usize)],
    ) -> Result<()> {
        let contents: Vec<Content<'a>> =
            pairs.iter().map(|(_, found)| self.saved.content(*found)).collect();
        let names = names_of(&contents);
        let mut groups: HashMap<&[Form], Vec<usize>> = HashMap::new();
        for (at, content) in contents.iter().enumerate() {
            groups.entry(&content.form).or_default().push(at);
        }
        let mut groups: Vec<Vec<usize>> = groups.into_values().filter(|g| g.len() > 1).collect();
        groups.sort_unstable();
        for group in groups {
            let theirs: Option<Vec<&str>> = group.iter().map(|at| names[*at]).collect();
            let ours: Vec<&str> = group.iter().map(|at| &*pairs[*at].0.name).collect();
            let first = group[0];
            let unclear = |at: usize, other: usize| {
                let [one, other] = [at, other].map(|at| self.name_at(pairs[at].1));
                self.ambiguous(part, pairs[at].0, &one, &other)
            };
            let Some(theirs) = theirs else {
                if exact {
                    continue;
                }
                return Err(unclear(first, group[1]));
            };
            let places: HashMap<&str, usize> =
                theirs.iter().enumerate().map(|(at, name)| (*name, at)).collect();
            let found: Option<Vec<usize>> =
                ours.iter().map(|name| places.get(name).copied()).collect();
            if let Some(found) = found.filter(|_| places.len() == ours.len()) {
                let Some(at) = (0..found.len()).find(|at| found[*at] != *at) else { continue };
                // Names that a program has set distinguish the layers; numbered default names do not.
                if ours.iter().any(|name| numbered(name).is_some()) || is_counted(&ours) {
                    return Err(unclear(group[at], group[found[at]]));
                }
                let objects: Vec<usize> = group.iter().map(|at| pairs[*at].1).collect();
                for (at, place) in group.iter().zip(found) {
                    pairs[*at].1 = objects[place];
                }
                continue;
            }
            match (order(&ours), order(&theirs)) {
                (Some(ours), Some(theirs)) if ours == theirs => {}
                (Some(ours), Some(theirs)) => {
                    let at = (0..ours.len()).find(|at| ours[*at] != theirs[*at]).unwrap_or(0);
                    let by_name = theirs.iter().position(|rank| *rank == ours[at]).unwrap_or(at);
                    return Err(unclear(group[at], group[by_name]));
                }
                _ if exact => {}
                _ => return Err(unclear(first, group[1])),
            }
        }
        Ok(())
    }

    /// How well a layer of the program matches one of the file.
    fn fit(&self, part: usize, object: usize) -> Fit {
        let (mut parts, mut objects) = (HashSet::from([part]), HashSet::from([object]));
        let root = (part, object);
        let (mut open, mut values) = (vec![root], 0);
        while let Some((part, object)) = open.pop() {
            let node = &self.graph.nodes[part];
            if let Some(value) = &node.value {
                let Some(theirs) = self.saved.shape_of(object) else { continue };
                values += 1;
                if let Some(ours) = self.shapes.get(&**value).filter(|ours| ***ours != *theirs) {
                    return Fit::Not(format!("'{value}' is {ours:?} here and {theirs:?} there"));
                }
            }
            for (name, child) in &node.children {
                if let Some(found) = self.saved.child(object, name) {
                    if !parts.contains(child) && objects.insert(found) {
                        parts.insert(*child);
                        open.push((*child, found));
                    }
                }
            }
        }
        let (ours, theirs) = (self.values_below(root.0), self.saved.content(root.1).form.len());
        if ours == values && theirs == values { Fit::Whole } else { Fit::Partly }
    }

    /// The number of values of a part.
    fn values_below(&self, part: usize) -> usize {
        let (mut seen, mut open, mut count) = (HashSet::from([part]), vec![part], 0);
        while let Some(part) = open.pop() {
            count += usize::from(self.graph.nodes[part].value.is_some());
            let children = self.graph.nodes[part].children.iter();
            open.extend(children.map(|(_, child)| *child).filter(|child| seen.insert(*child)));
        }
        count
    }

    fn ambiguous(&self, part: usize, layer: &NumberedLayer, one: &str, other: &str) -> Error {
        Error::Checkpoint(message!(
            "restore: '{}' may be {one} of the checkpoint or {other}: both have weights of the same shapes, and the layers' \
             numbers and names do not agree on one of them. Give the layers the names that they have in the checkpoint, in \
             the same order.",
            self.path(part, layer)
        ))
    }

    /// The path of a layer.
    fn path(&self, part: usize, layer: &NumberedLayer) -> String {
        let path = self.graph.path(part);
        if path.is_empty() { layer.name.clone() } else { format!("{path}/{}", layer.name) }
    }

    /// The name of an object in the file.
    fn name_at(&self, object: usize) -> String {
        let content = self.saved.content(object);
        let key = content.full_names.first().copied().unwrap_or("a layer without a name");
        format!("that of '{key}'")
    }
}

/// The names of layers, which follow the common prefix in the names of their values.
fn names_of<'a>(contents: &[Content<'a>]) -> Vec<Option<&'a str>> {
    let mut all = contents.iter().flat_map(|content| &content.full_names);
    let first: Vec<&str> = all.next().map_or_else(Vec::new, |name| name.split('/').collect());
    let common = all.fold(first.len(), |common, name| {
        let same = first.iter().zip(name.split('/')).take_while(|(a, b)| *a == b);
        same.count().min(common)
    });
    let name = |content: &Content<'a>| {
        let mut names = content.full_names.iter().map(|name| name.split('/').nth(common));
        let name = names.next()??;
        names.all(|other| other == Some(name)).then_some(name)
    };
    contents.iter().map(name).collect()
}

/// Splits a name that ends in a number, like the numbered default names: `dense_1`.
fn numbered(name: &str) -> Option<(&str, usize)> {
    let (base, number) = name.rsplit_once('_')?;
    Some((base, number.parse().ok()?))
}

/// Whether names are numbered, `dense`, `dense_1`.
fn is_counted(names: &[&str]) -> bool {
    order(names).is_some()
}

/// The ranks of numbered names with the same base.
fn order(names: &[&str]) -> Option<Vec<usize>> {
    let split = |name: &&str| numbered(name).map_or((name.to_string(), 0), |(b, n)| (b.into(), n));
    let split: Vec<(String, usize)> = names.iter().map(split).collect();
    if split.iter().any(|(base, _)| *base != split[0].0) {
        return None;
    }
    let mut ranks: Vec<usize> = (0..split.len()).collect();
    ranks.sort_by_key(|at| split[*at].1);
    let mut order = vec![0; ranks.len()];
    ranks.into_iter().enumerate().for_each(|(rank, at)| order[at] = rank);
    Some(order)
}
