//! `export`: Keras models as SavedModels.

use std::path::Path;

use super::save;
use crate::error::{Error, Result};
use crate::function::TensorSpec;
use crate::keras::layers::Layer;
use crate::keras::{Functional, INFERENCE, Sequential};
use crate::saved_model::traced::Signature;
use crate::tensor::Tensor;

/// Keras's names of the function, and of the signature.
const FUNCTION: &str = "serve";
const SIGNATURE: &str = "serving_default";

impl Sequential {
    /// Writes the model as a SavedModel, which TensorFlow, Keras (`TFSMLayer`), TensorFlow Serving and TensorFlow.js's converter
    /// read: Keras's `model.export`. It has the function `serve`, also as the signature `serving_default`, of the tensor
    /// `inputs`, which computes what the model does in inference. Batches may have any size, and so may axes whose size has
    /// varied from call to call. [`saved_model::save`](crate::saved_model::save) writes other functions. Needs the feature
    /// `saved-model`.
    ///
    /// ```no_run
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad::keras::{Sequential, layers::Dense};
    /// let model = Sequential::new().add(Dense::new(64)).add(Dense::new(10));
    /// model.build([None, Some(784)])?;
    /// model.export("exported/1")?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Data`] if the model was neither built nor called; otherwise as [`saved_model::save`](crate::saved_model::save).
    pub fn export(&self, path: impl AsRef<Path>) -> Result<()> {
        save(self, path, &[self.served()?])
    }
}

/// A model with a function that computes what it does in inference.
trait Served {
    fn served(&self) -> Result<Signature<'_>>;
}

impl Served for Sequential {
    fn served(&self) -> Result<Signature<'_>> {
        let spec = self.input_spec().ok_or_else(|| {
            Error::Data(
                "export: the model was never called, so the shape of its input is not known. Call it or build it first, or write \
                 it with saved_model::save and a Signature."
                    .into(),
            )
        })?;
        let call = |inputs: &[Tensor]| self.call(&inputs[0], INFERENCE);
        let signature = Signature::new(SIGNATURE, [("inputs", spec)], call);
        Ok(signature.function_name(FUNCTION))
    }
}

impl Functional {
    /// As [`Sequential::export`]; the signature's tensors have the names of the model's inputs.
    ///
    /// # Errors
    /// As [`saved_model::save`](crate::saved_model::save).
    pub fn export(&self, path: impl AsRef<Path>) -> Result<()> {
        save(self, path, &[self.served()?])
    }
}

impl Served for Functional {
    fn served(&self) -> Result<Signature<'_>> {
        let names = self.input_names().into_iter().map(String::from);
        let specs = self.inputs().iter().map(|input| TensorSpec::new(input.shape(), input.dtype()));
        let call =
            |inputs: &[Tensor]| Layer::<[Tensor], Vec<Tensor>>::call(self, inputs, INFERENCE);
        let signature = Signature::new(SIGNATURE, names.zip(specs), call);
        Ok(signature.function_name(FUNCTION))
    }
}

#[cfg(all(feature = "json", feature = "preprocessing"))]
mod fronted {
    use std::path::Path;

    use super::Served;
    use crate::error::{Error, Result, message};
    use crate::keras::{FrontModel, Functional, HostGraph, Sequential};
    use crate::saved_model::save::builder::{Builder, Out};
    use crate::saved_model::save::objects::Named;
    use crate::saved_model::save::tables::Tables;
    use crate::saved_model::save::{Before, front, write};
    use crate::trackable::Trackable;

    impl FrontModel<Sequential> {
        /// Writes the model with its front as a SavedModel whose inputs are strings: Keras's `model.export`. Vocabularies become
        /// lookup tables; so TensorFlow and TensorFlow Serving need no other file. Needs the features `json`, `preprocessing` and
        /// `saved-model`.
        ///
        /// ```no_run
        /// # fn main() -> wgrad::Result<()> {
        /// use wgrad::keras::layers::{Dense, HostLayer, TextVectorization};
        /// use wgrad::keras::layers::OutputMode;
        /// use wgrad::keras::{FrontModel, INFERENCE, Sequential};
        /// let words = TextVectorization::new().output_mode(OutputMode::MultiHot);
        /// words.adapt(&["a good film", "a bad film"])?;
        /// let model = FrontModel::new(Sequential::new().add(Dense::new(1))).front(words);
        /// model.call_host(&["a good film"], INFERENCE)?;
        /// model.export("exported/1")?;
        /// # Ok(())
        /// # }
        /// ```
        ///
        /// ```python
        /// model = tf.saved_model.load('exported/1')
        /// scores = model.serve(tf.constant([['a good film']]))
        /// ```
        ///
        /// # Errors
        /// [`Error::Data`](crate::Error::Data) if a layer in front is a function of the program, or makes strings; otherwise as
        /// [`Sequential::export`].
        pub fn export(&self, path: impl AsRef<Path>) -> Result<()> {
            export(self.model(), &self.host_graph()?, path.as_ref())
        }
    }

    impl FrontModel<Functional> {
        /// Same as for a front of a [`Sequential`]; the signature's tensors have the names of
        /// [`input_names`](FrontModel::input_names).
        ///
        /// # Errors
        /// Same as for a front of a [`Sequential`].
        pub fn export(&self, path: impl AsRef<Path>) -> Result<()> {
            export(self.model(), &self.host_graph()?, path.as_ref())
        }
    }

    /// A plan of a front, as [`front_of_json`](crate::keras::front_of_json) makes it. For other languages, which compute the layers
    /// themselves.
    #[doc(hidden)]
    #[derive(Debug)]
    pub struct FrontPlan(HostGraph);

    impl FrontPlan {
        /// # Errors
        /// [`Error::Data`](crate::Error::Data) if the text is no plan, or if a layer is unknown.
        pub fn new(plan: &str) -> Result<Self> {
            crate::keras::host_graph_of_plan(plan).map(FrontPlan)
        }

        /// # Errors
        /// As [`FrontModel::export`].
        pub fn export_sequential(&self, model: &Sequential, path: &Path) -> Result<()> {
            export(model, &self.0, path)
        }

        /// # Errors
        /// As [`FrontModel::export`].
        pub fn export_functional(&self, model: &Functional, path: &Path) -> Result<()> {
            export(model, &self.0, path)
        }
    }

    fn export<M: Served + Trackable>(model: &M, graph: &HostGraph, path: &Path) -> Result<()> {
        let mut signature = model.served()?;
        let specs: Vec<_> = signature.inputs.iter().map(|(_, spec)| spec.clone()).collect();
        let open = front::open_specs(graph, &specs)?;
        let opened = open.iter().zip(&specs).any(|(open, spec)| open.shape() != spec.shape());
        let specs = open;
        signature.inputs.iter_mut().zip(&specs).for_each(|((_, own), open)| *own = open.clone());
        let mut inputs = Vec::new();
        for input in &graph.inputs {
            let (name, shape) = (input.name.clone(), input.shape.clone());
            inputs.push(Named { name, shape, dtype: input.host_dtype()? });
        }
        let nodes = |arguments: &[String],
                     builder: &mut Builder,
                     tables: &mut Tables|
         -> Result<Vec<Out>> {
            front::write(graph, arguments, &specs, builder, tables)
        };
        let written = write(model, path, &[signature], Some(&Before { inputs, write: &nodes }));
        written.map_err(|error| match (&error, opened) {
            (Error::Trace(_) | Error::Shape(_), true) => error.reworded(|text| {
                message!(
                    "{text} The layers in front make rows of any length here; set output_sequence_length if the model takes one \
                     length."
                )
            }),
            _ => error,
        })
    }
}
#[cfg(all(feature = "json", feature = "preprocessing"))]
pub use fronted::FrontPlan;
