//! Summaries: numbers, pictures and texts of a training run, in event files that TensorBoard shows.
