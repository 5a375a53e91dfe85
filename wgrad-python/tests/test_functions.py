"""Every function, called with as few arguments as TensorFlow needs, and many of them compared with NumPy."""

import unittest

import numpy as np

import wgrad as tf
from wgrad.ops import FUNCTIONS


def arguments():
    """The arguments of functions that need others than one or two matrices of floats."""
    x = tf.constant(np.random.default_rng(1).random((3, 4), dtype="float32") + 0.1)
    images = tf.random.uniform([1, 8, 8, 3])
    square = tf.constant(np.random.default_rng(2).random((4, 4), dtype="float32"))
    truth = x > 0.5
    segments = (x, [0, 0, 1])
    calls = {
        "math.top_k": (x, 2), "math.add_n": ([x, x],), "math.bincount": ([1, 1, 2],),
        "nn.conv1d": (tf.ones([1, 5, 2]), tf.ones([3, 2, 4]), 1, "SAME"),
        "nn.conv2d": (images, tf.ones([3, 3, 3, 4]), [1, 1, 1, 1], "SAME"),
        "nn.conv3d": (tf.ones([1, 4, 4, 4, 1]), tf.ones([2, 2, 2, 1, 2]), [1, 1, 1, 1, 1], "SAME"),
        "nn.depthwise_conv2d": (images, tf.ones([3, 3, 3, 1]), [1, 1, 1, 1], "SAME"),
        "nn.separable_conv2d": (images, tf.ones([3, 3, 3, 1]), tf.ones([1, 1, 3, 2]), [1, 1, 1, 1], "SAME"),
        "nn.bias_add": (x, tf.ones([4])), "nn.max_pool2d": (images, 2, 2, "VALID"),
        "nn.avg_pool2d": (images, [1, 2, 2, 1], [1, 2, 2, 1], "VALID"),
        "nn.max_pool1d": (tf.ones([1, 6, 2]), 2, 2, "VALID"), "nn.avg_pool1d": (tf.ones([1, 6, 2]), 2, 2, "VALID"),
        "nn.space_to_depth": (images, 2), "nn.depth_to_space": (tf.ones([1, 2, 2, 4]), 2), "nn.moments": (x, [0]),
        "nn.sparse_softmax_cross_entropy_with_logits": ([1, 0, 2], x),
        "nn.weighted_cross_entropy_with_logits": (x, x, 2.0), "nn.local_response_normalization": (images,),
        "nn.embedding_lookup": (x, [0, 1]), "linalg.matmul": (x, square), "linalg.matvec": (x, tf.ones([4])),
        "linalg.diag": (tf.ones([3]),), "linalg.diag_part": (square,), "linalg.trace": (square,),
        "linalg.band_part": (square, 1, 0), "linalg.global_norm": ([x, x],), "tensordot": (x, square, 1),
        "gather": (x, [0, 2]), "gather_nd": (x, [[0, 1]]), "scatter_nd": ([[1]], [2.0], [4]),
        "boolean_mask": (x, truth), "one_hot": ([0, 1], 3), "searchsorted": ([1.0, 2.0, 3.0], [2.5]),
        "concat": ([x, x], 0), "split": (x, 2, 1), "stack": ([x, x],), "slice": (x, [0, 0], [2, 2]),
        "pad": (x, [[1, 1], [0, 0]]), "tile": (x, [1, 2]), "repeat": (x, 2), "reverse": (x, [0]), "roll": (x, 1, 0),
        "reshape": (x, [4, 3]), "expand_dims": (x, 0), "squeeze": (tf.ones([1, 2]),),
        "broadcast_to": (tf.ones([4]), [3, 4]), "clip_by_norm": (x, 1.0), "image.resize": (images, [4, 4]),
        "image.central_crop": (images, 0.5), "image.crop_to_bounding_box": (images, 1, 1, 3, 3),
        "image.pad_to_bounding_box": (images, 1, 1, 12, 12), "image.resize_with_crop_or_pad": (images, 4, 12),
        "image.resize_with_pad": (images, 4, 12), "image.adjust_brightness": (images, 0.1),
        "image.adjust_contrast": (images, 2.0), "image.adjust_saturation": (images, 0.5), "image.adjust_hue": (images, 0.1),
        "image.grayscale_to_rgb": (tf.ones([1, 4, 4, 1]),), "image.convert_image_dtype": (images, tf.float32),
    }
    whole, other = tf.constant([5, 3, 1]), tf.constant([1, 2, 3])
    definite = tf.matmul(square, square, transpose_b=True) + tf.eye(4)
    pairs = (tf.random.uniform([12, 12, 1]), tf.random.uniform([12, 12, 1]), 1.0)
    calls |= {f"bitwise.{name}": (whole, other) for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift")}
    calls |= {f"linalg.{name}": (definite,) for name in ("inv", "det", "slogdet", "logdet", "cholesky", "eigh", "eigvalsh", "lu", "expm")}
    calls |= {f"linalg.{name}": (definite, square) for name in ("solve", "cholesky_solve", "triangular_solve", "lstsq")}
    calls |= {
        "bitwise.invert": (whole,), "truncatediv": (whole, other), "truncatemod": (whole, other),
        "linalg.lu_solve": (*tf.linalg.lu(definite), square), "linalg.cross": (tf.ones([2, 3]), tf.ones([2, 3])),
        "linalg.set_diag": (square, tf.ones([4])), "linalg.tensor_diag_part": (square,), "math.in_top_k": ([1, 0, 2], x, 2),
        "math.invert_permutation": (tf.constant([2, 0, 1]),), "math.zeta": (x + 1.0, x), "math.lbeta": (x,),
        "nn.conv1d_transpose": (tf.ones([1, 5, 4]), tf.ones([3, 2, 4]), [1, 5, 2], 1),
        "nn.conv2d_transpose": (images, tf.ones([3, 3, 4, 3]), [1, 16, 16, 4], 2),
        "nn.conv3d_transpose": (tf.ones([1, 4, 4, 4, 1]), tf.ones([2, 2, 2, 3, 1]), [1, 8, 8, 8, 3], 2),
        "nn.max_pool3d": (tf.ones([1, 4, 4, 4, 1]), 2, 2, "VALID"), "nn.avg_pool3d": (tf.ones([1, 4, 4, 4, 1]), 2, 2, "VALID"),
        "nn.batch_normalization": (x, tf.zeros([4]), tf.ones([4]), tf.zeros([4]), tf.ones([4]), 1e-3), "image.psnr": pairs,
        "image.ssim": pairs, "reverse_sequence": (x, [1, 2, 3], 1, 0), "saturate_cast": (x, "uint8"),
        "unique": (whole,), "unique_with_counts": (whole,), "histogram_fixed_width": (x, [0.0, 1.0]), "space_to_batch": (images, [2, 2], [[0, 0], [0, 0]]),
        "batch_to_space": (tf.ones([4, 2, 2, 1]), [2, 2], [[0, 0], [0, 0]]),
    }
    for name in ("update", "add", "sub", "max", "min"):
        calls[f"tensor_scatter_nd_{name}"] = (tf.zeros([4]), [[1]], [2.0])
    for name in ("sum", "mean", "max", "min", "prod"):
        calls[f"math.segment_{name}"] = segments
    for name in ("sum", "mean", "max", "min", "prod", "sqrt_n"):
        calls[f"math.unsorted_segment_{name}"] = (*segments, 2)
    for name in ("logical_not", "logical_and", "logical_or", "logical_xor", "reduce_any", "reduce_all"):
        calls[f"math.{name}"] = (truth,) if name in ("logical_not", "reduce_any", "reduce_all") else (truth, truth)
    for name in ("hann", "hamming", "kaiser", "vorbis"):
        calls[f"signal.{name}_window"] = (8,)
    calls["signal.frame"], calls["signal.overlap_and_add"] = (x, 2, 1), (tf.ones([3, 4]), 2)
    calls["histogram_fixed_width_bins"] = (x, [0.0, 1.0])
    calls["image.crop_and_resize"] = (images, [[0.0, 0.0, 1.0, 1.0]], [0], [2, 2])
    calls["image.extract_patches"] = (images, [1, 2, 2, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID")
    calls["image.ssim_multiscale"] = (tf.ones([1, 20, 20, 1]), tf.ones([1, 20, 20, 1]), 1.0, [0.5, 0.5], 3)
    calls["nn.atrous_conv2d"] = (images, tf.ones([2, 2, images.shape[-1], 1]), 2, "SAME")
    calls["nn.max_pool_with_argmax"] = (images, [2, 2], [2, 2], "VALID")
    calls["nn.sufficient_statistics"] = (x, [0])
    calls["nn.normalize_moments"] = (tf.constant(2.0), x, x)
    calls["keras.activations.threshold"] = (x, 0.5, 0.0)
    calls["nn.weighted_moments"] = (x, [0], tf.ones([3, 1]))
    calls["nn.convolution"] = (images, tf.ones([2, 2, images.shape[-1], 1]))
    calls["nn.pool"] = (images, [2, 2], "MAX")
    return calls, x, images


NUMPY = """abs exp log log1p expm1 sqrt square sin cos tan tanh floor ceil sign reciprocal sinh cosh arcsinh negative add subtract
multiply divide maximum minimum less less_equal greater greater_equal equal not_equal""".split()


class Functions(unittest.TestCase):
    def test_every_function_has_tensorflow_s_defaults(self):
        calls, x, images = arguments()
        for name, function in FUNCTIONS.items():
            given = calls.get(name) or ((images,) if name.startswith("image.") else None)
            if given is None:
                parameters = function.__signature__.parameters.values()
                given = (x,) * sum(parameter.default is parameter.empty for parameter in parameters)
            with self.subTest(name=name):
                results = function(*given)
                for result in results if isinstance(results, (list, tuple)) else [results]:
                    self.assertIsInstance(result, tf.Tensor)

    def test_values_are_numpy_s(self):
        random = np.random.default_rng(3)
        a, b = random.random((2, 3), dtype="float32") + 0.5, random.random((2, 3), dtype="float32") + 0.5
        for name in NUMPY:
            function = getattr(tf.math, {"arcsinh": "asinh"}.get(name, name))
            wanted = getattr(np, name)
            given = (a, b) if wanted.nin == 2 else (a,)
            with self.subTest(name=name):
                np.testing.assert_allclose(function(*given).numpy(), wanted(*given), rtol=2e-5, atol=1e-6)
        for name in ("sum", "mean", "max", "min", "prod", "std"):
            for axis in (None, 0, 1):
                with self.subTest(name=name, axis=axis):
                    made = getattr(tf.math, f"reduce_{name}")(a, axis=axis)
                    np.testing.assert_allclose(made.numpy(), getattr(np, name)(a, axis=axis), rtol=1e-5)

    def test_functions_with_values_of_their_own(self):
        self.assertEqual(tf.math.confusion_matrix([1, 2, 4], [2, 2, 4]).numpy().tolist()[4], [0, 0, 0, 0, 1])
        self.assertEqual(tf.sequence_mask([1, 3]).numpy().tolist(), [[True, False, False], [True, True, True]])
        self.assertEqual(tf.clip_by_value([1, 5, 9], 2, 6).numpy().tolist(), [2, 5, 6])
        self.assertEqual(tf.one_hot([0, 2], 3).numpy().tolist(), [[1, 0, 0], [0, 0, 1]])
        self.assertEqual(tf.where([True, False], [1, 2], 0).numpy().tolist(), [1, 0])
        values, indices = tf.math.top_k([3.0, 1.0, 2.0], k=2)
        self.assertEqual((values.numpy().tolist(), indices.numpy().tolist()), ([3.0, 2.0], [0, 2]))
        self.assertEqual(tf.pad([[1, 2]], [[0, 0], [1, 1]]).numpy().tolist(), [[0, 1, 2, 0]])
        self.assertEqual(tf.range(2, 8, 3).numpy().tolist(), [2, 5])
        self.assertEqual(tf.einsum("ij,kj->ik", tf.ones([2, 3]), tf.ones([4, 3])).numpy().tolist(), [[3.0] * 4] * 2)
        clipped, norm = tf.clip_by_global_norm([tf.constant([3.0, 4.0])], 1.0)
        np.testing.assert_allclose(clipped[0].numpy(), [0.6, 0.8], rtol=1e-5)
        self.assertEqual(float(norm), 5.0)

    def test_slices_are_pythons(self):
        x = np.arange(60).reshape(3, 4, 5)
        t = tf.constant(x)
        for index in (
            0, -1, (0, 1), (slice(1, 3),), (slice(None, None, -1),), (slice(None), slice(3, 0, -2)), (slice(-1, -5, -1),),
            (Ellipsis, 2), (1, Ellipsis), (None, 1), (slice(None), None, 0), (slice(5, 9),), (slice(0, None, 2), Ellipsis, slice(4, None, -3)),
            (slice(-2, -9, -1), slice(1, -1)),
        ):
            with self.subTest(index=index):
                np.testing.assert_array_equal(t[index].numpy(), x[index])


if __name__ == "__main__":
    unittest.main()
