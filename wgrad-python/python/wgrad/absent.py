"""Names of TensorFlow that this package does not have, and what to use instead."""

_RAGGED = "no signature or record has ragged tensors: pad rows to one length (tf.RaggedTensor.to_tensor, Dataset.padded_batch), with masks of tf.sequence_mask"
_SPARSE = "few functions take sparse tensors: use dense ones; tf.sparse.to_dense makes one of indices and values, tf.where and tf.gather_nd read them"
_FIRST = "it is TensorFlow 1's: call functions of tf itself, which run at once, and tf.function for what is called often"
_OPERATOR = "there are no linear operators: use matrices and the functions of tf.linalg"

# Names without a namespace are those at the top.
INSTEAD = {
    "RaggedTensorSpec": _RAGGED, "io.RaggedFeature": _RAGGED,
    "SparseTensorSpec": _SPARSE, "IndexedSlices": _SPARSE, "io.SparseFeature": _SPARSE,
    "nn.embedding_lookup_sparse": _SPARSE, "nn.safe_embedding_lookup_sparse": _SPARSE, "edit_distance": _SPARSE,
    "sets": "sets are sparse tensors in TensorFlow: use Python's set, tf.unique, or numpy.intersect1d, union1d and setdiff1d",
    "estimator": "TensorFlow 2.16 and later have no estimators: use tf.keras",
    "feature_column": "use tf.keras.utils.FeatureSpace, or the layers of tf.keras.layers for preprocessing",
    "raw_ops": "call the public functions of tf, tf.math, tf.nn, ..",
    "contrib": _FIRST, "Session": _FIRST, "InteractiveSession": _FIRST, "placeholder": _FIRST, "ConfigProto": _FIRST,
    "get_variable": _FIRST, "variable_scope": _FIRST, "global_variables_initializer": _FIRST, "app": _FIRST, "flags": _FIRST,
    "layers": _FIRST, "log": "use tf.math.log", "to_float": "use tf.cast(x, tf.float32)", "to_int32": "use tf.cast(x, tf.int32)",
    "mul": "use tf.multiply", "sub": "use tf.subtract", "div": "use tf.divide", "rsqrt": "use tf.math.rsqrt", "logging": "use tf.get_logger()",
    "random_normal": "use tf.random.normal", "random_uniform": "use tf.random.uniform", "set_random_seed": "use tf.random.set_seed",
    "Graph": "there are no graphs of a program: use tf.function",
    "autodiff": "forward mode is not in this package: use tf.GradientTape and its jacobian",
    "tpu": "there are no TPUs", "xla": "there is no XLA; functions are compiled anyway", "lite": "use tf.saved_model.save or tf.onnx.save",
    "mlir": "there is no MLIR", "dtensor": "use tf.distribute", "profiler": "use Python's time, or the tools of the GPU's vendor",
    "quantization": "use tf.float16, or tf.saturate_cast to tf.uint8", "queue": "use tf.data.Dataset",
    "math.special": "use the functions of tf.math: bessel_i0, igamma, ..",
    "math.sobol_sample": "use tf.random.uniform", "numpy": "use NumPy itself, or tf.keras.ops",
    "io.parse_sequence_example": "use tf.io.parse_single_example with tf.io.FixedLenSequenceFeature",
    "io.parse_single_sequence_example": "use tf.io.parse_single_example with FixedLenSequenceFeature",
    "strings.to_hash_bucket": "use tf.strings.to_hash_bucket_fast", "linalg.experimental": "use the functions of tf.linalg",
    "data.experimental.SqlDataset": "read rows with Python's sqlite3, and use Dataset.from_generator",
}


def getter(module, namespace=""):
    """What a namespace calls for a name that it lacks: an error that says what to use."""

    def __getattr__(name):
        path = f"{namespace}.{name}" if namespace else name
        instead = INSTEAD.get(path) or (_OPERATOR if name.startswith("LinearOperator") else None)
        if instead is None:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        raise AttributeError(f"wgrad has no tf.{path}: {instead}.")

    return __getattr__


class _First:
    """TensorFlow's `tf.compat.v1`, of which nothing is here."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(f"wgrad has no tf.compat.v1.{name}: {_FIRST}.")


class compat:
    """TensorFlow's `tf.compat`: texts and bytes. `v1` has nothing, and `v2` is the package."""

    v1 = _First()

    @staticmethod
    def as_bytes(bytes_or_text, encoding="utf-8"):
        """The text as `bytes`."""
        return bytes_or_text.encode(encoding) if isinstance(bytes_or_text, str) else bytes(bytes_or_text)

    @staticmethod
    def as_text(bytes_or_text, encoding="utf-8"):
        """The text as `str`."""
        return bytes_or_text.decode(encoding) if isinstance(bytes_or_text, bytes) else str(bytes_or_text)

    as_str = as_text

    @staticmethod
    def as_str_any(value, encoding="utf-8"):
        """A value as `str`; bytes are a text."""
        return value.decode(encoding) if isinstance(value, bytes) else str(value)

    @staticmethod
    def path_to_str(path):
        """A path as `str`."""
        return str(path)
