// wgrad.h for C++17: handles that free themselves, and exceptions in place of statuses.
#ifndef WGRAD_HPP
#define WGRAD_HPP

#include <memory>
#include <stdexcept>
#include <string>

#include "wgrad.h"

namespace wgrad {

// What a failed call throws: its status, and the message.
struct error : std::runtime_error {
    wgrad_status status;
    explicit error(wgrad_status status)
        : std::runtime_error(wgrad_last_error()), status(status) {}
};

// Throws if a call has failed.
inline void check(wgrad_status status) {
    if (status != WGRAD_OK) throw error(status);
}

template <class T, wgrad_status (*Free)(T *)>
struct freed {
    void operator()(T *handle) const { Free(handle); }
};

// A handle that is freed at the end of its scope.
template <class T, wgrad_status (*Free)(T *)>
using handle = std::unique_ptr<T, freed<T, Free>>;

using device = handle<wgrad_device, wgrad_device_free>;
using tensor = handle<wgrad_tensor, wgrad_tensor_free>;
using variable = handle<wgrad_variable, wgrad_variable_free>;
using tape = handle<wgrad_tape, wgrad_tape_free>;
using optimizer = handle<wgrad_optimizer, wgrad_optimizer_free>;
using model = handle<wgrad_model, wgrad_model_free>;
using function = handle<wgrad_function, wgrad_function_free>;
using dataset = handle<wgrad_dataset, wgrad_dataset_free>;
using checkpoint = handle<wgrad_checkpoint, wgrad_checkpoint_free>;

// The handle that `call` stores: wgrad::make<wgrad::model>([&](auto out) { return wgrad_model_load(.., out); }).
template <class H, class Call>
H make(Call &&call) {
    typename H::pointer made = nullptr;
    check(call(&made));
    return H(made);
}

// The text that `call` stores.
template <class Call>
std::string text(Call &&call) {
    char *made = nullptr;
    check(call(&made));
    std::unique_ptr<char, void (*)(char *)> owned(made, wgrad_string_free);
    return std::string(owned.get());
}

}  // namespace wgrad

#endif
