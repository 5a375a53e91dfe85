-- Calls wgrad from LuaJIT, which knows the functions only from the header: their ABI is plain.
-- Arguments: wgrad.h, as a C compiler's preprocessor leaves it, and the shared library.
local ffi = require("ffi")

local header = assert(io.open(arg[1])):read("*a")
ffi.cdef(header)
local wgrad = ffi.load(arg[2])

local function check(status)
    if tonumber(status) ~= 0 then
        error(ffi.string(wgrad.wgrad_status_name(status)) .. ": " .. ffi.string(wgrad.wgrad_last_error()), 2)
    end
end

-- The handle that a call stores, freed with Lua's object.
local function made(kind, call)
    local place = ffi.new("wgrad_" .. kind .. " *[1]")
    check(call(place))
    return ffi.gc(place[0], wgrad["wgrad_" .. kind .. "_free"])
end

local function tensor(values, shape)
    local data = ffi.new("float[?]", #values, values)
    local sizes = ffi.new("int64_t[?]", #shape, shape)
    return made("tensor", function(out)
        return wgrad.wgrad_tensor_from_data(nil, wgrad.WGRAD_FLOAT32, sizes, #shape, data, #values * 4, out)
    end)
end

local function op(name, attributes, arguments)
    local names, inputs = ffi.new("const char *[4]"), ffi.new("wgrad_tensor *[4]")
    for i, argument in ipairs(arguments) do
        names[i - 1], inputs[i - 1] = argument[1], argument[2]
    end
    return made("tensor", function(out)
        return wgrad.wgrad_op(nil, name, names, inputs, #arguments, attributes, out, 1, nil)
    end)
end

local function values(tensor)
    local bytes = ffi.new("size_t[1]")
    check(wgrad.wgrad_tensor_bytes(tensor, bytes))
    local count = tonumber(bytes[0]) / 4
    local data = ffi.new("float[?]", count)
    check(wgrad.wgrad_tensor_read(tensor, data, bytes[0]))
    local list = {}
    for i = 1, count do list[i] = data[i - 1] end
    return list
end

local function equal(found, expected)
    assert(#found == #expected, #found .. " values")
    for i = 1, #expected do
        assert(math.abs(found[i] - expected[i]) < 1e-5, i .. ": " .. found[i] .. " in place of " .. expected[i])
    end
end

local a = tensor({ 1, 2, 3, 4 }, { 2, 2 })
local b = tensor({ 5, 6, 7, 8 }, { 2, 2 })
equal(values(op("tf.linalg.matmul", '{"transpose_b": true}', { { "a", a }, { "b", b } })), { 17, 23, 39, 53 })
equal(values(op("tf.concat", '{"axis": 1}', { { "xs", a }, { "xs", b } })), { 1, 2, 5, 6, 3, 4, 7, 8 })

-- d(sum of x^2)/dx = 2 x
local tape = made("tape", function(out) return wgrad.wgrad_tape_new(0, out) end)
check(wgrad.wgrad_tape_watch(tape, a))
local square = op("tf.math.square", nil, { { "x", a } })
local sources, gradients = ffi.new("wgrad_tensor *[1]", a), ffi.new("wgrad_tensor *[1]")
check(wgrad.wgrad_tape_gradient(tape, square, sources, 1, gradients))
equal(values(ffi.gc(gradients[0], wgrad.wgrad_tensor_free)), { 2, 4, 6, 8 })

-- A model, trained with batches that a Lua function makes.
local model = made("model", function(out)
    return wgrad.wgrad_model_from_json(nil, '{"class_name": "Dense", "config": {"units": 1}}', out)
end)
check(wgrad.wgrad_model_compile(model,
    '{"optimizer": {"class_name": "SGD", "config": {"learning_rate": 0.05}}, "loss": "mse"}'))
local x, y = tensor({ 0, 1, 2, 3 }, { 4, 1 }), tensor({ 1, 3, 5, 7 }, { 4, 1 })
local calls = 0
local callback = ffi.cast("wgrad_next", function(_, index, batch)
    calls = calls + 1
    if index >= 10 then return 0 end
    check(wgrad.wgrad_batch_add_input(batch, x))
    check(wgrad.wgrad_batch_add_target(batch, y))
    return 1
end)
-- A compiled trace must not call back into Lua.
jit.off(true, true)
local batches = made("dataset", function(out)
    return wgrad.wgrad_dataset_from_callback(callback, nil, nil, out)
end)
local history = ffi.new("char *[1]")
check(wgrad.wgrad_model_fit_dataset(model, batches, '{"epochs": 40}', history))
wgrad.wgrad_string_free(history[0])
assert(calls == 40 * 11, calls)
local inputs, outputs = ffi.new("wgrad_tensor *[1]", x), ffi.new("wgrad_tensor *[1]")
check(wgrad.wgrad_model_predict(model, inputs, 1, 0, outputs, 1, nil))
local line = values(ffi.gc(outputs[0], wgrad.wgrad_tensor_free))
assert(math.abs(line[4] - 7) < 0.2, "y(3) is " .. line[4])

-- An error is a status and a message.
local failed, message = pcall(op, "tf.linalg.matmul", nil, { { "a", a }, { "b", tensor({ 1, 2, 3 }, { 3 }) } })
assert(not failed and message:find("WGRAD_INVALID_ARGUMENT: MatMul"), message)

a, b, tape, square, model, x, y, batches, sources, gradients, inputs, outputs = nil
for _ = 1, 3 do collectgarbage() end
callback:free()
assert(wgrad.wgrad_open_handles() == 0, "open handles: " .. tonumber(wgrad.wgrad_open_handles()))
print("LuaJIT: ops, a tape, a model and a callback")
