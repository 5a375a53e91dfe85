// Loads an ONNX model and a .keras file, and compares their results with those of onnxruntime and Keras.
// Its argument is the folder tests/data.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "wgrad.hpp"

namespace {

wgrad::tensor tensor(std::vector<int64_t> shape, const std::vector<float> &values) {
    return wgrad::make<wgrad::tensor>([&](wgrad_tensor **out) {
        return wgrad_tensor_from_data(nullptr, WGRAD_FLOAT32, shape.data(), shape.size(), values.data(), values.size() * sizeof(float), out);
    });
}

std::vector<float> values(const wgrad::tensor &tensor) {
    size_t bytes = 0;
    wgrad::check(wgrad_tensor_bytes(tensor.get(), &bytes));
    std::vector<float> values(bytes / sizeof(float));
    wgrad::check(wgrad_tensor_read(tensor.get(), values.data(), bytes));
    return values;
}

void compare(const char *what, const std::vector<float> &found, const std::vector<float> &expected) {
    if (found.size() != expected.size()) throw std::runtime_error(std::string(what) + ": another number of values");
    for (size_t i = 0; i < found.size(); i++) {
        if (!(std::fabs(found[i] - expected[i]) < 1e-5f)) {
            throw std::runtime_error(std::string(what) + ": " + std::to_string(found[i]) + " in place of " + std::to_string(expected[i]));
        }
    }
    std::printf("%s: %zu values as expected\n", what, found.size());
}

void onnx(const std::string &data) {
    auto model = wgrad::make<wgrad::function>([&](wgrad_function **out) {
        return wgrad_function_load_onnx(nullptr, (data + "/onnx/mlp.onnx").c_str(), out);
    });
    std::string signature = wgrad::text([&](char **out) { return wgrad_function_signature(model.get(), out); });
    std::printf("signature: %s\n", signature.c_str());
    auto x = tensor({4, 6}, {-1.0911461f, -1.2776802f, 0.6304115f, 0.5811658f, 1.2945588f, -0.7546058f, 1.6891074f, -0.2873877f,
                             1.5744083f, -0.4327858f, -0.7354833f, 0.2497854f, 1.0314531f, 0.1610096f, -0.5855289f, -1.3412197f,
                             -1.4015203f, 0.5026829f, 0.9897130f, -0.1642946f, -1.0743649f, 0.8730422f, -1.2803940f, -0.7130681f});
    wgrad_tensor *inputs[] = {x.get()};
    auto y = wgrad::make<wgrad::tensor>([&](wgrad_tensor **out) {
        return wgrad_function_call(model.get(), nullptr, inputs, 1, out, 1, nullptr);
    });
    compare("ONNX", values(y), {0.4810231f, 0.3064258f, 0.2125512f, 0.4796292f, 0.2696844f, 0.2506864f,
                                0.5679077f, 0.1948753f, 0.2372169f, 0.4273955f, 0.3110320f, 0.2615726f});
}

// The file has the settings of its training and the optimizer's state, so the losses continue as in Keras.
void keras(const std::string &data) {
    auto model = wgrad::make<wgrad::model>([&](wgrad_model **out) {
        return wgrad_model_load(nullptr, (data + "/keras_files/trained.keras").c_str(), 1, out);
    });
    auto x = tensor({8, 3}, {1.5449458f, 0.1427286f, -0.7350261f, 0.5453542f, -1.1296571f, -0.6437511f, -0.7314417f, 0.6344362f,
                             1.5893626f, -0.5550458f, -0.8651838f, -0.2078586f, 0.9765081f, -0.1681599f, 0.0903117f, -0.6871508f,
                             1.8649681f, -1.9435579f, -0.2967273f, -0.9058936f, -0.0379332f, 1.2121302f, 1.7039982f, -1.3159431f});
    auto y = tensor({8, 1}, {2.0898917f, 0.0907084f, -2.4628835f, -2.1100917f, 0.9530163f, -2.3743014f, -1.5934546f, 1.4242604f});
    wgrad_tensor *inputs[] = {x.get()}, *targets[] = {y.get()};
    std::vector<float> losses;
    for (int step = 0; step < 4; step++) {
        std::string logs = wgrad::text([&](char **out) {
            return wgrad_model_train_on_batch(model.get(), inputs, 1, targets, 1, out);
        });
        size_t at = logs.find("\"loss\":");
        if (at == std::string::npos) throw std::runtime_error("no loss in " + logs);
        losses.push_back(std::stof(logs.substr(at + 7)));
    }
    compare("Keras", losses, {1.4506804f, 1.3572881f, 1.2677584f, 1.1820931f});
}

}  // namespace

int main(int count, char **arguments) {
    try {
        std::string data = count > 1 ? arguments[1] : "tests/data";
        onnx(data);
        keras(data);
        try {
            onnx("nowhere");
            return 1;
        } catch (const wgrad::error &error) {
            if (error.status != WGRAD_NOT_FOUND) throw;
        }
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return wgrad_open_handles() == 0 ? 0 : 1;
}
