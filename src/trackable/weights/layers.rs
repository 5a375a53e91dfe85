//! [`Layers`]: the layers of a model by path, with the properties on which other libraries' names and layouts depend.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::trackable::parts::{Described, Leaf, PartType, Parts};
use crate::trackable::{Class, Positions, Role, Trackable, shape_text};

/// All parts of a root.
pub(crate) struct Layers {
    /// In the order of the walk.
    pub(crate) list: Vec<Layer>,
    places: BTreeMap<String, usize>,
    /// The last layer in each.
    last: BTreeMap<String, usize>,
    /// The results of [`Layers::flattened`].
    flattened: RefCell<BTreeMap<String, Flattened>>,
}

/// The sizes that a `Flatten` combined into one, if there is one, or the path of one that has not seen an input.
type Flattened = Result<Option<Vec<usize>>, String>;

/// A part of a model that is not a variable.
pub(crate) struct Layer {
    /// Empty for the root.
    pub(crate) path: String,
    pub(crate) kind: &'static str,
    pub(crate) class: Option<&'static Class>,
    /// Its own variables: their names relative to the path, and their shapes if they are known.
    pub(crate) weights: Vec<(String, Option<Vec<usize>>)>,
    described: Option<Described>,
}

/// The path of the part that contains `path`, and its name there.
pub(crate) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_string() } else { format!("{path}/{name}") }
}

impl Layers {
    pub(crate) fn collect(root: &dyn Trackable) -> Self {
        let mut list = vec![Layer {
            path: String::new(),
            kind: root.kind(),
            class: root.class(),
            weights: Vec::new(),
            described: None,
        }];
        let mut found: Vec<(String, Option<Vec<usize>>)> = Vec::new();
        let mut visit = |path: &str, leaf: Leaf<'_>| match leaf {
            Leaf::Part { part_type, described, .. } => {
                let described = described.map(|described| described());
                let (path, weights) = (path.to_string(), Vec::new());
                let PartType { kind, class } = part_type();
                list.push(Layer { path, kind, class, weights, described });
            }
            Leaf::Variable(variable) => {
                found.push((path.to_string(), Some(variable.shape().to_vec())));
            }
            Leaf::ToBe(_) => found.push((path.to_string(), None)),
            Leaf::Penalty(..) | Leaf::Slots(_) | Leaf::State(_) | Leaf::Forget(_) => {}
        };
        root.track(&mut Parts::new(&mut visit));
        // A variable is a part, too.
        let variables: BTreeMap<&str, ()> = found.iter().map(|(path, _)| (&**path, ())).collect();
        list.retain(|layer| layer.path.is_empty() || !variables.contains_key(&*layer.path));
        drop(variables);
        let places: BTreeMap<String, usize> =
            list.iter().enumerate().map(|(at, layer)| (layer.path.clone(), at)).collect();
        for (path, shape) in found {
            let (mut owner, mut name) = split(&path);
            // Lists and options are not separate parts.
            while !places.contains_key(owner) {
                owner = split(owner).0;
                name = path.get(owner.len() + usize::from(!owner.is_empty())..).unwrap_or(name);
            }
            list[places[owner]].weights.push((name.to_string(), shape));
        }
        let last = list.iter().enumerate();
        let last = last.map(|(at, layer)| (split(&layer.path).0.to_string(), at)).collect();
        Layers { list, places, last, flattened: RefCell::default() }
    }

    pub(crate) fn get(&self, path: &str) -> Option<&Layer> {
        self.places.get(path).map(|at| &self.list[*at])
    }

    pub(crate) fn class(&self, path: &str) -> Option<&'static Class> {
        self.get(path)?.class
    }

    /// The direct child layers of the one at `path`.
    #[cfg(feature = "keras-files")]
    pub(crate) fn inside<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a Layer> {
        let begin = join(path, "");
        let below = self.places.range(begin.clone()..);
        let below = below.take_while(move |(inner, _)| inner.starts_with(&begin));
        below.map(|(_, at)| &self.list[*at]).filter(move |inner| split(&inner.path).0 == path)
    }

    /// The layer whose result is the input of the one at `path`, if it is a single one.
    fn before(&self, path: &str) -> Option<String> {
        let (parent, _) = split(path);
        let described = self.get(path)?.described.as_ref()?;
        match &described.from[..] {
            // The first layer of a nested model gets the nested model's input.
            [] if !path.is_empty() => self.before(parent),
            [origin] => {
                let mut path = join(parent, &origin.name);
                while is_sequential(self.class(&path)) {
                    path = self.list[*self.last.get(&path)?].path.clone();
                }
                Some(path)
            }
            _ => None,
        }
    }

    /// If the input of the layer at `path` has passed a `Flatten`: the sizes that it combined into one, without the batch.
    /// `Err` with the path of the `Flatten` if it has not seen an input.
    pub(crate) fn flattened(&self, path: &str) -> Flattened {
        let mut path = path.to_string();
        let mut on_the_way = Vec::new();
        let found = loop {
            if let Some(known) = self.flattened.borrow().get(&path) {
                break known.clone();
            }
            let before = self.before(&path);
            on_the_way.push(path);
            let Some(layer) = before.as_ref().and_then(|before| self.get(before)) else {
                break Ok(None);
            };
            match layer.class.map(|class| class.positions) {
                Some(Positions::Flattened) => {
                    let shape = layer.described.as_ref().and_then(|known| known.inputs.first());
                    let sizes = shape.and_then(|shape| shape.get(1..)?.iter().copied().collect());
                    break sizes.map(Some).ok_or(layer.path.clone());
                }
                Some(Positions::Kept) => path = layer.path.clone(),
                Some(Positions::Unknown) | None => break Ok(None),
            }
        };
        // A later query on the same path does not walk it again.
        let mut known = self.flattened.borrow_mut();
        known.extend(on_the_way.into_iter().map(|path| (path, found.clone())));
        found
    }
}

/// Whether the layers of such a model follow one another.
pub(crate) fn is_sequential(class: Option<&Class>) -> bool {
    class.is_some_and(|class| class.role == Role::Sequential)
}

impl Layer {
    /// The layer's description in a message.
    pub(crate) fn shown(&self) -> String {
        let weight = |(name, shape): &(String, Option<Vec<usize>>)| {
            let sizes = |shape: &Vec<usize>| {
                shape_text(&shape.iter().copied().map(Some).collect::<Vec<_>>())
            };
            match shape {
                Some(shape) => format!("{name} {}", sizes(shape)),
                None => name.clone(),
            }
        };
        let weights: Vec<String> = self.weights.iter().map(weight).collect();
        format!("'{}' ({}: {})", self.path, self.kind, weights.join(", "))
    }
}
