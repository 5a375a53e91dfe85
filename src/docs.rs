//! The repository's Markdown pages as modules of this documentation, which also makes their examples doc tests. In the
//! files, links point from file to file. Here, the link definitions in front of each file point to these modules
//! instead: the first definition of a link counts.

/// [accuracy]: crate::docs::accuracy
/// [autodiff]: crate::docs::autodiff
/// [benchmarks]: crate::docs::benchmarks
/// [devices]: crate::docs::devices
/// [embedding]: crate::docs::embedding
/// [export]: crate::docs::export
/// [onnx]: crate::docs::onnx
/// [saved-models]: crate::docs::saved_models
/// [how-it-runs]: crate::docs::how_it_runs
/// [tuning]: crate::docs::tuning
#[doc = include_str!("../docs/guide.md")]
pub mod guide {}

#[doc = include_str!("../docs/autodiff.md")]
pub mod autodiff {}

#[doc = include_str!("../docs/layers.md")]
pub mod layers {}

/// [hub]: crate::docs::hub
#[doc = include_str!("../docs/applications.md")]
pub mod applications {}

#[doc = include_str!("../docs/python.md")]
pub mod python {}

/// [applications]: crate::docs::applications
#[doc = include_str!("../docs/hub.md")]
pub mod hub {}

#[doc = include_str!("../docs/keras-for-wgrad.md")]
pub mod keras_for_wgrad {}

#[doc = include_str!("../docs/training.md")]
pub mod training {}

// Its programs are tested only with all the formats that they read enabled: `cargo xtask test`.
#[cfg_attr(
    any(not(doctest), all(feature = "csv", feature = "npy", feature = "tfrecord")),
    doc = include_str!("../docs/data.md")
)]
pub mod data {}

#[cfg_attr(
    any(not(doctest), all(feature = "keras-files", feature = "preprocessing")),
    doc = include_str!("../docs/preprocessing.md")
)]
pub mod preprocessing {}

/// [benchmarks]: crate::docs::benchmarks
/// [preprocessing]: crate::docs::preprocessing
#[cfg_attr(any(not(doctest), feature = "estimator"), doc = include_str!("../docs/estimators.md"))]
pub mod estimators {}

#[cfg_attr(
    any(not(doctest), all(feature = "keras-files", feature = "npy", feature = "safetensors")),
    doc = include_str!("../docs/weights.md")
)]
pub mod weights {}

#[cfg_attr(any(not(doctest), feature = "checkpoint"), doc = include_str!("../docs/checkpoints.md"))]
pub mod checkpoints {}

#[cfg_attr(any(not(doctest), feature = "summary"), doc = include_str!("../docs/tensorboard.md"))]
pub mod tensorboard {}

#[cfg_attr(any(not(doctest), feature = "saved-model"), doc = include_str!("../docs/export.md"))]
pub mod export {}

/// [guide]: crate::docs::guide
#[cfg_attr(
    any(not(doctest), all(feature = "keras", feature = "saved-model")),
    doc = include_str!("../docs/saved-models.md")
)]
pub mod saved_models {}

/// [guide]: crate::docs::guide
#[cfg_attr(any(not(doctest), feature = "saved-model"), doc = include_str!("../docs/onnx.md"))]
pub mod onnx {}

#[doc = include_str!("../FEATURES.md")]
pub mod features {}

/// [embedding]: crate::docs::embedding
#[doc = include_str!("../docs/how-it-runs.md")]
pub mod how_it_runs {}

/// [how-it-runs]: crate::docs::how_it_runs
#[doc = include_str!("../docs/embedding.md")]
pub mod embedding {}

#[doc = include_str!("../docs/web.md")]
pub mod web {}

#[doc = include_str!("../docs/c.md")]
pub mod c {}

#[doc = include_str!("../docs/tuning.md")]
pub mod tuning {}

/// [benchmarks]: crate::docs::benchmarks
#[doc = include_str!("../docs/devices.md")]
pub mod devices {}

/// [devices]: crate::docs::devices
/// [many-workers]: crate::docs::many_workers
#[doc = include_str!("../docs/distribute.md")]
pub mod distribute {}

/// [benchmarks]: crate::docs::benchmarks
/// [distribute]: crate::docs::distribute
#[doc = include_str!("../docs/many-workers.md")]
pub mod many_workers {}

#[doc = include_str!("../docs/benchmarks.md")]
pub mod benchmarks {}

#[doc = include_str!("../docs/accuracy.md")]
pub mod accuracy {}

#[doc = include_str!("../docs/portability.md")]
pub mod portability {}

#[doc = include_str!("../docs/ops.md")]
pub mod ops {}

#[doc = include_str!("../docs/architecture.md")]
pub mod architecture {}

#[doc = include_str!("../CONTRIBUTING.md")]
pub mod contributing {}
