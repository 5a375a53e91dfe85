//! [`FrontModel`]: a model behind layers on the host, so that its inputs are strings.
//!
//! `symbol` has the values on the host, `graph` orders and computes their layers, `inputs` is what a program passes, `plan` moves layers
//! between a model's config and its front, and `files` reads and writes `.keras` files.

#[cfg(feature = "keras-files")]
mod files;
mod graph;
mod inputs;
#[cfg(feature = "json")]
mod plan;
mod symbol;

use std::sync::Arc;

use graph::Front;
#[cfg(all(feature = "json", feature = "saved-model"))]
pub(crate) use graph::{HostCall, HostGraph};
pub use inputs::{FrontBatch, HostInputs, IntoFrontData};
#[cfg(all(feature = "json", feature = "saved-model"))]
pub(crate) use plan::host_graph_of_plan;
#[cfg(feature = "json")]
#[doc(hidden)]
pub use plan::{front_into_json, front_of_json};
pub use symbol::HostSymbol;
use symbol::{FrontInput, FrontLayer};

use crate::data::ModelData;
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::host_array::HostArray;
use crate::keras::layers::HostLayer;
use crate::keras::{Context, EvaluateOptions, FitOptions, Functional, History, Layer, Logs, Model};
use crate::keras::{PredictOptions, Sequential};
use crate::tensor::{HostOptions, Tensor};
use crate::trackable::{Class, Parts, Trackable};

/// A model whose first layers compute on the host, such as [`TextVectorization`](crate::keras::layers::TextVectorization): Keras's
/// model with inputs of strings. Its results are those of the model for what the front makes of the strings.
///
/// A `Sequential` has a stack of layers in front:
///
/// ```
/// # fn main() -> wgrad::Result<()> {
/// use wgrad::keras::layers::{Dense, Embedding, GlobalAveragePooling1D, HostLayer, TextVectorization};
/// use wgrad::keras::{CompileOptions, FitOptions, FrontModel, INFERENCE, Model, Sequential};
/// let texts = ["a good film", "a bad film"];
/// let words = TextVectorization::new().output_sequence_length(4);
/// words.adapt(&texts)?;
/// let model = Sequential::new()
///     .add(Embedding::new(words.vocabulary_size()?, 8))
///     .add(GlobalAveragePooling1D::new())
///     .add(Dense::new(1));
/// model.compile("adam", "mse", CompileOptions::new())?;
/// let model = FrontModel::new(model).front(words);
/// model.fit((&texts, &[[1.0f32], [0.0]]), FitOptions::new().epochs(2).verbose(0))?;
/// assert_eq!(model.call_host(&["a good", "bad"], INFERENCE)?.shape(), [2, 1]);
/// # Ok(())
/// # }
/// ```
///
/// For a [`Functional`] model, [`FrontModel::functional`] says which [`HostSymbol`] each input gets; other inputs stay inputs of
/// numbers.
#[derive(Debug)]
pub struct FrontModel<M = Sequential> {
    front: Front,
    model: M,
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for crate::keras::Sequential {}
    impl Sealed for crate::keras::Functional {}
}

/// The models that can have a front: [`Sequential`] and [`Functional`].
pub trait Fronted: Trackable + Sized + sealed::Sealed {
    /// A tensor, or one for each output.
    type Output;

    #[doc(hidden)]
    fn call_list(&self, xs: Vec<Tensor>, cx: Context<'_>) -> Result<Self::Output>;
    /// The dtype of an input; `None` if that follows from the front.
    #[doc(hidden)]
    fn input_dtype(&self, at: usize) -> Option<DType>;
    #[doc(hidden)]
    fn output(tensors: Vec<Tensor>) -> Result<Self::Output>;
    #[doc(hidden)]
    fn fit_front(
        &self,
        data: ModelData<'_>,
        options: FitOptions<'_>,
    ) -> impl Future<Output = Result<History>>;
    #[doc(hidden)]
    fn evaluate_front(
        &self,
        data: ModelData<'_>,
        options: EvaluateOptions<'_>,
    ) -> impl Future<Output = Result<Logs>>;
    #[doc(hidden)]
    fn predict_front(
        &self,
        x: Vec<Tensor>,
        options: PredictOptions<'_>,
    ) -> impl Future<Output = Result<Vec<Tensor>>>;
    #[doc(hidden)]
    #[cfg(feature = "json")]
    fn json(&self) -> Result<String>;
}

macro_rules! training {
    ($x:ty, $y:ty) => {
        async fn fit_front(&self, data: ModelData<'_>, options: FitOptions<'_>) -> Result<History> {
            Model::<$x, $y>::fit_async(self, data, options).await
        }

        async fn evaluate_front(
            &self,
            data: ModelData<'_>,
            options: EvaluateOptions<'_>,
        ) -> Result<Logs> {
            Model::<$x, $y>::evaluate_async(self, data, options).await
        }

        async fn predict_front(
            &self,
            x: Vec<Tensor>,
            options: PredictOptions<'_>,
        ) -> Result<Vec<Tensor>> {
            Model::<$x, $y>::predict_all_async(self, (x,), options).await
        }

        #[cfg(feature = "json")]
        fn json(&self) -> Result<String> {
            self.to_json()
        }
    };
}

impl Fronted for Sequential {
    type Output = Tensor;

    fn call_list(&self, xs: Vec<Tensor>, cx: Context<'_>) -> Result<Tensor> {
        self.call(&Sequential::output(xs)?, cx)
    }

    fn input_dtype(&self, _at: usize) -> Option<DType> {
        None
    }

    fn output(mut tensors: Vec<Tensor>) -> Result<Tensor> {
        tensors.pop().ok_or_else(|| Error::Data(message!("FrontModel: there is no tensor.")))
    }

    training!(Tensor, Tensor);
}

impl Fronted for Functional {
    type Output = Vec<Tensor>;

    fn call_list(&self, xs: Vec<Tensor>, cx: Context<'_>) -> Result<Vec<Tensor>> {
        Layer::<[Tensor], Vec<Tensor>>::call(self, &xs[..], cx)
    }

    fn input_dtype(&self, at: usize) -> Option<DType> {
        self.inputs().get(at).map(|symbol| symbol.dtype())
    }

    fn output(tensors: Vec<Tensor>) -> Result<Vec<Tensor>> {
        Ok(tensors)
    }

    training!([Tensor], Vec<Tensor>);
}

impl FrontModel {
    /// Puts nothing in front of the model yet.
    pub fn new(model: Sequential) -> Self {
        FrontModel { front: Front::of_stack(), model }
    }

    /// Adds a layer in front of the model, behind those that have been added.
    #[must_use]
    pub fn front(mut self, layer: impl HostLayer + 'static) -> Self {
        self.front.push(FrontLayer::One(Arc::new(layer)), None);
        self
    }
}

impl FrontModel<Functional> {
    /// Feeds inputs of a model, by their names, with symbols on the host. Inputs without a symbol stay inputs of the whole.
    ///
    /// The inputs of the whole are in the order in which the model's inputs need them; [`input_names`](FrontModel::input_names) lists
    /// them.
    ///
    /// # Errors
    /// [`Error::Data`] if the model has no input of a name, if an input is fed twice, or if two inputs of the
    /// whole have the same name.
    pub fn functional<'a>(
        model: Functional,
        feeds: impl IntoIterator<Item = (&'a str, &'a HostSymbol)>,
    ) -> Result<Self> {
        let input = |(name, symbol): (&str, &crate::keras::SymbolicTensor)| FrontInput {
            name: name.to_string(),
            shape: symbol.shape().to_vec(),
            dtype: symbol.dtype().tensorflow_name().to_string(),
        };
        let inputs = model.input_names().into_iter().zip(model.inputs()).map(input).collect();
        let fed: Vec<(&str, &HostSymbol)> = feeds.into_iter().collect();
        Ok(FrontModel { front: Front::new(inputs, &fed)?, model })
    }
}

impl<M: Fronted> FrontModel<M> {
    /// The layers in front, in the order of their first calls.
    pub fn front_layers(&self) -> Vec<&dyn HostLayer> {
        let mut layers: Vec<&Arc<dyn HostLayer>> = Vec::new();
        for call in &self.front.calls {
            let FrontLayer::One(layer) = &call.layer else { continue };
            if !layers.iter().any(|known| std::ptr::addr_eq(Arc::as_ptr(known), Arc::as_ptr(layer)))
            {
                layers.push(layer);
            }
        }
        layers.into_iter().map(|layer| &**layer).collect()
    }

    /// The model behind them, for instance to compile it.
    pub fn model(&self) -> &M {
        &self.model
    }

    #[cfg(all(feature = "json", feature = "saved-model"))]
    pub(crate) fn host_graph(&self) -> Result<HostGraph> {
        self.front.host_graph()
    }

    /// The names of the inputs, in order.
    pub fn input_names(&self) -> Vec<&str> {
        self.front.inputs.iter().map(|input| &*input.name).collect()
    }

    /// Computes what the front makes of inputs: an array for each input of the model.
    ///
    /// # Errors
    /// The errors of the layers; [`Error::Data`] if inputs are missing,
    /// [`Error::Shape`] if they have different numbers of examples.
    pub fn preprocess<X: HostInputs + ?Sized>(&self, x: &X) -> Result<Vec<HostArray<'static>>> {
        self.front.run(x)
    }

    /// Computes the model's result. Indices reach the model as integers, rows of zeros, ones and counts as floats.
    ///
    /// # Errors
    /// As [`preprocess`](FrontModel::preprocess), and the errors of the model.
    pub fn call_host<X: HostInputs + ?Sized>(&self, x: &X, cx: Context<'_>) -> Result<M::Output> {
        self.model.call_list(self.tensors(x)?, cx)
    }

    /// What the model's inputs get.
    fn tensors<X: HostInputs + ?Sized>(&self, x: &X) -> Result<Vec<Tensor>> {
        let arrays = self.front.run(x)?;
        let tensor = |(at, (array, value)): (usize, (HostArray<'_>, &usize))| {
            let options = HostOptions::new();
            match self.model.input_dtype(at) {
                Some(dtype) => array.to_tensor_of(dtype, options.rounding(true)),
                None if self.front.are_indices(*value)? => array.to_tensor(),
                None => array.to_tensor_of(DType::F32, options),
            }
        };
        arrays.into_iter().zip(&self.front.feeds).enumerate().map(tensor).collect()
    }

    /// The data for [`FitOptions::validation_data`], and for the methods of [`Model`] on [`model`](FrontModel::model).
    ///
    /// # Errors
    /// As [`preprocess`](FrontModel::preprocess); [`Error::Shape`] if arrays differ in their numbers of
    /// examples, or a dataset is not batched.
    pub fn data<'a>(&'a self, data: impl IntoFrontData<'a>) -> Result<ModelData<'a>> {
        data.into_front_data(self)
    }

    /// Trains the model, which must be compiled, on arrays or on a dataset. Blocks.
    ///
    /// A dataset that calls the layers in its `map` uses more threads, and is faster if the front takes longer than the device.
    ///
    /// # Errors
    /// As [`data`](FrontModel::data) and [`Model::fit`].
    #[cfg(not(target_family = "wasm"))]
    pub fn fit<'a>(
        &'a self,
        data: impl IntoFrontData<'a>,
        options: FitOptions<'_>,
    ) -> Result<History> {
        pollster::block_on(self.fit_async(data, options))
    }

    /// Same as `fit`, without blocking and on every target.
    ///
    /// # Errors
    /// As [`data`](FrontModel::data) and [`Model::fit_async`].
    pub async fn fit_async<'a>(
        &'a self,
        data: impl IntoFrontData<'a>,
        options: FitOptions<'_>,
    ) -> Result<History> {
        self.model.fit_front(self.data(data)?, options).await
    }

    /// Computes the loss and the metrics on data. Blocks.
    ///
    /// # Errors
    /// As [`data`](FrontModel::data) and [`Model::evaluate`].
    #[cfg(not(target_family = "wasm"))]
    pub fn evaluate<'a>(
        &'a self,
        data: impl IntoFrontData<'a>,
        options: EvaluateOptions<'_>,
    ) -> Result<Logs> {
        pollster::block_on(self.evaluate_async(data, options))
    }

    /// Same as `evaluate`, without blocking and on every target.
    ///
    /// # Errors
    /// As [`data`](FrontModel::data) and [`Model::evaluate_async`].
    pub async fn evaluate_async<'a>(
        &'a self,
        data: impl IntoFrontData<'a>,
        options: EvaluateOptions<'_>,
    ) -> Result<Logs> {
        self.model.evaluate_front(self.data(data)?, options).await
    }

    /// Computes the model's results for all examples, in batches, and reads them as one tensor for each output. Blocks.
    ///
    /// # Errors
    /// As [`preprocess`](FrontModel::preprocess) and [`Model::predict`].
    #[cfg(not(target_family = "wasm"))]
    pub fn predict<X: HostInputs + ?Sized>(
        &self,
        x: &X,
        options: PredictOptions<'_>,
    ) -> Result<M::Output> {
        pollster::block_on(self.predict_async(x, options))
    }

    /// Same as `predict`, without blocking and on every target.
    ///
    /// # Errors
    /// As [`preprocess`](FrontModel::preprocess) and [`Model::predict_async`].
    pub async fn predict_async<X: HostInputs + ?Sized>(
        &self,
        x: &X,
        options: PredictOptions<'_>,
    ) -> Result<M::Output> {
        M::output(self.model.predict_front(self.tensors(x)?, options).await?)
    }
}

impl<M: Fronted> inputs::Prepare for FrontModel<M> {
    fn prepare(&self, x: &dyn HostInputs) -> Result<Vec<Tensor>> {
        self.tensors(x)
    }
}

impl<M: Fronted> Trackable for FrontModel<M> {
    fn track(&self, parts: &mut Parts<'_>) {
        self.model.track(parts);
    }

    fn kind(&self) -> &'static str {
        self.model.kind()
    }

    fn title(&self) -> String {
        self.model.title()
    }

    fn class(&self) -> Option<&'static Class> {
        self.model.class()
    }
}
