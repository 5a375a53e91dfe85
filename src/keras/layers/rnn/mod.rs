//! Recurrent layers, their cells, and the layers that wrap them.
//!
//! A cell computes one step, and `RNN` runs it over a sequence. The cells of LSTM, GRU and SimpleRNN have kernels for whole
//! sequences (`ops/recurrent`).

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
pub use conv_lstm::{ConvLSTM1D, ConvLSTM2D, ConvLSTM3D};
pub use gru::{GRU, GRUCell};
pub use lstm::{LSTM, LSTMCell};
#[cfg(feature = "json")]
pub(crate) use over_cells::{AnyRNN, RunsSequences};
pub use over_cells::{Mirror, RNN, RecurrentLayer};
pub use simple_rnn::{SimpleRNN, SimpleRNNCell};
pub use stacked::StackedRNNCells;
pub use time_distributed::TimeDistributed;
