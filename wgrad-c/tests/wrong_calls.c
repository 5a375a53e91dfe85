/* More than 100 wrong calls: each is an error with a message, stores no result and leaves nothing open. Argument: an empty folder. */
#include "check.h"

static int calls = 0;
static size_t open_before;

#define WRONG(expected, call)                                                                            \
    do {                                                                                                 \
        wgrad_status status_ = (call);                                                                   \
        calls++;                                                                                         \
        if (status_ != (expected))                                                                       \
            FAIL("%s is %s (%s) in place of %s", #call, wgrad_status_name(status_), wgrad_last_error(),  \
                 wgrad_status_name(expected));                                                           \
        if (!*wgrad_last_error()) FAIL("%s has no message", #call);                                      \
        if (wgrad_open_handles() != open_before) FAIL("%s leaves a handle open", #call);                 \
    } while (0)

static int32_t fails(void *user, uint64_t index, wgrad_batch *batch) {
    (void)user, (void)index, (void)batch;
    return -7;
}
static int32_t empty(void *user, uint64_t index, wgrad_batch *batch) {
    (void)user, (void)index, (void)batch;
    return 1;
}
static int32_t none(void *user, uint64_t index, wgrad_batch *batch) {
    (void)user, (void)index, (void)batch;
    return 0;
}
static wgrad_batch *kept;
static int32_t keeps(void *user, uint64_t index, wgrad_batch *batch) {
    kept = batch;
    if (index > 0) return 0;
    CHECK(wgrad_batch_add_input(batch, (wgrad_tensor *)user));
    CHECK(wgrad_batch_add_target(batch, (wgrad_tensor *)user));
    return 1;
}

int main(int count, char **arguments) {
    TRUE(count == 2);
    const char *folder = arguments[1];
    char path[600];
    wgrad_device *device, *out_device = NULL;
    wgrad_tensor *x, *y, *freed, *result = NULL, *results[4];
    wgrad_variable *v, *made_variable = NULL;
    wgrad_tape *tape, *out_tape = NULL;
    wgrad_model *model, *bare, *out_model = NULL;
    wgrad_optimizer *sgd, *out_optimizer = NULL;
    wgrad_function *out_function = NULL;
    wgrad_dataset *dataset, *out_dataset = NULL;
    wgrad_checkpoint *checkpoint, *out_checkpoint = NULL;
    char *text = NULL;
    size_t number;
    int32_t dtype;
    int64_t shape[2] = {2, 3}, negative[1] = {-1}, huge[2] = {INT64_MAX, INT64_MAX}, many[70] = {0};
    float values[6] = {1, 2, 3, 4, 5, 6};
    const char *xy[] = {"x", "y"}, *ab[] = {"a", "b"}, *xs[] = {"x"}, *not_utf8[] = {"\xff"}, *nulls[] = {NULL, NULL};

    CHECK(wgrad_device_default(&device));
    CHECK(wgrad_tensor_from_data(device, WGRAD_FLOAT32, shape, 2, values, 24, &x));
    y = floats(device, 4, values);
    freed = floats(device, 1, values);
    CHECK(wgrad_tensor_free(freed));
    CHECK(wgrad_variable_new(x, 1, &v));
    CHECK(wgrad_tape_new(0, &tape));
    CHECK(wgrad_tape_watch(tape, x));
    CHECK(wgrad_model_from_json(NULL, "{\"class_name\": \"Dense\", \"config\": {\"units\": 3}}", &model));
    CHECK(wgrad_model_from_json(NULL, "{\"class_name\": \"Dense\", \"config\": {\"units\": 3}}", &bare));
    CHECK(wgrad_model_compile(model, "{\"optimizer\": \"sgd\", \"loss\": \"mse\"}"));
    CHECK(wgrad_optimizer_from_json("\"sgd\"", &sgd));
    CHECK(wgrad_dataset_from_callback(none, NULL, NULL, &dataset));
    CHECK(wgrad_checkpoint_new(&checkpoint));
    open_before = wgrad_open_handles();
    wgrad_tensor *pair[2] = {x, y}, *one[1] = {x}, *null_inside[2] = {x, NULL}, *freed_inside[2] = {x, freed};
    wgrad_tensor *kinds[1] = {(wgrad_tensor *)device};

    /* Devices. */
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_device_open(NULL, 0, NULL));
    WRONG(WGRAD_DEVICE, wgrad_device_open("no such adapter", 0, &out_device));
    WRONG(WGRAD_DEVICE, wgrad_device_open("999", 0, &out_device));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_device_open("\xc3(", 0, &out_device));
    TRUE(out_device == NULL);
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_device_default(NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_device_set_default(NULL));
    WRONG(WGRAD_INVALID_HANDLE, wgrad_device_set_default((wgrad_device *)x));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_device_name(device, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_device_name(NULL, &text));
    WRONG(WGRAD_INVALID_HANDLE, wgrad_device_name((wgrad_device *)y, &text));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_device_memory(NULL, NULL, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_device_flush(NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_device_run_for(device, 1000, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_device_synchronize(NULL));
    WRONG(WGRAD_INVALID_HANDLE, wgrad_device_synchronize((wgrad_device *)(uintptr_t)0x1234567));
    WRONG(WGRAD_INVALID_HANDLE, wgrad_device_destroy((wgrad_device *)x));
    WRONG(WGRAD_INVALID_HANDLE, wgrad_device_free((wgrad_device *)x));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_adapters(NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_device_vulkan(device, NULL));

    /* Tensors of host memory. */
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_from_data(device, WGRAD_FLOAT32, shape, 2, values, 24, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_from_data(device, WGRAD_FLOAT32, shape, 2, values, 23, &result));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_from_data(device, WGRAD_FLOAT32, shape, 2, NULL, 24, &result));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_from_data(device, WGRAD_FLOAT32, NULL, 2, values, 24, &result));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_from_data(device, WGRAD_FLOAT32, negative, 1, values, 24, &result));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_from_data(device, WGRAD_FLOAT32, huge, 2, values, 24, &result));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_from_data(device, WGRAD_FLOAT32, many, 70, values, 0, &result));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_from_data(device, 0, shape, 2, values, 24, &result));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_from_data(device, 7, shape, 2, values, 24, &result));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_from_data(device, 8, shape, 2, values, 48, &result));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_from_data(device, -5, shape, 2, values, 24, &result));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_from_data(device, INT32_MAX, shape, 2, values, 24, &result));
    WRONG(WGRAD_INVALID_HANDLE, wgrad_tensor_from_data((wgrad_device *)x, WGRAD_FLOAT32, shape, 2, values, 24, &result));
    int64_t too_large = INT64_MAX, single = 1;
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_from_data(device, WGRAD_INT64, &single, 1, &too_large, 8, &result));
    TRUE(result == NULL);

    /* Tensors. */
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_dtype(x, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_dtype(NULL, &dtype));
    WRONG(WGRAD_INVALID_HANDLE, wgrad_tensor_dtype(freed, &dtype));
    WRONG(WGRAD_TOO_SMALL, wgrad_tensor_shape(x, shape, 1, &number));
    TRUE(number == 2);
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_shape(x, NULL, 2, &number));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_shape(x, shape, 2, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_bytes(x, NULL));
    WRONG(WGRAD_INVALID_HANDLE, wgrad_tensor_bytes((wgrad_tensor *)v, &number));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_read(x, values, 23));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_read(x, values, 25));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_read(x, values, SIZE_MAX));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_read(x, NULL, 24));
    WRONG(WGRAD_INVALID_HANDLE, wgrad_tensor_read(freed, values, 4));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_to_string(x, NULL));
    WRONG(WGRAD_INVALID_HANDLE, wgrad_tensor_clone(freed, &result));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_to_device(x, NULL, &result));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_device(x, NULL));
    WRONG(WGRAD_INVALID_HANDLE, wgrad_tensor_free(freed));
    WRONG(WGRAD_INVALID_HANDLE, wgrad_tensor_free((wgrad_tensor *)tape));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_to_dlpack(x, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_from_dlpack(device, NULL, &result));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_from_dlpack_unversioned(device, NULL, &result));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_vulkan_buffer(x, NULL, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_from_vulkan_buffer(device, 0, 16, WGRAD_FLOAT32, shape, 2, &result));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_from_vulkan_buffer(device, 1, 24, WGRAD_FLOAT32, shape, 2, &result));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_from_vulkan_buffer(device, 1, 32, WGRAD_INT64, shape, 2, &result));
    WRONG(WGRAD_DEVICE, wgrad_tensor_from_vulkan_buffer(device, 1, 16, WGRAD_FLOAT32, shape, 2, &result));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tensor_release_vulkan_buffer(NULL));

    /* Variables. */
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_variable_new(NULL, 1, &made_variable));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_variable_new(x, 1, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_variable_read(v, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_variable_assign(v, y));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_variable_assign_add(v, y));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_variable_assign_sub(v, NULL));
    WRONG(WGRAD_INVALID_HANDLE, wgrad_variable_free((wgrad_variable *)x));

    /* Ops. */
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_op(NULL, NULL, xy, pair, 2, NULL, &result, 1, NULL));
    WRONG(WGRAD_NOT_FOUND, wgrad_op(NULL, "tf.no.such.op", xy, pair, 2, NULL, &result, 1, NULL));
    WRONG(WGRAD_NOT_FOUND, wgrad_op(NULL, "", xy, pair, 2, NULL, &result, 1, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_op(NULL, "\xff", xy, pair, 2, NULL, &result, 1, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_op(NULL, "tf.math.add", xy, pair, 2, NULL, &result, 1, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_op(NULL, "tf.linalg.matmul", ab, pair, 2, NULL, &result, 1, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_op(NULL, "tf.linalg.matmul", ab, pair, 1, NULL, &result, 1, NULL));
    wgrad_tensor *three[3] = {x, x, x};
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_op(NULL, "tf.where", NULL, three, 3, NULL, &result, 1, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_op(NULL, "tf.math.square", NULL, pair, 2, NULL, &result, 1, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_op(NULL, "tf.math.add", NULL, pair, 1, NULL, &result, 1, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_op(NULL, "tf.math.add", nulls, pair, 2, NULL, &result, 1, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_op(NULL, "tf.math.add", xy, NULL, 2, NULL, &result, 1, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_op(NULL, "tf.math.add", xy, null_inside, 2, NULL, &result, 1, NULL));
    WRONG(WGRAD_INVALID_HANDLE, wgrad_op(NULL, "tf.math.add", xy, freed_inside, 2, NULL, &result, 1, NULL));
    WRONG(WGRAD_INVALID_HANDLE, wgrad_op(NULL, "tf.math.square", xs, kinds, 1, NULL, &result, 1, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_op(NULL, "tf.math.square", not_utf8, one, 1, NULL, &result, 1, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_op(NULL, "tf.math.square", ab, one, 1, NULL, &result, 1, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_op(NULL, "tf.math.square", xs, one, 1, "{\"speed\": 3}", &result, 1, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_op(NULL, "tf.math.square", xs, one, 1, "[1]", &result, 1, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_op(NULL, "tf.math.square", xs, one, 1, "{", &result, 1, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_op(NULL, "tf.math.square", xs, one, 1, NULL, NULL, 1, NULL));
    WRONG(WGRAD_TOO_SMALL, wgrad_op(NULL, "tf.math.square", xs, one, 1, NULL, NULL, 0, &number));
    TRUE(number == 1);
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_op(NULL, "tf.math.square", xs, one, SIZE_MAX, NULL, &result, 1, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_ops(NULL));
    TRUE(result == NULL);

    /* Tapes. */
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tape_new(0, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tape_watch(tape, NULL));
    WRONG(WGRAD_INVALID_HANDLE, wgrad_tape_watch((wgrad_tape *)x, x));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tape_gradient(tape, x, NULL, 1, results));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tape_gradient(tape, x, one, 1, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_tape_gradient(tape, NULL, one, 1, results));
    WRONG(WGRAD_INVALID_HANDLE, wgrad_tape_gradient_variables(tape, x, (wgrad_variable **)one, 1, results));
    CHECK(wgrad_tape_gradient(tape, x, NULL, 0, NULL));
    WRONG(WGRAD_FAILED_PRECONDITION, wgrad_tape_gradient(tape, x, one, 1, results));
    WRONG(WGRAD_FAILED_PRECONDITION, wgrad_tape_watch(tape, x));
    CHECK(wgrad_tape_free(tape));
    open_before--;
    WRONG(WGRAD_INVALID_HANDLE, wgrad_tape_free(tape));
    TRUE(out_tape == NULL);

    /* Optimizers. */
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_optimizer_from_json(NULL, &out_optimizer));
    WRONG(WGRAD_INVALID_DATA, wgrad_optimizer_from_json("sgd", &out_optimizer));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_optimizer_from_json("\"no such\"", &out_optimizer));
    WRONG(WGRAD_INVALID_DATA, wgrad_optimizer_from_json("{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": \"fast\"}}", &out_optimizer));
    WRONG(WGRAD_INVALID_DATA, wgrad_optimizer_from_json("{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 1, \"wheels\": 4}}", &out_optimizer));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_optimizer_apply(sgd, one, NULL, 1));
    wgrad_tensor *wrong_shape[1] = {y}, *no_gradient[1] = {NULL};
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_optimizer_apply(sgd, wrong_shape, &v, 1));
    WRONG(WGRAD_FAILED_PRECONDITION, wgrad_optimizer_apply(sgd, no_gradient, &v, 1));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_optimizer_set_learning_rate(NULL, 1));

    /* Models. */
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_model_from_json(NULL, NULL, &out_model));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_model_from_json(NULL, "{", &out_model));
    WRONG(WGRAD_INVALID_DATA, wgrad_model_from_json(NULL, "{}", &out_model));
    WRONG(WGRAD_INVALID_DATA, wgrad_model_from_json(NULL, "[]", &out_model));
    WRONG(WGRAD_INVALID_DATA, wgrad_model_from_json(NULL, "{\"class_name\": \"Densest\", \"config\": {}}", &out_model));
    WRONG(WGRAD_INVALID_DATA, wgrad_model_from_json(NULL, "{\"class_name\": \"Dense\", \"config\": {\"units\": -1}}", &out_model));
    WRONG(WGRAD_NOT_FOUND, wgrad_model_load(NULL, "/no/such/file.keras", 1, &out_model));
    WRONG(WGRAD_INVALID_DATA, wgrad_model_load(NULL, "/", 1, &out_model));
    WRONG(WGRAD_INVALID_DATA, wgrad_model_load(NULL, arguments[0], 1, &out_model));
    WRONG(WGRAD_NOT_FOUND, wgrad_model_load_saved_model(NULL, "/no/such/folder", &out_model));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_model_to_json(model, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_model_summary(NULL, &text));
    snprintf(path, sizeof path, "%s/no/such/folder/model.keras", folder);
    WRONG(WGRAD_INVALID_DATA, wgrad_model_save(bare, path));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_model_save(bare, NULL));
    WRONG(WGRAD_NOT_FOUND, wgrad_model_load_weights(bare, "/no/such/file.weights.h5"));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_model_call(model, &y, 1, 0, &result, 1, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_model_call(model, NULL, 0, 0, &result, 1, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_model_call(model, pair, 2, 0, &result, 1, NULL));
    WRONG(WGRAD_TOO_SMALL, wgrad_model_call(model, one, 1, 0, NULL, 0, &number));
    WRONG(WGRAD_INVALID_DATA, wgrad_model_compile(model, "{}"));
    WRONG(WGRAD_INVALID_DATA, wgrad_model_compile(model, "{\"optimizer\": \"sgd\", \"loss\": \"no such\"}"));
    WRONG(WGRAD_INVALID_DATA, wgrad_model_compile(model, "{\"optimizer\": \"sgd\", \"loss\": \"mse\", \"speed\": 1}"));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_model_compile(model, "{\"optimizer\": \"no such\", \"loss\": \"mse\"}"));
    WRONG(WGRAD_INVALID_DATA, wgrad_model_train_on_batch(bare, one, 1, one, 1, NULL));
    WRONG(WGRAD_INVALID_DATA, wgrad_model_evaluate(bare, one, 1, one, 1, 0, &text));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_model_evaluate(model, one, 1, one, 1, 0, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_model_fit(model, one, 1, one, 1, "{\"epoch\": 3}", NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_model_fit(model, one, 1, one, 1, "{\"epochs\": -3}", NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_model_fit(model, one, 1, &y, 1, NULL, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_model_predict(model, &y, 1, 0, &result, 1, NULL));
    TRUE(out_model == NULL && result == NULL);

    /* Functions. */
    WRONG(WGRAD_NOT_FOUND, wgrad_function_load_onnx(NULL, "/no/such/model.onnx", &out_function));
    WRONG(WGRAD_INVALID_DATA, wgrad_function_load_onnx(NULL, arguments[0], &out_function));
    WRONG(WGRAD_NOT_FOUND, wgrad_function_load_saved_model(NULL, "/no/such/folder", NULL, &out_function));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_function_signature(NULL, &text));
    WRONG(WGRAD_INVALID_HANDLE, wgrad_function_call((wgrad_function *)model, NULL, one, 1, &result, 1, NULL));

    /* Datasets. */
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_dataset_from_callback(NULL, NULL, NULL, &out_dataset));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_dataset_from_callback(none, NULL, NULL, NULL));
    WRONG(WGRAD_INVALID_DATA, wgrad_model_fit_dataset(model, dataset, NULL, NULL));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_batch_add_input(NULL, x));
    wgrad_dataset *bad;
    wgrad_next ways[] = {fails, empty};
    for (int way = 0; way < 2; way++) {
        CHECK(wgrad_dataset_from_callback(ways[way], NULL, NULL, &bad));
        open_before++;
        WRONG(WGRAD_INVALID_DATA, wgrad_model_fit_dataset(model, bad, NULL, NULL));
        CHECK(wgrad_dataset_free(bad));
        open_before--;
    }
    CHECK(wgrad_dataset_from_callback(keeps, x, NULL, &bad));
    CHECK(wgrad_model_fit_dataset(model, bad, NULL, NULL));
    CHECK(wgrad_dataset_free(bad));
    WRONG(WGRAD_INVALID_HANDLE, wgrad_batch_add_input(kept, x));

    /* Checkpoints. */
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_checkpoint_new(NULL));
    CHECK(wgrad_checkpoint_add_variable(checkpoint, "v", v));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_checkpoint_add_variable(checkpoint, "v", v));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_checkpoint_add_model(checkpoint, NULL, model));
    WRONG(WGRAD_INVALID_HANDLE, wgrad_checkpoint_add_optimizer(checkpoint, "o", (wgrad_optimizer *)model));
    WRONG(WGRAD_NOT_FOUND, wgrad_checkpoint_restore(checkpoint, "/no/such/checkpoint", 0));
    WRONG(WGRAD_INVALID_ARGUMENT, wgrad_checkpoint_save(checkpoint, NULL, NULL));
    WRONG(WGRAD_NOT_FOUND, wgrad_checkpoint_latest("/no/such/folder", &text));
    /* What is saved is restored strictly; a save that fails does not count. */
    char prefix[512];
    snprintf(prefix, sizeof prefix, "%s/strict", folder);
    WRONG(WGRAD_IO, wgrad_checkpoint_save(checkpoint, "/dev/null/ckpt", NULL));
    CHECK(wgrad_checkpoint_save(checkpoint, prefix, &text));
    TRUE(strcmp(text + strlen(text) - 2, "-1") == 0);
    CHECK(wgrad_checkpoint_restore(checkpoint, text, 0));
    wgrad_string_free(text);
    text = NULL;
    TRUE(out_checkpoint == NULL && out_dataset == NULL && out_function == NULL && out_optimizer == NULL);
    TRUE(text == NULL);

    /* Nothing is lost: everything still works, with the same values. */
    float read[6];
    CHECK(wgrad_tensor_read(x, read, sizeof read));
    TRUE(memcmp(read, (float[]){1, 2, 3, 4, 5, 6}, sizeof read) == 0);
    wgrad_tensor *value;
    CHECK(wgrad_variable_read(v, &value));
    CHECK(wgrad_tensor_read(value, read, sizeof read));
    TRUE(memcmp(read, (float[]){1, 2, 3, 4, 5, 6}, sizeof read) == 0);
    CHECK(wgrad_model_train_on_batch(model, one, 1, one, 1, &text));
    wgrad_string_free(text);
    wgrad_string_free(NULL);

    CHECK(wgrad_tensor_free(value));
    CHECK(wgrad_tensor_free(x));
    CHECK(wgrad_tensor_free(y));
    CHECK(wgrad_tensor_free(NULL));
    CHECK(wgrad_variable_free(v));
    CHECK(wgrad_tape_free(NULL));
    CHECK(wgrad_model_free(model));
    CHECK(wgrad_model_free(bare));
    CHECK(wgrad_optimizer_free(sgd));
    CHECK(wgrad_dataset_free(dataset));
    CHECK(wgrad_checkpoint_free(checkpoint));
    CHECK(wgrad_device_free(device));
    TRUE(wgrad_open_handles() == 0);
    TRUE(calls >= 100);
    printf("%d wrong calls are errors\n", calls);
    return 0;
}
