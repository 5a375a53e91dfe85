//! TensorFlow Serving's REST API.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Path, State};
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use serde_json::{Map, Value, json};
use wgrad::HostDType;
use wgrad::saved_model::SavedSpec;

use crate::models::{Served, Version};
use crate::values;

/// What all requests share.
pub struct Server {
    pub models: HashMap<String, Arc<Served>>,
    /// The most bytes of a body.
    pub body_limit: usize,
    /// How long a request may take.
    pub timeout: Duration,
}

/// The name of the signature that a request without one means.
const DEFAULT: &str = "serving_default";

pub fn router(server: Arc<Server>) -> Router {
    Router::new().route("/v1/models/{*rest}", any(handle)).fallback(unknown).with_state(server)
}

/// A response other than 200, with words.
struct Failure(StatusCode, String);

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.0, axum::Json(json!({ "error": self.1 }))).into_response()
    }
}

fn bad(why: impl Into<String>) -> Failure {
    Failure(StatusCode::BAD_REQUEST, why.into())
}

async fn unknown() -> Failure {
    let words = "there are /v1/models/NAME, /v1/models/NAME/metadata and /v1/models/NAME:predict, each also with /versions/N";
    Failure(StatusCode::NOT_FOUND, words.to_string())
}

/// What a request asks of a model.
#[derive(Debug, PartialEq)]
enum Verb {
    Status,
    Metadata,
    Predict,
}

/// The model's name, the version and the verb of a path below `/v1/models/`.
fn parsed(path: &str) -> Option<(&str, Option<u64>, Verb)> {
    let (path, verb) = match (path.strip_suffix(":predict"), path.strip_suffix("/metadata")) {
        (Some(path), _) => (path, Verb::Predict),
        (None, Some(path)) => (path, Verb::Metadata),
        (None, None) => (path, Verb::Status),
    };
    let parts: Vec<&str> = path.split('/').collect();
    match parts[..] {
        [name] => Some((name, None, verb)),
        [name, "versions", number] => Some((name, Some(number.parse().ok()?), verb)),
        _ => None,
    }
}

async fn handle(
    State(server): State<Arc<Server>>,
    method: Method,
    Path(path): Path<String>,
    body: Body,
) -> Result<Response, Failure> {
    let Some((name, number, verb)) = parsed(&path) else { return Err(unknown().await) };
    let wanted = if verb == Verb::Predict { Method::POST } else { Method::GET };
    if method != wanted {
        return Err(Failure(
            StatusCode::METHOD_NOT_ALLOWED,
            format!("this takes {wanted}, not {method}"),
        ));
    }
    let model = server.models.get(name).ok_or_else(|| {
        let mut names: Vec<&str> = server.models.keys().map(String::as_str).collect();
        names.sort_unstable();
        Failure(
            StatusCode::NOT_FOUND,
            format!("there is no model \"{name}\"; there are: {}", names.join(", ")),
        )
    })?;
    if verb == Verb::Status && number.is_none() {
        return Ok(axum::Json(status(model)).into_response());
    }
    let version = model.current().ok_or_else(|| {
        let words = match model.failure() {
            Some((number, why)) => format!("version {number} of {name} could not be loaded: {why}"),
            None => format!("no version of {name} has been loaded yet"),
        };
        Failure(StatusCode::SERVICE_UNAVAILABLE, words)
    })?;
    if let Some(number) = number.filter(|number| *number != version.number) {
        let words =
            format!("version {number} of {name} is not served; version {} is", version.number);
        return Err(Failure(StatusCode::NOT_FOUND, words));
    }
    match verb {
        Verb::Status => Ok(axum::Json(status(model)).into_response()),
        Verb::Metadata => Ok(axum::Json(metadata(name, &version)).into_response()),
        Verb::Predict => predict(&server, &version, body).await,
    }
}

async fn predict(server: &Server, version: &Version, body: Body) -> Result<Response, Failure> {
    let bytes = to_bytes(body, server.body_limit).await.map_err(|error| {
        let words = format!(
            "the body cannot be read, or has more than {} bytes ({error})",
            server.body_limit
        );
        Failure(StatusCode::PAYLOAD_TOO_LARGE, words)
    })?;
    let body: Value = serde_json::from_slice(&bytes)
        .map_err(|error| bad(format!("the body is no JSON: {error}")))?;
    let name = match body.get("signature_name") {
        None => DEFAULT,
        Some(Value::String(name)) => name,
        Some(other) => {
            return Err(bad(format!("\"signature_name\" is {other}, which is no string")));
        }
    };
    let function = version.function(name).map_err(bad)?;
    let inputs = values::inputs(&body, function.inputs()).map_err(bad)?;
    let Some(result) = version.runner.submit(function, inputs) else {
        let words = "too many requests are waiting; try again later".to_string();
        return Err(Failure(StatusCode::SERVICE_UNAVAILABLE, words));
    };
    let results = match tokio::time::timeout(server.timeout, result).await {
        Ok(Ok(results)) => results.map_err(bad)?,
        Ok(Err(_)) => {
            let words = "the model's thread has ended; this is a defect of the server".to_string();
            return Err(Failure(StatusCode::INTERNAL_SERVER_ERROR, words));
        }
        Err(_) => {
            let words = format!("the request took more than {} s", server.timeout.as_secs_f64());
            return Err(Failure(StatusCode::GATEWAY_TIMEOUT, words));
        }
    };
    let text = values::response(&body, &results).to_string();
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

fn status(model: &Served) -> Value {
    let entry = |number: u64, state: &str, code: &str, words: &str| {
        json!({
            "version": number.to_string(),
            "state": state,
            "status": { "error_code": code, "error_message": words },
        })
    };
    let current = model.current().map(|version| entry(version.number, "AVAILABLE", "OK", ""));
    let failed = model.failure().map(|(number, why)| entry(number, "END", "UNKNOWN", &why));
    json!({ "model_version_status": failed.into_iter().chain(current).collect::<Vec<_>>() })
}

/// The name of a dtype in TensorFlow's messages.
fn dtype_name(dtype: HostDType) -> String {
    match dtype {
        HostDType::F16 => "DT_HALF".to_string(),
        HostDType::F32 => "DT_FLOAT".to_string(),
        HostDType::F64 => "DT_DOUBLE".to_string(),
        HostDType::Bf16 => "DT_BFLOAT16".to_string(),
        other => format!("DT_{}", other.tensorflow_name().to_uppercase()),
    }
}

fn metadata(name: &str, version: &Version) -> Value {
    let tensor = |spec: &SavedSpec| {
        let dims = spec.shape.iter().flatten().map(|size| {
            let size = size.map_or("-1".to_string(), |size| size.to_string());
            json!({ "size": size, "name": "" })
        });
        let info = json!({
            "dtype": dtype_name(spec.dtype),
            "tensor_shape": { "dim": dims.collect::<Vec<_>>(), "unknown_rank": spec.shape.is_none() },
            "name": "",
        });
        (spec.name.clone(), info)
    };
    let signature = |(name, function): (&str, &wgrad::saved_model::SavedFunction)| {
        let value = json!({
            "inputs": Map::from_iter(function.inputs().iter().map(tensor)),
            "outputs": Map::from_iter(function.outputs().iter().map(tensor)),
            "method_name": "tensorflow/serving/predict",
        });
        (name.to_string(), value)
    };
    let all = Map::from_iter(version.signatures().map(signature));
    json!({
        "model_spec": { "name": name, "signature_name": "", "version": version.number.to_string() },
        "metadata": { "signature_def": { "signature_def": all } },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_name_a_model_a_version_and_a_verb() {
        assert_eq!(parsed("digits"), Some(("digits", None, Verb::Status)));
        assert_eq!(parsed("digits:predict"), Some(("digits", None, Verb::Predict)));
        assert_eq!(parsed("digits/versions/3/metadata"), Some(("digits", Some(3), Verb::Metadata)));
        assert_eq!(parsed("digits/versions/3:predict"), Some(("digits", Some(3), Verb::Predict)));
        for wrong in ["digits/versions/x", "digits/3", "a/b/c/d"] {
            assert_eq!(parsed(wrong), None);
        }
    }
}
