// A Keras model in an Android app, through JNA (net.java.dev.jna:jna). The app has libwgrad.so, linked by the NDK for each of its
// ABIs, in src/main/jniLibs.
import com.sun.jna.Library
import com.sun.jna.Native
import com.sun.jna.Pointer
import com.sun.jna.ptr.LongByReference
import com.sun.jna.ptr.PointerByReference

/** The functions of wgrad.h that are used here. JNA passes `Long` as size_t and uint64_t on 64 bits. */
interface Wgrad : Library {
    fun wgrad_last_error(): String
    fun wgrad_status_name(status: Int): String
    fun wgrad_model_load(device: Pointer?, path: String, compile: Int, model: PointerByReference): Int
    fun wgrad_model_predict(
        model: Pointer?,
        x: Array<Pointer?>,
        xCount: Long,
        batchSize: Long,
        outputs: PointerByReference,
        capacity: Long,
        count: LongByReference?,
    ): Int
    fun wgrad_model_free(model: Pointer?): Int
    fun wgrad_tensor_from_data(
        device: Pointer?,
        dtype: Int,
        shape: LongArray,
        rank: Long,
        data: FloatArray,
        bytes: Long,
        tensor: PointerByReference,
    ): Int
    fun wgrad_tensor_bytes(tensor: Pointer?, bytes: LongByReference): Int
    fun wgrad_tensor_read(tensor: Pointer?, data: FloatArray, bytes: Long): Int
    fun wgrad_tensor_free(tensor: Pointer?): Int
}

class WgradException(status: String, message: String) : Exception("$status: $message")

class Classifier(path: String) : AutoCloseable {
    private val wgrad = Native.load("wgrad", Wgrad::class.java)
    private val model = PointerByReference()

    init {
        check(wgrad.wgrad_model_load(null, path, 0, model))
    }

    /** The probabilities of each class, for one row of features. */
    fun predict(features: FloatArray): FloatArray {
        val input = PointerByReference()
        val output = PointerByReference()
        try {
            val shape = longArrayOf(1, features.size.toLong())
            check(wgrad.wgrad_tensor_from_data(null, FLOAT32, shape, 2, features, 4L * features.size, input))
            check(wgrad.wgrad_model_predict(model.value, arrayOf(input.value), 1, 1, output, 1, null))
            val bytes = LongByReference()
            check(wgrad.wgrad_tensor_bytes(output.value, bytes))
            val probabilities = FloatArray((bytes.value / 4).toInt())
            check(wgrad.wgrad_tensor_read(output.value, probabilities, bytes.value))
            return probabilities
        } finally {
            wgrad.wgrad_tensor_free(input.value)
            wgrad.wgrad_tensor_free(output.value)
        }
    }

    override fun close() {
        wgrad.wgrad_model_free(model.value)
    }

    /** Throws the error of a call that failed. Its message belongs to the thread, so it is read at once. */
    private fun check(status: Int) {
        if (status != 0) throw WgradException(wgrad.wgrad_status_name(status), wgrad.wgrad_last_error())
    }

    private companion object {
        const val FLOAT32 = 1
    }
}
