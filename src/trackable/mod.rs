//! [`Trackable`]: a type names its variables and parts once, and everything else is a walk over them.
//!
//! The walks count, summarise, freeze, save and restore. They do not depend on what a layer or an optimizer computes.

pub(crate) mod arrays;
mod class;
#[cfg(feature = "safetensors")]
pub(crate) mod file;
mod impls;
mod outline;
mod parts;
mod picture;
mod slot;
#[allow(dead_code)] // Files are behind features.
pub(crate) mod slot_names;
mod summary;
mod walk;
#[cfg(feature = "safetensors")]
pub(crate) mod weights;

pub use arrays::NamedArray;
pub(crate) use arrays::{Everything, Given, Item, Scope, set, set_given};
pub(crate) use class::{CallForm, ExtraVariable, PartNames, Positions, Role};
pub use class::{Class, Layout, PyTorchParameter};
pub(crate) use impls::{VALUE, plain, value};
pub use parts::Parts;
pub(crate) use parts::{Described, HostState, Leaf, Origin, SlotOwner};
#[cfg(feature = "summary")]
pub(crate) use picture::layer_nodes;
pub(crate) use slot::Slot;
pub(crate) use slot_names::SlotNames;
pub use summary::SummaryOptions;
pub(crate) use summary::{shape_text, snake_case};
pub(crate) use walk::{forget, named_trainable, penalties_of, reset_metrics};
/// Derives [`Trackable`](trait@Trackable) from a struct's fields.
pub use wgrad_derive::Trackable;

use crate::error::Result;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// A tensor made from `array` for a variable of this shape and dtype; converted if every value is preserved.
pub(crate) fn to_tensor_if_exact(
    array: &NamedArray<'_>,
    shape: &[usize],
    dtype: crate::dtype::DType,
) -> Result<Tensor> {
    #[cfg(feature = "safetensors")]
    if array.array.dtype() != dtype && array.array.shape() == shape {
        return weights::values::converted(array.clone(), dtype, false)?.to_tensor(shape, dtype);
    }
    array.to_tensor(shape, dtype)
}

/// A type that owns variables, or parts that do: layers, models, optimizers, metrics, generators, lists of them, and
/// custom structs.
///
/// `#[derive(Trackable)]` generates [`track`](Trackable::track) from a struct's fields. A manual implementation has one line
/// for each part:
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::{self as tf, Parts, Trackable, Variable};
///
/// struct Line {
///     slope: Variable,
///     offset: Variable,
/// }
///
/// impl Trackable for Line {
///     fn track(&self, parts: &mut Parts<'_>) {
///         parts.add("slope", &self.slope);
///         parts.add("offset", &self.offset);
///     }
/// }
///
/// let zero = || Ok::<_, tf::Error>(Variable::new(&tf::constant(0.0)?));
/// let lines = vec![Line { slope: zero()?, offset: zero()? }, Line { slope: zero()?, offset: zero()? }];
/// let names: Vec<String> = lines.named_variables().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["0/slope", "0/offset", "1/slope", "1/offset"]);
/// lines[0].set_trainable(false);
/// assert_eq!(lines.trainable_variables().len(), 2);
/// # Ok(())
/// # }
/// ```
///
/// A variable's name is the path to it, and is not stored: nesting, renaming, sharing and lists need no code. A walk visits a
/// part once, by the first path that leads to it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not `Trackable`, so its variables would be forgotten",
    label = "not `Trackable`",
    note = "for a type of your own, write `#[derive(Trackable)]` before it",
    note = "for a field without variables, such as another crate's type, write `#[track(skip)]` before the field"
)]
pub trait Trackable: Send + Sync {
    /// Reports the names of the parts, in order.
    fn track(&self, parts: &mut Parts<'_>);

    /// The type for tables and messages, and, in `snake_case`, for the default names of layers: the Rust type's name unless
    /// a type sets another one (`#[track(kind = "..")]`). File formats decide nothing by it.
    fn kind(&self) -> &'static str {
        summary::type_name::<Self>()
    }

    /// The class by which file formats know the type, with the names that other libraries use for its parts. Default: none;
    /// files then use wgrad's names and layouts.
    fn class(&self) -> Option<&'static Class> {
        None
    }

    /// The name of the root in a summary.
    #[doc(hidden)]
    fn title(&self) -> String {
        summary::snake_case(self.kind())
    }

    /// Whether it is a layer that is configured to produce a mask.
    #[doc(hidden)]
    fn makes_mask(&self) -> bool {
        false
    }

    /// Identifies the part: its address in memory and its size. Pointers that share a part return the same.
    #[doc(hidden)]
    fn identity(&self) -> (usize, usize) {
        (std::ptr::from_ref(self).cast::<u8>().addr(), size_of_val(self))
    }

    /// All variables that exist, in order. A layer's variables exist once it has seen its first input.
    fn variables(&self) -> Vec<Variable> {
        walk::variables(&walk::over(self), |_| true)
    }

    /// The variables that training changes: those created as trainable and not frozen.
    fn trainable_variables(&self) -> Vec<Variable> {
        walk::variables(&walk::over(self), Variable::trainable)
    }

    /// As [`Trackable::variables`], each with its name: `dense/kernel`.
    fn named_variables(&self) -> Vec<(String, Variable)> {
        walk::named_variables(&walk::over(self))
    }

    /// The number of elements in all variables.
    fn count_params(&self) -> usize {
        walk::count_params(&walk::over(self))
    }

    /// Freezes all variables (`false`), including those that layers have yet to create, or unfreezes them (`true`). Tapes do
    /// not watch a frozen variable. A variable created as non-trainable, such as a moving mean, stays non-trainable.
    fn set_trainable(&self, trainable: bool) {
        walk::set_trainable(&walk::over(self), trainable);
    }

    /// The current penalties of regularizers on the trainable weights: a scalar for each. Keras calls them `model.losses`.
    ///
    /// # Errors
    /// Those of the penalties.
    fn regularization_losses(&self) -> Result<Vec<Tensor>>
    where
        Self: Sized,
    {
        walk::penalties(&walk::over(self))
    }

    /// The sum of [`Trackable::regularization_losses`]: a scalar, 0 if there are none; a training loop adds it to its loss.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{self as tf, Trackable};
    /// use tf::keras::{Layer, Regularizer, TRAINING, layers::Dense};
    /// use tf::keras::optimizers::{Optimizer, Sgd};
    /// let layer = Dense::new(1).kernel_regularizer(Regularizer::l2(0.1));
    /// let x = tf::Tensor::ones([4, 2])?;
    /// let tape = tf::GradientTape::new();
    /// let loss = layer.call(&x, TRAINING)?.square()?.reduce_mean(())?;
    /// let loss = loss.add(layer.regularization_loss()?)?;
    /// Sgd::new(0.1).minimize(&loss, tape, &layer)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Those of the penalties; [`Error::Device`](crate::Error::Device) if there is no device.
    fn regularization_loss(&self) -> Result<Tensor>
    where
        Self: Sized,
    {
        walk::penalty(&walk::over(self))
    }

    /// Keras's table of the parts: name and type, output shape (`?` if unknown), parameters, and in a model that is not a
    /// linear stack of layers, the origin of each part's input.
    fn summary(&self) -> String
    where
        Self: Sized,
    {
        self.summary_with(SummaryOptions::new())
    }

    /// As [`Trackable::summary`], with options.
    fn summary_with(&self, options: SummaryOptions) -> String
    where
        Self: Sized,
    {
        summary::summary(&self.title(), &walk::over(self), options)
    }

    /// A diagram of the model as text for Graphviz (`dot -Tpng`): a box for each layer with its shapes, arrows from result to
    /// input, and a frame around the layers of a nested model.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{Trackable, keras::{Sequential, layers::Dense}};
    /// let model = Sequential::new().add(Dense::new(8)).add(Dense::new(2));
    /// model.build([1, 4])?;
    /// assert!(model.to_dot().contains("n0 -> n1;"));
    /// # Ok(())
    /// # }
    /// ```
    fn to_dot(&self) -> String
    where
        Self: Sized,
    {
        picture::to_dot(&self.title(), &walk::over(self))
    }

    /// A diagram of the model as an SVG image, as [`Trackable::to_dot`] describes it. A browser displays it.
    fn to_svg(&self) -> String
    where
        Self: Sized,
    {
        picture::to_svg(&self.title(), &walk::over(self))
    }

    /// The values of all variables on the host, in the order of [`Trackable::variables`]. Blocks.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) if the device is lost.
    #[cfg(not(target_family = "wasm"))]
    fn get_weights(&self) -> Result<Vec<ndarray::ArrayD<f32>>>
    where
        Self: Sized,
    {
        pollster::block_on(self.get_weights_async())
    }

    /// As [`Trackable::get_weights`], without blocking and on every target.
    ///
    /// # Errors
    /// [`Error::Device`](crate::Error::Device) if the device is lost.
    fn get_weights_async(&self) -> impl Future<Output = Result<Vec<ndarray::ArrayD<f32>>>>
    where
        Self: Sized,
    {
        arrays::weights(self.variables())
    }

    /// Sets all variables to values from the host, on [`Device::current`](crate::Device::current), so that training
    /// continues after a restart, or on a new device after a loss. Weights that layers have yet to create will start from the
    /// values.
    ///
    /// # Errors
    /// [`Error::Checkpoint`](crate::Error::Checkpoint) if their number or shapes differ from the variables'; the
    /// variables are then unchanged.
    fn set_weights(&self, weights: &[ndarray::ArrayD<f32>]) -> Result<()>
    where
        Self: Sized,
    {
        arrays::set_weights(self, weights)
    }

    /// The values of all variables by name, all at the same moment, however long reading takes. A weight file consists of them;
    /// see [`Trackable::set_named_arrays`].
    ///
    /// # Errors
    /// [`Error::Checkpoint`](crate::Error::Checkpoint) if two variables share a name or there are no variables, for example
    /// before a model's first call; [`Error::Device`](crate::Error::Device) if the device is lost.
    fn named_arrays_async(&self) -> impl Future<Output = Result<Vec<NamedArray<'static>>>>
    where
        Self: Sized,
    {
        arrays::Everything::collect(self, arrays::Scope::Variables).into_arrays(self.kind())
    }

    /// Sets the variables to the values with their names, on [`Device::current`](crate::Device::current). Weights that layers
    /// have yet to create will start from the values.
    ///
    /// # Errors
    /// [`Error::Checkpoint`](crate::Error::Checkpoint) if a name is missing or unknown, or a shape or dtype differs from the
    /// variable's; the variables are then unchanged. [`Error::Device`](crate::Error::Device) if there is no memory.
    fn set_named_arrays(&self, arrays: &[NamedArray<'_>]) -> Result<()>
    where
        Self: Sized,
    {
        arrays::set(self, arrays::Scope::Variables, arrays)
    }

    /// The weights as the contents of a safetensors file, with the variables' names.
    ///
    /// # Errors
    /// As [`Trackable::named_arrays_async`].
    #[cfg(feature = "safetensors")]
    fn to_safetensors_async(&self) -> impl Future<Output = Result<Vec<u8>>>
    where
        Self: Sized,
    {
        async { file::to_bytes(&self.named_arrays_async().await?) }
    }

    /// Sets the variables to the weights with their names in the contents of a safetensors file.
    ///
    /// # Errors
    /// [`Error::Data`](crate::Error::Data) if the contents are damaged or have another format; otherwise as
    /// [`Trackable::set_named_arrays`].
    #[cfg(feature = "safetensors")]
    fn load_safetensors(&self, bytes: &[u8]) -> Result<()>
    where
        Self: Sized,
    {
        self.load_safetensors_with(bytes, weights::LoadOptions::new())
    }

    /// As [`Trackable::load_safetensors`], with other names, layouts and dtypes.
    ///
    /// # Errors
    /// As [`Trackable::load_safetensors`]; [`Error::Checkpoint`](crate::Error::Checkpoint) also if an option is wrong or a
    /// value does not fit the variable's dtype.
    #[cfg(feature = "safetensors")]
    fn load_safetensors_with(&self, bytes: &[u8], options: weights::LoadOptions) -> Result<()>
    where
        Self: Sized,
    {
        weights::load_bytes(self, bytes, &options)
    }

    /// As [`Trackable::to_safetensors_async`], with metadata or another library's names; always one file.
    ///
    /// # Errors
    /// As [`Trackable::named_arrays_async`].
    #[cfg(feature = "safetensors")]
    fn to_safetensors_with_async(
        &self,
        options: weights::SaveOptions,
    ) -> impl Future<Output = Result<Vec<u8>>>
    where
        Self: Sized,
    {
        async move {
            let arrays = self.named_arrays_async().await?;
            weights::to_bytes(&weights::for_saving(self, arrays, &options)?, &options)
        }
    }

    /// Writes the weights to a safetensors file, with the variables' names. Blocks.
    ///
    /// The new file replaces an existing one at `path` once it is complete; if writing fails, the old file stays. If an earlier
    /// process was killed while writing, the call removes the file that this process left (`NAME.….tmp`).
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::{self as tf, Trackable};
    /// use tf::keras::{Sequential, layers::Dense};
    /// let model = || Sequential::new().add(Dense::new(3));
    /// let (trained, other) = (model(), model());
    /// trained.build([1, 2])?;
    /// let path = std::env::temp_dir().join(format!("wgrad-doc-{}.safetensors", std::process::id()));
    /// trained.save_weights(&path)?;
    /// other.load_weights(&path)?;
    /// other.build([1, 2])?; // makes its weights, from what was loaded
    /// assert_eq!(other.get_weights()?, trained.get_weights()?);
    /// # std::fs::remove_file(path).expect("it was written");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Trackable::named_arrays_async`]; [`Error::Io`](crate::Error::Io) if the file cannot be written, or `path`
    /// is a folder, a pipe or a device.
    #[cfg(all(feature = "safetensors", not(target_family = "wasm")))]
    fn save_weights(&self, path: impl AsRef<std::path::Path>) -> Result<()>
    where
        Self: Sized,
    {
        self.save_weights_with(path, weights::SaveOptions::new())
    }

    /// As [`Trackable::save_weights`], with metadata, in several files, or under PyTorch's names.
    ///
    /// If there are several files, they get names that the previous index does not use, `model.2-00001-of-00003.safetensors` if
    /// `model-00001-of-00003.safetensors` exists, and the index is written last. If the call is interrupted at any point,
    /// either the old weights or the new ones can be loaded. Parts of older saves with this name are removed at the end.
    ///
    /// # Errors
    /// As [`Trackable::save_weights`].
    #[cfg(all(feature = "safetensors", not(target_family = "wasm")))]
    fn save_weights_with(
        &self,
        path: impl AsRef<std::path::Path>,
        options: weights::SaveOptions,
    ) -> Result<()>
    where
        Self: Sized,
    {
        let arrays = pollster::block_on(self.named_arrays_async())?;
        weights::save_file(path.as_ref(), &weights::for_saving(self, arrays, &options)?, &options)
    }

    /// Sets the variables to the weights with their names in a safetensors file, or in several with an index. Other dtypes are
    /// accepted if every value is preserved: `BF16` and `F16` become `f32`, and `F64` and `I64` are converted if they fit.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if the file cannot be read, or is a folder, a pipe or a device; otherwise as
    /// [`Trackable::load_safetensors`].
    #[cfg(all(feature = "safetensors", not(target_family = "wasm")))]
    fn load_weights(&self, path: impl AsRef<std::path::Path>) -> Result<()>
    where
        Self: Sized,
    {
        self.load_weights_with(path, weights::LoadOptions::new())
    }

    /// As [`Trackable::load_weights`], with other names, layouts and dtypes: weights from other libraries. `path` may also be
    /// an index of several files, `model.safetensors.index.json`.
    ///
    /// # Errors
    /// As [`Trackable::load_weights`]; [`Error::Checkpoint`](crate::Error::Checkpoint) also if an option is wrong or a
    /// value does not fit the variable's dtype.
    #[cfg(all(feature = "safetensors", not(target_family = "wasm")))]
    fn load_weights_with(
        &self,
        path: impl AsRef<std::path::Path>,
        options: weights::LoadOptions,
    ) -> Result<()>
    where
        Self: Sized,
    {
        weights::load_file(self, path.as_ref(), &options)
    }
}
