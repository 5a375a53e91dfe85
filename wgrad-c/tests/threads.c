/* Several threads share a device, tensors and a model; each has tapes of its own, and another thread's tape is an error. A handle
 * that one thread frees while others use it is an error for them or works, and nothing else. */
#include <pthread.h>

#include "check.h"

enum { THREADS = 4, TURNS = 40 };

static wgrad_tensor *shared;
static wgrad_model *model;
static wgrad_tape *tape_of_main;
static wgrad_tensor *contested;

static void *work(void *argument) {
    int number = *(int *)argument;
    TRUE(wgrad_tape_watch(tape_of_main, shared) == WGRAD_WRONG_THREAD);
    TRUE(wgrad_tape_free(tape_of_main) == WGRAD_WRONG_THREAD);
    for (int turn = 0; turn < TURNS; turn++) {
        wgrad_tape *tape;
        wgrad_tensor *gradient, *output;
        float read[4];
        CHECK(wgrad_tape_new(0, &tape));
        CHECK(wgrad_tape_watch(tape, shared));
        wgrad_tensor *square = unary("tf.math.square", shared);
        CHECK(wgrad_tape_gradient(tape, square, &shared, 1, &gradient));
        CHECK(wgrad_tensor_read(gradient, read, sizeof read));
        TRUE(read[0] == 2 && read[3] == 8);
        CHECK(wgrad_model_call(model, &shared, 1, 0, &output, 1, NULL));
        CHECK(wgrad_tensor_read(output, read, sizeof read));
        TRUE(read[0] == 1 && read[3] == 4);
        CHECK(wgrad_tensor_free(square));
        CHECK(wgrad_tensor_free(gradient));
        CHECK(wgrad_tensor_free(output));
        CHECK(wgrad_tape_free(tape));
        /* A message belongs to its thread. */
        char name[32];
        snprintf(name, sizeof name, "no.op.%d", number);
        TRUE(wgrad_op(NULL, name, NULL, NULL, 0, NULL, NULL, 0, NULL) == WGRAD_NOT_FOUND);
        TRUE(strstr(wgrad_last_error(), name) != NULL);
        wgrad_status status = wgrad_tensor_read(contested, read, sizeof read);
        TRUE(status == WGRAD_OK || status == WGRAD_INVALID_HANDLE);
        TRUE(status != WGRAD_OK || read[1] == 2);
    }
    /* A tape that is left open ends with its thread. */
    wgrad_tape **left = argument == NULL ? NULL : malloc(sizeof *left);
    CHECK(wgrad_tape_new(1, left));
    return left;
}

int main(void) {
    float values[4] = {1, 2, 3, 4};
    pthread_t threads[THREADS];
    int numbers[THREADS];
    shared = floats(NULL, 4, values);
    contested = floats(NULL, 4, values);
    CHECK(wgrad_model_from_json(NULL, "{\"class_name\": \"ReLU\", \"config\": {}}", &model));
    CHECK(wgrad_tape_new(0, &tape_of_main));
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i;
        TRUE(pthread_create(&threads[i], NULL, work, &numbers[i]) == 0);
    }
    CHECK(wgrad_tensor_free(contested));
    for (int i = 0; i < THREADS; i++) {
        void *left;
        TRUE(pthread_join(threads[i], &left) == 0);
        CHECK(wgrad_tape_free(*(wgrad_tape **)left));
        free(left);
    }
    CHECK(wgrad_tape_free(tape_of_main));
    CHECK(wgrad_tensor_free(shared));
    CHECK(wgrad_model_free(model));
    TRUE(wgrad_open_handles() == 0);
    printf("%d threads\n", THREADS);
    return 0;
}
