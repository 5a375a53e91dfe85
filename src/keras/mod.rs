//! Keras.
