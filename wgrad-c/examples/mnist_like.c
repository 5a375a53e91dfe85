/* Trains a small classifier on made images twice: with a tape and variables, and as a Keras model whose batches a callback makes.
 * It must reach an accuracy of 0.95 both times; it takes a few seconds on a software driver. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wgrad.h"

enum { PIXELS = 64, CLASSES = 10, EXAMPLES = 640, BATCH = 64, HIDDEN = 32, EPOCHS = 6 };

static float images[EXAMPLES][PIXELS];
static int32_t labels[EXAMPLES];

static void check(wgrad_status status, const char *call) {
    if (status == WGRAD_OK) return;
    fprintf(stderr, "%s: %s: %s\n", call, wgrad_status_name(status), wgrad_last_error());
    exit(1);
}
#define CHECK(call) check((call), #call)

static uint32_t state = 1;
static float uniform(void) { /* -1 to 1 */
    state = state * 1664525u + 1013904223u;
    return (float)(state >> 8) / 8388608.0f - 1.0f;
}

/* Each class has a picture of its own, and an example is that picture with noise. */
static void draw_images(void) {
    static float pictures[CLASSES][PIXELS];
    for (int c = 0; c < CLASSES; c++)
        for (int p = 0; p < PIXELS; p++) pictures[c][p] = uniform();
    for (int i = 0; i < EXAMPLES; i++) {
        labels[i] = i % CLASSES;
        for (int p = 0; p < PIXELS; p++) images[i][p] = pictures[labels[i]][p] + 0.8f * uniform();
    }
}

static wgrad_tensor *tensor(int32_t dtype, int64_t rows, int64_t columns, const void *data) {
    int64_t shape[2] = {rows, columns};
    size_t rank = columns > 0 ? 2 : 1;
    wgrad_tensor *made;
    CHECK(wgrad_tensor_from_data(NULL, dtype, shape, rank, data, (size_t)(rows * (columns > 0 ? columns : 1)) * 4, &made));
    return made;
}

static wgrad_tensor *op(const char *name, wgrad_tensor *x, wgrad_tensor *y) {
    wgrad_tensor *inputs[2] = {x, y}, *output;
    check(wgrad_op(NULL, name, NULL, inputs, y ? 2 : 1, NULL, &output, 1, NULL), name);
    return output;
}

static wgrad_variable *weights(int64_t rows, int64_t columns) {
    int64_t count = rows * (columns > 0 ? columns : 1);
    float *values = calloc((size_t)count, sizeof(float));
    for (int64_t i = 0; columns > 0 && i < count; i++) values[i] = 0.2f * uniform();
    wgrad_tensor *value = tensor(WGRAD_FLOAT32, rows, columns, values);
    wgrad_variable *made;
    CHECK(wgrad_variable_new(value, 1, &made));
    CHECK(wgrad_tensor_free(value));
    free(values);
    return made;
}

/* y = x w + b */
static wgrad_tensor *dense(wgrad_tensor *x, wgrad_variable *w, wgrad_variable *b) {
    wgrad_tensor *kernel, *bias;
    CHECK(wgrad_variable_read(w, &kernel));
    CHECK(wgrad_variable_read(b, &bias));
    wgrad_tensor *product = op("tf.linalg.matmul", x, kernel);
    wgrad_tensor *sum = op("tf.math.add", product, bias);
    wgrad_tensor *used[] = {kernel, bias, product};
    for (int i = 0; i < 3; i++) CHECK(wgrad_tensor_free(used[i]));
    return sum;
}

static wgrad_tensor *logits(wgrad_variable **v, wgrad_tensor *x) {
    wgrad_tensor *sum = dense(x, v[0], v[1]);
    wgrad_tensor *hidden = op("tf.nn.relu", sum, NULL);
    wgrad_tensor *result = dense(hidden, v[2], v[3]);
    CHECK(wgrad_tensor_free(sum));
    CHECK(wgrad_tensor_free(hidden));
    return result;
}

static float accuracy(wgrad_tensor *scores) {
    static float values[EXAMPLES][CLASSES];
    CHECK(wgrad_tensor_read(scores, values, sizeof values));
    int right = 0;
    for (int i = 0; i < EXAMPLES; i++) {
        int best = 0;
        for (int c = 1; c < CLASSES; c++)
            if (values[i][c] > values[i][best]) best = c;
        right += best == labels[i];
    }
    return (float)right / EXAMPLES;
}

static float by_hand(void) {
    wgrad_variable *v[4] = {weights(PIXELS, HIDDEN), weights(HIDDEN, 0), weights(HIDDEN, CLASSES), weights(CLASSES, 0)};
    wgrad_optimizer *adam;
    CHECK(wgrad_optimizer_from_json("{\"class_name\": \"Adam\", \"config\": {\"learning_rate\": 0.01}}", &adam));
    for (int step = 0; step < EPOCHS * EXAMPLES / BATCH; step++) {
        int first = step * BATCH % EXAMPLES;
        wgrad_tensor *x = tensor(WGRAD_FLOAT32, BATCH, PIXELS, images[first]);
        wgrad_tensor *y = tensor(WGRAD_INT32, BATCH, 0, &labels[first]);
        wgrad_tape *tape;
        CHECK(wgrad_tape_new(0, &tape));
        wgrad_tensor *scores = logits(v, x);
        wgrad_tensor *losses = op("tf.nn.sparse_softmax_cross_entropy_with_logits", y, scores);
        wgrad_tensor *loss = op("tf.math.reduce_mean", losses, NULL);
        wgrad_tensor *gradients[4];
        CHECK(wgrad_tape_gradient_variables(tape, loss, v, 4, gradients));
        CHECK(wgrad_optimizer_apply(adam, gradients, v, 4));
        if (step % 20 == 0) {
            float value;
            CHECK(wgrad_tensor_read(loss, &value, sizeof value));
            printf("step %d: loss %.3f\n", step, value);
        }
        wgrad_tensor *used[] = {x, y, scores, losses, loss, gradients[0], gradients[1], gradients[2], gradients[3]};
        for (int i = 0; i < 9; i++) CHECK(wgrad_tensor_free(used[i]));
        CHECK(wgrad_tape_free(tape));
    }
    wgrad_tensor *x = tensor(WGRAD_FLOAT32, EXAMPLES, PIXELS, images);
    wgrad_tensor *scores = logits(v, x);
    float result = accuracy(scores);
    CHECK(wgrad_tensor_free(x));
    CHECK(wgrad_tensor_free(scores));
    CHECK(wgrad_optimizer_free(adam));
    for (int i = 0; i < 4; i++) CHECK(wgrad_variable_free(v[i]));
    return result;
}

/* Fills the batch `index`; `user` counts the calls. */
static int32_t next_batch(void *user, uint64_t index, wgrad_batch *batch) {
    ++*(int *)user;
    uint64_t first = index * BATCH;
    if (first >= EXAMPLES) return 0;
    wgrad_tensor *x = tensor(WGRAD_FLOAT32, BATCH, PIXELS, images[first]);
    wgrad_tensor *y = tensor(WGRAD_INT32, BATCH, 0, &labels[first]);
    CHECK(wgrad_batch_add_input(batch, x));
    CHECK(wgrad_batch_add_target(batch, y));
    CHECK(wgrad_tensor_free(x));
    CHECK(wgrad_tensor_free(y));
    return 1;
}

static void released(void *user) { *(int *)user = -*(int *)user; }

static float with_keras(const char *folder) {
    static const char config[] =
        "{\"class_name\": \"Sequential\", \"config\": {\"name\": \"classifier\", \"layers\": ["
        "{\"class_name\": \"InputLayer\", \"config\": {\"batch_shape\": [null, 64]}},"
        "{\"class_name\": \"Dense\", \"config\": {\"units\": 32, \"activation\": \"relu\"}},"
        "{\"class_name\": \"Dense\", \"config\": {\"units\": 10, \"activation\": \"softmax\"}}]}}";
    wgrad_model *model, *copy;
    CHECK(wgrad_model_from_json(NULL, config, &model));
    CHECK(wgrad_model_compile(model,
        "{\"optimizer\": {\"class_name\": \"Adam\", \"config\": {\"learning_rate\": 0.01}},"
        " \"loss\": \"sparse_categorical_crossentropy\", \"metrics\": [\"accuracy\"]}"));
    int calls = 0;
    wgrad_dataset *batches;
    CHECK(wgrad_dataset_from_callback(next_batch, &calls, released, &batches));
    char *history, *logs, *path, *newest, prefix[512];
    CHECK(wgrad_model_fit_dataset(model, batches, "{\"epochs\": 6}", &history));
    printf("history: %s\n", history);
    CHECK(wgrad_model_evaluate_dataset(model, batches, &logs));
    printf("evaluation: %s\n", logs);
    CHECK(wgrad_dataset_free(batches));
    if (calls != -(EPOCHS + 1) * (EXAMPLES / BATCH + 1)) {
        fprintf(stderr, "the callbacks ran %d times\n", calls);
        exit(1);
    }

    /* The copy has other weights until the checkpoint is restored. */
    CHECK(wgrad_model_from_json(NULL, config, &copy));
    wgrad_checkpoint *saved, *restored;
    CHECK(wgrad_checkpoint_new(&saved));
    CHECK(wgrad_checkpoint_add_model(saved, "model", model));
    snprintf(prefix, sizeof prefix, "%s/ckpt", folder);
    CHECK(wgrad_checkpoint_save(saved, prefix, &path));
    CHECK(wgrad_checkpoint_new(&restored));
    CHECK(wgrad_checkpoint_add_model(restored, "model", copy));
    CHECK(wgrad_checkpoint_latest(folder, &newest));
    if (strcmp(newest, path) != 0) {
        fprintf(stderr, "the newest checkpoint is %s, and %s was saved\n", newest, path);
        exit(1);
    }
    CHECK(wgrad_checkpoint_restore(restored, newest, 1));
    wgrad_string_free(newest);
    /* It continues to count. */
    CHECK(wgrad_checkpoint_save(restored, prefix, &newest));
    if (strcmp(newest + strlen(newest) - 2, "-2") != 0) {
        fprintf(stderr, "the second save made %s\n", newest);
        exit(1);
    }
    CHECK(wgrad_checkpoint_restore(restored, newest, 1));

    wgrad_tensor *x = tensor(WGRAD_FLOAT32, EXAMPLES, PIXELS, images), *first, *second;
    CHECK(wgrad_model_predict(model, &x, 1, 0, &first, 1, NULL));
    CHECK(wgrad_model_predict(copy, &x, 1, 0, &second, 1, NULL));
    float result = accuracy(first);
    if (accuracy(second) != result) {
        fprintf(stderr, "the restored model has the accuracy %g, and the saved one %g\n", accuracy(second), result);
        exit(1);
    }
    wgrad_tensor *used[] = {x, first, second};
    for (int i = 0; i < 3; i++) CHECK(wgrad_tensor_free(used[i]));
    CHECK(wgrad_checkpoint_free(saved));
    CHECK(wgrad_checkpoint_free(restored));
    CHECK(wgrad_model_free(model));
    CHECK(wgrad_model_free(copy));
    wgrad_string_free(history);
    wgrad_string_free(logs);
    wgrad_string_free(path);
    wgrad_string_free(newest);
    return result;
}

int main(int count, char **arguments) {
    draw_images();
    CHECK(wgrad_set_seed(7));
    float hand = by_hand();
    float keras = with_keras(count > 1 ? arguments[1] : ".");
    printf("accuracy: %.3f by hand, %.3f with Keras's layers\n", hand, keras);
    printf("open handles: %zu\n", wgrad_open_handles());
    return hand >= 0.95f && keras >= 0.95f && wgrad_open_handles() == 0 ? 0 : 1;
}
