//! The files of TensorBoard's tab Projector: vectors, their labels, and the locations of both.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::files::io::write_file;
use crate::trackable::{Class, Trackable, layer_nodes};

/// The embeddings of a model.
#[derive(Default)]
pub(super) struct Projector {
    /// The labels of a layer's vectors.
    labels: BTreeMap<String, Vec<String>>,
}

/// Whether this is the class of Keras's `Embedding`.
fn is_embedding(class: Option<&Class>) -> bool {
    class.is_some_and(|class| class.name() == "Embedding")
}

impl Projector {
    pub(super) fn label(&mut self, layer: &str, labels: Vec<String>) {
        self.labels.insert(layer.to_string(), labels);
    }

    /// Writes the current vectors of all `Embedding` layers, and `projector_config.pbtxt`, to `folder`.
    pub(super) fn write(&self, folder: &Path, model: &dyn Trackable) -> Result<()> {
        let nodes = layer_nodes(&|parts| model.track(parts)).into_iter();
        let layers: Vec<String> =
            nodes.filter(|node| is_embedding(node.class)).map(|node| node.name).collect();
        if let Some(unknown) = self.labels.keys().find(|name| !layers.contains(name)) {
            let known = if layers.is_empty() { "none".to_string() } else { layers.join(", ") };
            return Err(Error::Data(message!(
                "TensorBoard: embeddings_metadata names the layer \"{unknown}\", and the model's Embedding layers are: {known}."
            )));
        }
        crate::files::make_folder(folder).map_err(|error| Error::io(folder, error))?;
        let variables = model.named_variables();
        let mut config = String::new();
        for layer in layers {
            let name = format!("{layer}/embeddings");
            let Some((_, variable)) = variables.iter().find(|(known, _)| *known == name) else {
                continue;
            };
            let &[count, size] = variable.shape() else { continue };
            let values = variable.peek().cast(DType::F32)?.to_vec::<f32>()?;
            let mut text = String::new();
            for row in values.chunks_exact(size.max(1)) {
                let row: Vec<String> = row.iter().map(f32::to_string).collect();
                text += &row.join("\t");
                text.push('\n');
            }
            let file = layer.replace('/', "-");
            let vectors = format!("{file}.tsv");
            write_file(folder.join(&vectors), &text)?;
            // Writing to a String cannot fail.
            let _ = write!(
                config,
                "embeddings {{\n  tensor_name: \"{layer}\"\n  tensor_path: \"{vectors}\"\n  tensor_shape: {count}\n  \
                 tensor_shape: {size}\n"
            );
            if let Some(labels) = self.labels.get(&layer) {
                if labels.len() != count {
                    return Err(Error::Data(message!(
                        "TensorBoard: embeddings_metadata gives {} labels for the {count} vectors of \"{layer}\". Give one \
                         for each.",
                        labels.len()
                    )));
                }
                // Each label occupies one line.
                let lines =
                    labels.iter().map(|label| label.replace(['\t', '\n', '\r'], " ") + "\n");
                let metadata = format!("{file}-metadata.tsv");
                write_file(folder.join(&metadata), lines.collect::<String>())?;
                let _ = writeln!(config, "  metadata_path: \"{metadata}\"");
            }
            config += "}\n";
        }
        write_file(folder.join("projector_config.pbtxt"), &config)
    }
}
