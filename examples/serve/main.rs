//! A server for SavedModels with TensorFlow Serving's REST API: of TensorFlow, of Keras, and of `model.export` of this crate.
//!
//! ```sh
//! cargo example serve --features serve -- --model digits=models/digits --rest_api_port 8501
//! curl -d '{"instances": [[0.1, 0.2]]}' http://localhost:8501/v1/models/digits:predict
//! ```
//!
//! The folder `models/digits` has a folder for each version (`1`, `2`, ...). The newest one answers; when a newer one appears, it
//! is loaded, and takes over without a lost request. Requests that arrive together run as one batch. SIGTERM and Ctrl-C end the
//! server once it has answered what it has taken.
//!
//! `values.rs` has JSON as tensors, `batches.rs` the batches, `models.rs` the versions, `rest.rs` the requests, and `load.rs` the load
//! test (`--load_test`).

mod batches;
mod load;
mod models;
mod rest;
#[path = "../support/say.rs"]
mod say;
mod values;

use std::future::Future;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use batches::Batching;
use lexopt::prelude::*;
use models::Served;
use rest::Server;
use say::{Result, say};
use tokio::net::TcpListener;

const USAGE: &str = "\
Serves SavedModels with TensorFlow Serving's REST API

Options:
  --model <NAME=FOLDER>        A model, and the folder of its versions; several times for several models
  --rest_api_port <PORT>       Port [default: 8501]; 0 for any free one
  --max_batch_size <ROWS>      The most examples that run together [default: 32]
  --batch_timeout_ms <MS>      How long the first request of a batch waits for others [default: 2]
  --max_enqueued <REQUESTS>    How many requests may wait; others get 503 [default: 1000]
  --max_body_bytes <BYTES>     The largest body [default: 67108864]
  --timeout_ms <MS>            How long a request may take [default: 60000]
  --load_test <REQUESTS>       Measures a server of a small model with so many requests, and ends
  --clients <CLIENTS>          How many requests the load test sends at a time [default: 64]";

/// How often folders are searched for newer versions.
const POLL: Duration = Duration::from_millis(500);

#[derive(Clone)]
pub struct Options {
    pub models: Vec<(String, PathBuf)>,
    port: u16,
    pub batching: Batching,
    body_limit: usize,
    timeout: Duration,
    load_test: Option<usize>,
    clients: usize,
}

fn main() -> ExitCode {
    match options() {
        Ok(options) => say::exit_code(run(options)),
        Err(None) => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        Err(Some(problem)) => {
            eprintln!("error: {problem}\n\n{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// `Err(None)` if help was requested.
fn options() -> std::result::Result<Options, Option<lexopt::Error>> {
    let mut options = Options {
        models: Vec::new(),
        port: 8501,
        batching: Batching { max_size: 32, max_wait: Duration::from_millis(2), queue: 1000 },
        body_limit: 64 << 20,
        timeout: Duration::from_secs(60),
        load_test: None,
        clients: 64,
    };
    let mut parser = lexopt::Parser::from_env();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("model") => {
                let value = parser.value()?.string()?;
                let Some((name, folder)) =
                    value.split_once('=').filter(|(name, _)| !name.is_empty())
                else {
                    return Err(Some(format!("--model {value}: NAME=FOLDER is needed").into()));
                };
                options.models.push((name.to_string(), folder.into()));
            }
            Long("rest_api_port") => options.port = parser.value()?.parse()?,
            Long("max_batch_size") => {
                options.batching.max_size = positive("max_batch_size", parser.value()?.parse()?)?
            }
            Long("batch_timeout_ms") => {
                options.batching.max_wait = Duration::from_millis(parser.value()?.parse()?)
            }
            Long("max_enqueued") => {
                options.batching.queue = positive("max_enqueued", parser.value()?.parse()?)?
            }
            Long("max_body_bytes") => {
                options.body_limit = positive("max_body_bytes", parser.value()?.parse()?)?
            }
            Long("timeout_ms") => options.timeout = Duration::from_millis(parser.value()?.parse()?),
            Long("load_test") => {
                options.load_test = Some(positive("load_test", parser.value()?.parse()?)?)
            }
            Long("clients") => options.clients = positive("clients", parser.value()?.parse()?)?,
            Short('h') | Long("help") => return Err(None),
            other => return Err(Some(other.unexpected())),
        }
    }
    if options.models.is_empty() && options.load_test.is_none() {
        return Err(Some("--model NAME=FOLDER is needed".into()));
    }
    Ok(options)
}

fn positive(name: &str, value: usize) -> std::result::Result<usize, Option<lexopt::Error>> {
    match value {
        0 => Err(Some(format!("--{name} must be a whole number from 1 on").into())),
        value => Ok(value),
    }
}

fn run(options: Options) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        if let Some(requests) = options.load_test {
            return load::test(&options, requests, options.clients).await;
        }
        let listener = listen(options.port).await?;
        say!("http://{}/v1/models/{}", listener.local_addr()?, options.models[0].0);
        serve(listener, options, ended()).await
    })
}

/// A socket for requests from this machine and others.
pub async fn listen(port: u16) -> Result<TcpListener> {
    let listener = TcpListener::bind(("0.0.0.0", port)).await;
    listener.map_err(|error| format!("port {port} cannot be used: {error}").into())
}

/// Answers requests until `end`, and then those that it has taken.
pub async fn serve(
    listener: TcpListener,
    options: Options,
    end: impl Future<Output = ()> + Send + 'static,
) -> Result<()> {
    let models: Vec<Arc<Served>> = options
        .models
        .iter()
        .map(|(name, folder)| Arc::new(Served::new(name.clone(), folder.clone(), options.batching)))
        .collect();
    let stop = Stop(Arc::new(AtomicBool::new(false)));
    let (watched, stopped) = (models.clone(), stop.0.clone());
    // Loading a model takes a while, in which others answer. Requests wait for the first ones.
    let first = models.clone();
    tokio::task::spawn_blocking(move || refresh(&first)).await?;
    let watcher = tokio::task::spawn_blocking(move || {
        while !stopped.load(Ordering::Relaxed) {
            std::thread::sleep(POLL);
            refresh(&watched);
        }
    });
    let server = Server {
        models: models.into_iter().map(|model| (model.name.clone(), model)).collect(),
        body_limit: options.body_limit,
        timeout: options.timeout,
    };
    let served =
        axum::serve(listener, rest::router(Arc::new(server))).with_graceful_shutdown(end).await;
    drop(stop);
    watcher.await?;
    Ok(served?)
}

/// Ends the search for newer versions, also if the server is dropped.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn refresh(models: &[Arc<Served>]) {
    for model in models {
        if let Some(number) = model.refresh() {
            eprintln!("version {number} of {} answers", model.name);
        }
    }
}

/// Waits until the program shall end.
async fn ended() {
    let interrupted = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    #[cfg(not(unix))]
    let terminated = std::future::pending::<()>();
    tokio::select! {
        () = interrupted => {}
        () = terminated => {}
    }
}
