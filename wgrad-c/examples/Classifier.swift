// A Keras model in a Swift app. The app links libwgrad.a, built for aarch64-apple-ios, and finds wgrad.h through module.modulemap.
import CWgrad

struct WgradError: Error {
    let status: String
    let message: String
}

/// Throws the error of a call that failed. Its message belongs to the thread, so it is read at once.
func check(_ status: Int32) throws {
    guard status != 0 else { return }
    throw WgradError(
        status: String(cString: wgrad_status_name(status)),
        message: String(cString: wgrad_last_error())
    )
}

/// `WGRAD_FLOAT32`.
let float32: Int32 = 1

final class Classifier {
    private var model: OpaquePointer?

    /// Loads a `.keras` file, such as one of the app's resources.
    init(path: String) throws {
        try check(wgrad_model_load(nil, path, 0, &model))
    }

    deinit {
        wgrad_model_free(model)
    }

    /// The probabilities of each class, for one row of features.
    func predict(_ features: [Float]) throws -> [Float] {
        var input: OpaquePointer?
        var output: OpaquePointer?
        defer {
            wgrad_tensor_free(input)
            wgrad_tensor_free(output)
        }
        let shape: [Int64] = [1, Int64(features.count)]
        let size = features.count * MemoryLayout<Float>.stride
        try check(wgrad_tensor_from_data(nil, float32, shape, shape.count, features, size, &input))
        try check(wgrad_model_predict(model, &input, 1, 1, &output, 1, nil))
        var bytes = 0
        try check(wgrad_tensor_bytes(output, &bytes))
        var probabilities = [Float](repeating: 0, count: bytes / MemoryLayout<Float>.stride)
        try check(wgrad_tensor_read(output, &probabilities, bytes))
        return probabilities
    }
}
