//! Downloads from a server on this machine that answers as Hugging Face's does, and as servers should not.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sha2::{Digest, Sha256};
use wgrad::Trackable;
use wgrad::hub::{self, HubOptions};

use crate::hub::{GPT2, gpt2};
use crate::support::child;
use crate::support::folder::Folder;

/// What the server does with a file.
#[derive(Clone, Default)]
struct File {
    bytes: Vec<u8>,
    etag: String,
    /// Sent with the first answer, as Hugging Face does for weights.
    linked: Option<(String, u64)>,
    status: u16,
    redirect: Option<String>,
    /// The connection is closed after so many bytes of each answer.
    breaks_after: Option<usize>,
    /// How often it is.
    breaks: usize,
    no_ranges: bool,
    endless: bool,
    /// A pause after the part before the break, so that the other side can be killed.
    stalls: bool,
}

#[derive(Default)]
struct State {
    files: BTreeMap<String, File>,
    /// The paths that were requested, and the first byte of each.
    log: Vec<(String, usize)>,
}

#[derive(Clone)]
struct Server {
    address: String,
    state: Arc<Mutex<State>>,
}

const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

impl Server {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Mutex::new(State::default()));
        let server = Server { address, state };
        let own = server.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let own = own.clone();
                std::thread::spawn(move || own.answer(stream));
            }
        });
        server
    }

    /// A server with a whole network at `path`.
    fn with_gpt2(path: &str) -> (Self, Vec<u8>) {
        let server = Server::new();
        let weights = weights_of(&gpt2());
        server.file(&format!("{path}config.json"), File { bytes: GPT2.into(), ..File::default() });
        server.file(&format!("{path}model.safetensors"), whole(&weights));
        (server, weights)
    }

    fn file(&self, path: &str, file: File) {
        self.state.lock().unwrap().files.insert(path.into(), file);
    }

    fn change(&self, path: &str, change: impl FnOnce(&mut File)) {
        change(self.state.lock().unwrap().files.get_mut(path).unwrap());
    }

    fn log(&self) -> Vec<(String, usize)> {
        std::mem::take(&mut self.state.lock().unwrap().log)
    }

    fn answer(&self, mut stream: TcpStream) -> Option<()> {
        let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
        let first = lines.next()?.ok()?;
        let path = first.split(' ').nth(1)?.to_string();
        let mut from = 0;
        for line in lines {
            let line = line.ok()?;
            if line.is_empty() {
                break;
            }
            let line = line.to_ascii_lowercase();
            if let Some(range) = line.strip_prefix("range: bytes=") {
                from = range.trim_end_matches('-').parse().ok()?;
            }
        }
        let (file, breaks) = {
            let mut state = self.state.lock().unwrap();
            state.log.push((path.clone(), from));
            let file = state.files.get_mut(&path).cloned();
            let breaks = file.as_ref().is_some_and(|file| file.breaks > 0);
            if breaks {
                state.files.get_mut(&path).unwrap().breaks -= 1;
            }
            (file, breaks)
        };
        let Some(file) = file else {
            stream
                .write_all(
                    b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                )
                .ok()?;
            return None;
        };
        let mut head = String::new();
        if let Some((sha256, size)) = &file.linked {
            head += &format!("X-Linked-ETag: \"{sha256}\"\r\nX-Linked-Size: {size}\r\n");
        }
        head += &format!("X-Repo-Commit: {COMMIT}\r\nConnection: close\r\n");
        if !file.etag.is_empty() {
            head += &format!("ETag: {}\r\n", file.etag);
        }
        if let Some(to) = &file.redirect {
            let head =
                format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n{head}\r\n");
            return stream.write_all(head.as_bytes()).ok();
        }
        if file.endless {
            let head = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{head}\r\n");
            stream.write_all(head.as_bytes()).ok()?;
            let chunk = [b"10000\r\n", &[b' '; 0x10000][..], b"\r\n"].concat();
            loop {
                stream.write_all(&chunk).ok()?;
            }
        }
        let size = file.bytes.len();
        let from = if file.no_ranges { 0 } else { from.min(size) };
        let line = match (file.status, from) {
            (0, 0) => "200 OK".to_string(),
            (0, _) => {
                head += &format!("Content-Range: bytes {from}-{}/{size}\r\n", size - 1);
                "206 Partial Content".into()
            }
            (status, _) => format!("{status} Status"),
        };
        let body = &file.bytes[from..];
        let head = format!("HTTP/1.1 {line}\r\nContent-Length: {}\r\n{head}\r\n", body.len());
        stream.write_all(head.as_bytes()).ok()?;
        let count =
            if breaks { file.breaks_after.unwrap_or(0).min(body.len()) } else { body.len() };
        stream.write_all(&body[..count]).ok()?;
        stream.flush().ok()?;
        if breaks && file.stalls {
            std::thread::sleep(Duration::from_secs(60));
        }
        Some(())
    }
}

/// A safetensors file.
fn weights_of(model: &impl Trackable) -> Vec<u8> {
    pollster::block_on(model.to_safetensors_async()).unwrap()
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A file as it should be.
fn whole(bytes: &[u8]) -> File {
    let etag = format!("\"{}\"", &sha256(bytes)[..20]);
    File { bytes: bytes.into(), etag, ..File::default() }
}

fn options(folder: &Folder, server: &Server) -> HubOptions {
    HubOptions::new().cache(folder.path("cache")).endpoint(server.address.clone())
}

/// All files in the cache, by their names.
fn cached(folder: &Folder) -> BTreeMap<String, Vec<u8>> {
    fn walk(path: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            let path: PathBuf = entry.path();
            if path.is_dir() {
                walk(&path, found);
            } else {
                let name = entry.file_name().into_string().unwrap();
                found.insert(name, std::fs::read(&path).unwrap());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(&folder.path("cache"), &mut found);
    found
}

fn names(folder: &Folder) -> Vec<String> {
    cached(folder).into_keys().collect()
}

fn params(model: hub::HubModel) -> usize {
    model.into_gpt2().unwrap().count_params()
}

const ROOT: &str = "/owner/name/resolve/main/";
const WEIGHTS: &str =
    "/owner/name/resolve/0123456789abcdef0123456789abcdef01234567/model.safetensors";

/// A repository whose files are asked for by commit once that is known.
fn repository() -> (Server, Vec<u8>) {
    let (server, weights) = Server::with_gpt2(ROOT);
    server.file(WEIGHTS, whole(&weights));
    (server, weights)
}

#[test]
fn a_repository_is_downloaded_once() {
    let folder = Folder::new("hub-once");
    let (server, weights) = repository();
    let model = hub::load("owner/name", options(&folder, &server)).unwrap();
    assert_eq!(params(model), gpt2().count_params());
    let paths: Vec<String> = server.log().into_iter().map(|(path, _)| path).collect();
    assert_eq!(
        paths,
        [
            format!("{ROOT}config.json"),
            WEIGHTS.into(),
            WEIGHTS.replace("model.safetensors", "tokenizer.json")
        ]
    );
    assert_eq!(
        names(&folder),
        ["commit", "config.json", "model.safetensors", "tokenizer.json.absent"]
    );
    assert_eq!(cached(&folder)["model.safetensors"], weights);
    // From the cache, without a request.
    hub::load("owner/name", options(&folder, &server)).unwrap();
    hub::load("owner/name", options(&folder, &server).offline(true)).unwrap();
    assert_eq!(server.log(), []);
    // Another revision is another folder.
    let error = hub::load("owner/name", options(&folder, &server).revision("v2")).unwrap_err();
    assert!(
        error.to_string().contains("/owner/name/resolve/v2/config.json. Check the name"),
        "{error}"
    );
    // A folder by its URL.
    let (server, _) = Server::with_gpt2("/some/where/");
    let place = format!("{}/some/where/", server.address);
    let model = hub::load(&place, options(&folder, &server)).unwrap();
    assert_eq!(params(model), gpt2().count_params());
}

#[test]
fn a_transfer_continues_where_it_broke_off() {
    let folder = Folder::new("hub-resumed");
    let (server, weights) = repository();
    let third = weights.len() / 3 + 1;
    server.change(WEIGHTS, |file| (file.breaks_after, file.breaks) = (Some(third), 2));
    hub::load("owner/name", options(&folder, &server)).unwrap();
    let from: Vec<usize> = server
        .log()
        .into_iter()
        .filter(|(path, _)| path == WEIGHTS)
        .map(|(_, from)| from)
        .collect();
    assert_eq!(from, [0, third, 2 * third]);
    assert_eq!(cached(&folder)["model.safetensors"], weights);
    assert!(!names(&folder).iter().any(|name| name.contains(".part")), "{:?}", names(&folder));
}

#[test]
fn another_call_continues_after_an_error() {
    let folder = Folder::new("hub-continued");
    let (server, weights) = repository();
    server.change(WEIGHTS, |file| (file.breaks_after, file.breaks) = (Some(1000), 4));
    let error = hub::load("owner/name", options(&folder, &server)).unwrap_err().to_string();
    assert!(
        error.contains("broke off") && error.contains("the transfer continues where"),
        "{error}"
    );
    let part = names(&folder).into_iter().find(|name| name.ends_with(".part")).unwrap();
    assert_eq!(cached(&folder)[&part], weights[..4000]);
    server.log();
    hub::load("owner/name", options(&folder, &server)).unwrap();
    assert_eq!(server.log()[0], (WEIGHTS.to_string(), 4000));
    assert_eq!(cached(&folder)["model.safetensors"], weights);
}

#[test]
fn a_server_without_ranges_begins_again() {
    let folder = Folder::new("hub-no-ranges");
    let (server, weights) = repository();
    server.change(WEIGHTS, |file| {
        (file.breaks_after, file.breaks, file.no_ranges) = (Some(1000), 2, true);
    });
    hub::load("owner/name", options(&folder, &server)).unwrap();
    assert_eq!(cached(&folder)["model.safetensors"], weights);
}

#[test]
fn a_file_that_changes_midway_is_not_mixed() {
    let folder = Folder::new("hub-changed");
    let (server, _) = repository();
    server.change(WEIGHTS, |file| (file.breaks_after, file.breaks) = (Some(1000), 4));
    hub::load("owner/name", options(&folder, &server)).unwrap_err();
    let other = weights_of(&gpt2());
    server.file(WEIGHTS, whole(&other));
    hub::load("owner/name", options(&folder, &server)).unwrap();
    assert_eq!(cached(&folder)["model.safetensors"], other);
    // A file without a tag may have changed, so that it is not continued.
    let folder = Folder::new("hub-untagged");
    server.change(WEIGHTS, |file| {
        (file.breaks_after, file.breaks, file.etag) = (Some(1000), 1, String::new());
    });
    server.log();
    hub::load("owner/name", options(&folder, &server)).unwrap();
    assert!(server.log().iter().all(|(_, from)| *from == 0));
}

#[test]
fn checksums_are_checked() {
    let (server, weights) = repository();
    let right = sha256(&weights);
    let wrong = sha256(b"another");
    // Of the server.
    let folder = Folder::new("hub-linked");
    let size = weights.len() as u64;
    server.change(WEIGHTS, |file| file.linked = Some((wrong.clone(), size)));
    let error = hub::load("owner/name", options(&folder, &server)).unwrap_err().to_string();
    assert!(
        error.contains(&format!("have the SHA-256 {right}, and it should be {wrong}.")),
        "{error}"
    );
    assert_eq!(names(&folder), ["commit", "config.json"]);
    server.change(WEIGHTS, |file| file.linked = Some((right.clone(), size + 1)));
    let error = hub::load("owner/name", options(&folder, &server)).unwrap_err().to_string();
    assert!(
        error.contains(&format!("the repository says that the file has {}", size + 1)),
        "{error}"
    );
    server.change(WEIGHTS, |file| file.linked = Some((right.clone(), size)));
    hub::load("owner/name", options(&folder, &server)).unwrap();
    // Of the program.
    let folder = Folder::new("hub-sums");
    let with = |sum: &str| {
        options(&folder, &server).sha256([("model.safetensors".to_string(), sum.to_string())])
    };
    let error = hub::load("owner/name", with(&wrong)).unwrap_err().to_string();
    assert!(error.contains(&format!("it should be {wrong}")), "{error}");
    hub::load("owner/name", with(&right.to_uppercase())).unwrap();
    let error = hub::load("owner/name", with("abc")).unwrap_err().to_string();
    assert_eq!(
        error,
        "hub: the SHA-256 of 'model.safetensors' is \"abc\"; it must have 64 hexadecimal digits."
    );
    // A file in the cache that somebody has changed.
    let path = hub::load("owner/name", with(&right)).unwrap().folder.join("model.safetensors");
    std::fs::write(&path, b"other").unwrap();
    let error = hub::load("owner/name", with(&right).offline(true)).unwrap_err().to_string();
    assert!(error.contains("Remove the file, and call again with a network"), "{error}");
    hub::load("owner/name", with(&right)).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), weights);
}

#[test]
fn answers_that_are_no_file_are_errors() {
    for (status, wanted) in [
        (500, "the server answers 500. Check the network"),
        (429, "the server answers 429. Check the network"),
        (401, "the server answers 401: there is no such repository, or it is not open to all"),
        (418, "the server answers 418."),
    ] {
        let folder = Folder::new(&format!("hub-status-{status}"));
        let (server, _) = repository();
        server.change(WEIGHTS, |file| file.status = status);
        let error = hub::load("owner/name", options(&folder, &server)).unwrap_err().to_string();
        assert!(error.contains(WEIGHTS) && error.contains(wanted), "{error}");
        assert_eq!(names(&folder), ["commit", "config.json"]);
    }
    // Neither weights nor parts.
    let folder = Folder::new("hub-no-weights");
    let server = Server::new();
    server.file(&format!("{ROOT}config.json"), whole(GPT2.as_bytes()));
    let error = hub::load("owner/name", options(&folder, &server)).unwrap_err().to_string();
    assert!(
        error.contains("nor model.safetensors.index.json. If it has pytorch_model.bin"),
        "{error}"
    );
    // A body that does not end, and one that is too long.
    let folder = Folder::new("hub-endless");
    let (server, _) = repository();
    server.change(WEIGHTS, |file| file.endless = true);
    let small = || options(&folder, &server).max_bytes(1_000_000);
    let error = hub::load("owner/name", small()).unwrap_err().to_string();
    assert!(error.ends_with("model.safetensors: the file has more than 1000000 bytes."), "{error}");
    server.change(WEIGHTS, |file| (file.endless, file.bytes) = (false, vec![0; 1_000_001]));
    let error = hub::load("owner/name", small()).unwrap_err().to_string();
    assert!(
        error.contains("the file has 1000001 bytes, and at most 1000000 are allowed"),
        "{error}"
    );
    assert_eq!(names(&folder), ["commit", "config.json"]);
    // Nobody listens.
    let nowhere = HubOptions::new().cache(folder.path("other")).endpoint("http://127.0.0.1:9");
    let error = hub::load("owner/name", nowhere).unwrap_err().to_string();
    assert!(error.contains("Check the network (a proxy is taken from HTTPS_PROXY)"), "{error}");
}

#[test]
fn redirects_are_followed_but_not_for_ever() {
    let folder = Folder::new("hub-redirects");
    let (server, weights) = repository();
    let (other, _) = Server::with_gpt2("/cdn/");
    other.change("/cdn/model.safetensors", |file| *file = whole(&weights));
    other.change("/cdn/model.safetensors", |file| {
        (file.breaks_after, file.breaks) = (Some(1000), 1)
    });
    let to = format!("{}/cdn/model.safetensors", other.address);
    server.file("/moved", File { redirect: Some(to), ..File::default() });
    let linked = Some((sha256(&weights), weights.len() as u64));
    server.change(WEIGHTS, |file| (file.redirect, file.linked) = (Some("/moved".into()), linked));
    hub::load("owner/name", options(&folder, &server)).unwrap();
    assert_eq!(cached(&folder)["model.safetensors"], weights);
    assert_eq!(other.log().iter().map(|(_, from)| *from).collect::<Vec<_>>(), [0, 1000]);
    let folder = Folder::new("hub-circle");
    server.change("/moved", |file| file.redirect = Some("moved".into()));
    let error = hub::load("owner/name", options(&folder, &server)).unwrap_err().to_string();
    assert!(error.contains("the server redirects more than ten times"), "{error}");
}

#[test]
fn parts_are_fetched_only_into_the_folder() {
    let folder = Folder::new("hub-shards");
    let server = Server::new();
    let written = Folder::new("hub-shards-written");
    let sharded = wgrad::weights::SaveOptions::new().max_shard_size(10_000);
    gpt2().save_weights_with(written.path("model.safetensors"), sharded).unwrap();
    for name in std::fs::read_dir(written.path("")).unwrap() {
        let name = name.unwrap().file_name().into_string().unwrap();
        let bytes = std::fs::read(written.path(&name)).unwrap();
        server.file(&format!("/x/{name}"), whole(&bytes));
    }
    server.file("/x/config.json", whole(GPT2.as_bytes()));
    let place = format!("{}/x", server.address);
    hub::load(&place, options(&folder, &server)).unwrap();
    assert!(names(&folder).iter().any(|name| name.starts_with("model-00001-of-")));
    server.log();
    hub::load(&place, options(&folder, &server).offline(true)).unwrap();
    assert_eq!(server.log(), []);
    for outside in ["../evil.safetensors", "/etc/evil.safetensors", "..", "a\\b", "c:evil"] {
        let folder = Folder::new("hub-outside");
        let index = serde_json::json!({"weight_map": {"a": outside}}).to_string();
        server.file("/x/model.safetensors.index.json", whole(index.as_bytes()));
        let error = hub::load(&place, options(&folder, &server)).unwrap_err().to_string();
        assert!(error.contains("which is not a plain file name"), "{error}");
    }
    let many: BTreeMap<String, String> =
        (0..2000).map(|i| (i.to_string(), format!("{i}.safetensors"))).collect();
    let index = serde_json::json!({"weight_map": many}).to_string();
    server.file("/x/model.safetensors.index.json", whole(index.as_bytes()));
    let folder = Folder::new("hub-many");
    let error = hub::load(&place, options(&folder, &server)).unwrap_err().to_string();
    assert!(error.contains("the index lists 2000 files, and at most 1000 are fetched"), "{error}");
    let index = serde_json::json!({"weight_map": {"a": "commit"}}).to_string();
    server.file("/x/model.safetensors.index.json", whole(index.as_bytes()));
    let folder = Folder::new("hub-names");
    let error = hub::load(&place, options(&folder, &server)).unwrap_err().to_string();
    assert!(error.contains("lists 'commit', which is not a safetensors file"), "{error}");
    let index = serde_json::json!({"weight_map": {"a": "gone.safetensors"}}).to_string();
    server.file("/x/model.safetensors.index.json", whole(index.as_bytes()));
    let folder = Folder::new("hub-gone");
    let error = hub::load(&place, options(&folder, &server)).unwrap_err().to_string();
    assert!(error.contains("there is no gone.safetensors, which the index lists"), "{error}");
}

#[test]
fn offline_says_what_is_missing() {
    let folder = Folder::new("hub-offline");
    let (server, _) = repository();
    let offline = || options(&folder, &server).offline(true);
    let error = hub::load("owner/name", offline()).unwrap_err().to_string();
    let cache = folder.path("cache").display().to_string();
    assert!(
        error.starts_with("hub: owner/name: this program is offline, and 'config.json' is not in ")
            && error.contains(&cache)
            && error.ends_with(&format!("it comes from {}{ROOT}config.json.", server.address)),
        "{error}"
    );
    assert!(server.log().is_empty() && !folder.path("cache").exists());
    // The first file is there, and the next is not.
    server.change(WEIGHTS, |file| file.status = 500);
    hub::load("owner/name", options(&folder, &server)).unwrap_err();
    let error = hub::load("owner/name", offline()).unwrap_err().to_string();
    assert!(error.contains("offline, and 'model.safetensors' is not in "), "{error}");
    let errors = child::command(module_path!(), "loads_alone")
        .env("WGRAD_OFFLINE", "1")
        .env("WGRAD_TEST_HUB", &server.address)
        .env("WGRAD_TEST_CACHE", folder.path("other"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&errors.stdout).into_owned()
        + &String::from_utf8_lossy(&errors.stderr);
    assert!(errors.contains("this program is offline"), "{errors}");
}

#[test]
fn places_that_are_none_are_errors() {
    let (folder, server) = (Folder::new("hub-places"), Server::new());
    for place in
        ["https://", "http://a b/c", "https://a/b?c", "https://user@host/x", "https://a/%2e%2e"]
    {
        let error = hub::load(place, options(&folder, &server)).unwrap_err().to_string();
        assert!(error.contains("this is not the URL of a folder"), "{place}: {error}");
    }
    for revision in ["", "a b", "../x", "a#b"] {
        let with = options(&folder, &server).revision(revision);
        let error = hub::load("owner/name", with).unwrap_err().to_string();
        assert!(error.contains("is not the name of a branch, a tag or a commit"), "{error}");
    }
    let with = options(&folder, &server).endpoint("ftp:");
    let error = hub::load("owner/name", with).unwrap_err().to_string();
    assert!(error.contains("the endpoint \"ftp:\" is not the URL of a server"), "{error}");
    // A file has the name of the cache folder.
    folder.write("cache", b"");
    let error = hub::load("owner/name", options(&folder, &server)).unwrap_err();
    assert!(matches!(error, wgrad::Error::Io(_)), "{error}");
}

#[test]
#[ignore = "other tests run it in a process of its own"]
fn loads_alone() {
    let (server, cache) = (std::env::var("WGRAD_TEST_HUB"), std::env::var_os("WGRAD_TEST_CACHE"));
    let options = HubOptions::new().endpoint(server.unwrap()).cache(cache.unwrap());
    hub::load("owner/name", options).unwrap();
}

fn alone(folder: &Folder, server: &Server) -> std::process::Command {
    let mut command = child::command(module_path!(), "loads_alone");
    command.env("WGRAD_TEST_HUB", &server.address).env("WGRAD_TEST_CACHE", folder.path("cache"));
    command
}

#[test]
fn processes_that_download_the_same_do_not_disturb_each_other() {
    let folder = Folder::new("hub-processes");
    let (server, weights) = repository();
    // Fewer breaks than the attempts of a process, as one process may meet them all.
    server.change(WEIGHTS, |file| (file.breaks_after, file.breaks) = (Some(7000), 3));
    let children: Vec<_> = (0..4).map(|_| alone(&folder, &server).spawn().unwrap()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(cached(&folder)["model.safetensors"], weights);
    assert!(!names(&folder).iter().any(|name| name.ends_with(".part")), "{:?}", names(&folder));
}

/// On other systems nothing tells whether the process has ended.
#[cfg(target_os = "linux")]
#[test]
fn what_a_killed_process_has_is_continued() {
    let folder = Folder::new("hub-killed");
    let (server, weights) = repository();
    server.change(WEIGHTS, |file| {
        (file.breaks_after, file.breaks, file.stalls) = (Some(9000), 1, true)
    });
    let mut child = alone(&folder, &server).spawn().unwrap();
    let begun = || {
        cached(&folder).iter().any(|(name, bytes)| name.ends_with(".tmp") && bytes.len() == 9000)
    };
    for _ in 0..600 {
        if begun() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(begun());
    child.kill().unwrap();
    child.wait().unwrap();
    server.log();
    hub::load("owner/name", options(&folder, &server)).unwrap();
    assert_eq!(server.log()[0], (WEIGHTS.to_string(), 9000));
    assert_eq!(cached(&folder)["model.safetensors"], weights);
    assert_eq!(
        names(&folder),
        ["commit", "config.json", "model.safetensors", "tokenizer.json.absent"]
    );
}

/// A limit on the size of files stands for a disk that is full.
#[cfg(unix)]
#[test]
fn what_fits_on_a_full_disk_is_continued() {
    let folder = Folder::new("hub-full");
    let (server, weights) = repository();
    let command = alone(&folder, &server);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", "ulimit -f 16; trap '' XFSZ; exec \"$0\" \"$@\""]);
    shell.arg(command.get_program()).args(command.get_args());
    let variables = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
    let output = shell.envs(variables).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("File too large"), "{text}");
    assert!(text.contains("model.safetensors"), "{text}");
    let found = cached(&folder);
    let part = found.iter().find(|(name, _)| name.ends_with(".part")).unwrap().1;
    assert!(!part.is_empty() && weights.starts_with(part));
    server.log();
    hub::load("owner/name", options(&folder, &server)).unwrap();
    assert_eq!(server.log()[0], (WEIGHTS.to_string(), part.len()));
    assert_eq!(cached(&folder)["model.safetensors"], weights);
}
