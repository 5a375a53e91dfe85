/* Opens and closes objects of every kind again and again. Afterwards, the process has as many handles, threads and open files as
 * before, and no more memory. Arguments: an ONNX model; how often, for devices and for the
 * rest; and, optionally, for which kind alone. */
#include <dirent.h>
#include <limits.h>
#include <malloc.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

static int entries(const char *folder) {
    DIR *open = opendir(folder);
    TRUE(open != NULL);
    int count = 0;
    while (readdir(open)) count++;
    closedir(open);
    return count;
}

/* What the heap holds: Rust's allocator is malloc. */
static long kilobytes(void) {
    struct mallinfo2 heap = mallinfo2();
    return (long)((heap.uordblks + heap.hblkhd) / 1024);
}

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void devices(void) {
    wgrad_device *device;
    float value = 2, read = 0;
    CHECK(wgrad_device_open(NULL, 1 << 20, &device));
    wgrad_tensor *x = floats(device, 1, &value);
    CHECK(wgrad_tensor_read(x, &read, sizeof read));
    TRUE(read == 2);
    CHECK(wgrad_tensor_free(x));
    CHECK(wgrad_device_free(device));
}

static void tensors(void) {
    float values[16] = {3}, read[16];
    wgrad_tensor *x = floats(NULL, 16, values), *copy;
    CHECK(wgrad_tensor_clone(x, &copy));
    CHECK(wgrad_tensor_free(x));
    CHECK(wgrad_tensor_read(copy, read, sizeof read));
    TRUE(read[0] == 3);
    CHECK(wgrad_tensor_free(copy));
}

static void gradients(void) {
    float values[4] = {1, 2, 3, 4}, read[4];
    wgrad_tensor *x = floats(NULL, 4, values), *gradient;
    wgrad_variable *v;
    wgrad_tape *tape;
    wgrad_optimizer *sgd;
    CHECK(wgrad_variable_new(x, 1, &v));
    CHECK(wgrad_optimizer_from_json("{\"class_name\": \"SGD\", \"config\": {\"learning_rate\": 0.5}}", &sgd));
    CHECK(wgrad_tape_new(0, &tape));
    wgrad_tensor *value;
    CHECK(wgrad_variable_read(v, &value));
    wgrad_tensor *square = unary("tf.math.square", value);
    CHECK(wgrad_tape_gradient_variables(tape, square, &v, 1, &gradient));
    CHECK(wgrad_optimizer_apply(sgd, &gradient, &v, 1));
    CHECK(wgrad_tensor_read(gradient, read, sizeof read));
    TRUE(read[3] == 8);
    wgrad_tensor *used[] = {x, value, square, gradient};
    for (int i = 0; i < 4; i++) CHECK(wgrad_tensor_free(used[i]));
    CHECK(wgrad_tape_free(tape));
    CHECK(wgrad_variable_free(v));
    CHECK(wgrad_optimizer_free(sgd));
}

/* An abandoned tape still ends when it is freed. */
static void tapes(void) {
    wgrad_tape *tape;
    CHECK(wgrad_tape_new(1, &tape));
    tensors();
    CHECK(wgrad_tape_free(tape));
}

static void models(void) {
    wgrad_model *model;
    CHECK(wgrad_model_from_json(NULL,
        "{\"class_name\": \"Sequential\", \"config\": {\"layers\": ["
        "{\"class_name\": \"InputLayer\", \"config\": {\"batch_shape\": [null, 4]}},"
        "{\"class_name\": \"Dense\", \"config\": {\"units\": 2}}]}}", &model));
    int64_t shape[2] = {1, 4};
    float values[4] = {1, 2, 3, 4};
    wgrad_tensor *x, *y;
    CHECK(wgrad_tensor_from_data(NULL, WGRAD_FLOAT32, shape, 2, values, sizeof values, &x));
    CHECK(wgrad_model_call(model, &x, 1, 0, &y, 1, NULL));
    CHECK(wgrad_tensor_free(x));
    CHECK(wgrad_tensor_free(y));
    CHECK(wgrad_model_free(model));
}

static const char *onnx;
static void functions(void) {
    wgrad_function *function;
    int64_t shape[2] = {1, 6};
    float values[6] = {1, 2, 3, 4, 5, 6}, read[3];
    wgrad_tensor *x, *y;
    CHECK(wgrad_function_load_onnx(NULL, onnx, &function));
    CHECK(wgrad_tensor_from_data(NULL, WGRAD_FLOAT32, shape, 2, values, sizeof values, &x));
    CHECK(wgrad_function_call(function, NULL, &x, 1, &y, 1, NULL));
    CHECK(wgrad_tensor_read(y, read, sizeof read));
    CHECK(wgrad_tensor_free(x));
    CHECK(wgrad_tensor_free(y));
    CHECK(wgrad_function_free(function));
}

static int released;
static int32_t no_batch(void *user, uint64_t index, wgrad_batch *batch) {
    (void)user, (void)index, (void)batch;
    return 0;
}
static void release(void *user) { released += user == &released; }
static void datasets(void) {
    wgrad_dataset *dataset;
    wgrad_checkpoint *checkpoint;
    int before = released;
    CHECK(wgrad_dataset_from_callback(no_batch, &released, release, &dataset));
    CHECK(wgrad_dataset_free(dataset));
    TRUE(released == before + 1);
    CHECK(wgrad_checkpoint_new(&checkpoint));
    CHECK(wgrad_checkpoint_free(checkpoint));
}

static void texts(void) {
    char *text;
    CHECK(wgrad_ops(&text));
    wgrad_string_free(text);
    TRUE(wgrad_model_from_json(NULL, "{", (wgrad_model *[1]){NULL}) == WGRAD_INVALID_ARGUMENT);
}

/* Caches and pools fill and empty again, so what counts is the least that the heap holds at any tenth of the turns: in the second half
 * as in the first. */
static const char *only;
static void repeat(const char *what, void (*turn)(void), int times, long slack) {
    if (times == 0 || (only && !strstr(what, only))) return;
    enum { PARTS = 10 };
    int files = 0, threads = 0, done = 0;
    long least[2] = {LONG_MAX, LONG_MAX};
    double start = seconds();
    for (int part = 0; part < PARTS; part++) {
        for (; done < times * (part + 1L) / PARTS; done++) turn();
        if (part == 0) files = entries("/proc/self/fd"), threads = entries("/proc/self/task");
        long *half = &least[part >= PARTS / 2], now = kilobytes();
        if (now < *half) *half = now;
    }
    double time = seconds() - start;
    /* Threads of the driver end a moment after their device. */
    for (int wait = 0; wait < 100 && entries("/proc/self/task") > threads; wait++) usleep(20000);
    long more = least[1] - least[0];
    printf("%d %s: %.1f s, %+ld kB, %+d files, %+d threads, %zu handles\n", times, what, time, more,
           entries("/proc/self/fd") - files, entries("/proc/self/task") - threads, wgrad_open_handles());
    fflush(stdout);
    TRUE(entries("/proc/self/fd") <= files);
    TRUE(entries("/proc/self/task") <= threads);
    TRUE(wgrad_open_handles() == 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    /* 50 bytes for each object would be more. LeakSanitizer finds what nothing points to, and this the rest. */
    TRUE(more < slack + times * 25L / 1024);
#else
    (void)slack;
#endif
}

int main(int count, char **arguments) {
    TRUE(count >= 4);
    onnx = arguments[1];
    only = count > 4 ? arguments[4] : NULL;
    int some = atoi(arguments[2]), times = atoi(arguments[3]);
    repeat("devices", devices, some, 128);
    repeat("tensors", tensors, times, 128);
    repeat("gradients", gradients, times, 128);
    repeat("tapes", tapes, times, 128);
    repeat("models", models, times, 128);
    /* Something grows by 2.5 MB once, after more than 5,000 loads, and not again in 40,000. */
    repeat("functions", functions, times, 4096);
    repeat("datasets and checkpoints", datasets, times, 128);
    repeat("texts", texts, times / 10, 128);
    return 0;
}
