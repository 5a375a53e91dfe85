//! The node tests of the package `onnx`: at least 70 % of those with dtypes of this crate must pass. `WGRAD_JUDGE_FOLDER` keeps the
//! models and a report, `report.txt`.

use std::path::Path;
use std::process::Command;

use wgrad as tf;
use wgrad::saved_model::SavedValue;

use crate::support::folder::Folder;
use crate::support::node_tests::{Arrays, near, numbers, read};

fn run(folder: &Path, name: &str, arrays: &Arrays) -> Result<(), String> {
    let model = tf::onnx::load(folder.join(format!("{name}.onnx"))).map_err(|e| e.to_string())?;
    let inputs = arrays.iter().filter_map(|(name, array)| {
        let name = name.strip_prefix("in.")?.to_string();
        // Integers as the host has them, so that they can be sizes; floats on the device.
        let value = match array.dtype().tensor_dtype().is_some_and(wgrad::DType::is_float) {
            true => SavedValue::Tensor(array.to_tensor().ok()?),
            false => SavedValue::Host(array.clone()),
        };
        Some((name, value))
    });
    let results = model.call(inputs.collect::<Vec<_>>()).map_err(|e| e.to_string())?;
    for (key, expected) in arrays {
        let Some(key) = key.strip_prefix("out.") else { continue };
        let actual = results.value(key).and_then(SavedValue::to_host_array);
        let actual = actual.map_err(|e| e.to_string())?;
        near(actual.shape(), &numbers(&actual).unwrap(), expected)
            .map_err(|why| format!("{key} is {why}"))?;
    }
    Ok(())
}

#[test]
#[ignore = "takes a Python with onnx, in WGRAD_JUDGE_PYTHON: `cargo xtask judge`"]
fn node_tests() {
    let own = Folder::new("judge-onnx");
    let folder = std::env::var_os("WGRAD_JUDGE_FOLDER").map_or(own.path(""), Into::into);
    let python = std::env::var("WGRAD_JUDGE_PYTHON").expect("`cargo xtask judge` names a Python");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/onnx/nodes.py");
    let output = Command::new(python).arg(script).arg(&folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .filter_map(|entry| {
            Some(entry.unwrap().file_name().to_str()?.strip_suffix(".onnx")?.to_string())
        })
        .collect();
    names.sort();
    let (mut passed, mut failed, mut other) = (0, Vec::new(), 0);
    for name in &names {
        match read(&folder.join(format!("{name}.safetensors"))).unwrap() {
            None => other += 1,
            Some(arrays) => match run(&folder, name, &arrays) {
                Ok(()) => passed += 1,
                Err(why) => failed.push(format!("{name}: {}", why.replace('\n', " "))),
            },
        }
    }
    let summary =
        format!("onnx: {passed} passed, {} failed, {other} have other dtypes", failed.len());
    std::fs::write(folder.join("report.txt"), format!("{summary}\n{}\n", failed.join("\n")))
        .unwrap();
    println!("{summary}");
    assert!(10 * passed >= 7 * (passed + failed.len()), "{summary}:\n{}", failed.join("\n"));
}
