//! [`SavedModel`]: the functions and the variables of a model that was loaded.

use std::any::Any;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::graph_def::library::Library;
use super::graph_def::open_sizes;
use super::graph_def::proto::{
    AssetFileDef, Attr, AttrValue, GraphDef, MetaGraphDef, NodeDef, SavedObjectGraph,
    SavedObjectKind, SignatureDef, Structured, StructuredValue, TensorInfo, TensorProto,
};
use super::graph_def::run::Session;
use super::graph_def::value::{Cell, CellState, Value};
use super::model_files::ModelFiles;
use super::saved_function::SavedFunction;
use super::spec::SavedSpec;
use crate::error::{Error, Result, message};
use crate::files::protobuf::TensorShapeProto;
use crate::host_array::{HostArray, HostDType};
use crate::runtime::Device;
use crate::trackable::{Parts, Trackable};
use crate::train::{BundleReader, StoredObjects};
use crate::variable::Variable;

/// The signature that initializes tables.
pub(super) const INIT: &str = "__saved_model_init_op";

/// A loaded SavedModel. A clone shares its variables, which are [`Trackable`]: an optimizer trains them, a checkpoint saves them.
/// They exist once a function that uses them has been taken, as a model may have others for its own bookkeeping.
#[derive(Clone)]
pub struct SavedModel {
    /// An [`Inner`], as a trait object, so that the compiler of a program that captures the model does not look into all of wgpu.
    inner: Arc<dyn Any + Send + Sync>,
}

struct Inner {
    session: Arc<Session>,
    signatures: BTreeMap<String, SignatureDef>,
    objects: SavedObjectGraph,
    /// The variable of each object that is one.
    cells: HashMap<usize, Arc<Cell>>,
    /// The names in the checkpoint of variables that are not trained.
    untrainable: HashSet<String>,
    /// Whether tables and the like are initialized.
    initialized: Result<()>,
    /// Functions keep their traces.
    functions: Mutex<HashMap<String, SavedFunction>>,
    tensorflow_version: String,
}

impl SavedModel {
    /// A model whose variables have these values and not those of a checkpoint: those of the nodes of these names.
    pub(super) fn with_variables(
        graph: MetaGraphDef,
        variables: Vec<(String, HostArray<'static>)>,
    ) -> Result<Self> {
        SavedModel::from_parts(ModelFiles::none(), graph, None, Device::current()?, variables)
    }

    pub(super) fn new(
        files: ModelFiles,
        graph: MetaGraphDef,
        checkpoint: Option<BundleReader<'static>>,
        device: Device,
    ) -> Result<Self> {
        SavedModel::from_parts(files, graph, checkpoint, device, Vec::new())
    }

    fn from_parts(
        files: ModelFiles,
        graph: MetaGraphDef,
        checkpoint: Option<BundleReader<'static>>,
        device: Device,
        variables: Vec<(String, HostArray<'static>)>,
    ) -> Result<Self> {
        let mut def = graph.graph_def.unwrap_or_default();
        feed_assets(&mut def, &graph.asset_file_def);
        let objects = graph.object_graph_def.unwrap_or_default();
        let stored = match &checkpoint {
            Some(checkpoint) => StoredObjects::read(checkpoint)?,
            None => None,
        };
        let keys = variable_keys(&objects, stored.as_ref());
        let untrainable = keys
            .iter()
            .filter(|(at, _)| !variable_of(&objects, **at).is_some_and(|(trainable, _)| trainable))
            .map(|(_, key)| key.clone())
            .collect();
        let session = Session::new(Library::new(def)?, device, checkpoint, files);
        for (name, array) in variables {
            session.add_variable(name, array)?;
        }
        if let Some(saver) = graph.saver_def.filter(|saver| !saver.restore_op_name.is_empty()) {
            let (file, _) = session.endpoint(&saver.filename_tensor_name)?;
            let (restore, _) = session.endpoint(&saver.restore_op_name)?;
            let steps = session.steps("restoring its variables", &[file], &[], &[restore])?;
            let prefix = HostArray::from_strings([], vec![b"variables".to_vec()])?;
            session.run(&steps, vec![Value::Host(Arc::new(prefix))])?;
        }
        let mut by_key = HashMap::new();
        for cell in session.lock_variables().values() {
            if let CellState::Stored(key) = cell.state() {
                by_key.insert(key.to_string(), cell.clone());
            }
        }
        let cells = keys.iter().filter_map(|(at, key)| Some((*at, by_key.get(key)?.clone())));
        let cells = cells.collect();
        let mut init =
            graph.signature_def.get(INIT).into_iter().flat_map(|init| init.outputs.values());
        let legacy = ["saved_model_main_op", "legacy_init_op"].iter().filter_map(|name| {
            graph.collection_def.get(*name)?.node_list.as_ref()?.value.first().cloned()
        });
        let init = init.next().map(|info| info.name.clone()).into_iter().chain(legacy).next();
        let initialized = match init {
            Some(node) => initialize(&session, &node),
            None => Ok(()),
        };
        let mut signatures = graph.signature_def;
        signatures.remove(INIT);
        let tensorflow_version = graph.meta_info_def.unwrap_or_default().tensorflow_version;
        Ok(SavedModel {
            inner: Arc::new(Inner {
                session: Arc::new(session),
                signatures,
                objects,
                cells,
                untrainable,
                initialized,
                functions: Mutex::default(),
                tensorflow_version,
            }),
        })
    }

    fn inner(&self) -> &Inner {
        match self.inner.downcast_ref() {
            Some(inner) => inner,
            None => unreachable!("new makes an Inner"),
        }
    }

    /// The names of the signatures, sorted.
    pub fn signatures(&self) -> impl Iterator<Item = &str> {
        self.inner().signatures.keys().map(String::as_str)
    }

    /// The version of TensorFlow that wrote the file.
    pub fn tensorflow_version(&self) -> &str {
        &self.inner().tensorflow_version
    }

    /// The function of a signature: `serving_default` is the name that TensorFlow and Keras give to the first one.
    ///
    /// # Errors
    /// [`Error::Index`] if there is none: with those that there are; [`Error::Data`] with all ops that this crate lacks, or if a
    /// weight is damaged.
    pub fn signature(&self, name: &str) -> Result<SavedFunction> {
        let signature = self.inner().signatures.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.signatures().collect();
            let words = match names.is_empty() {
                true => "it has none; function takes the functions of its objects".to_string(),
                false => format!("it has {}", names.join(", ")),
            };
            Error::Index(message!("the saved model has no signature \"{name}\": {words}."))
        })?;
        self.known(&format!("signature {name}"), || {
            self.inner().initialized.clone()?;
            let session = &self.inner().session;
            let specs = |infos: &BTreeMap<String, TensorInfo>| -> Vec<SavedSpec> {
                infos.iter().map(|(name, info)| info.spec(name)).collect()
            };
            let endpoint = |info: &TensorInfo| session.endpoint(&info.name);
            let feeds = signature.inputs.values().map(|info| Ok(endpoint(info)?.0));
            let feeds = feeds.collect::<Result<Vec<_>>>()?;
            let fetches = signature.outputs.values().map(endpoint).collect::<Result<Vec<_>>>()?;
            let what = format!("the signature \"{name}\"");
            let steps = session.steps(&what, &feeds, &fetches, &[])?;
            session.prepare(&steps, &|key| self.is_trained(key))?;
            let (inputs, outputs) = (specs(&signature.inputs), specs(&signature.outputs));
            let session = session.clone();
            let run = move |inputs| session.run(&steps, inputs);
            Ok(SavedFunction::new(name.to_string(), inputs, outputs, Box::new(run)))
        })
    }

    /// The function from some nodes of the graph to others: `node`, or `node:1` for its second result. TensorFlow's
    /// `WrappedFunction.prune`. So a program can pass what an op would compute that this crate lacks.
    ///
    /// # Errors
    /// As [`signature`](SavedModel::signature).
    pub fn prune(&self, inputs: &[&str], outputs: &[&str]) -> Result<SavedFunction> {
        self.inner().initialized.clone()?;
        pruned(&self.inner().session, inputs, outputs, &|key| self.is_trained(key))
    }

    /// The paths of the functions of the model's objects: `call` for a `tf.function` in the class of the model.
    pub fn functions(&self) -> Vec<String> {
        self.paths().into_iter().map(|(path, _)| path).collect()
    }

    /// The traces of a function of the model's objects, a function for each.
    ///
    /// # Errors
    /// [`Error::Index`] if there is no function with this path; otherwise as [`signature`](SavedModel::signature).
    pub fn concrete_functions(&self, path: &str) -> Result<Vec<SavedFunction>> {
        let paths = self.paths();
        let found = paths.iter().find(|(known, _)| known == path).ok_or_else(|| {
            let names: Vec<&str> = paths.iter().map(|(path, _)| &path[..]).collect();
            Error::Index(message!(
                "the saved model has no function \"{path}\"; it has: {}.",
                names.join(", ")
            ))
        })?;
        let Some(SavedObjectKind::Function(function)) = &self.inner().objects.nodes[found.1].kind
        else {
            return Ok(Vec::new());
        };
        function.concrete_functions.iter().map(|name| self.concrete(path, name)).collect()
    }

    /// The function with this path, if it was traced once.
    ///
    /// # Errors
    /// As [`concrete_functions`](SavedModel::concrete_functions), which an error names if there are several traces.
    pub fn function(&self, path: &str) -> Result<SavedFunction> {
        let mut all = self.concrete_functions(path)?;
        match (all.pop(), all.len()) {
            (Some(one), 0) => Ok(one),
            (_, more) => Err(Error::Index(message!(
                "the function \"{path}\" has {} traces; choose one of concrete_functions.",
                more + 1
            ))),
        }
    }

    /// The variables that exist, by name: each has the name of its object, or, if that is another's, of its node.
    fn named(&self) -> Vec<(String, Variable)> {
        let cells = self.inner().session.lock_variables();
        let mut by_object: HashMap<*const Cell, usize> = HashMap::new();
        for (at, cell) in &self.inner().cells {
            by_object.insert(Arc::as_ptr(cell), *at);
        }
        let mut sorted: Vec<(usize, &String, Variable)> = cells
            .iter()
            .filter_map(|(name, cell)| {
                let place = by_object.get(&Arc::as_ptr(cell)).copied();
                Some((place.unwrap_or(usize::MAX), name, cell.variable()?))
            })
            .collect();
        sorted.sort_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)));
        let mut seen = HashSet::new();
        let named = sorted.into_iter().map(|(place, node, variable)| {
            let object =
                variable_of(&self.inner().objects, place).map(|(_, name)| name.to_string());
            let name = object.filter(|name| !name.is_empty() && !seen.contains(name));
            let name = name.unwrap_or_else(|| node.clone());
            seen.insert(name.clone());
            (name, variable)
        });
        named.collect()
    }

    fn is_trained(&self, key: &str) -> bool {
        !self.inner().untrainable.contains(key)
    }

    /// The function of this name, made once.
    fn known(
        &self,
        name: &str,
        make: impl FnOnce() -> Result<SavedFunction>,
    ) -> Result<SavedFunction> {
        let lock = || self.inner().functions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = lock().get(name) {
            return Ok(function.clone());
        }
        let function = make()?;
        Ok(lock().entry(name.to_string()).or_insert(function).clone())
    }

    /// The functions of objects by their shortest paths, and their places among the objects.
    fn paths(&self) -> Vec<(String, usize)> {
        let nodes = &self.inner().objects.nodes;
        let mut seen = vec![false; nodes.len()];
        let mut queue = std::collections::VecDeque::new();
        let mut found = Vec::new();
        if !nodes.is_empty() {
            seen[0] = true;
            queue.push_back((String::new(), 0));
        }
        while let Some((path, at)) = queue.pop_front() {
            if matches!(nodes[at].kind, Some(SavedObjectKind::Function(_))) {
                found.push((path, at));
                continue;
            }
            for child in &nodes[at].children {
                let Ok(place) = usize::try_from(child.node_id) else { continue };
                if place >= nodes.len() || std::mem::replace(&mut seen[place], true) {
                    continue;
                }
                let name = &child.local_name;
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                // A long chain of objects would make paths of quadratic length.
                if path.len() <= 256 {
                    queue.push_back((path, place));
                }
            }
        }
        found
    }

    fn concrete(&self, path: &str, name: &str) -> Result<SavedFunction> {
        self.known(&format!("function {name}"), || {
            self.inner().initialized.clone()?;
            let session = &self.inner().session;
            let what = format!("the function \"{path}\"");
            session.check_function(&what, name)?;
            let trained = |key: &str| self.is_trained(key);
            session.prepare_function(name, &trained)?;
            let concrete = self.inner().objects.concrete_functions.get(name).ok_or_else(|| {
                Error::Data(message!("{what} has no entry in the file. The file is damaged."))
            })?;
            let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
            let signature = concrete.canonicalized_input_signature.as_ref();
            flatten(signature, "", 0, &mut inputs)
                .map_err(|text| Error::Data(message!("{what} {text}")))?;
            flatten(concrete.output_signature.as_ref(), "", 0, &mut outputs)
                .map_err(|text| Error::Data(message!("{what} {text}")))?;
            for (at, spec) in outputs.iter_mut().enumerate() {
                if spec.name.is_empty() {
                    spec.name = format!("output_{at}");
                }
            }
            unique_names(&mut inputs, "input");
            unique_names(&mut outputs, "output");
            let captured = concrete.bound_inputs.iter().map(|at| self.captured(&what, *at));
            let captured = captured.collect::<Result<Vec<_>>>()?;
            let (session, own, count) = (session.clone(), name.to_string(), outputs.len());
            let run = move |inputs: Vec<Value>| {
                let all = inputs.into_iter().chain(captured.iter().cloned()).collect();
                let mut results = session.run_function(&own, all)?;
                results.truncate(count);
                Ok(results)
            };
            Ok(SavedFunction::new(path.to_string(), inputs, outputs, Box::new(run)))
        })
    }

    /// The value of an object that a function captures.
    fn captured(&self, what: &str, at: i32) -> Result<Value> {
        let place = usize::try_from(at).unwrap_or(usize::MAX);
        let object = self.inner().objects.nodes.get(place);
        match object.and_then(|object| object.kind.as_ref()) {
            Some(SavedObjectKind::Variable(_)) => {
                let cell = self.inner().cells.get(&place).ok_or_else(|| {
                    Error::Data(message!("{what} uses a variable that the checkpoint lacks."))
                })?;
                self.inner().session.fill(cell, &|key| self.is_trained(key))?;
                Ok(Value::Variable(cell.clone()))
            }
            Some(SavedObjectKind::Constant(constant)) => {
                let session = &self.inner().session;
                let endpoint = session.endpoint(&constant.operation)?;
                let steps = session.steps(what, &[], &[endpoint], &[])?;
                let values = session.run(&steps, Vec::new())?;
                values
                    .into_iter()
                    .next()
                    .ok_or_else(|| Error::Data(message!("{what} captures a node without a value.")))
            }
            _ => Err(Error::Data(message!(
                "{what} captures an object that is no variable and no constant, such as a table. Use a signature."
            ))),
        }
    }
}

impl Trackable for SavedModel {
    fn track(&self, parts: &mut Parts<'_>) {
        self.named().iter().for_each(|(name, variable)| parts.add(name, variable));
    }
}

impl fmt::Debug for SavedModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.signatures().collect();
        let variables = self.inner().session.lock_variables().len();
        write!(f, "SavedModel(signatures: {}; {variables} variables)", names.join(", "))
    }
}

impl TensorInfo {
    fn spec(&self, name: &str) -> SavedSpec {
        SavedSpec {
            name: name.to_string(),
            dtype: HostDType::from_number(self.dtype),
            shape: open_sizes(self.tensor_shape.as_ref()),
        }
    }
}

/// The function from some nodes to others.
pub(super) fn pruned(
    session: &Arc<Session>,
    inputs: &[&str],
    outputs: &[&str],
    trained: &dyn Fn(&str) -> bool,
) -> Result<SavedFunction> {
    let feeds = inputs.iter().map(|name| match session.endpoint(name)? {
        (node, 0) => Ok(node),
        _ => Err(Error::Index(message!("\"{name}\" is not the first result of its node."))),
    });
    let feeds = feeds.collect::<Result<Vec<_>>>()?;
    let fetches: Vec<_> =
        outputs.iter().map(|name| session.endpoint(name)).collect::<Result<_>>()?;
    let name = format!("{} -> {}", inputs.join(", "), outputs.join(", "));
    let steps = session.steps(&format!("the function \"{name}\""), &feeds, &fetches, &[])?;
    session.prepare(&steps, trained)?;
    let specs = |names: &[&str], inputs: bool| -> Vec<SavedSpec> {
        let spec = |name: &&str| session.spec(name, inputs);
        names.iter().map(spec).collect()
    };
    let (inputs, outputs) = (specs(inputs, true), specs(outputs, false));
    let session = session.clone();
    let run = move |inputs| session.run(&steps, inputs);
    Ok(SavedFunction::new(name, inputs, outputs, Box::new(run)))
}

/// Gives the nodes that stand for files of the model the files' names.
fn feed_assets(def: &mut GraphDef, assets: &[AssetFileDef]) {
    let mut names: HashMap<&str, &str> = HashMap::new();
    for asset in assets {
        let node = asset.tensor_info.as_ref().map_or("", |info| &info.name);
        names.insert(node.split(':').next().unwrap_or(""), &asset.filename);
    }
    for node in &mut def.node {
        let Some(name) = names.get(&node.name[..]) else { continue };
        let value = TensorProto {
            dtype: HostDType::String.number(),
            tensor_shape: Some(TensorShapeProto::new(&[])),
            string_val: vec![name.as_bytes().to_vec()],
            ..TensorProto::default()
        };
        let attr = AttrValue { value: Some(Attr::Tensor(value)) };
        *node = NodeDef {
            name: node.name.clone(),
            op: "Const".to_string(),
            input: Vec::new(),
            attr: [("value".to_string(), attr)].into(),
        };
    }
}

fn initialize(session: &Session, node: &str) -> Result<()> {
    let (node, _) = session.endpoint(node)?;
    let steps = session.steps("initializing its tables", &[], &[], &[node])?;
    session.run(&steps, Vec::new()).map(drop)
}

/// Whether an object that is a variable is trained, and its name.
fn variable_of(objects: &SavedObjectGraph, at: usize) -> Option<(bool, &str)> {
    match objects.nodes.get(at)?.kind.as_ref()? {
        SavedObjectKind::Variable(variable) => Some((variable.trainable, &variable.name)),
        _ => None,
    }
}

/// The name in the checkpoint of each object that is a variable. Both files have the objects in a graph from the model on, with
/// the same names for parts.
pub(super) fn variable_keys(
    objects: &SavedObjectGraph,
    stored: Option<&StoredObjects>,
) -> HashMap<usize, String> {
    let mut keys = HashMap::new();
    let Some(stored) = stored.filter(|_| !objects.nodes.is_empty()) else { return keys };
    let mut places: HashMap<usize, usize> = [(0, 0)].into();
    let mut open = vec![(0usize, 0usize)];
    while let Some((at, there)) = open.pop() {
        if variable_of(objects, at).is_some() {
            if let Some(key) = stored.value_key(there) {
                keys.insert(at, key.to_string());
            }
        }
        for child in &objects.nodes[at].children {
            let Ok(place) = usize::try_from(child.node_id) else { continue };
            let Some(there) = stored.child(there, &child.local_name) else { continue };
            if place < objects.nodes.len() && places.insert(place, there).is_none() {
                open.push((place, there));
            }
        }
    }
    keys
}

/// The tensors in nested containers, in TensorFlow's order: the keys of a dictionary are sorted.
fn flatten(
    value: Option<&StructuredValue>,
    name: &str,
    depth: usize,
    specs: &mut Vec<SavedSpec>,
) -> Result<(), String> {
    if depth > 32 {
        return Err("nests its containers too deeply.".to_string());
    }
    let mut each =
        |name: &str, value: &StructuredValue| flatten(Some(value), name, depth + 1, specs);
    match value.and_then(|value| value.kind.as_ref()) {
        Some(Structured::TensorSpec(spec)) => {
            // Of results, TensorFlow writes the same word for all.
            let own = if spec.name == "unknown" { "" } else { &spec.name };
            specs.push(SavedSpec {
                name: if name.is_empty() { own } else { name }.to_string(),
                dtype: HostDType::from_number(spec.dtype),
                shape: open_sizes(spec.shape.as_ref()),
            });
            Ok(())
        }
        Some(Structured::List(list) | Structured::Tuple(list)) => {
            list.values.iter().try_for_each(|value| each("", value))
        }
        Some(Structured::Dict(dict)) => {
            dict.fields.iter().try_for_each(|(name, value)| each(name, value))
        }
        Some(Structured::NamedTuple(tuple)) => tuple.values.iter().try_for_each(|field| {
            field.value.as_ref().map_or(Ok(()), |value| each(&field.key, value))
        }),
        Some(Structured::TypeSpec(spec)) => {
            Err(format!("takes or returns {}, which is not supported.", spec.type_spec_class_name))
        }
        Some(Structured::None(_) | Structured::Text(_)) | None => Ok(()),
    }
}

/// Gives every spec a name of its own.
fn unique_names(specs: &mut [SavedSpec], word: &str) {
    let mut seen = HashSet::new();
    for (at, spec) in specs.iter_mut().enumerate() {
        if spec.name.is_empty() || !seen.insert(spec.name.clone()) {
            spec.name = format!("{word}_{at}");
            seen.insert(spec.name.clone());
        }
    }
}
