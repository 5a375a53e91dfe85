//! Summaries: numbers, images and texts of a training run, in event files that TensorBoard displays.
//!
//! [`create_file_writer`] makes a writer, its `as_default` makes it the thread's, and the functions write to that: [`scalar`],
//! [`histogram`], [`image`], [`audio`], [`text`], [`tensor`]. `scope` stores the state of a thread, `queue` the waiting
//! summaries, `batch` reads tensors together and makes records, `file_writer` is the thread that appends them. [`read()`]
//! reads files.

mod batch;
mod event;
#[cfg(not(target_family = "wasm"))]
mod event_file;
#[cfg(not(target_family = "wasm"))]
mod file_writer;
mod graph;
mod graph_proto;
mod histogram;
mod hparams;
mod layout;
mod memory_writer;
mod payload;
mod picture;
mod plugin_proto;
mod proto;
mod queue;
#[cfg(not(target_family = "wasm"))]
mod read;
mod reader;
mod scope;
mod step;
mod tensor_proto;
mod text;
mod trace;
mod wav;
mod write;

pub use event::{Bucket, Event, Value};
#[cfg(not(target_family = "wasm"))]
pub use file_writer::{FileWriter, FileWriterOptions, create_file_writer, create_file_writer_with};
pub use graph::{Graph, Node, graph, keras_model};
pub use hparams::{
    HParam, HParamMetric, HParamValue, HParams, TrialStatus, hparams, hparams_config, hparams_end,
};
pub use layout::{Category, Layout, custom_layout};
pub use memory_writer::MemoryWriter;
#[cfg(not(target_family = "wasm"))]
pub use read::read;
pub use reader::EventReader;
pub use scope::{
    Condition, DefaultWriter, NameScope, Recording, get_step, name_scope, record_every, record_if,
    set_step, should_record_summaries,
};
pub use step::Step;
pub use text::Text;
#[cfg(not(target_family = "wasm"))]
pub use trace::trace_export;
pub use trace::{trace_export_async, trace_off, trace_on};
pub use write::text;
pub use write::{
    DescriptionOptions, HistogramOptions, MediaOptions, Number, audio, audio_with, histogram,
    histogram_with, image, image_with, scalar, scalar_with, tensor, text_with,
};
