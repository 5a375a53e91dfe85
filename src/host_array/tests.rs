//! Arrays of every dtype: their sizes, their values, and what is refused.

use half::{bf16, f16};
use ndarray::{ArrayD, array};

use super::*;
use crate::dtype::DType;

/// An array of each Rust type, with values at the ends of its range.
fn arrays() -> Vec<HostArray<'static>> {
    vec![
        array![f16::ONE, f16::MIN].into(),
        array![bf16::ONE, bf16::MAX].into(),
        array![[1.5f32, -0.0], [f32::INFINITY, f32::MIN_POSITIVE]].into(),
        array![1e300f64].into(),
        array![i8::MIN, -1].into(),
        array![i16::MIN, i16::MAX].into(),
        array![i32::MIN, 7].into(),
        array![i64::MIN, i64::MAX].into(),
        array![0u8, 255].into(),
        array![u16::MAX].into(),
        array![u32::MAX].into(),
        array![u64::MAX].into(),
        array![true, false].into(),
        array![[1.0f32, -2.0]].into(),
        ndarray::arr1(&[[1.0f32, -2.0]]).into(),
        ndarray::arr1(&[[1.0f64, 0.5]]).into(),
        array![b"".to_vec(), b"\xff\0".to_vec()].into(),
    ]
}

#[test]
fn every_row_of_the_table_has_its_own_names() {
    let all = HostDType::ALL;
    for (at, dtype) in all.iter().enumerate() {
        assert!(!all[..at].contains(dtype));
        let names = all[..at].iter().map(|other| other.tensorflow_name());
        assert!(names.into_iter().all(|name| name != dtype.tensorflow_name()), "{dtype}");
        if dtype.number() != 0 {
            assert_eq!(HostDType::from_number(dtype.number()), *dtype);
        }
        if let Some(name) = dtype.safetensors_name() {
            assert_eq!(HostDType::from_safetensors_name(name), Some(*dtype));
        }
        if let Some(name) = dtype.numpy_name() {
            assert_eq!(HostDType::from_numpy_name(name), Some(*dtype));
            let size: usize = name[1..].parse().unwrap();
            assert_eq!(dtype.size(), Some(size), "{name}");
        }
    }
    assert_eq!(HostDType::from_number(0), HostDType::Other(0));
    assert_eq!(HostDType::from_number(99).to_string(), "of TensorFlow's type number 99");
    for dtype in DType::ALL {
        let host = HostDType::from(dtype);
        assert_eq!((host.name(), host.tensorflow_name()), (dtype.name(), dtype.tensorflow_name()));
        assert_eq!(host.tensor_dtype(), Some(dtype));
    }
}

#[test]
fn bytes_are_the_elements_with_the_lowest_byte_first() {
    let array = HostArray::from(array![[1i16, 2], [3, -1]]);
    assert_eq!(array.bytes(), [1, 0, 2, 0, 3, 0, 255, 255]);
    assert_eq!((array.dtype(), array.shape(), array.len()), (HostDType::I16, &[2, 2][..], 4));
    // Arrays in another order come in row-major order.
    assert_eq!(HostArray::from(array![[1i16, 3], [2, -1]].reversed_axes()), array);
    assert_eq!(array.to_array::<i16>().unwrap(), array![[1, 2], [3, -1]].into_dyn());
    for array in arrays() {
        let again = match array.strings() {
            Some(strings) => HostArray::from_strings(array.shape(), strings.to_vec()),
            None => HostArray::new(array.dtype(), array.shape(), array.bytes().to_vec()),
        };
        assert_eq!(again.unwrap(), array);
        assert_eq!(array.view(), array);
    }
    let bools = HostArray::new(HostDType::Bool, [3], vec![0, 1, 7]).unwrap();
    assert_eq!((bools.bytes(), &bools), (&[0, 1, 1][..], &array![false, true, true].into()));
    let pairs = HostArray::from(ndarray::arr1(&[[1.0f32, -2.0]]));
    assert_eq!((pairs.dtype(), pairs.shape()), (HostDType::Complex64, &[1][..]));
    assert_eq!(pairs.to_array::<[f32; 2]>().unwrap()[[0]], [1.0, -2.0]);
}

#[test]
fn sizes_that_lie_are_errors() {
    let new = |dtype, shape: &[usize], bytes: usize| HostArray::new(dtype, shape, vec![0; bytes]);
    let text = |array: Result<HostArray<'_>>| array.unwrap_err().to_string();
    assert_eq!(
        text(new(HostDType::F32, &[2, 3], 23)),
        "HostArray: an array [2, 3] of F32 has 24 bytes, and 23 were passed. Pass bytes that fit the shape."
    );
    assert!(text(new(HostDType::U8, &[usize::MAX, 2], 0)).contains("more than any memory's bytes"));
    let half = 1usize << (usize::BITS / 2);
    for (dtype, shape, bytes) in [
        (HostDType::U8, &[half, half][..], 0),
        (HostDType::F64, &[usize::MAX / 8 + 2], 8),
        (HostDType::Complex128, &[usize::MAX / 16], 0),
        (HostDType::U8, &[usize::MAX], 0),
        // Nothing has elements, but no array has such axes.
        (HostDType::F32, &[0, usize::MAX], 0),
        (HostDType::F32, &[usize::MAX, 0], 0),
        (HostDType::F32, &[], 0),
        (HostDType::F32, &[], 8),
        (HostDType::PackedFloat4, &[3], 2),
        (HostDType::Float6E2m3, &[4], 4),
    ] {
        assert!(matches!(new(dtype, shape, bytes), Err(Error::Shape(_))), "{dtype} {shape:?}");
    }
    assert_eq!(new(HostDType::PackedFloat4, &[3, 2], 3).unwrap().len(), 6);
    assert_eq!(new(HostDType::Float6E2m3, &[4], 3).unwrap().len(), 4);
    assert!(new(HostDType::F32, &[0, 1 << 20], 0).unwrap().is_empty());
    for dtype in [HostDType::String, HostDType::Resource, HostDType::Other(77)] {
        assert!(matches!(new(dtype, &[0], 0), Err(Error::DType(_))), "{dtype}");
    }
    let strings = |shape: &[usize], count| HostArray::from_strings(shape, vec![Vec::new(); count]);
    assert!(strings(&[2], 2).is_ok() && strings(&[0, 3], 0).is_ok() && strings(&[], 1).is_ok());
    assert!(strings(&[2], 1).is_err() && strings(&[usize::MAX, 2], 0).is_err());
}

#[test]
fn arrays_of_another_type_are_refused_with_both() {
    let text = HostArray::from(array![1.0f64]).to_array::<f32>().unwrap_err().to_string();
    assert!(text.contains("has elements of type f64, and f32 is wanted"), "{text}");
    assert!(HostArray::from(array![1u8]).to_array::<Vec<u8>>().is_err());
    assert!(HostArray::from(array![vec![1u8]]).to_array::<u8>().is_err());
}

#[test]
fn numbers_are_converted_if_none_changes() {
    let to = |array: HostArray<'_>, dtype, round| array.converted(dtype, round);
    let exact = |array, dtype| to(array, dtype, false).unwrap();
    assert_eq!(exact(array![1i64, -7].into(), DType::I32), array![1i32, -7].into());
    assert_eq!(
        exact(array![0.5f64, f64::INFINITY].into(), DType::F32),
        array![0.5f32, f32::INFINITY].into()
    );
    assert_eq!(exact(array![bf16::ONE].into(), DType::F16), array![f16::ONE].into());
    assert_eq!(exact(array![1u64 << 24].into(), DType::F32), array![16777216f32].into());
    assert_eq!(exact(array![true].into(), DType::Bool), array![true].into());
    let misfit = |array: HostArray<'static>, dtype, round| to(array, dtype, round).unwrap_err();
    let Misfit::Value(place, number) = misfit(array![[1i64, 1 << 40]].into(), DType::I32, true)
    else {
        panic!()
    };
    assert_eq!((place, number.to_string()), (vec![0, 1], "1099511627776".to_string()));
    assert!(matches!(misfit(array![0.1f64].into(), DType::F32, false), Misfit::Value(..)));
    assert_eq!(to(array![0.1f64].into(), DType::F32, true).unwrap(), array![0.1f32].into());
    assert!(matches!(misfit(array![1f32].into(), DType::F16, false), Misfit::Rounds));
    for (array, dtype) in [
        (HostArray::from(array![1.0f32]), DType::I32),
        (array![1i32].into(), DType::F16),
        (array![true].into(), DType::I32),
        (array![1u8].into(), DType::Bool),
        (array![Vec::new()].into(), DType::F32),
        (ndarray::arr1(&[[0f32; 2]]).into(), DType::F32),
    ] {
        assert!(matches!(misfit(array, dtype, true), Misfit::Apart), "{dtype}");
    }
    let wide = |array: HostArray<'_>| array.to_f64();
    assert_eq!(wide(array![true, false].into()), Some(array![1.0, 0.0].into_dyn()));
    assert_eq!(wide(array![[-3i8]].into()), Some(array![[-3.0]].into_dyn()));
    assert_eq!(wide(array![bf16::ONE].into()), Some(ArrayD::ones(vec![1])));
    assert_eq!(wide(array![vec![1u8]].into()), None);
}

#[test]
fn debug_shows_the_first_elements() {
    let text = |array: HostArray<'_>| format!("{array:?}");
    assert_eq!(text(array![[1.5f32, -2.0]].into()), "HostArray(float32 [1, 2]: [1.5, -2.0])");
    assert_eq!(text(array![b"a\xff".to_vec()].into()), "HostArray(string [1]: [\"a\u{fffd}\"])");
    assert!(text(ndarray::Array1::<u8>::zeros(1000).into()).ends_with("0, 0, ..])"));
}
