//! [`Layers`]: the layers of a model by their paths, with what other libraries' names and layouts depend on.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::trackable::parts::{Described, Leaf, Parts};
use crate::trackable::{Trackable, shape_text};

/// All parts of a root.
pub(crate) struct Layers {
    /// In the order of the walk.
    pub(crate) list: Vec<Layer>,
    places: BTreeMap<String, usize>,
    /// The last layer in each.
    last: BTreeMap<String, usize>,
    /// What [`Layers::flattened`] has found.
    flattened: RefCell<BTreeMap<String, Flattened>>,
}

/// The sizes of which a `Flatten` made one, if there is one, or the path of one that has seen no input.
type Flattened = Result<Option<Vec<usize>>, String>;

/// A part of a model that is no variable.
pub(crate) struct Layer {
    /// Empty for the root.
    pub(crate) path: String,
    pub(crate) kind: &'static str,
    /// Its own variables: their names behind the path, and their shapes where they are known.
    pub(crate) weights: Vec<(String, Option<Vec<usize>>)>,
    described: Option<Described>,
}

/// The path of the part in which `path` lies, and its name there.
pub(crate) fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_string() } else { format!("{path}/{name}") }
}

impl Layers {
    pub(crate) fn of(root: &dyn Trackable) -> Self {
        let mut list = vec![Layer {
            path: String::new(),
            kind: root.kind(),
            weights: Vec::new(),
            described: None,
        }];
        let mut found: Vec<(String, Option<Vec<usize>>)> = Vec::new();
        let mut visit = |path: &str, leaf: Leaf<'_>| match leaf {
            Leaf::Part { kind, described, .. } => {
                let described = described.map(|described| described());
                let (path, weights) = (path.to_string(), Vec::new());
                list.push(Layer { path, kind: kind(), weights, described });
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
            // Lists and options are no parts of their own.
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

    pub(crate) fn kind(&self, path: &str) -> &'static str {
        self.get(path).map_or("", |layer| layer.kind)
    }

    /// The layers that lie directly in the one at `path`.
    #[cfg(feature = "keras-files")]
    pub(crate) fn inside<'a>(&'a self, path: &'a str) -> impl Iterator<Item = &'a Layer> {
        let begin = join(path, "");
        let below = self.places.range(begin.clone()..);
        let below = below.take_while(move |(inner, _)| inner.starts_with(&begin));
        below.map(|(_, at)| &self.list[*at]).filter(move |inner| split(&inner.path).0 == path)
    }

    /// The layer whose result the one at `path` takes, if it is a single one.
    fn before(&self, path: &str) -> Option<String> {
        let (parent, _) = split(path);
        let described = self.get(path)?.described.as_ref()?;
        match &described.from[..] {
            // The first layer of a model within a model takes what that takes.
            [] if !path.is_empty() => self.before(parent),
            [origin] => {
                let mut path = join(parent, &origin.name);
                while is_stack(self.kind(&path)) {
                    path = self.list[*self.last.get(&path)?].path.clone();
                }
                Some(path)
            }
            _ => None,
        }
    }

    /// If what the layer at `path` takes has gone through a `Flatten`: the sizes that this made one of, without the batch.
    /// `Err` with the path of the `Flatten` if it has seen no input.
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
            match layer.kind {
                "Flatten" => {
                    let shape = layer.described.as_ref().and_then(|known| known.inputs.first());
                    let sizes = shape.and_then(|shape| shape.get(1..)?.iter().copied().collect());
                    break sizes.map(Some).ok_or(layer.path.clone());
                }
                // The place of each element stays.
                "Dropout"
                | "AlphaDropout"
                | "GaussianDropout"
                | "GaussianNoise"
                | "Activation"
                | "Activate"
                | "ReLU"
                | "LeakyReLU"
                | "ELU"
                | "PReLU"
                | "Softmax"
                | "Identity"
                | "BatchNormalization"
                | "LayerNormalization"
                | "RMSNormalization"
                | "Rescaling"
                | "UnitNormalization"
                | "ActivityRegularization" => path = layer.path.clone(),
                _ => break Ok(None),
            }
        };
        // Who comes later along the same way does not walk it again.
        let mut known = self.flattened.borrow_mut();
        known.extend(on_the_way.into_iter().map(|path| (path, found.clone())));
        found
    }
}

/// Whether layers of this kind hold a line of layers.
pub(crate) fn is_stack(kind: &str) -> bool {
    kind == "Sequential"
}

impl Layer {
    /// The layer for a message.
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
