/* What the test programs share. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wgrad.h"

#define FAIL(...) (fprintf(stderr, "%s:%d: ", __FILE__, __LINE__), fprintf(stderr, __VA_ARGS__), fputc('\n', stderr), exit(1))

#define CHECK(call)                                                                                             \
    do {                                                                                                        \
        wgrad_status status_ = (call);                                                                          \
        if (status_ != WGRAD_OK) FAIL("%s: %s: %s", #call, wgrad_status_name(status_), wgrad_last_error());     \
    } while (0)

#define TRUE(condition)                                 \
    do {                                                \
        if (!(condition)) FAIL("not true: %s", #condition); \
    } while (0)

static inline wgrad_tensor *floats(wgrad_device *device, int64_t count, const float *values) {
    wgrad_tensor *tensor = NULL;
    CHECK(wgrad_tensor_from_data(device, WGRAD_FLOAT32, &count, 1, values, (size_t)count * sizeof(float), &tensor));
    return tensor;
}

static inline wgrad_tensor *unary(const char *op, wgrad_tensor *x) {
    wgrad_tensor *result = NULL;
    CHECK(wgrad_op(NULL, op, NULL, &x, 1, NULL, &result, 1, NULL));
    return result;
}

#endif
