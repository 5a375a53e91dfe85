//! The overlap of the true and the predicted regions of classes.

use super::Metric;
use super::totals::Totals;
use super::weights::along;
use crate::dtype::DType;
use crate::error::{Error, Result, message};
use crate::keras::losses::EPSILON;
use crate::ops::linalg::diag_part;
use crate::ops::{ConfusionMatrixOptions, confusion_matrix_with, where_};
use crate::shape::Axis;
use crate::tensor::Tensor;
use crate::trackable::{Parts, Trackable};

/// How truth and predictions represent classes, and which classes count.
#[derive(Debug)]
struct Regions {
    name: String,
    totals: Totals,
    num_classes: usize,
    target_class_ids: Vec<usize>,
    ignore_class: Option<i32>,
    sparse_y_true: bool,
    sparse_y_pred: bool,
    axis: Axis,
    /// The threshold that binary predictions must reach to be of class 1.
    threshold: Option<f32>,
    dtype: DType,
}

impl Regions {
    fn new(name: impl Into<String>, num_classes: usize, target_class_ids: Vec<usize>) -> Self {
        Regions {
            name: name.into(),
            totals: Totals::new(&["total_confusion_matrix"]),
            num_classes,
            target_class_ids,
            ignore_class: None,
            sparse_y_true: true,
            sparse_y_pred: true,
            axis: Axis::from(-1),
            threshold: None,
            dtype: DType::I32,
        }
    }

    fn update(
        &self,
        metric: &str,
        [y_true, y_pred]: [&Tensor; 2],
        sample_weight: Option<&Tensor>,
    ) -> Result<()> {
        let outside = self.target_class_ids.iter().find(|class| **class >= self.num_classes);
        if let Some(class) = outside {
            return Err(Error::Data(message!(
                "{metric}: a target class is {class}; with {} classes it must be below {}.",
                self.num_classes,
                self.num_classes
            )));
        }
        let classes = |x: &Tensor, sparse: bool| match sparse {
            true => x.cast(DType::I32),
            false => x.argmax(self.axis),
        };
        let y_pred = y_pred.stop_gradient();
        let predicted = match self.threshold {
            Some(threshold) => {
                y_pred.cast(DType::F32)?.greater_equal(threshold)?.cast(DType::I32)?
            }
            None => classes(&y_pred, self.sparse_y_pred)?,
        };
        let labels = classes(y_true, self.sparse_y_true)?;
        if labels.len() != predicted.len() {
            return Err(Error::Shape(message!(
                "{metric}: y_true is {:?} and y_pred is {:?}; they must have the same number of positions.",
                y_true.shape(),
                y_pred.shape()
            )));
        }
        let mut weight = match along(metric, sample_weight, &labels)? {
            // As in Keras, in which the counts are integers by default.
            Some(weight) if !self.dtype.is_float() => {
                weight.cast(DType::I32)?.cast(DType::F32)?.reshape([-1])?
            }
            Some(weight) => weight.reshape([-1])?,
            None => labels.device().scope(|| Tensor::ones([labels.len()]))?,
        };
        let (labels, predicted) = (labels.reshape([-1])?, predicted.reshape([-1])?);
        if let Some(ignored) = self.ignore_class {
            weight = where_(&labels.equal(ignored)?, &weight.zeros_like()?, &weight)?;
        }
        // Positions with classes outside 0..num_classes are ignored.
        let options = ConfusionMatrixOptions::new().weights(weight).dtype(DType::F32);
        let matrix = labels
            .device()
            .scope(|| confusion_matrix_with(&labels, &predicted, self.num_classes, options))?;
        self.totals.add(&self.name, &[matrix], 0)
    }

    fn result(&self) -> Result<Tensor> {
        let Some(totals) = self.totals.now()? else { return Tensor::zeros([]) };
        let matrix = &totals[0];
        let both = diag_part(matrix)?;
        let union = matrix.reduce_sum(0)?.add(matrix.reduce_sum(1)?)?.subtract(&both)?;
        // A class that occurs neither in the truth nor in the predictions is excluded from the mean.
        let there = union.greater(1e-9)?.cast(DType::F32)?;
        let there = match self.target_class_ids.len() == self.num_classes {
            true => there,
            false => {
                let mut wanted = vec![0f32; self.num_classes];
                for class in &self.target_class_ids {
                    wanted[*class] = 1.0;
                }
                there.multiply(
                    matrix.device().scope(|| Tensor::from_slice(&wanted, [wanted.len()]))?,
                )?
            }
        };
        let shares = both.divide(union.add(EPSILON)?)?.multiply(&there)?;
        shares.reduce_sum(())?.divide(there.reduce_sum(())?.add(EPSILON)?)
    }
}

macro_rules! regions {
    ($($(#[$doc:meta])* pub struct $name:ident[$class:literal]
       |$of:ident: String $(, $argument:ident: $type:ty)*| $new:expr, $($setter:ident)*;)*) => {$(
        $(#[$doc])*
        #[doc(alias = $class)]
        #[derive(Debug)]
        pub struct $name(Regions);

        impl $name {
            /// Creates a metric with this name.
            pub fn new($of: impl Into<String> $(, $argument: $type)*) -> Self {
                $name($new)
            }

            /// Sets the dtype of the counts. With `i32`, the default, the fractions of weights are dropped; with `f32`, they
            /// count.
            #[must_use]
            pub fn dtype(mut self, dtype: impl Into<DType>) -> Self {
                self.0.dtype = dtype.into();
                self
            }

            $(regions!(@$setter);)*
        }

        impl Trackable for $name {
            fn track(&self, parts: &mut Parts<'_>) {
                self.0.totals.track(parts);
            }

            fn kind(&self) -> &'static str {
                $class
            }
        }

        impl Metric for $name {
            fn name(&self) -> &str {
                &self.0.name
            }

            fn update(&self, y_true: &Tensor, y_pred: &Tensor, sample_weight: Option<&Tensor>) -> Result<()> {
                self.0.update($class, [y_true, y_pred], sample_weight)
            }

            fn result(&self) -> Result<Tensor> {
                self.0.result()
            }

            fn reset_state(&self) -> Result<()> {
                self.0.totals.reset()
            }
        }
    )*};
    (@ignore_class) => {
        /// Sets a class whose positions are ignored. Default: none.
        #[must_use]
        pub fn ignore_class(mut self, ignore_class: impl Into<Option<i32>>) -> Self {
            self.0.ignore_class = ignore_class.into();
            self
        }
    };
    (@sparse_y_true) => {
        /// Sets whether the truth consists of class indices instead of a number for each class. Default: `true`.
        #[must_use]
        pub fn sparse_y_true(mut self, sparse_y_true: bool) -> Self {
            self.0.sparse_y_true = sparse_y_true;
            self
        }
    };
    (@sparse_y_pred) => {
        /// Sets whether predictions are class indices instead of a number for each class.
        #[must_use]
        pub fn sparse_y_pred(mut self, sparse_y_pred: bool) -> Self {
            self.0.sparse_y_pred = sparse_y_pred;
            self
        }
    };
    (@axis) => {
        /// Sets the axis of the classes if there is a number for each class. Default: -1.
        #[must_use]
        pub fn axis(mut self, axis: impl Into<Axis>) -> Self {
            self.0.axis = axis.into();
            self
        }
    };
    (@target_class_ids) => {
        /// Sets which of the two classes count. Default: both.
        #[must_use]
        pub fn target_class_ids(mut self, target_class_ids: impl Into<Vec<usize>>) -> Self {
            self.0.target_class_ids = target_class_ids.into();
            self
        }
    };
    (@threshold) => {
        /// Sets the threshold that predictions must reach to be of class 1. Default: 0.5.
        #[must_use]
        pub fn threshold(mut self, threshold: f32) -> Self {
            self.0.threshold = Some(threshold);
            self
        }
    };
}
regions! {
    /// The mean over some classes of `intersection / union` of the true and the predicted region of a class. A class that does
    /// not occur is excluded from the mean.
    pub struct Iou["IoU"] |name: String, num_classes: usize, target_class_ids: &[usize]|
        Regions::new(name, num_classes, target_class_ids.to_vec()),
        ignore_class sparse_y_true sparse_y_pred axis;

    /// [`Iou`] of binary predictions: `y_true` of zeros and ones.
    pub struct BinaryIou["BinaryIoU"] |name: String|
        Regions { threshold: Some(0.5), ..Regions::new(name, 2, vec![0, 1]) },
        target_class_ids threshold;

    /// [`Iou`] of all classes.
    ///
    /// ```
    /// # fn main() -> wgrad::Result<()> {
    /// use wgrad as tf;
    /// use tf::keras::metrics::{MeanIou, Metric};
    /// let iou = MeanIou::new("iou", 2);
    /// iou.update_state(&tf::constant([0, 0, 1, 1])?, &tf::constant([0, 1, 0, 1])?)?;
    /// assert!((iou.result()?.item::<f32>()? - 1.0 / 3.0).abs() < 1e-6);
    /// # Ok(())
    /// # }
    /// ```
    pub struct MeanIou["MeanIoU"] |name: String, num_classes: usize|
        Regions::new(name, num_classes, (0..num_classes).collect()),
        ignore_class sparse_y_true sparse_y_pred axis;

    /// [`Iou`] of one-hot truth and of predictions with a number for each class, of which the largest counts.
    pub struct OneHotIou["OneHotIoU"] |name: String, num_classes: usize, target_class_ids: &[usize]|
        Regions {
            sparse_y_true: false,
            sparse_y_pred: false,
            ..Regions::new(name, num_classes, target_class_ids.to_vec())
        },
        ignore_class sparse_y_pred axis;

    /// [`MeanIou`] of one-hot truth and of predictions with a number for each class, of which the largest counts.
    pub struct OneHotMeanIou["OneHotMeanIoU"] |name: String, num_classes: usize|
        Regions {
            sparse_y_true: false,
            sparse_y_pred: false,
            ..Regions::new(name, num_classes, (0..num_classes).collect())
        },
        ignore_class sparse_y_pred axis;
}

impl Default for BinaryIou {
    /// Creates a metric called `binary_io_u`.
    fn default() -> Self {
        BinaryIou::new("binary_io_u")
    }
}
