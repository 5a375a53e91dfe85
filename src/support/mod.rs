//! What every room may use, and what knows none of them: the pattern of options, a fast hash, sorts, text tables, diagrams.

pub(crate) mod diagram;
pub(crate) mod mixer;
pub(crate) mod options;
pub(crate) mod sort;
pub(crate) mod text_table;
