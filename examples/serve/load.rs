//! A load test: the same requests with and without batches.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::json;
use wgrad::keras::Sequential;
use wgrad::keras::layers::Dense;

use crate::say::{Result, say};
use crate::{Options, listen, serve};

/// Sends `requests` of one example each, `clients` of them at a time, to a server in this process; prints how many are answered
/// in a second, and how long they take.
pub async fn test(options: &Options, requests: usize, clients: usize) -> Result<()> {
    let folder = std::env::temp_dir().join(format!("wgrad-serve-load-{}", std::process::id()));
    let model = Sequential::new().add(Dense::new(1024)).add(Dense::new(1024)).add(Dense::new(10));
    model.build([None, Some(784)])?;
    model.export(folder.join("1"))?;
    say!(
        "an MLP 784-1024-1024-10, {requests} requests of one example, {clients} at a time, on {}",
        wgrad::Device::current()?.adapter()
    );
    for batches in [false, true] {
        let mut options = options.clone();
        options.models = vec![("mlp".to_string(), folder.clone())];
        if !batches {
            options.batching.max_size = 1;
        }
        let line = measure(&options, requests, clients).await?;
        let what = match batches {
            true => format!(
                "batches of up to {}, {:?} of waiting",
                options.batching.max_size, options.batching.max_wait
            ),
            false => "each request alone".to_string(),
        };
        say!("{what}: {line}");
    }
    std::fs::remove_dir_all(&folder)?;
    Ok(())
}

async fn measure(options: &Options, requests: usize, clients: usize) -> Result<String> {
    let listener = listen(0).await?;
    let address = listener.local_addr()?;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let own = options.clone();
    let server = tokio::spawn(async move {
        let end = async {
            let _ = stopped.await;
        };
        serve(listener, own, end).await.map_err(|error| error.to_string())
    });
    let uri = format!("http://{address}/v1/models/mlp:predict");
    let example: Vec<f32> = (0..784).map(|at| (at % 10) as f32 / 10.0).collect();
    let body = json!({ "instances": [example] }).to_string();
    let client: Client<HttpConnector, Body> = Client::builder(TokioExecutor::new()).build_http();
    // Until the model has been loaded, and batches of all sizes are planned.
    for _ in 0..2 {
        round(&client, &uri, &body, 8 * clients.max(64), clients).await?;
    }
    let start = Instant::now();
    let mut times = round(&client, &uri, &body, requests, clients).await?;
    let seconds = start.elapsed().as_secs_f64();
    let _ = stop.send(());
    server.await??;
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    Ok(format!(
        "{:.0} requests/s, median {:.2} ms, p99 {:.2} ms",
        requests as f64 / seconds,
        at(0.5),
        at(0.99)
    ))
}

/// Sends requests from several clients; returns how long each took.
async fn round(
    client: &Client<HttpConnector, Body>,
    uri: &str,
    body: &str,
    requests: usize,
    clients: usize,
) -> Result<Vec<Duration>> {
    let next = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<_> = (0..clients)
        .map(|_| {
            let (client, uri, body) = (client.clone(), uri.to_string(), body.to_string());
            let next = next.clone();
            tokio::spawn(async move {
                let mut times = Vec::new();
                while next.fetch_add(1, Ordering::Relaxed) < requests {
                    let start = Instant::now();
                    ask(&client, &uri, &body).await?;
                    times.push(start.elapsed());
                }
                Ok::<_, String>(times)
            })
        })
        .collect();
    let mut times = Vec::with_capacity(requests);
    for task in tasks {
        times.extend(task.await??);
    }
    Ok(times)
}

async fn ask(
    client: &Client<HttpConnector, Body>,
    uri: &str,
    body: &str,
) -> std::result::Result<(), String> {
    let words = |error: &dyn std::fmt::Display| format!("a request failed: {error}");
    let request =
        Request::post(uri).body(Body::from(body.to_string())).map_err(|error| words(&error))?;
    let response = client.request(request).await.map_err(|error| words(&error))?;
    let status = response.status();
    let answer =
        to_bytes(Body::new(response.into_body()), 1 << 20).await.map_err(|error| words(&error))?;
    match status {
        StatusCode::OK => Ok(()),
        status => Err(format!("a request got {status}: {}", String::from_utf8_lossy(&answer))),
    }
}
