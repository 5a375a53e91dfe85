//! [`LoadOptions`] and [`SaveOptions`]: how weights of other libraries are loaded into a model, and how a model's are
//! written.

use std::collections::BTreeMap;

use super::pattern::Pattern;
use crate::error::{Error, Result, message};

/// How the tensors of a file are assigned to a model's variables: their names by patterns, their axes, and which may be
/// missing.
///
/// In a pattern, `{i}` matches a part of a name without `.` and `/`, and `{rest..}` any text.
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{Trackable, keras::{Sequential, layers::Dense}, weights::LoadOptions};
/// let trained = Sequential::new().add_named("fc", Dense::new(3));
/// trained.build([1, 2])?;
/// let path = std::env::temp_dir().join(format!("wgrad-options-{}.safetensors", std::process::id()));
/// trained.save_weights(&path)?;
///
/// let model = Sequential::new().add(Dense::new(3));
/// model.build([1, 2])?;
/// model.load_weights_with(&path, LoadOptions::new().rename("fc/{weight}", "dense/{weight}"))?;
/// assert_eq!(model.get_weights()?, trained.get_weights()?);
/// # std::fs::remove_file(path).expect("it was written");
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    prefix: String,
    ignored: Vec<String>,
    renames: Vec<(String, String)>,
    transposes: Vec<(String, Vec<usize>)>,
    missing: Vec<String>,
    pub(super) round: bool,
    pub(super) pytorch: bool,
}

impl LoadOptions {
    /// Each tensor is assigned to the variable with its name.
    pub fn new() -> Self {
        LoadOptions::default()
    }

    /// Uses only the tensors whose names begin with `prefix`, and removes it: if `prefix` is `model.`,
    /// `model.layers.0.weight` becomes `layers.0.weight`.
    #[must_use]
    pub fn prefix(mut self, prefix: &str) -> Self {
        self.prefix = prefix.to_string();
        self
    }

    /// Renames the tensors whose names match the pattern `from` to `to`, which may use the placeholders of `from`:
    /// `rename("layers.{i}.weight", "dense_{i}/kernel")`. The first matching pattern counts.
    #[must_use]
    pub fn rename(mut self, from: &str, to: &str) -> Self {
        self.renames.push((from.to_string(), to.to_string()));
        self
    }

    /// Permutes the axes of the tensors whose new names match `pattern`: axis `i` of the variable is axis `axes[i]` of the
    /// tensor, as in `tf.transpose`.
    #[must_use]
    pub fn transpose(mut self, pattern: &str, axes: &[usize]) -> Self {
        self.transposes.push((pattern.to_string(), axes.to_vec()));
        self
    }

    /// Ignores the tensors whose names in the file match `pattern`.
    #[must_use]
    pub fn ignore(mut self, pattern: &str) -> Self {
        self.ignored.push(pattern.to_string());
        self
    }

    /// Leaves the variables whose names match `pattern` unchanged if the file lacks them.
    #[must_use]
    pub fn allow_missing(mut self, pattern: &str) -> Self {
        self.missing.push(pattern.to_string());
        self
    }

    /// Sets whether floats may be rounded to the variable's dtype. By default every value must be preserved.
    #[must_use]
    pub fn round(mut self, round: bool) -> Self {
        self.round = round;
        self
    }

    /// Reads the weights of a PyTorch model of the same layers: its names and its layouts, as
    /// [the guide](crate::docs::weights) lists them. Layers are found by their names (`fc.weight` belongs to the layer
    /// `fc`); if all modules have numbers, as in `nn.Sequential`, by their order.
    #[must_use]
    pub fn from_pytorch(mut self) -> Self {
        self.pytorch = true;
        self
    }

    pub(super) fn rules(&self) -> Result<Rules<'_>> {
        let wrong = |why: String| Error::Checkpoint(message!("LoadOptions: {why}."));
        let parse = |text| Pattern::parse(text).map_err(wrong);
        let mut renames = Vec::new();
        for (from, to) in &self.renames {
            let (from, to) = (parse(from)?, parse(to)?);
            if let Some(place) = to.place_beyond(&from) {
                return Err(wrong(format!(
                    "the new name has the placeholder {{{place}}}, and the pattern that it renames has none of that \
                     name"
                )));
            }
            renames.push((from, to));
        }
        let mut transposes = Vec::new();
        for (pattern, axes) in &self.transposes {
            transposes.push((parse(pattern)?, &axes[..]));
        }
        let ignored = self.ignored.iter().map(|text| parse(text)).collect::<Result<_>>()?;
        let missing = self.missing.iter().map(|text| parse(text)).collect::<Result<_>>()?;
        Ok(Rules { prefix: &self.prefix, ignored, renames, transposes, missing })
    }
}

/// [`LoadOptions`] in the form that loading uses.
pub(super) struct Rules<'a> {
    prefix: &'a str,
    ignored: Vec<Pattern<'a>>,
    renames: Vec<(Pattern<'a>, Pattern<'a>)>,
    transposes: Vec<(Pattern<'a>, &'a [usize])>,
    missing: Vec<Pattern<'a>>,
}

impl Rules<'_> {
    /// The model's name of the file's tensor; none if it is ignored.
    pub(super) fn name(&self, name: &str) -> Option<String> {
        if self.ignored.iter().any(|pattern| pattern.fits(name)) {
            return None;
        }
        let name = name.strip_prefix(self.prefix)?;
        let renamed = self.renames.iter().find_map(|(from, to)| Some(to.fill(&from.find(name)?)));
        Some(renamed.unwrap_or_else(|| name.to_string()))
    }

    pub(super) fn axes(&self, name: &str) -> Option<&[usize]> {
        self.transposes.iter().find(|(pattern, _)| pattern.fits(name)).map(|(_, axes)| *axes)
    }

    pub(super) fn may_lack(&self, variable: &str) -> bool {
        self.missing.iter().any(|pattern| pattern.fits(variable))
    }
}

/// How weights are written.
#[derive(Debug, Clone, Default)]
pub struct SaveOptions {
    pub(super) metadata: BTreeMap<String, String>,
    pub(super) max_shard_size: Option<u64>,
    pub(super) pytorch: bool,
}

impl SaveOptions {
    /// One file, under the variables' names, without metadata.
    pub fn new() -> Self {
        SaveOptions::default()
    }

    /// Adds a text to the file's `__metadata__`. Hugging Face's readers require the key `format`: `pt` or `tf`.
    #[must_use]
    pub fn metadata(mut self, key: &str, value: &str) -> Self {
        self.metadata.insert(key.to_string(), value.to_string());
        self
    }

    /// Writes several files if the tensors together have more bytes than this, and an index next to them, as Hugging Face
    /// does: `model-00001-of-00003.safetensors` and `model.safetensors.index.json`. A tensor that is larger gets its own
    /// file.
    #[must_use]
    pub fn max_shard_size(mut self, bytes: u64) -> Self {
        self.max_shard_size = Some(bytes);
        self
    }

    /// Writes PyTorch's names and layouts, which `load_state_dict` accepts: the reverse of [`LoadOptions::from_pytorch`].
    /// The names are those of the wgrad layers: `dense.weight`.
    #[must_use]
    pub fn to_pytorch(mut self) -> Self {
        self.pytorch = true;
        self
    }
}
