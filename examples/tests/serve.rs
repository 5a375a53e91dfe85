//! The server of saved models: its requests and errors, a new version under load, and the end by SIGTERM.

#![allow(clippy::unwrap_used)]
#![cfg(unix)]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use wgrad as tf;
use wgrad::saved_model::{Signature, save};

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("wgrad-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }

    /// Writes a version that multiplies by `factor`, and has a second signature of two tensors.
    fn write(&self, version: u64, factor: f32) {
        let scale = tf::Variable::new(tf::constant(factor).unwrap());
        let rows = tf::TensorSpec::new([None, Some(2)], tf::DType::F32);
        let column = tf::TensorSpec::new([None], tf::DType::F32);
        let one =
            Signature::new("serving_default", [("x", rows.clone())], |x| x[0].multiply(&scale));
        let two = Signature::new("sums", [("a", rows), ("b", column)], |x| {
            let sum = x[0].reduce_sum(-1)?.add(&x[1])?;
            Ok((sum.clone(), sum.greater(0.0)?))
        });
        let two = two.outputs(["sum", "positive"]);
        save(&vec![scale.clone()], self.0.join(version.to_string()), &[one, two]).unwrap();
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn new(folder: &Path, arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_serve"))
            .args(["--model", &format!("m={}", folder.display()), "--rest_api_port", "0"])
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let port = line.split(':').nth(2).unwrap().split('/').next().unwrap().to_string();
        Server { child, address: format!("127.0.0.1:{port}") }
    }

    /// The status and the body of a response.
    fn send(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        send(&self.address, method, path, body)
    }

    fn get(&self, path: &str) -> (u16, Value) {
        self.send("GET", path, "")
    }

    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.send("POST", path, &body.to_string())
    }

    fn terminate(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn send(address: &str, method: &str, path: &str, body: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(address).unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // A server may answer before it has read the whole body.
    let _ = stream.write_all(body.as_bytes());
    let mut response = String::new();
    let _ = stream.read_to_string(&mut response);
    let status = response.split(' ').nth(1).unwrap_or_default().parse().unwrap_or(0);
    let text = response.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    (status, serde_json::from_str(text).unwrap_or(Value::Null))
}

#[test]
fn requests_are_answered_as_by_tensorflow_serving() {
    let folder = Folder::new("serve-requests");
    folder.write(7, 2.0);
    let server = Server::new(&folder.0, &["--max_body_bytes", "2000"]);
    let predict = "/v1/models/m:predict";
    let ok = |body: Value, answer: Value| {
        let (status, response) = server.post(predict, &body);
        assert_eq!((status, response), (200, answer), "{body}");
    };
    ok(json!({"instances": [[1, 2], [3, 4.5]]}), json!({"predictions": [[2.0, 4.0], [6.0, 9.0]]}));
    ok(json!({"instances": [{"x": [1, 2]}]}), json!({"predictions": [[2.0, 4.0]]}));
    ok(json!({"inputs": [[1, 2]]}), json!({"outputs": [[2.0, 4.0]]}));
    ok(json!({"inputs": {"x": [[0.1, 0]]}}), json!({"outputs": [[0.2, 0.0]]}));
    ok(
        json!({"signature_name": "sums", "instances": [{"a": [1, 2], "b": 3}, {"a": [1, 2], "b": -4}]}),
        json!({"predictions": [{"sum": 6.0, "positive": true}, {"sum": -1.0, "positive": false}]}),
    );
    ok(
        json!({"signature_name": "sums", "inputs": {"a": [[1, 2]], "b": [3]}}),
        json!({"outputs": {"sum": [6.0], "positive": [true]}}),
    );
    let (status, response) =
        server.post("/v1/models/m/versions/7:predict", &json!({"inputs": [[1, 1]]}));
    assert_eq!((status, response), (200, json!({"outputs": [[2.0, 2.0]]})));

    let (status, response) = server.get("/v1/models/m");
    assert_eq!(status, 200);
    assert_eq!(response["model_version_status"][0]["version"], "7");
    assert_eq!(response["model_version_status"][0]["state"], "AVAILABLE");
    let (status, response) = server.get("/v1/models/m/metadata");
    assert_eq!(status, 200);
    let input =
        &response["metadata"]["signature_def"]["signature_def"]["serving_default"]["inputs"]["x"];
    assert_eq!(input["dtype"], "DT_FLOAT");
    assert_eq!(
        input["tensor_shape"]["dim"],
        json!([{"size": "-1", "name": ""}, {"size": "2", "name": ""}])
    );

    let many = json!({"instances": vec![[1.5, 2.5]; 500]});
    for (method, path, body, status, words) in [
        ("POST", predict, "{", 400, "the body is no JSON"),
        ("POST", predict, "[]", 400, "either \"instances\""),
        ("POST", predict, "{\"instances\": [[1, 2, 3]]}", 400, "the model takes x: float32[?, 2]"),
        ("POST", predict, "{\"instances\": [[1, \"a\"]]}", 400, "has the element \"a\""),
        (
            "POST",
            predict,
            "{\"signature_name\": \"f\", \"inputs\": 1}",
            400,
            "it has: serving_default, sums",
        ),
        ("POST", predict, &many.to_string(), 413, "more than 2000 bytes"),
        ("GET", predict, "", 405, "this takes POST, not GET"),
        ("GET", "/v1/models/n", "", 404, "there are: m"),
        ("GET", "/v1/models/m/versions/8", "", 404, "version 8 of m is not served; version 7 is"),
        ("GET", "/", "", 404, "/v1/models/NAME:predict"),
    ] {
        let (found, response) = server.send(method, path, body);
        assert_eq!(found, status, "{method} {path} {body}: {response}");
        let error = response["error"].as_str().unwrap();
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn a_new_version_takes_over_without_a_lost_request() {
    let folder = Folder::new("serve-versions");
    folder.write(1, 2.0);
    let server = Server::new(&folder.0, &[]);
    let done = AtomicBool::new(false);
    let body = json!({"instances": [[1, 1]]}).to_string();
    let ask = || {
        let (status, response) = send(&server.address, "POST", "/v1/models/m:predict", &body);
        assert_eq!(status, 200, "{response}");
        response["predictions"][0][0].as_f64().unwrap()
    };
    std::thread::scope(|scope| {
        let clients: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut answers = Vec::new();
                    while !done.load(Ordering::Relaxed) {
                        answers.push(ask());
                    }
                    answers
                })
            })
            .collect();
        folder.write(2, 3.0);
        let start = Instant::now();
        while ask() != 3.0 {
            assert!(start.elapsed() < Duration::from_secs(60), "version 2 does not answer");
        }
        // A damaged one changes nothing.
        std::fs::create_dir(folder.0.join("3")).unwrap();
        std::fs::write(folder.0.join("3/saved_model.pb"), "no model").unwrap();
        let start = Instant::now();
        loop {
            let (_, response) = server.get("/v1/models/m");
            let first = &response["model_version_status"][0];
            if first["version"] == "3" {
                assert_eq!(first["state"], "END");
                let words = first["status"]["error_message"].as_str().unwrap();
                assert!(words.contains("is no SavedModel"), "{words}");
                break;
            }
            assert!(start.elapsed() < Duration::from_secs(60), "{response}");
        }
        done.store(true, Ordering::Relaxed);
        for client in clients {
            let answers = client.join().unwrap();
            assert!(answers.len() > 3 && answers.iter().all(|y| [2.0, 3.0].contains(y)));
            // Never back to an older version.
            assert!(answers.is_sorted());
        }
    });
}

#[test]
fn requests_are_finished_after_sigterm() {
    let folder = Folder::new("serve-drain");
    folder.write(1, 2.0);
    // A request waits three seconds for others.
    let mut server = Server::new(&folder.0, &["--batch_timeout_ms", "3000"]);
    let address = server.address.clone();
    let body = json!({"instances": [[1, 1]]}).to_string();
    let client = std::thread::spawn(move || send(&address, "POST", "/v1/models/m:predict", &body));
    std::thread::sleep(Duration::from_secs(1));
    server.terminate();
    assert_eq!(client.join().unwrap(), (200, json!({"predictions": [[2.0, 2.0]]})));
    assert!(server.child.wait().unwrap().success());
    assert!(TcpStream::connect(&server.address).is_err());
}

#[test]
fn a_full_queue_and_a_slow_request_get_words() {
    let folder = Folder::new("serve-limits");
    // Products that take a while.
    let matrix = tf::Variable::new(tf::Tensor::full([1200, 1200], 1e-3).unwrap());
    let rows = tf::TensorSpec::new([None, Some(2)], tf::DType::F32);
    let slow = Signature::new("serving_default", [("x", rows)], |x| {
        let mut product = matrix.read();
        for _ in 0..5 {
            product = product.matmul(&matrix)?;
        }
        x[0].add(product.reduce_max(())?)
    });
    save(&vec![matrix.clone()], folder.0.join("1"), &[slow]).unwrap();
    let arguments = ["--batch_timeout_ms", "0", "--max_batch_size", "1", "--max_enqueued", "1"];
    let server = Server::new(&folder.0, &[&arguments[..], &["--timeout_ms", "10"]].concat());
    let ask = || server.post("/v1/models/m:predict", &json!({"instances": [[1, 1]]}));
    let (status, response) = ask();
    assert_eq!(status, 504, "{response}");
    assert!(response["error"].as_str().unwrap().contains("more than 0.01 s"));
    // One runs, one waits, and others are too many.
    let answers: Vec<(u16, Value)> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..40).map(|_| scope.spawn(ask)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|(status, _)| [200, 503, 504].contains(status)), "{answers:?}");
    let full = answers.iter().find(|(status, _)| *status == 503);
    let words = full.unwrap_or_else(|| panic!("{answers:?}")).1["error"].as_str().unwrap();
    assert!(words.contains("too many requests are waiting"));
}

#[test]
fn wrong_arguments_are_refused() {
    for (arguments, words) in [
        (&[][..], "--model NAME=FOLDER is needed"),
        (&["--model", "digits"], "--model digits: NAME=FOLDER is needed"),
        (
            &["--model", "a=b", "--max_batch_size", "0"],
            "--max_batch_size must be a whole number from 1 on",
        ),
        (&["--port", "1"], "invalid option '--port'"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_serve")).args(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(text.starts_with(&format!("error: {words}")), "{text}");
    }
}
