//! Attention layers.
//!
//! Those with several heads project their inputs and call `scaled_dot_product_attention` (`ops/attention`); the others compute
//! their own scores.

mod additive;
mod dot;
mod grouped;
mod heads;
mod macros;
mod multi_head;
mod projection;
mod scores;

pub use additive::AdditiveAttention;
pub use dot::{Attention, ScoreMode};
pub use grouped::GroupQueryAttention;
pub use heads::AttendOptions;
pub use multi_head::MultiHeadAttention;
pub use scores::{AttendCall, AttentionLayer};
