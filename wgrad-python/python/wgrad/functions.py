"""The functions that TensorFlow has at its top, which `ops` makes from its table."""
