/* wgrad's C API, version 0.1. Generated from wgrad-c/src by `cargo xtask c --header`; do not edit it.
 *
 * Every function that can fail returns a wgrad_status, and passes its results through pointers, which are set to null or 0 first.
 * wgrad_last_error says what went wrong. Texts are UTF-8 and end with a zero byte. Objects are handles, which the caller frees; a
 * handle that was freed, or one of another kind, is an error. All functions may be called in all threads, except that a tape
 * belongs to the thread that has opened it. docs/c.md explains the rest.
 */

#ifndef WGRAD_H
#define WGRAD_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
typedef struct DLManagedTensor DLManagedTensor;
typedef struct DLManagedTensorVersioned DLManagedTensorVersioned;

/**
 * What a function returns: 0, or why it failed. `wgrad_last_error` has the message. The values never change; later versions may
 * add others.
 */
enum wgrad_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * The call succeeded.
   */
  WGRAD_OK = 0,
  /**
   * An argument is wrong: a null pointer, a text that is not UTF-8, a shape, a dtype, an index, a name of an argument.
   */
  WGRAD_INVALID_ARGUMENT = 1,
  /**
   * There is no such file, op, function or name.
   */
  WGRAD_NOT_FOUND = 2,
  /**
   * The device or its memory limit has no room.
   */
  WGRAD_OUT_OF_MEMORY = 3,
  /**
   * The device is lost. Open another one.
   */
  WGRAD_DEVICE_LOST = 4,
  /**
   * The operating system rejected a file operation.
   */
  WGRAD_IO = 5,
  /**
   * Another process of a distributed training does not answer.
   */
  WGRAD_UNAVAILABLE = 6,
  /**
   * wgrad has nothing for this.
   */
  WGRAD_UNIMPLEMENTED = 7,
  /**
   * A defect in wgrad or in the driver: a panic, or a command that the driver rejected.
   */
  WGRAD_INTERNAL = 8,
  /**
   * The handle is freed, is of another kind, or never was one.
   */
  WGRAD_INVALID_HANDLE = 9,
  /**
   * A tape was used in another thread than the one that opened it.
   */
  WGRAD_WRONG_THREAD = 10,
  /**
   * The call came at the wrong time: a gradient of something that no tape has recorded, a tape that has been used.
   */
  WGRAD_FAILED_PRECONDITION = 11,
  /**
   * A file, JSON or a batch has other contents than expected; a checkpoint does not fit.
   */
  WGRAD_INVALID_DATA = 12,
  /**
   * There is no adapter, one of its limits is exceeded, or tensors of two devices meet.
   */
  WGRAD_DEVICE = 13,
  /**
   * An array for results has too few elements. The number that is needed has been stored.
   */
  WGRAD_TOO_SMALL = 14,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum wgrad_status wgrad_status;
#else
typedef int32_t wgrad_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * Element types, by TensorFlow's numbers. Tensors have `WGRAD_FLOAT32`, `WGRAD_FLOAT16`, `WGRAD_INT32`, `WGRAD_UINT32`, `WGRAD_UINT8`
 * and `WGRAD_BOOL`; host memory of the others is converted.
 */
enum wgrad_dtype
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  /**
   * 32 bits.
   */
  WGRAD_FLOAT32 = 1,
  /**
   * On the host only; tensors have the nearest `WGRAD_FLOAT32`.
   */
  WGRAD_FLOAT64 = 2,
  /**
   * 32 bits.
   */
  WGRAD_INT32 = 3,
  /**
   * A byte.
   */
  WGRAD_UINT8 = 4,
  /**
   * On the host only; tensors have `WGRAD_INT32`.
   */
  WGRAD_INT16 = 5,
  /**
   * On the host only; tensors have `WGRAD_INT32`.
   */
  WGRAD_INT8 = 6,
  /**
   * On the host only; tensors have `WGRAD_INT32`, and values that do not fit are an error.
   */
  WGRAD_INT64 = 9,
  /**
   * A byte, 0 or 1.
   */
  WGRAD_BOOL = 10,
  /**
   * On the host only; tensors have `WGRAD_FLOAT32`.
   */
  WGRAD_BFLOAT16 = 14,
  /**
   * On the host only; tensors have `WGRAD_INT32`.
   */
  WGRAD_UINT16 = 17,
  /**
   * 16 bits, where the adapter has them.
   */
  WGRAD_FLOAT16 = 19,
  /**
   * 32 bits.
   */
  WGRAD_UINT32 = 22,
  /**
   * On the host only; tensors have `WGRAD_INT32`, and values that do not fit are an error.
   */
  WGRAD_UINT64 = 23,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum wgrad_dtype wgrad_dtype;
#else
typedef int32_t wgrad_dtype;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

/**
 * The batch that a callback fills. It is valid during the call.
 */
typedef struct wgrad_batch wgrad_batch;

/**
 * Parts of a program whose values are saved together.
 */
typedef struct wgrad_checkpoint wgrad_checkpoint;

/**
 * Batches that a callback makes.
 */
typedef struct wgrad_dataset wgrad_dataset;

/**
 * A GPU, or the CPU through a software driver.
 */
typedef struct wgrad_device wgrad_device;

/**
 * A function of a SavedModel, or an ONNX model.
 */
typedef struct wgrad_function wgrad_function;

/**
 * A Keras model or layer, with its weights and, if it is compiled, its optimizer.
 */
typedef struct wgrad_model wgrad_model;

/**
 * An optimizer with its state.
 */
typedef struct wgrad_optimizer wgrad_optimizer;

/**
 * A gradient tape. Only the thread that has opened it can use it.
 */
typedef struct wgrad_tape wgrad_tape;

/**
 * A tensor. Its value never changes.
 */
typedef struct wgrad_tensor wgrad_tensor;

/**
 * A cell that holds a tensor. Tapes watch it by themselves if it is trainable.
 */
typedef struct wgrad_variable wgrad_variable;

/**
 * The Vulkan objects of a device. They are valid as long as a handle of the device, or of a tensor on it, is open.
 */
typedef struct {
  /**
   * `VkInstance`.
   */
  void *instance;
  /**
   * `VkPhysicalDevice`.
   */
  void *physical_device;
  /**
   * `VkDevice`.
   */
  void *device;
  /**
   * `VkQueue`. wgrad submits to it, so a program that does as well must not do so during any call of this library.
   */
  void *queue;
  /**
   * The family of the queue.
   */
  uint32_t queue_family;
} wgrad_vulkan;

/**
 * Fills `batch` with the batch `index` of a pass, counted from 0. Returns 1, 0 if the pass has no more batches, or a negative number
 * to end the call with an error. It must return; it must not throw an exception or jump out.
 */
typedef int32_t (*wgrad_next)(void *user, uint64_t index, wgrad_batch *batch);

/**
 * Called when the dataset is not needed any more.
 */
typedef void (*wgrad_release)(void *user);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/**
 * The message of the last call that failed in this thread, in English; an empty text if there was none. It is valid until the
 * next call that fails in this thread, or until the thread ends. A call that succeeds does not change it.
 */
const char *wgrad_last_error(void);

/**
 * The name of a status, such as `WGRAD_NOT_FOUND`, as a static text; `unknown` for other numbers.
 */
const char *wgrad_status_name(int32_t status);

/**
 * The version of the library, such as `0.1.0`, as a static text.
 */
const char *wgrad_version(void);

/**
 * The number of open handles of all kinds. A program that has freed everything reads 0.
 */
size_t wgrad_open_handles(void);

/**
 * Frees a text that a function has returned. Null does nothing. Any other text is not allowed.
 *
 * Pointers:
 * `text` is null or comes from a function of this library that says so, and was not freed before.
 */
void wgrad_string_free(char *text);

/**
 * Opens an adapter: the one whose name contains `adapter`, or with this index; null opens the fastest. A `memory_limit` of 0 is
 * none; otherwise calls that need more bytes for tensors fail with `WGRAD_OUT_OF_MEMORY`.
 *
 * Pointers:
 * `adapter` is null or a text, `device` a place for a handle.
 */
wgrad_status wgrad_device_open(const char *adapter,
                               uint64_t memory_limit,
                               wgrad_device **device);

/**
 * The default device, where tensors are made if a call names no other. Opens it if there is none yet.
 *
 * Pointers:
 * `device` is a place for a handle.
 */
wgrad_status wgrad_device_default(wgrad_device **device);

/**
 * Makes `device` the default device of all threads.
 */
wgrad_status wgrad_device_set_default(const wgrad_device *device);

/**
 * Stores the name of the device's adapter; free it with `wgrad_string_free`.
 *
 * Pointers:
 * `name` is a place for a text.
 */
wgrad_status wgrad_device_name(const wgrad_device *device, char **name);

/**
 * Stores the adapters that `wgrad_device_open` can open, one on each line in the order of their indices; free the text with
 * `wgrad_string_free`.
 *
 * Pointers:
 * `names` is a place for a text.
 */
wgrad_status wgrad_adapters(char **names);

/**
 * Stores the bytes of the device's tensors now, and the most that there were. Either place may be null.
 *
 * Pointers:
 * `current` and `peak` are null or places for a number.
 */
wgrad_status wgrad_device_memory(const wgrad_device *device, uint64_t *current, uint64_t *peak);

/**
 * Sends the waiting ops to the device and does not wait for them.
 */
wgrad_status wgrad_device_flush(const wgrad_device *device);

/**
 * Sends waiting ops to the device, as many kernels as it computes in about `nanoseconds`, and holds the others until the next call.
 * Stores 1 once everything is sent, and 0 before. An application that draws with the same device calls this once a frame, and begins
 * the next step when it stores 1. Reading a value, `wgrad_device_flush` and `wgrad_device_synchronize` send everything at once;
 * with `UINT64_MAX`, this does too, and later work is sent as if this had never been called.
 *
 * Pointers:
 * `done` is a place for a number.
 */
wgrad_status wgrad_device_run_for(const wgrad_device *device,
                                  uint64_t nanoseconds,
                                  int32_t *done);

/**
 * Runs the waiting ops, and waits until the device has finished.
 */
wgrad_status wgrad_device_synchronize(const wgrad_device *device);

/**
 * Destroys the device and frees its memory at once. Later calls with its tensors fail with `WGRAD_DEVICE_LOST`. The handle must
 * still be freed.
 */
wgrad_status wgrad_device_destroy(const wgrad_device *device);

/**
 * Frees the handle. The device is closed when its tensors, variables and models are freed, too; the default device stays open.
 */
wgrad_status wgrad_device_free(wgrad_device *device);

/**
 * Makes a tensor with a copy of `bytes` bytes at `data`: the elements in row-major order in this machine's byte order. A null
 * `device` is the default device; a `rank` of 0 is a scalar.
 *
 * Pointers:
 * `shape` has `rank` sizes, `data` has `bytes` bytes, `tensor` is a place for a handle.
 */
wgrad_status wgrad_tensor_from_data(const wgrad_device *device,
                                    int32_t dtype,
                                    const int64_t *shape,
                                    size_t rank,
                                    const void *data,
                                    size_t bytes,
                                    wgrad_tensor **tensor);

/**
 * Stores the dtype, a `wgrad_dtype`.
 *
 * Pointers:
 * `dtype` is a place for a number.
 */
wgrad_status wgrad_tensor_dtype(const wgrad_tensor *tensor, int32_t *dtype);

/**
 * Stores the sizes of the axes in `shape`, which has room for `capacity`, and their number in `rank`. If there is not enough
 * room, nothing but the number is stored, and the status is `WGRAD_TOO_SMALL`.
 *
 * Pointers:
 * `shape` has `capacity` places, `rank` is a place for a number.
 */
wgrad_status wgrad_tensor_shape(const wgrad_tensor *tensor,
                                int64_t *shape,
                                size_t capacity,
                                size_t *rank);

/**
 * Stores the bytes that `wgrad_tensor_read` writes: the number of elements times the size of one.
 *
 * Pointers:
 * `bytes` is a place for a number.
 */
wgrad_status wgrad_tensor_bytes(const wgrad_tensor *tensor, size_t *bytes);

/**
 * Runs what is waiting, waits for the value, and copies it to `data`, in row-major order. `bytes` is exactly that of
 * `wgrad_tensor_bytes`.
 *
 * Pointers:
 * `data` has room for `bytes` bytes.
 */
wgrad_status wgrad_tensor_read(const wgrad_tensor *tensor, void *data, size_t bytes);

/**
 * Stores the tensor as a text, with its values; free it with `wgrad_string_free`.
 *
 * Pointers:
 * `text` is a place for a text.
 */
wgrad_status wgrad_tensor_to_string(const wgrad_tensor *tensor, char **text);

/**
 * Makes another handle of the same tensor. Nothing is copied.
 *
 * Pointers:
 * `copy` is a place for a handle.
 */
wgrad_status wgrad_tensor_clone(const wgrad_tensor *tensor, wgrad_tensor **copy);

/**
 * Copies the tensor to a device; on its own device, it is a clone.
 *
 * Pointers:
 * `copy` is a place for a handle.
 */
wgrad_status wgrad_tensor_to_device(const wgrad_tensor *tensor, const wgrad_device *device, wgrad_tensor **copy);

/**
 * Stores a handle of the tensor's device.
 *
 * Pointers:
 * `device` is a place for a handle.
 */
wgrad_status wgrad_tensor_device(const wgrad_tensor *tensor, wgrad_device **device);

/**
 * Frees the handle. Null does nothing.
 */
wgrad_status wgrad_tensor_free(wgrad_tensor *tensor);

/**
 * Makes a tensor with a copy of a `DLManagedTensorVersioned` on the host, with any strides. On success, its deleter has been called;
 * after an error, the array stays the caller's.
 *
 * Pointers:
 * `array` is null or a valid array, `tensor` a place for a handle.
 */
wgrad_status wgrad_tensor_from_dlpack(const wgrad_device *device,
                                      DLManagedTensorVersioned *array,
                                      wgrad_tensor **tensor);

/**
 * As `wgrad_tensor_from_dlpack`, for a `DLManagedTensor`, the struct before version 1.0.
 *
 * Pointers:
 * `array` is null or a valid array, `tensor` a place for a handle.
 */
wgrad_status wgrad_tensor_from_dlpack_unversioned(const wgrad_device *device,
                                                  DLManagedTensor *array,
                                                  wgrad_tensor **tensor);

/**
 * Reads the tensor into a new `DLManagedTensorVersioned` on the host. Its deleter frees it, in any thread.
 *
 * Pointers:
 * `array` is a place for a pointer.
 */
wgrad_status wgrad_tensor_to_dlpack(const wgrad_tensor *tensor, DLManagedTensorVersioned **array);

/**
 * Stores the Vulkan objects of a device. `WGRAD_UNIMPLEMENTED` if it does not run on Vulkan.
 *
 * Pointers:
 * `objects` is a place for the struct.
 */
wgrad_status wgrad_device_vulkan(const wgrad_device *device, wgrad_vulkan *objects);

/**
 * Stores the `VkBuffer` that holds the tensor's value in row-major order from its start, and the buffer's bytes. Runs what is
 * waiting to compute it; what the program submits to the queue after this call finds the value there. The program must not write
 * a buffer that it has not made itself, and may use it as long as a handle of the tensor is open.
 *
 * Pointers:
 * `buffer` and `size` are places for numbers.
 */
wgrad_status wgrad_tensor_vulkan_buffer(const wgrad_tensor *tensor,
                                        uint64_t *buffer,
                                        uint64_t *size);

/**
 * Makes a tensor over a `VkBuffer` of the program, without a copy. The buffer belongs to the device's `VkDevice`, has memory and the
 * usages `STORAGE_BUFFER`, `TRANSFER_SRC` and `TRANSFER_DST`, and holds the elements in row-major order in `size` bytes, a multiple
 * of 16 and at least the tensor's. wgrad only reads it. The program must neither write nor destroy it before
 * `wgrad_tensor_release_vulkan_buffer` has succeeded.
 *
 * Pointers:
 * As above; `shape` has `rank` sizes, `tensor` is a place for a handle.
 */
wgrad_status wgrad_tensor_from_vulkan_buffer(const wgrad_device *device,
                                             uint64_t buffer,
                                             uint64_t size,
                                             int32_t dtype,
                                             const int64_t *shape,
                                             size_t rank,
                                             wgrad_tensor **tensor);

/**
 * Frees the handle of a tensor over a buffer of the program, and waits until the device does not use the buffer any more. If other
 * handles, variables or tapes hold the tensor, the call fails with `WGRAD_DEVICE`, and the handle is freed all the same: the buffer
 * must then live until they are gone and `wgrad_device_synchronize` has succeeded.
 */
wgrad_status wgrad_tensor_release_vulkan_buffer(wgrad_tensor *tensor);

/**
 * Makes a variable with the value of a tensor. If `trainable` is 0, tapes do not watch it by themselves.
 *
 * Pointers:
 * `variable` is a place for a handle.
 */
wgrad_status wgrad_variable_new(const wgrad_tensor *value, int32_t trainable, wgrad_variable **variable);

/**
 * Stores the value as a tensor. An open tape of this thread records the read.
 *
 * Pointers:
 * `value` is a place for a handle.
 */
wgrad_status wgrad_variable_read(const wgrad_variable *variable, wgrad_tensor **value);

/**
 * Gives the variable another value, of the same shape and dtype.
 */
wgrad_status wgrad_variable_assign(const wgrad_variable *variable, const wgrad_tensor *value);

/**
 * Adds to the variable's value.
 */
wgrad_status wgrad_variable_assign_add(const wgrad_variable *variable, const wgrad_tensor *value);

/**
 * Subtracts from the variable's value.
 */
wgrad_status wgrad_variable_assign_sub(const wgrad_variable *variable, const wgrad_tensor *value);

/**
 * Frees the handle. Null does nothing.
 */
wgrad_status wgrad_variable_free(wgrad_variable *variable);

/**
 * Calls an op by TensorFlow's name, such as `tf.linalg.matmul`, also without `tf.`, or by wgrad's name, such as `matmul`.
 *
 * One or two tensors need no `names`: if it is null, they come in TensorFlow's order. Otherwise `names` says which argument each
 * tensor is: mostly `x`, `x` and `y`, or `a` and `b`, else TensorFlow's names; the error of a missing one has its name. Several
 * tensors with the same name are a list. The other arguments are a JSON object with TensorFlow's names, such as
 * `{"transpose_b": true}`, or null. The results are stored in `outputs`, which has room for `capacity`, and their number in `count`,
 * which may be null. An op without tensors makes its result on `device`; null is the default device.
 *
 * Pointers:
 * `op` is a text, `names` null or `inputs_count` texts, `inputs` as many handles, `outputs` has `capacity` places.
 */
wgrad_status wgrad_op(const wgrad_device *device,
                      const char *op,
                      const char *const *names,
                      wgrad_tensor *const *inputs,
                      size_t inputs_count,
                      const char *attributes,
                      wgrad_tensor **outputs,
                      size_t capacity,
                      size_t *count);

/**
 * Stores a JSON list of all ops: `name`, TensorFlow's names (`tensorflow`) and the dtypes that an op accepts; free it with
 * `wgrad_string_free`.
 *
 * Pointers:
 * `ops` is a place for a text.
 */
wgrad_status wgrad_ops(char **ops);

/**
 * Opens a tape, which records the calls of this thread until its gradient is computed or it is freed. A `persistent` tape can
 * compute several gradients; any other only one. Variables that are trainable are watched by themselves.
 *
 * Pointers:
 * `tape` is a place for a handle.
 */
wgrad_status wgrad_tape_new(int32_t persistent,
                            wgrad_tape **tape);

/**
 * Watches a tensor, so that the tape computes gradients for it. Call it before the tensor is used.
 */
wgrad_status wgrad_tape_watch(const wgrad_tape *tape, const wgrad_tensor *tensor);

/**
 * Computes the gradients of `target`, summed over its elements, for `count` sources, and stores them in `gradients`: a null handle
 * where `target` does not depend on a source. A tape that is not persistent is used up, even if the call fails.
 *
 * Pointers:
 * `sources` has `count` handles, `gradients` as many places.
 */
wgrad_status wgrad_tape_gradient(const wgrad_tape *tape,
                                 const wgrad_tensor *target,
                                 wgrad_tensor *const *sources,
                                 size_t count,
                                 wgrad_tensor **gradients);

/**
 * As `wgrad_tape_gradient`, for variables.
 *
 * Pointers:
 * `variables` has `count` handles, `gradients` as many places.
 */
wgrad_status wgrad_tape_gradient_variables(const wgrad_tape *tape,
                                           const wgrad_tensor *target,
                                           wgrad_variable *const *variables,
                                           size_t count,
                                           wgrad_tensor **gradients);

/**
 * Ends the tape and frees it, in its thread; if that has ended, in any thread. Null does nothing.
 */
wgrad_status wgrad_tape_free(wgrad_tape *tape);

/**
 * Makes the optimizer that Keras's JSON describes, such as
 * `{"class_name": "Adam", "config": {"learning_rate": 0.001}}`, or the name of any optimizer with
 * Keras's defaults: `"adam"`, with the quotes.
 *
 * Pointers:
 * `json` is a text, `optimizer` a place for a handle.
 */
wgrad_status wgrad_optimizer_from_json(const char *json, wgrad_optimizer **optimizer);

/**
 * Performs a step: changes each variable by its gradient. A null gradient leaves its variable as it is. The gradients come in the
 * order of the variables, as `wgrad_tape_gradient` returns them.
 *
 * Pointers:
 * `gradients` and `variables` have `count` handles.
 */
wgrad_status wgrad_optimizer_apply(const wgrad_optimizer *optimizer,
                                   wgrad_tensor *const *gradients,
                                   wgrad_variable *const *variables,
                                   size_t count);

/**
 * Sets the learning rate of the next steps.
 */
wgrad_status wgrad_optimizer_set_learning_rate(const wgrad_optimizer *optimizer, float learning_rate);

/**
 * Frees the handle. Null does nothing.
 */
wgrad_status wgrad_optimizer_free(wgrad_optimizer *optimizer);

/**
 * Makes the model that Keras's JSON (`model.to_json()`) describes, with new weights: a Sequential, a functional model, or a layer
 * alone, `{"class_name": "Dense", "config": {"units": 3}}`. A null `device` is the default device.
 *
 * Pointers:
 * `json` is a text, `model` a place for a handle.
 */
wgrad_status wgrad_model_from_json(const wgrad_device *device,
                                   const char *json,
                                   wgrad_model **model);

/**
 * Loads a `.keras` file, or an old HDF5 file with a model. If `compile` is not 0 and the file has settings for training, the model
 * is compiled with them.
 *
 * Pointers:
 * `path` is a text, `model` a place for a handle.
 */
wgrad_status wgrad_model_load(const wgrad_device *device,
                              const char *path,
                              int32_t compile,
                              wgrad_model **model);

/**
 * Loads the layers of a SavedModel that Keras has written. `wgrad_function_load` loads the functions of any SavedModel.
 *
 * Pointers:
 * `path` is a text, `model` a place for a handle.
 */
wgrad_status wgrad_model_load_saved_model(const wgrad_device *device, const char *path, wgrad_model **model);

/**
 * Stores the model as Keras's JSON, without weights; free it with `wgrad_string_free`.
 *
 * Pointers:
 * `json` is a place for a text.
 */
wgrad_status wgrad_model_to_json(const wgrad_model *model, char **json);

/**
 * Stores the table of layers and parameters that Keras's `summary` prints; free it with `wgrad_string_free`.
 *
 * Pointers:
 * `summary` is a place for a text.
 */
wgrad_status wgrad_model_summary(const wgrad_model *model, char **summary);

/**
 * Writes the model as a `.keras` file, without its settings for training.
 *
 * Pointers:
 * `path` is a text.
 */
wgrad_status wgrad_model_save(const wgrad_model *model, const char *path);

/**
 * Writes the weights as a `.weights.h5` file.
 *
 * Pointers:
 * `path` is a text.
 */
wgrad_status wgrad_model_save_weights(const wgrad_model *model, const char *path);

/**
 * Reads weights from a `.weights.h5` file.
 *
 * Pointers:
 * `path` is a text.
 */
wgrad_status wgrad_model_load_weights(const wgrad_model *model, const char *path);

/**
 * Stores handles of the model's variables in Keras's order, and their number in `count`, which may be null. If `trainable_only` is
 * not 0, these are the trainable ones. With a `capacity` of 0, the status is `WGRAD_TOO_SMALL` and only the number is stored. A
 * model without an input shape has no variables before its first call.
 *
 * Pointers:
 * `variables` has `capacity` places, `count` is null or a place for a number.
 */
wgrad_status wgrad_model_variables(const wgrad_model *model,
                                   int32_t trainable_only,
                                   wgrad_variable **variables,
                                   size_t capacity,
                                   size_t *count);

/**
 * Calls the model with `inputs_count` inputs; an open tape of this thread records the call. If `training` is not 0, layers such as
 * Dropout work as in training. The results are stored in `outputs`, and their number in `count`, which may be null.
 *
 * Pointers:
 * `inputs` has `inputs_count` handles, `outputs` has `capacity` places, `count` is null or a place for a number.
 */
wgrad_status wgrad_model_call(const wgrad_model *model,
                              wgrad_tensor *const *inputs,
                              size_t inputs_count,
                              int32_t training,
                              wgrad_tensor **outputs,
                              size_t capacity,
                              size_t *count);

/**
 * Frees the handle. Null does nothing.
 */
wgrad_status wgrad_model_free(wgrad_model *model);

/**
 * Makes a dataset of batches that `next` fills. `user` is passed to it; `release`, which may be null, is called once with it when the
 * handle is freed and no call needs the dataset any more, in the thread where this happens. The callbacks run in the thread that calls `wgrad_model_fit_dataset` or `wgrad_model_evaluate_dataset`, never in
 * two at once, and may call any function of this library.
 *
 * Pointers:
 * `next` and `release` are functions that may be called in every thread that uses the dataset; `dataset` is a place for a handle.
 */
wgrad_status wgrad_dataset_from_callback(wgrad_next next,
                                         void *user,
                                         wgrad_release release,
                                         wgrad_dataset **dataset);

/**
 * Adds an input of the model to the batch. The handle of the tensor stays the caller's.
 */
wgrad_status wgrad_batch_add_input(const wgrad_batch *batch, const wgrad_tensor *tensor);

/**
 * Adds the target of an output to the batch.
 */
wgrad_status wgrad_batch_add_target(const wgrad_batch *batch, const wgrad_tensor *tensor);

/**
 * Adds the weights of the batch's examples.
 */
wgrad_status wgrad_batch_add_weights(const wgrad_batch *batch, const wgrad_tensor *tensor);

/**
 * Frees the handle. Null does nothing.
 */
wgrad_status wgrad_dataset_free(wgrad_dataset *dataset);

/**
 * Sets how the model is trained: JSON with an `optimizer`, a `loss` and, optionally, a list of `metrics`, each Keras's name or class
 * with options: `{"optimizer": "adam", "loss": "mse", "metrics": ["mae"]}`.
 *
 * Pointers:
 * `settings` is a text.
 */
wgrad_status wgrad_model_compile(const wgrad_model *model,
                                 const char *settings);

/**
 * Trains the compiled model with one batch of `x_count` inputs and `y_count` targets. Stores the loss and the metrics of the batch
 * as JSON in `logs`; free it with `wgrad_string_free`. If `logs` is null, the call does not wait for the device.
 *
 * Pointers:
 * `x` and `y` have so many handles; `logs` is null or a place for a text.
 */
wgrad_status wgrad_model_train_on_batch(const wgrad_model *model,
                                        wgrad_tensor *const *x,
                                        size_t x_count,
                                        wgrad_tensor *const *y,
                                        size_t y_count,
                                        char **logs);

/**
 * Trains the compiled model on all examples. `options` is JSON with Keras's names (`epochs`, `batch_size`, `shuffle`,
 * `validation_split`, ..), or null. Stores the loss and the metrics of every epoch as JSON in `history`, unless it is null; free it
 * with `wgrad_string_free`.
 *
 * Pointers:
 * `x` and `y` have so many handles; `options` is null or a text; `history` is null or a place for a text.
 */
wgrad_status wgrad_model_fit(const wgrad_model *model,
                             wgrad_tensor *const *x,
                             size_t x_count,
                             wgrad_tensor *const *y,
                             size_t y_count,
                             const char *options,
                             char **history);

/**
 * As `wgrad_model_fit`, with the batches of a dataset. The dataset's callbacks run in this thread.
 *
 * Pointers:
 * `options` is null or a text; `history` is null or a place for a text.
 */
wgrad_status wgrad_model_fit_dataset(const wgrad_model *model,
                                     const wgrad_dataset *dataset,
                                     const char *options,
                                     char **history);

/**
 * Stores the loss and the metrics of the compiled model on all examples as JSON in `logs`; free it with `wgrad_string_free`. A
 * `batch_size` of 0 is 32.
 *
 * Pointers:
 * `x` and `y` have so many handles; `logs` is a place for a text.
 */
wgrad_status wgrad_model_evaluate(const wgrad_model *model,
                                  wgrad_tensor *const *x,
                                  size_t x_count,
                                  wgrad_tensor *const *y,
                                  size_t y_count,
                                  size_t batch_size,
                                  char **logs);

/**
 * As `wgrad_model_evaluate`, with the batches of a dataset.
 *
 * Pointers:
 * `logs` is a place for a text.
 */
wgrad_status wgrad_model_evaluate_dataset(const wgrad_model *model, const wgrad_dataset *dataset, char **logs);

/**
 * Computes the model's results for all examples, in batches of `batch_size` (0 is 32), and stores one tensor for each output. The
 * model need not be compiled.
 *
 * Pointers:
 * `x` has `x_count` handles, `outputs` has `capacity` places, `count` is null or a place for a number.
 */
wgrad_status wgrad_model_predict(const wgrad_model *model,
                                 wgrad_tensor *const *x,
                                 size_t x_count,
                                 size_t batch_size,
                                 wgrad_tensor **outputs,
                                 size_t capacity,
                                 size_t *count);

/**
 * Sets the state of the generator that initial weights, shuffles and dropouts draw from, so that a program repeats itself.
 */
wgrad_status wgrad_set_seed(uint64_t seed);

/**
 * Loads a function of a SavedModel, by the name of its signature; null is `serving_default`.
 *
 * Pointers:
 * `path` is a text, `signature` null or a text, `function` a place for a handle.
 */
wgrad_status wgrad_function_load_saved_model(const wgrad_device *device,
                                             const char *path,
                                             const char *signature,
                                             wgrad_function **function);

/**
 * Loads an ONNX model.
 *
 * Pointers:
 * `path` is a text, `function` a place for a handle.
 */
wgrad_status wgrad_function_load_onnx(const wgrad_device *device, const char *path, wgrad_function **function);

/**
 * Stores JSON with the `inputs` and the `outputs` of the function: for each the `name`, the `dtype` and the `shape`, where null is a
 * size that may vary; free it with `wgrad_string_free`.
 *
 * Pointers:
 * `json` is a place for a text.
 */
wgrad_status wgrad_function_signature(const wgrad_function *function,
                                      char **json);

/**
 * Calls the function with inputs by name; null `names` are the inputs in the order of the signature. The results are stored in the
 * order of the signature, and their number in `count`, which may be null.
 *
 * Pointers:
 * `names` is null or has `inputs_count` texts, `inputs` as many handles; `outputs` has `capacity` places, `count` is null or a place
 * for a number.
 */
wgrad_status wgrad_function_call(const wgrad_function *function,
                                 const char *const *names,
                                 wgrad_tensor *const *inputs,
                                 size_t inputs_count,
                                 wgrad_tensor **outputs,
                                 size_t capacity,
                                 size_t *count);

/**
 * Frees the handle. Null does nothing.
 */
wgrad_status wgrad_function_free(wgrad_function *function);

/**
 * Makes a checkpoint without parts.
 *
 * Pointers:
 * `checkpoint` is a place for a handle.
 */
wgrad_status wgrad_checkpoint_new(wgrad_checkpoint **checkpoint);

/**
 * Adds a model, with the keyword that it has in `tf.train.Checkpoint(model=model)`.
 *
 * Pointers:
 * `name` is a text.
 */
wgrad_status wgrad_checkpoint_add_model(const wgrad_checkpoint *checkpoint, const char *name, const wgrad_model *model);

/**
 * Adds an optimizer with its state.
 *
 * Pointers:
 * `name` is a text.
 */
wgrad_status wgrad_checkpoint_add_optimizer(const wgrad_checkpoint *checkpoint,
                                            const char *name,
                                            const wgrad_optimizer *optimizer);

/**
 * Adds a variable.
 *
 * Pointers:
 * `name` is a text.
 */
wgrad_status wgrad_checkpoint_add_variable(const wgrad_checkpoint *checkpoint,
                                           const char *name,
                                           const wgrad_variable *variable);

/**
 * Writes the values of all parts to the files `PREFIX-N.index` and `PREFIX-N.data-00000-of-00001`, where N counts the saves from 1 on, and
 * makes them the newest checkpoint of the folder, which `wgrad_checkpoint_latest` returns. A restored checkpoint continues to count. If `path` is not null, it receives `PREFIX-N`; free it with `wgrad_string_free`.
 *
 * Pointers:
 * `prefix` is a text, `path` null or a place for a text.
 */
wgrad_status wgrad_checkpoint_save(const wgrad_checkpoint *checkpoint,
                                   const char *prefix,
                                   char **path);

/**
 * Gives all parts the values of the checkpoint with this prefix, such as `PREFIX-N`. If `partial` is 0, every part must have its
 * values there, and every value must be used.
 *
 * Pointers:
 * `prefix` is a text.
 */
wgrad_status wgrad_checkpoint_restore(const wgrad_checkpoint *checkpoint,
                                      const char *prefix,
                                      int32_t partial);

/**
 * Stores the prefix of the newest checkpoint of a folder, as the last save has recorded it; free it with
 * `wgrad_string_free`. `WGRAD_NOT_FOUND` if there is none.
 *
 * Pointers:
 * `folder` is a text, `prefix` a place for a text.
 */
wgrad_status wgrad_checkpoint_latest(const char *folder, char **prefix);

/**
 * Frees the handle. Null does nothing.
 */
wgrad_status wgrad_checkpoint_free(wgrad_checkpoint *checkpoint);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WGRAD_H */
