//! [`spoken`]: rewrites `wgrad`'s messages, which are written for Rust programs, with JavaScript's names.

/// Sentences about calls that JavaScript does not have, and their replacements. `web/tests/words.test.mjs` checks that each is
/// in the sources of `wgrad`, and looks for names that have no line below.
const SENTENCES: &[(&str, &str)] = &[
    (
        "Device: a browser opens devices asynchronously; await Device::open_async and give the device to Device::set_default \
         first.",
        "There is no device yet. Call and await Device.open() first: tensors are made on it.",
    ),
    (
        "Make them on one device (Device::scope, Device::set_default), or copy one of them: x.to(&device).",
        "Each Device.open() makes a device of its own, on which later tensors are made. Bring one over: \
         Tensor.from(await x.data(), x.shape).",
    ),
    (
        "If it is still open by mistake, end it: by gradient, by stop, or with the function of GradientTape::record.",
        "If it is still open by mistake, end it by gradient or stop, or use valueAndGradients.",
    ),
    (
        "and wgrad was built without gzip. Decompress it with gunzip, or build with the feature \"gzip\".",
        "and must be decompressed first: new Response(file.stream().pipeThrough(new \
         DecompressionStream('gzip'))).arrayBuffer().",
    ),
    ("Load with LoadOptions::new().round(true), or make a model", "Make a model"),
    (
        ", so the model is a FrontModel: load its file with FrontModel::load (a Sequential) or FrontModel::load_functional \
         (feature preprocessing).",
        ". A page has no such layers: save the model without them.",
    ),
    (
        "Load with LoadOptions::new().round(true) if the nearest value will do",
        "Round it before it is saved",
    ),
    (
        "Give the loss a reduction, such as Reduction::SumOverBatchSize.",
        "Name one of the losses that compile knows.",
    ),
    (
        "A model has none before its first call, nor while set_trainable(false) freezes it.",
        "A model has none before its first call.",
    ),
    ("Give its `impl Layer` a get_config.", "It cannot be kept as JSON."),
    ("; a model's JSON may name a program's own, too (CustomObjects)", ""),
    (" of a tensor, x.insert_axis(Axis(0)) of an array", ""),
    ("Use expand_dims, or matvec for a vector.", "Use expandDims or reshape."),
    ("Set the count with set_iterations.", "Call compile again."),
    (
        "Load it with keras::saving::load_weights, feature `keras-files`",
        "Convert it to safetensors natively",
    ),
    (
        "Load .npz with weights::load_npz (feature `npy`), .keras with keras::saving::load_model (feature `keras-files`), \
         and write a .pt file again with safetensors.torch.save_file",
        "Write it again as safetensors, in Python by safetensors.torch.save_file",
    ),
    ("Load it with data::npy::load, feature `npy`", "Convert it to safetensors natively"),
    (
        "To decide by it, use cond or while_loop; if the call must store it or read it, compute it from tensors that do not \
         depend on the input.",
        "To decide by it, use where; read what a function of tfFunction returns.",
    ),
    (
        "Write the recursion as a loop, or as a plain Rust function that the closure calls.",
        "Write the recursion as a loop, or as a plain function that it calls.",
    ),
    (
        ", and batches of one shape; or set reduce_retracing of FunctionOptions, with which a signature is traced at its second \
         call.",
        ", and batches of one shape.",
    ),
    ("Take them from call_both, or choose another mode.", "Save the model with another mode."),
    ("Load its functions with saved_model::load, or", "Load its functions with loadGraphModel, or"),
];

/// Names that are different in JavaScript.
const NAMES: &[(&str, &str)] = &[
    ("AddV2", "Add"),
    ("AssignAddVariableOp", "Variable.assignAdd"),
    ("AssignSubVariableOp", "Variable.assignSub"),
    ("AssignVariableOp", "Variable.assign"),
    ("ConcatV2", "Concat"),
    ("Const", "Tensor.from"),
    ("GatherV2", "Gather"),
    ("SelectV2", "Select"),
    ("Device::open_async", "Device.open"),
    ("Tensor::from_slice", "Tensor.from"),
    ("from_slice", "Tensor.from"),
    ("to_vec", "data()"),
    ("to_vec_async", "data()"),
    ("item_async", "item"),
    ("call_async", "predictAsync"),
    ("load_graph_model", "loadGraphModel"),
    ("load_layers_model", "loadModel"),
    ("to_json", "toJSON"),
    ("to_string_async", "toStringAsync"),
    ("reduce_sum", "sum"),
    ("reduce_mean", "mean"),
    ("not_equal", "notEqual"),
    ("matvec", "matmul"),
    ("f16", "float16"),
    ("f32", "float32"),
    ("f64", "float64"),
    ("i32", "int32"),
    ("i64", "int64"),
    ("u8", "uint8"),
    ("u32", "uint32"),
    ("DType::F16", "'float16'"),
    ("DType::F32", "'float32'"),
    ("DType::I32", "'int32'"),
    ("DType::U8", "'uint8'"),
    ("DType::U32", "'uint32'"),
    ("DType::Bool", "'bool'"),
    ("BrowserWebGpu", "WebGPU"),
    ("Padding::Same", "'same'"),
    ("Padding::Valid", "'valid'"),
    ("load_checkpoint", "Checkpoint.restore"),
    ("latest_checkpoint", "Checkpoint.latest"),
    ("from_config", "Sequential"),
];

/// Names that differ only in their spelling.
const CAMEL: &[&str] = &[
    "attention_axes",
    "batch_dims",
    "batch_size",
    "beta_1",
    "beta_2",
    "beta_2_decay",
    "bias_axes",
    "bin_boundaries",
    "class_weight",
    "clip_norm",
    "clip_threshold",
    "crop_to_aspect_ratio",
    "depth_multiplier",
    "dilation_rate",
    "ema_momentum",
    "epsilon_1",
    "epsilon_2",
    "expand_dims",
    "get_config",
    "global_clipnorm",
    "gradient_accumulation_steps",
    "head_dim",
    "initial_accumulator_value",
    "exponential_avg_factor",
    "from_json",
    "input_dim",
    "is_training",
    "kernel_initializer",
    "kernel_size",
    "key_dim",
    "l1_regularization_strength",
    "l2_regularization_strength",
    "l2_shrinkage_regularization_strength",
    "learning_rate",
    "learning_rate_power",
    "loss_scale",
    "lower_upper",
    "mask_zero",
    "max_norm",
    "negative_slope",
    "noise_shape",
    "num_heads",
    "num_key_value_heads",
    "num_query_heads",
    "output_dim",
    "output_gradients",
    "output_padding",
    "output_shape",
    "pad_to_aspect_ratio",
    "pool_size",
    "power_iterations",
    "reset_after",
    "reset_state",
    "return_sequences",
    "sample_weight",
    "segment_ids",
    "shared_axes",
    "split_sizes",
    "stop_gradient",
    "target_shape",
    "transpose_a",
    "transpose_b",
    "use_bias",
    "use_ema",
    "validation_data",
    "validation_split",
    "value_dim",
    "value_range",
    "weight_decay",
    "y_pred",
    "y_true",
];

/// `text` for a JavaScript program.
pub(crate) fn spoken(text: &str) -> String {
    let mut text = text.to_string();
    for (from, to) in SENTENCES {
        if text.contains(from) {
            text = text.replace(from, to);
        }
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = &*text;
    while let Some(first) = rest.chars().next() {
        let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut length = rest.find(|c| !word(c)).unwrap_or(rest.len());
        if length == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
            continue;
        }
        // A path is handled as one name.
        while let Some(more) = rest[length..].strip_prefix("::") {
            let next = more.find(|c| !word(c)).unwrap_or(more.len());
            if next == 0 {
                break;
            }
            length += 2 + next;
        }
        let (name, behind) = rest.split_at(length);
        // Text in quotes or between slashes belongs to the program and stays.
        let quoted = |c: char| matches!(c, '\'' | '"' | '/');
        let own = out.ends_with(quoted) || behind.starts_with(quoted);
        match own {
            true => out.push_str(name),
            false => say(name, &mut out),
        }
        rest = behind;
    }
    out
}

/// Appends a name.
fn say(name: &str, out: &mut String) {
    if let Some((_, known)) = NAMES.iter().find(|(known, _)| *known == name) {
        return out.push_str(known);
    }
    if !name.contains("::") {
        return if CAMEL.contains(&name) { out.push_str(&camel(name)) } else { out.push_str(name) };
    }
    let parts: Vec<String> = name.split("::").map(camel).collect();
    out.push_str(&parts.join("."));
}

fn camel(name: &str) -> String {
    let mut parts = name.split('_');
    let mut camel = parts.next().unwrap_or_default().to_string();
    for part in parts {
        let (first, rest) = part.split_at(part.len().min(1));
        camel.push_str(&first.to_ascii_uppercase());
        camel.push_str(rest);
    }
    camel
}
