"""What other programs and libraries exchange with the module: DLPack, checkpoints, SavedModels, ONNX, notebooks."""

import ctypes
import gc
import os
import pathlib
import tempfile
import unittest

import numpy as np

import wgrad as tf
from wgrad import keras
from wgrad.keras import layers

DATA = pathlib.Path(__file__).parents[2] / "tests" / "data"


class Managed(ctypes.Structure):
    """DLPack's `DLManagedTensor` of version 0."""

    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64), ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),
    ]


class Producer:
    """An object of another library: a matrix of floats in its own memory."""

    def __init__(self, rows, device=1, code=2, bits=32, strides=None):
        self.values = (ctypes.c_float * (len(rows) * len(rows[0])))(*(x for row in rows for x in row))
        self.shape = (ctypes.c_int64 * 2)(len(rows), len(rows[0]))
        self.strides = None if strides is None else (ctypes.c_int64 * 2)(*strides)
        self.device, self.deleted = device, []
        self.deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda _: self.deleted.append(1))
        data = ctypes.cast(self.values, ctypes.c_void_p)
        strides = ctypes.cast(self.strides, ctypes.POINTER(ctypes.c_int64)) if strides else None
        self.managed = Managed(
            data, device, 0, 2, code, bits, 1, ctypes.cast(self.shape, ctypes.POINTER(ctypes.c_int64)), strides, 0, None, self.deleter
        )

    def __dlpack__(self, **options):
        make = ctypes.pythonapi.PyCapsule_New
        make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(self.managed), b"dltensor", None)

    def __dlpack_device__(self):
        return self.device, 0


class Exchange(unittest.TestCase):
    def test_tensors_of_other_libraries(self):
        for read in (tf.constant, tf.convert_to_tensor, tf.experimental.dlpack.from_dlpack):
            producer = Producer([[1.0, 2.0], [3.0, 4.0]])
            tensor = read(producer)
            self.assertEqual(tensor.numpy().tolist(), [[1.0, 2.0], [3.0, 4.0]])
            del tensor
            gc.collect()
            self.assertEqual(producer.deleted, [1])
        # A capsule without its object, as TensorFlow's function takes it.
        producer = Producer([[1.0, 2.0]])
        self.assertEqual(tf.experimental.dlpack.from_dlpack(producer.__dlpack__()).numpy().tolist(), [[1.0, 2.0]])
        gc.collect()
        self.assertEqual(producer.deleted, [1])
        transposed = Producer([[1.0, 2.0], [3.0, 4.0]], strides=(1, 2))
        self.assertEqual(tf.constant(transposed).numpy().tolist(), [[1.0, 3.0], [2.0, 4.0]])
        self.assertEqual(tf.reduce_sum(tf.constant(Producer([[1.5, 2.0]])) * 2.0).numpy(), 7.0)

    def test_what_cannot_be_exchanged_is_an_error(self):
        gpu = Producer([[1.0, 2.0]], device=2)
        with self.assertRaisesRegex(ValueError, "kind 2"):
            tf.constant(gpu)
        self.assertEqual(gpu.deleted, [])
        with self.assertRaisesRegex(ValueError, "from_dlpack"):
            # A bfloat of 16 bits, which NumPy lacks.
            tf.constant(Producer([[1.0, 2.0]], code=4, bits=16))
        with self.assertRaisesRegex(TypeError, "neither a capsule"):
            tf.experimental.dlpack.from_dlpack(3)
        used = tf.experimental.dlpack.to_dlpack(tf.constant([1.0]))
        tf.experimental.dlpack.from_dlpack(used)
        with self.assertRaises((ValueError, TypeError)):
            tf.experimental.dlpack.from_dlpack(used)
        with self.assertRaises(BufferError):
            tf.constant([1.0]).__dlpack__(stream=1)
        with self.assertRaises(BufferError):
            tf.constant([1.0]).__dlpack__(dl_device=(2, 0))

    def test_tensors_for_other_libraries(self):
        x = tf.constant([[1, 2], [3, 4]])
        array = np.from_dlpack(x)
        self.assertEqual((array.tolist(), array.dtype.name), ([[1, 2], [3, 4]], "int32"))
        again = tf.experimental.dlpack.from_dlpack(tf.experimental.dlpack.to_dlpack(x + 1))
        self.assertEqual(again.numpy().tolist(), [[2, 3], [4, 5]])
        self.assertEqual(np.from_dlpack(tf.constant(5.0)).shape, ())


class ByteOrders(unittest.TestCase):
    def test_arrays_of_the_other_byte_order_become_tensors(self):
        for dtype in (">f4", ">f8", ">f2", ">i4", ">i8", ">u2", ">u4"):
            with self.subTest(dtype=dtype):
                self.assertEqual(tf.constant(np.array([[1, 2], [3, 400]], dtype)).numpy().tolist(), [[1, 2], [3, 400]])


class Notebooks(unittest.TestCase):
    def test_tables_are_small_and_escaped(self):
        self.assertIn("<table>", tf.constant([[1.0, 2.0]])._repr_html_())
        self.assertLess(len(tf.zeros([4000, 1000])._repr_html_()), 2000)
        self.assertLess(len(tf.zeros([40, 40, 40])._repr_html_()), 10_000)
        self.assertIn("Variable", tf.Variable([1.0])._repr_html_())
        model = keras.Sequential([keras.Input((2,)), layers.Dense(1, name="<b>bold")])
        shown = model._repr_html_()
        self.assertNotIn("<b>bold", shown)
        self.assertIn("&lt;b&gt;bold", shown)
        many = keras.Sequential([keras.Input((2,))] + [layers.Dense(2) for _ in range(100)])
        self.assertLess(len(many._repr_html_()), 40_000)


class Checkpoints(unittest.TestCase):
    def test_the_manager_is_the_crates(self):
        with tempfile.TemporaryDirectory() as folder:
            v = tf.Variable(0.0)
            checkpoint = tf.train.Checkpoint(v=v)
            self.assertIsNone(tf.train.latest_checkpoint(folder))
            manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
            self.assertIsNone(manager.latest_checkpoint)
            self.assertIsNone(manager.restore_or_initialize())
            for value in (1.0, 2.0, 3.0):
                v.assign(value)
                path = manager.save()
            self.assertEqual(pathlib.Path(path).name, "ckpt-3")
            self.assertEqual([pathlib.Path(p).name for p in manager.checkpoints], ["ckpt-2", "ckpt-3"])
            self.assertEqual(manager.latest_checkpoint, tf.train.latest_checkpoint(folder))
            v.assign(9.0)
            # Another manager of the folder continues.
            other = tf.train.CheckpointManager(tf.train.Checkpoint(v=v), folder, max_to_keep=2)
            self.assertTrue(other.restore_or_initialize().endswith("ckpt-3"))
            self.assertEqual(float(v), 3.0)
            self.assertTrue(other.save().endswith("ckpt-4"))
            (pathlib.Path(folder) / "checkpoint").write_text("model_checkpoint_path: \"ckpt")
            with self.assertRaises(ValueError):
                tf.train.latest_checkpoint(folder)

    def test_lists_dicts_and_checkpoints_are_parts(self):
        def program(first):
            layers = [tf.keras.layers.Dense(2), {"scale": tf.Variable(first), "rest": (tf.Variable(first + 1), 7)}]
            layers[0].build([1, 3])
            optimizer = tf.keras.optimizers.SGD(0.5, momentum=0.5)
            self.assertFalse(optimizer.built)
            optimizer.build(layers[0].trainable_variables)
            self.assertTrue(optimizer.built)
            inner = tf.train.Checkpoint(layers=layers)
            return layers, optimizer, tf.train.Checkpoint(inner=inner, optimizer=optimizer)

        with tempfile.TemporaryDirectory() as folder:
            layers, optimizer, checkpoint = program(3.0)
            optimizer.apply([tf.ones([3, 2]), tf.ones([2])])
            path = checkpoint.save(pathlib.Path(folder) / "c")
            again, other, restored = program(0.0)
            restored.restore(path).assert_consumed()
            self.assertEqual(float(again[1]["scale"]), 3.0)
            self.assertEqual(float(again[1]["rest"][0]), 4.0)
            self.assertEqual(again[0].get_weights()[0].tolist(), layers[0].get_weights()[0].tolist())
            # The momentum is restored, too.
            for step in (optimizer, other):
                step.apply([tf.zeros([3, 2]), tf.zeros([2])])
            self.assertEqual(again[0].get_weights()[0].tolist(), layers[0].get_weights()[0].tolist())
            name = "inner/layers/1/scale/.ATTRIBUTES/VARIABLE_VALUE"
            self.assertIn((name, []), tf.train.list_variables(folder))
            self.assertEqual(tf.train.load_variable(path, name), np.float32(3.0))
        with self.assertRaisesRegex(ValueError, "1 gradients for 2 variables"):
            optimizer.apply([None])
        with self.assertRaisesRegex(ValueError, "call build"):
            tf.keras.optimizers.SGD().apply([None])

    def test_many_small_lists_keep_their_variables_apart(self):
        def program(first):
            rows = [[[tf.Variable(first + 3 * at + k)] for k in range(3)] for at in range(40)]
            shared = [rows[0]]
            shared.append(shared)
            for _ in range(60):
                shared = [shared, shared]
            return rows, tf.train.Checkpoint(inner=tf.train.Checkpoint(rows=rows), shared=shared)

        with tempfile.TemporaryDirectory() as folder:
            path = program(0.0)[1].write(pathlib.Path(folder) / "c")
            rows, checkpoint = program(1000.0)
            checkpoint.read(path).assert_consumed()
            self.assertEqual([float(v) for row in rows for (v,) in row], list(range(120)))

    def test_a_checkpoint_of_tensorflow_is_read(self):
        reader = tf.train.load_checkpoint(DATA / "checkpoint" / "dtypes")
        dtypes = {name.split("/")[0]: dtype for name, dtype in reader.get_variable_to_dtype_map().items()}
        self.assertEqual((dtypes["f64"], dtypes["bf16"].name), (tf.float64, "bfloat16"))
        for name, shape in reader.get_variable_to_shape_map().items():
            self.assertTrue(reader.has_tensor(name))
            self.assertEqual(list(reader.get_tensor(name).shape), shape, name)
        self.assertFalse(reader.has_tensor("nothing"))
        with self.assertRaisesRegex(Exception, "nothing"):
            reader.get_tensor("nothing")
        with self.assertRaises(FileNotFoundError):
            tf.train.load_checkpoint("/no/such/ckpt-1")


class SavedModels(unittest.TestCase):
    def test_a_model_of_tensorflow(self):
        model = tf.saved_model.load(DATA / "saved_model" / "cnn")
        serve = model.signatures["serving_default"]
        self.assertIn("serving_default", model.signatures)
        ((name, spec),) = serve.structured_input_signature[1].items()
        x = np.random.default_rng(0).random((2, 16, 16, 3), dtype="float32")
        results = serve(**{name: x})
        self.assertEqual(list(results), ["output_0"])
        self.assertEqual(results["output_0"].shape, (2, 5))
        np.testing.assert_array_equal(serve(x)["output_0"].numpy(), results["output_0"].numpy())
        self.assertTrue(model.variables)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(serve(x)["output_0"])
        self.assertTrue(any(g is not None for g in tape.gradient(loss, model.trainable_variables)))
        with self.assertRaisesRegex(KeyError, "serving_default"):
            model.signatures["nothing"]
        with self.assertRaisesRegex(ValueError, "no input"):
            serve(x, colour=x)
        with self.assertRaises(FileNotFoundError):
            tf.saved_model.load("/no/such/model")

    def test_models_are_written_and_loaded(self):
        x = np.random.default_rng(1).random((3, 4), dtype="float32")
        with tempfile.TemporaryDirectory() as folder:
            model = keras.Sequential([keras.Input((4,)), layers.Dense(3, activation="relu"), layers.Dense(2)])
            model.export(os.path.join(folder, "exported"))
            again = tf.saved_model.load(os.path.join(folder, "exported"))
            np.testing.assert_allclose(again.serve(x).numpy(), model(x).numpy(), atol=1e-6)
            self.assertEqual(len(again.variables), 4)

            a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
            both = keras.Model([a, b], layers.Dense(2)(layers.add([a, b])))
            tf.saved_model.save(both, os.path.join(folder, "both"))
            served = tf.saved_model.load(os.path.join(folder, "both")).signatures["serving_default"]
            (result,) = served(a=x, b=x).values()
            np.testing.assert_allclose(result.numpy(), both([x, x]).numpy(), atol=1e-6)

    def test_functions_are_written_as_saved_models_and_onnx(self):
        class Scale(tf.Module):
            def __init__(self):
                super().__init__()
                self.factor = tf.Variable([1.0, 2.0, 3.0])

            @tf.function(input_signature=[tf.TensorSpec([None, 3], tf.float32, name="x")])
            def scaled(self, x):
                return {"scaled": x * self.factor, "total": tf.reduce_sum(x * self.factor, axis=1)}

        module = Scale()
        x = np.ones((2, 3), "float32")
        self.assertEqual(len(module.trainable_variables), 1)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "scale")
            tf.saved_model.save(module, path, signatures={"serving_default": module.scaled})
            loaded = tf.saved_model.load(path)
            results = loaded.signatures["serving_default"](x=x)
            self.assertEqual(results["scaled"].numpy().tolist(), [[1.0, 2.0, 3.0]] * 2)
            self.assertEqual(results["total"].numpy().tolist(), [6.0, 6.0])

            path = os.path.join(folder, "scale.onnx")
            tf.onnx.save(module, path, module.scaled)
            model = tf.onnx.load(path)
            self.assertEqual((model.input_names, sorted(model.output_names)), (["x"], ["scaled", "total"]))
            self.assertEqual(model(x)["total"].numpy().tolist(), [6.0, 6.0])
            with self.assertRaisesRegex(ValueError, "input_signature"):
                tf.onnx.save(module, path, tf.function(lambda x: x))
            with self.assertRaisesRegex(TypeError, "tf.function"):
                tf.saved_model.save(module, path, signatures=lambda x: x)
            with self.assertRaisesRegex(ValueError, "no variables"):
                tf.saved_model.save(3, path, signatures=module.scaled)
        with self.assertRaises(FileNotFoundError):
            tf.onnx.load("/no/such.onnx")


class Walks(unittest.TestCase):
    def test_two_thousand_shared_layers_are_visited_once(self):
        import time

        class Holder(layers.Layer):
            def __init__(self, *others):
                super().__init__()
                self.first = self.second = others[0] if others else None
                self.w = self.add_weight((1,), "ones", trainable=not others)

        shared = [Holder()]
        for _ in range(1999):
            # Each holds the one before it twice: 2^1999 paths lead to the first.
            shared.append(Holder(shared[-1]))

        class Net(keras.Model):
            def __init__(self):
                super().__init__()
                self.parts = shared

            def call(self, x):
                return x * self.parts[0].w

        model = Net()
        begin = time.monotonic()
        self.assertEqual(len(model.variables), 2000)
        self.assertEqual(len(shared[-1].variables), 2000)
        self.assertEqual(model.losses, [])
        model.trainable = False
        self.assertEqual(model.trainable_variables, [])
        model.trainable = True
        self.assertEqual(len(model.trainable_variables), 1)
        model.compile("sgd", "mse")
        model.fit(np.ones((4, 1)), np.ones((4, 1)), verbose=0)
        self.assertLess(time.monotonic() - begin, 30)
        # They are freed without a deep recursion.
        del model, shared, Net
        gc.collect()


if __name__ == "__main__":
    unittest.main()
