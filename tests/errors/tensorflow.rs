//! The wrong calls of `tests/data/oracle/errors.json`: which are refused by TensorFlow and by this
//! crate.

use super::{floats, ints, plain, same, zeros};

use ndarray::s;
use wgrad as tf;
use wgrad::{DType, Error, PadMode, Result, Tensor, Variable};

/// The behaviour of this crate where TensorFlow 2.21 on a CPU raises (or accepts).
enum Here {
    /// An error of this variant.
    Refused(&'static str, Result<Tensor>),
    /// A result, as in TensorFlow.
    Accepted(Tensor),
    /// A result where TensorFlow raises: detecting the mistake would require reading the values.
    Differs(Tensor, Vec<f32>),
}

fn variant(error: &Error) -> &'static str {
    match error {
        Error::Shape(_) => "Shape",
        Error::DType(_) => "DType",
        Error::Index(_) => "Index",
        Error::Device(..) => "Device",
        Error::Gradient(_) => "Gradient",
        _ => "another",
    }
}

fn here(case: &str) -> Here {
    use Here::{Accepted, Differs, Refused};
    let shape = |result| Refused("Shape", result);
    let index = |result| Refused("Index", result);
    match case {
        "add_shapes" => shape(zeros([2, 3]).add(zeros([2, 4]))),
        "add_dtypes" => Refused("DType", zeros([2]).add(ints([1, 2]))),
        "matmul_inner" => shape(zeros([2, 3]).matmul(zeros([4, 5]))),
        "matmul_rank1" => shape(zeros([3]).matmul(zeros([3]))),
        "reshape_size" => shape(zeros([2, 3]).reshape([4])),
        "reshape_two_unknown" => shape(zeros([2, 3]).reshape([-1, -1])),
        "concat_shapes" => shape(tf::concat([&zeros([2, 3]), &zeros([3, 3])], 1)),
        "concat_axis" => index(tf::concat([&zeros([2, 3]), &zeros([2, 3])], 5)),
        "split_uneven" => shape(zeros([5]).split(2, 0).map(|parts| parts[0].clone())),
        "squeeze_not_one" => shape(zeros([2, 3]).squeeze([0])),
        "reduce_axis" => index(zeros([2, 3]).reduce_sum(2)),
        "gather_oob" => Differs(floats([1.0, 2.0, 3.0]).gather(&ints([3]), 0).unwrap(), vec![0.0]),
        "gather_negative" => {
            Differs(floats([1.0, 2.0, 3.0]).gather(&ints([-1]), 0).unwrap(), vec![0.0])
        }
        // As TensorFlow's own GPU kernels.
        "gather_nd_oob" => {
            let indices = tf::constant([[3, 0]]).unwrap();
            Differs(zeros([3, 2]).gather_nd(&indices).unwrap(), vec![0.0])
        }
        "scatter_nd_oob" => {
            let indices = tf::constant([[3]]).unwrap();
            Differs(tf::scatter_nd(&indices, &floats([1.0]), [3]).unwrap(), vec![0.0; 3])
        }
        "slice_oob" => index(zeros([3]).slice(&[2], &[2])),
        "strided_slice_clamps" => Accepted(zeros([3]).strided_slice(s![1..10]).unwrap()),
        "index_oob" => index(zeros([3]).strided_slice(s![5])),
        "conv_channels" => shape(zeros([1, 5, 5, 3]).conv2d(zeros([3, 3, 2, 4]), plain())),
        "conv_kernel_too_big_valid" => {
            Accepted(zeros([1, 2, 2, 1]).conv2d(zeros([3, 3, 1, 1]), plain()).unwrap())
        }
        "pad_reflect_too_big" => shape(zeros([3]).pad_with(&[(3, 0)], PadMode::Reflect)),
        "transpose_perm" => shape(zeros([2, 3]).transpose([0, 0])),
        "tile_rank" => shape(zeros([2, 3]).tile(&[2])),
        // The dividend, as WGSL defines it.
        "int_div_zero" => {
            Differs(ints([1]).floordiv(ints([0])).unwrap().cast(DType::F32).unwrap(), vec![1.0])
        }
        // As TensorFlow's own GPU kernel.
        "sparse_xent_label_oob" => {
            let logits = zeros([1, 3]);
            let loss = tf::sparse_softmax_cross_entropy_with_logits(&ints([5]), &logits);
            Differs(loss.unwrap(), vec![f32::NAN])
        }
        "top_k_too_big" => shape(zeros([3]).top_k(5).map(|(values, _)| values)),
        "broadcast_to_bad" => shape(zeros([3]).broadcast_to([2, 4])),
        "argmax_empty" => shape(zeros([0]).argmax(0)),
        "assign_shape" => {
            let variable = Variable::new(zeros([2]));
            shape(variable.assign(zeros([3])).map(|()| variable.read()))
        }
        "stack_shapes" => shape(tf::stack([&zeros([2]), &zeros([3])], 0)),
        "where_shapes" => {
            shape(tf::where_(&tf::constant([true, false]).unwrap(), &zeros([3]), &zeros([3])))
        }
        // `if` needs a bool, and item returns one only for a single element.
        "bool_tensor_truth" => {
            let item = tf::constant([true, false]).unwrap().item::<bool>();
            shape(item.map(|_| zeros([])))
        }
        other => panic!("tests/data/oracle/errors.json has a case that is not known here: {other}"),
    }
}

#[test]
fn what_tensorflow_refuses_is_refused() {
    let own = || super::support::root::root().join("tests/data/oracle").into();
    let folder = std::env::var_os("WGRAD_ORACLE").filter(|dir| !dir.is_empty());
    let path = std::path::PathBuf::from(folder.unwrap_or_else(own)).join("errors.json");
    let file: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    for case in file["cases"].as_array().unwrap() {
        let name = case["name"].as_str().unwrap();
        let raises = !case["raises"].is_null();
        match here(name) {
            Here::Refused(want, Err(error)) => {
                assert_eq!(variant(&error), want, "{name}: {error}");
                assert!(raises, "{name}: TensorFlow accepts this: {error}");
            }
            Here::Refused(_, Ok(y)) => panic!("{name}: it must be refused and gave {y:?}"),
            Here::Accepted(y) => {
                assert!(!raises, "{name}: TensorFlow refuses this");
                let want: Vec<u64> = case["result_shape"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|n| n.as_u64().unwrap())
                    .collect();
                let got: Vec<u64> = y.shape().iter().map(|&n| n as u64).collect();
                assert_eq!(got, want, "{name}");
            }
            Here::Differs(y, want) => {
                assert!(raises, "{name}");
                same(&y.to_vec::<f32>().unwrap(), &want);
            }
        }
    }
}
