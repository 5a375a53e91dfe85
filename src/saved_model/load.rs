//! [`load`]: opens TensorFlow's SavedModels, and its frozen graphs.

use std::borrow::Cow;
use std::collections::HashSet;
#[cfg(not(target_family = "wasm"))]
use std::path::Path;
use std::sync::Arc;

use prost::Message;

use super::graph_def::library::Library;
use super::graph_def::proto::{GraphDef, MetaGraphDef, SavedModelProto};
use super::graph_def::run::Session;
use super::loaded::{SavedModel, pruned};
use super::model_files::{ModelFiles, stays_inside};
use super::saved_function::SavedFunction;
use crate::error::{Error, Result, message};
use crate::runtime::Device;
use crate::support::options::options;
use crate::train::BundleReader;
#[cfg(not(target_family = "wasm"))]
use crate::train::index_path;

options! {
    /// The options of [`load_with`].
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct LoadOptions {
        /// The tags of the graph to load, if the file has several; default: `serve`.
        tags: Vec<String> as impl Into<Vec<String>> = vec!["serve".to_string()],
    }
}

/// Loads a SavedModel, the folder that TensorFlow's `tf.saved_model.save` and Keras's `model.export` write: its functions, by
/// signature, and its variables. TensorFlow's `tf.saved_model.load`.
///
/// ```no_run
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let model = tf::saved_model::load("exported")?;
/// let serve = model.signature("serving_default")?;
/// println!("{serve:?}");
/// let scores = serve.predict(tf::Tensor::zeros([1, 28, 28, 1])?)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Io`] if a file is missing or cannot be read; [`Error::Data`] if one is damaged or of another format. An op that this
/// crate lacks is an error of the [`signature`](SavedModel::signature) that needs it.
#[cfg(not(target_family = "wasm"))]
pub fn load(path: impl AsRef<Path>) -> Result<SavedModel> {
    load_with(path, LoadOptions::new())
}

/// As [`load`], with options.
///
/// # Errors
/// As [`load`].
#[cfg(not(target_family = "wasm"))]
pub fn load_with(path: impl AsRef<Path>, options: LoadOptions) -> Result<SavedModel> {
    let path = path.as_ref();
    let name = path.join(MAIN);
    let text = path.join("saved_model.pbtxt");
    if !name.exists() && text.exists() {
        return Err(Error::Data(message!(
            "{} is a SavedModel in text format, which is not supported. Save it in binary format.",
            text.display()
        )));
    }
    let graph = meta_graph(&ModelFiles::Folder(path.into()), &options)?;
    let prefix = path.join("variables").join("variables");
    let checkpoint = match index_path(&prefix).exists() {
        true => Some(BundleReader::open(&prefix)?),
        false => None,
    };
    SavedModel::new(ModelFiles::Folder(path.into()), graph, checkpoint, Device::current()?)
        .map_err(|error| error.reworded(|text| message!("{}: {text}", path.display())))
}

/// As [`load_with`], from the contents of the files: their paths in the model's folder, with `/` between the parts, and their
/// bytes. The paths may begin with the folder's name.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// use tf::saved_model::LoadOptions;
/// # let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/saved_model/cnn");
/// # let read = |name: &str| std::fs::read(format!("{folder}/{name}")).expect("the file is there");
/// // A program may have them in itself, by include_bytes!.
/// let files = [
///     ("saved_model.pb", read("saved_model.pb")),
///     ("variables/variables.index", read("variables/variables.index")),
///     ("variables/variables.data-00000-of-00001", read("variables/variables.data-00000-of-00001")),
/// ];
/// let model = tf::saved_model::load_from_bytes(files, LoadOptions::new())?;
/// assert_eq!(model.signatures().collect::<Vec<_>>(), ["serve", "serving_default"]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`Error::Data`] if a file is missing, damaged or of another format.
pub fn load_from_bytes<N: Into<String>, B: Into<Cow<'static, [u8]>>>(
    files: impl IntoIterator<Item = (N, B)>,
    options: LoadOptions,
) -> Result<SavedModel> {
    let mut files = ModelFiles::memory(files, MAIN);
    let graph = meta_graph(&files, &options)?;
    let index = files.take(|name| name == INDEX);
    let shards = files.take(|name| name.starts_with(SHARDS));
    let checkpoint = match index.first() {
        Some((_, index)) => Some(checkpoint(index, shards)?),
        None => None,
    };
    // The model keeps only what its tables may read later.
    files.take(|name| !name.starts_with("assets/"));
    SavedModel::new(files, graph, checkpoint, Device::current()?)
}

pub(super) const MAIN: &str = "saved_model.pb";
pub(super) const INDEX: &str = "variables/variables.index";
pub(super) const SHARDS: &str = "variables/variables.data-";

/// A checkpoint in memory, whose data files are sorted by name.
pub(super) fn checkpoint(
    index: &[u8],
    shards: Vec<(String, Cow<'static, [u8]>)>,
) -> Result<BundleReader<'static>> {
    let count = shards.len();
    for (at, (name, _)) in shards.iter().enumerate() {
        let wanted = format!("{SHARDS}{at:05}-of-{count:05}");
        if *name != wanted {
            return Err(Error::Data(message!(
                "the file \"{wanted}\" is missing: there is {name}. Pass all files of the model."
            )));
        }
    }
    BundleReader::from_bytes(index, shards.into_iter().map(|(_, bytes)| bytes).collect())
}

/// The names of the files that a SavedModel has besides `saved_model.pb` and `variables/variables.index`, whose contents these are:
/// where a program cannot look into the folder, as on the web.
///
/// # Errors
/// [`Error::Data`] if the contents are damaged.
pub fn remaining_files(saved_model: &[u8], index: Option<&[u8]>) -> Result<Vec<String>> {
    let mut names = Vec::new();
    if let Some(index) = index {
        let reader = BundleReader::from_bytes(index, Vec::new())?;
        let count = reader.num_shards();
        names.extend((0..count).map(|at| format!("{SHARDS}{at:05}-of-{count:05}")));
    }
    let proto = SavedModelProto::decode(saved_model)
        .map_err(|error| Error::Data(message!("it is no SavedModel ({error}).")))?;
    let assets = proto.meta_graphs.iter().flat_map(|graph| &graph.asset_file_def);
    let assets = assets.filter(|asset| stays_inside(&asset.filename));
    let mut assets: Vec<String> =
        assets.map(|asset| format!("assets/{}", asset.filename)).collect();
    assets.sort();
    assets.dedup();
    names.extend(assets);
    Ok(names)
}

/// The graph with the wanted tags.
pub(super) fn meta_graph(files: &ModelFiles, options: &LoadOptions) -> Result<MetaGraphDef> {
    let (bytes, name) = (files.read(MAIN)?, files.title(MAIN));
    let proto = SavedModelProto::decode(&bytes[..]).map_err(|error| {
        Error::Data(message!(
            "{name} is no SavedModel ({error}). Take the file saved_model.pb of the folder that TensorFlow wrote."
        ))
    })?;
    let all: Vec<Vec<String>> = proto.meta_graphs.iter().map(tags).collect();
    let mut graphs = proto.meta_graphs.into_iter();
    let graph = match all.iter().position(|tags| same_tags(tags, &options.tags)) {
        Some(at) => graphs.nth(at),
        None if all.len() == 1 && *options == LoadOptions::new() => graphs.next(),
        None => None,
    };
    graph.ok_or_else(|| {
        Error::Data(message!(
            "{name} has no graph with the tags {:?}; it has {all:?}. Pass LoadOptions::new().tags(...).",
            options.tags
        ))
    })
}

/// Loads a frozen graph, the file (`.pb`) in which TensorFlow 1 wrote a graph with its weights as constants: the function from
/// the nodes `inputs` to `outputs`. TensorFlow's `tf.graph_util.import_graph_def`.
///
/// ```no_run
/// # fn main() -> wgrad::Result<()> {
/// use wgrad as tf;
/// let f = tf::saved_model::import_graph_def("frozen.pb", &["input"], &["softmax"])?;
/// let scores = f.predict(tf::Tensor::zeros([1, 224, 224, 3])?)?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// As [`load`]; [`Error::Data`] with all ops that this crate lacks.
#[cfg(not(target_family = "wasm"))]
pub fn import_graph_def(
    path: impl AsRef<Path>,
    inputs: &[&str],
    outputs: &[&str],
) -> Result<SavedFunction> {
    let path = path.as_ref();
    let bytes = crate::files::read(path).map_err(|error| Error::io(path, error))?;
    import_graph_def_from_bytes(&bytes, inputs, outputs)
        .map_err(|error| error.reworded(|text| message!("{}: {text}", path.display())))
}

/// As [`import_graph_def`], from the contents of the file.
///
/// # Errors
/// [`Error::Data`] if the contents are damaged, or with all ops that this crate lacks.
pub fn import_graph_def_from_bytes(
    bytes: &[u8],
    inputs: &[&str],
    outputs: &[&str],
) -> Result<SavedFunction> {
    let def = GraphDef::decode(bytes).map_err(|error| {
        Error::Data(message!("it is no GraphDef ({error}). Take a frozen graph (.pb)."))
    })?;
    let files = ModelFiles::none();
    let session = Arc::new(Session::new(Library::new(def)?, Device::current()?, None, files));
    pruned(&session, inputs, outputs, &|_| false)
}

fn tags(graph: &MetaGraphDef) -> Vec<String> {
    graph.meta_info_def.as_ref().map_or(Vec::new(), |info| info.tags.clone())
}

fn same_tags(a: &[String], b: &[String]) -> bool {
    let set = |tags: &[String]| tags.iter().cloned().collect::<HashSet<_>>();
    set(a) == set(b)
}
