//! Recurrent layers, their cells, and the layers that wrap them.
//!
//! A cell computes one step, and `Rnn` runs it over a sequence. The cells of LSTM, GRU and SimpleRNN have kernels for
//! whole sequences (`ops/recurrent`).

mod bidirectional;
mod cell;
mod conv_lstm;
mod gates;
mod gru;
mod lstm;
mod macros;
mod over_cells;
mod simple_rnn;
mod stacked;
mod states;
mod time_distributed;
mod walk;

pub use bidirectional::{Bidirectional, MergeMode};
pub use cell::RnnCell;
pub use conv_lstm::{ConvLstm1D, ConvLstm2D, ConvLstm3D};
pub use gru::{Gru, GruCell};
pub use lstm::{Lstm, LstmCell};
#[cfg(feature = "json")]
pub(crate) use over_cells::AnyRnn;
#[cfg(feature = "json")]
pub use over_cells::cell_from_config;
pub use over_cells::{Mirror, RecurrentLayer, Rnn, SequenceLayer};
pub use simple_rnn::{SimpleRnn, SimpleRnnCell};
pub use stacked::StackedRnnCells;
pub use time_distributed::TimeDistributed;
