//! NumPy's files, written by NumPy and as NumPy would write them: every type, order and version; broken ones.

#![allow(clippy::unwrap_used)]

use crate::support::folder;
use crate::support::root;

use std::fs;
use std::path::PathBuf;

use folder::Folder;
use ndarray::{Array1, Array2, Array3, ArrayD, array};
use serde_json::Value;
use wgrad::data::npy;
use wgrad::{Error, HostArray, HostDType, f16};

fn oracle(name: &str) -> PathBuf {
    root::root().join("tests/data/npy").join(name)
}

fn expected() -> serde_json::Map<String, Value> {
    let json = fs::read(oracle("expected.json")).unwrap();
    serde_json::from_slice::<Value>(&json).unwrap().as_object().unwrap().clone()
}

/// The values in the notation of the expected results: integers, or an f64's shortest decimal.
fn texts(array: &HostArray<'_>) -> Vec<String> {
    let float = |value: f64| {
        if value.is_finite() { format!("{value:?}") } else { format!("{value}").to_lowercase() }
    };
    let float_array = || array.to_f64().unwrap().iter().map(|value| float(*value)).collect();
    match array.dtype() {
        HostDType::Bool | HostDType::F16 | HostDType::F32 | HostDType::F64 => float_array(),
        HostDType::I64 => array.to_array::<i64>().unwrap().iter().map(i64::to_string).collect(),
        _ => array.to_f64().unwrap().iter().map(|value| (*value as i64).to_string()).collect(),
    }
}

fn check(name: &str, array: &HostArray<'_>, wanted: &Value) {
    let shape: Vec<usize> = wanted["shape"]
        .as_array()
        .unwrap()
        .iter()
        .map(|size| size.as_u64().unwrap() as usize)
        .collect();
    assert_eq!(array.shape(), shape, "{name}");
    let values: Vec<&str> =
        wanted["values"].as_array().unwrap().iter().map(|value| value.as_str().unwrap()).collect();
    assert_eq!(texts(array), values, "{name}");
    let dtype = match wanted["dtype"].as_str().unwrap() {
        "<f2" => "f16",
        "<f4" | ">f4" => "f32",
        "<f8" => "f64",
        "|b1" => "bool",
        "|i1" => "i8",
        "<i2" => "i16",
        "<i4" => "i32",
        "<i8" => "i64",
        "|u1" => "u8",
        "<u4" => "u32",
        other => panic!("{other}"),
    };
    assert_eq!(array.dtype().name(), dtype, "{name}");
}

#[test]
fn every_file_that_numpy_wrote_is_read() {
    let expected = expected();
    assert_eq!(expected.len(), 15);
    for (name, wanted) in &expected {
        check(name, &npy::load(oracle(&format!("{name}.npy"))).unwrap(), wanted);
    }
    check("version2", &npy::load(oracle("version2.npy")).unwrap(), &expected["f32"]);
    for archive in ["plain.npz", "compressed.npz"] {
        let arrays = npy::load_npz(oracle(archive)).unwrap();
        assert_eq!(arrays.len(), 13, "all but fortran_order and big_endian");
        for (name, array) in &arrays {
            check(name, array, &expected[name]);
        }
    }
}

#[test]
fn what_is_no_array_of_numbers_is_refused() {
    let text = |name: &str| {
        let error = npy::load(oracle(name)).unwrap_err();
        assert!(matches!(error, Error::Data(_)));
        let text = error.to_string();
        let path = oracle(name).display().to_string();
        text.strip_prefix(&format!("{path}: ")).unwrap_or_else(|| panic!("{text}")).to_string()
    };
    assert!(
        text("structured.npy")
            .contains("its elements are records with names, which are not supported")
    );
    assert_eq!(
        text("truncated.npy"),
        "the header promises [3, 4] elements of '<f4', 48 bytes, and only 43 follow. The file is truncated; write it \
         again."
    );
    assert!(
        text("bad_magic.npy")
            .starts_with("the file begins with 92 4e 55 4d 50 59, and a .npy file begins with 93")
    );
    assert!(matches!(npy::load(oracle("none.npy")), Err(Error::Io(_))));
    assert!(matches!(npy::load_npz(oracle("f32.npy")), Err(Error::Data(_))));
}

#[test]
fn what_is_written_is_what_numpy_writes() {
    let folder = Folder::new("npy");
    for name in
        ["f16", "f32", "f64", "bool", "i8", "i16", "i32", "i64", "u8", "u32", "scalar", "empty"]
    {
        let original = oracle(&format!("{name}.npy"));
        let path = folder.path("array.npy");
        npy::save(&path, npy::load(&original).unwrap()).unwrap();
        assert!(fs::read(&path).unwrap() == fs::read(&original).unwrap(), "{name}");
    }
    // An array in another order is written in row-major order.
    let transposed = array![[1u16, 2, 3], [4, 5, 6]].reversed_axes();
    npy::save(folder.path("t.npy"), transposed.clone()).unwrap();
    let read = npy::load(folder.path("t.npy")).unwrap().to_array::<u16>().unwrap();
    assert_eq!(read, transposed.into_dyn());
}

#[test]
fn archives_are_written_and_read() {
    let folder = Folder::new("npz");
    let large = Array3::from_shape_fn((30, 40, 50), |(i, j, k)| (i * j + k) as f64);
    let arrays = || -> Vec<(&str, HostArray<'static>)> {
        vec![
            ("large", large.clone().into()),
            ("f16", Array1::from_elem(3, f16::ONE).into()),
            ("u64", array![u64::MAX].into()),
            ("none", Array2::<i8>::zeros((0, 4)).into()),
        ]
    };
    npy::savez(folder.path("plain.npz"), arrays()).unwrap();
    npy::savez_compressed(folder.path("packed.npz"), arrays()).unwrap();
    for name in ["plain.npz", "packed.npz"] {
        let read = npy::load_npz(folder.path(name)).unwrap();
        assert_eq!(read.len(), 4);
        for (name, array) in arrays() {
            assert_eq!(read[name], array, "{name}");
        }
    }
    let bytes = |name| fs::metadata(folder.path(name)).unwrap().len();
    assert!(bytes("packed.npz") * 4 < bytes("plain.npz"));
    let twice = [("a", array![1u8].into()), ("a", array![2u8].into())];
    assert!(matches!(npy::write_npz(twice, false), Err(Error::Data(_))));
}

#[test]
fn an_array_of_another_type_is_refused_with_both() {
    let array: HostArray<'_> = array![1.0f64].into();
    let error = array.to_array::<f32>().unwrap_err();
    assert!(matches!(error, Error::DType(_)));
    assert!(error.to_string().contains("has elements of type f64, and f32 is wanted"), "{error}");
}

/// A file with this text as its header, followed by these bytes.
fn file(header: &str, bytes: &[u8]) -> Vec<u8> {
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((header.len() as u16).to_le_bytes());
    file.extend(header.bytes());
    file.extend(bytes);
    file
}

#[test]
fn headers_that_lie_are_refused_in_words() {
    let text = |bytes: &[u8]| npy::parse(bytes, "x").unwrap_err().to_string();
    let of = |descr: &str, shape: &str| {
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}}}")
    };
    for (header, words) in [
        (of("<f4", "(9223372036854775807, 9223372036854775807)"), "more than memory can hold"),
        (of("<f4", "(0, 9223372036854775807)"), "more than memory can hold"),
        (of("<f4", "(1000000000000,)"), "4000000000000 bytes, and only 4 follow"),
        (of("<c4", "(1,)"), "the elements are '<c4'"),
        (of("|O", "(1,)"), "the elements are '|O'"),
        (of("<U3", "(1,)"), "the elements are '<U3'"),
        (of("<m8[D]", "(1,)"), "the elements are '<m8[D]'"),
        (of("", "(1,)"), "the elements are ''"),
        (of("é4", "(1,)"), "the elements are 'é4'"),
        (of("<f4", "()") + "x", "more follows after its closing brace"),
        (of("|u1", "(3,)"), "promises [3] elements of u8, and more bytes follow"),
        (of("|b1", "(4,)"), "element 1 is the byte 0x07, and a bool is 0 or 1"),
    ] {
        let found = text(&file(&header, &[1, 7, 0, 0]));
        assert!(found.starts_with("x: ") && found.contains(words), "{header}: {found}");
    }
    assert!(text(b"\x93NUMPY\x09\x00\x00\x00").contains("version 9.0"));
    assert!(
        text(b"\x93NUMPY\x02\x00\xff\xff\xff\xff")
            .contains("has 4294967295 bytes, and at most 65536")
    );
    assert!(text(b"").contains("begins with nothing") || text(b"").contains("0 are there"));
    for end in 0..20 {
        assert!(npy::parse(&file(&of("|u1", "(3,)"), &[])[..end], "x").is_err());
    }
    let deep = "(".repeat(60_000);
    assert!(text(&file(&format!("{{'shape': {deep}"), &[])).contains("is no size of an axis"));
}

#[test]
fn byte_orders_and_old_names_are_read() {
    let parse = |descr: &str, bytes: &[u8]| -> ArrayD<u16> {
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (2,)}}");
        npy::parse(&file(&header, bytes), "x").unwrap().to_array().unwrap()
    };
    assert_eq!(parse("<u2", &[1, 0, 2, 1]), array![1, 258].into_dyn());
    assert_eq!(parse(">u2", &[0, 1, 1, 2]), array![1, 258].into_dyn());
    assert_eq!(parse("=u2", &[1, 0, 2, 1]), array![1, 258].into_dyn());
    let header = "{'descr': '?', 'fortran_order': True, 'shape': (1, 2)}";
    let bools = npy::parse(&file(header, &[1, 0]), "x").unwrap().to_array::<bool>().unwrap();
    assert_eq!(bools, array![[true, false]].into_dyn());
}

#[test]
fn every_dtype_that_numpy_has_comes_back() {
    let folder = Folder::new("npy-dtypes");
    let path = folder.path("array.npy");
    let bytes: Vec<u8> = (1..=96).collect();
    let mut kinds = 0;
    for &dtype in HostDType::ALL {
        let Some(size) = dtype.size() else { continue };
        let bytes = match dtype {
            HostDType::Bool => vec![0, 1, 1, 0, 1, 0],
            _ => bytes[..6 * size].to_vec(),
        };
        let array = HostArray::new(dtype, [2, 3], bytes).unwrap();
        if dtype.numpy_name().is_none() {
            let error = npy::save(&path, array).unwrap_err();
            assert!(matches!(error, Error::DType(_)), "{error}");
            continue;
        }
        kinds += 1;
        npy::save(&path, array.view()).unwrap();
        assert_eq!(npy::load(&path).unwrap(), array);
        let archive = npy::write_npz([("a", array.view())], true).unwrap();
        assert_eq!(npy::parse_npz(&archive, "x").unwrap()["a"], array);
    }
    assert_eq!(kinds, 14);
    // Both parts of a complex number have the file's order.
    let header = "{'descr': '>c8', 'fortran_order': False, 'shape': (1,)}";
    let bytes = [1f32.to_be_bytes(), (-2f32).to_be_bytes()].concat();
    let read = npy::parse(&file(header, &bytes), "x").unwrap();
    assert_eq!(read.to_array::<[f32; 2]>().unwrap()[[0]], [1.0, -2.0]);
    // Column-major order.
    let header = "{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3)}";
    let bytes: Vec<u8> = (1..=6i16).flat_map(i16::to_le_bytes).collect();
    let read = npy::parse(&file(header, &bytes), "x").unwrap();
    assert_eq!(read, array![[1i16, 3, 5], [2, 4, 6]].into());
}
