//! Downloads the files of a data set into a cache folder and checks them by SHA-256.
//!
//! A file gets its name only when it is complete and correct. A download cannot resume. `collection` lists the data
//! sets; `mnist` and `keras::datasets` find and read the files.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::time::Duration;

use indicatif::ProgressBar;
use sha2::{Digest, Sha256};
use ureq::Agent;

use super::collection::Collection;
use crate::error::{Error, Result, message};
use crate::files::http::{self, hexadecimal, progress};
use crate::files::{self, Replacement};

/// A file and the SHA-256 of its contents in lower-case hexadecimal digits.
type Wanted<'a> = (&'a str, &'a str);

/// Downloads the files of a data set that `dir` lacks, and shows the progress on standard error.
///
/// # Errors
/// [`Error::Data`] if no mirror sent the correct file, [`Error::Io`] if `dir` cannot be written.
pub(crate) fn fetch(collection: &Collection, dir: &Path) -> Result<()> {
    let agent = http::client(Duration::from_secs(300)).build();
    fetch_all(&agent.into(), collection, dir)
}

fn fetch_all(agent: &Agent, collection: &Collection, dir: &Path) -> Result<()> {
    files::make_folder(dir).map_err(|error| Error::io(dir, error))?;
    for &(name, sha256) in collection.files {
        if !is_right(&dir.join(name), sha256) {
            fetch_from_any(agent, collection, (name, sha256), dir)?;
        }
    }
    Ok(())
}

fn fetch_from_any(
    agent: &Agent,
    collection: &Collection,
    wanted: Wanted,
    dir: &Path,
) -> Result<()> {
    let mut said = Vec::new();
    for mirror in collection.mirrors {
        match fetch_file(agent, mirror, wanted, collection.most_bytes, dir) {
            Ok(()) => return Ok(()),
            Err(Failure::Here(error)) => return Err(error),
            Err(Failure::There(what)) => {
                log::info!("{mirror}{}: {what}", wanted.0);
                said.push(format!("{mirror} said: {what}"));
            }
        }
    }
    Err(Error::Data(message!(
        "{}: no mirror has the file. {}. Check the network (a proxy is taken from HTTPS_PROXY), or fetch the files \
         some other way and name their folder with {}.",
        wanted.0,
        said.join("; "),
        collection.variable
    )))
}

/// The reason why a download failed.
enum Failure {
    /// The mirror or the connection failed: the next mirror may work.
    There(String),
    /// This machine failed, which no mirror can fix.
    Here(Error),
}

fn fetch_file(
    agent: &Agent,
    mirror: &str,
    wanted: Wanted,
    most: u64,
    dir: &Path,
) -> Result<(), Failure> {
    let (name, sha256) = wanted;
    let response = agent.get(format!("{mirror}{name}")).call();
    let mut body = response.map_err(|error| Failure::There(error.to_string()))?.into_body();
    let length = body.content_length();
    if let Some(length) = length.filter(|&length| length > most) {
        return Err(Failure::There(format!("the file has {length} bytes, more than {most}")));
    }
    let path = dir.join(name);
    let here = |error| Failure::Here(Error::io(&path, error));
    let mut part = Replacement::begin(&path).map_err(here)?;
    let bar = progress(name, length);
    let reader = body.with_config().limit(most).reader();
    let found = copy(reader, &mut part, &bar);
    bar.finish_and_clear();
    let (found, bytes) = found?;
    if found != sha256 {
        return Err(Failure::There(format!(
            "the {bytes} bytes received have the SHA-256 {found}, and it should be {sha256}"
        )));
    }
    part.finish().map_err(here)
}

/// Copies all of `reader` into a new file; returns the SHA-256 and the count of the bytes.
fn copy(
    mut reader: impl Read,
    part: &mut Replacement,
    bar: &ProgressBar,
) -> Result<(String, u64), Failure> {
    let name = part.temporary().to_path_buf();
    let here = |error| Failure::Here(Error::io(&name, error));
    let file = part.file();
    let mut sha256 = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    let mut total = 0;
    loop {
        let count = reader.read(&mut buffer).map_err(|error| {
            Failure::There(format!("the transfer broke off after {total} bytes: {error}"))
        })?;
        let Some(bytes) = buffer.get(..count).filter(|bytes| !bytes.is_empty()) else { break };
        file.write_all(bytes).map_err(here)?;
        sha256.update(bytes);
        total += count as u64;
        bar.inc(count as u64);
    }
    Ok((hexadecimal(&sha256.finalize()), total))
}

fn is_right(path: &Path, sha256: &str) -> bool {
    fs::read(path).is_ok_and(|bytes| hexadecimal(&Sha256::digest(bytes)) == sha256)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::data::collection::{CIFAR10, FASHION_MNIST, MNIST};
    use std::io::{BufRead, BufReader};
    use std::net::{TcpListener, TcpStream};
    use std::path::PathBuf;

    const HELLO: Wanted<'static> =
        ("hello.gz", "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
    const GOOD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    const WRONG: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhullo";
    const TRUNCATED: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel";
    const MISSING: &str = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
    const HUGE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\nhello";

    /// A mirror on this machine that sends the same answer to every request; returns its address.
    fn mirror(answer: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/mnist/", listener.local_addr().unwrap());
        let serve = move |mut stream: TcpStream| {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            assert_eq!(lines.next().unwrap().unwrap(), "GET /mnist/hello.gz HTTP/1.1");
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            stream.write_all(answer.as_bytes()).unwrap();
        };
        std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
        address
    }

    /// A folder for this test only, removed at its end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(test: &str) -> Self {
            let name = format!("wgrad-download-{test}-{}", std::process::id());
            Folder(std::env::temp_dir().join(name))
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.0).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn fetch_hello(mirrors: &[&str], dir: &Path) -> Result<()> {
        // Without the proxy that may be set for this machine.
        let agent = Agent::config_builder()
            .proxy(None)
            .timeout_global(Some(Duration::from_secs(20)))
            .build();
        let leaked: &'static [&'static str] =
            Vec::leak(mirrors.iter().map(|mirror| &*String::leak(mirror.to_string())).collect());
        let files = &[HELLO];
        fetch_all(&agent.into(), &Collection { mirrors: leaked, files, ..MNIST }, dir)
    }

    /// Fetches from one mirror that fails; returns its message and checks that nothing is left behind.
    fn refused(test: &str, answer: &'static str) -> String {
        let folder = Folder::new(test);
        let address = mirror(answer);
        let error = fetch_hello(&[&address], &folder.0).unwrap_err();
        assert_eq!(folder.names(), [""; 0]);
        let Error::Data(message) = error else { panic!("{error:?}") };
        assert!(message.contains(&format!("{address} said: ")), "{message}");
        assert!(message.contains("with MNIST_DIR."), "{message}");
        message.to_string()
    }

    #[test]
    fn a_good_file_is_fetched_once() {
        let folder = Folder::new("good");
        fetch_hello(&[&mirror(GOOD)], &folder.0.join("deep")).unwrap();
        assert_eq!(fs::read(folder.0.join("deep/hello.gz")).unwrap(), b"hello");
        assert_eq!(folder.names(), ["deep"]);
        // A file that exists and is correct needs no mirror.
        fetch_hello(&[], &folder.0.join("deep")).unwrap();
    }

    #[test]
    fn a_wrong_file_in_the_way_is_replaced() {
        let folder = Folder::new("replaced");
        fs::create_dir_all(&folder.0).unwrap();
        fs::write(folder.0.join("hello.gz"), "hel").unwrap();
        fetch_hello(&[&mirror(GOOD)], &folder.0).unwrap();
        assert_eq!(fs::read(folder.0.join("hello.gz")).unwrap(), b"hello");
    }

    #[test]
    fn a_wrong_checksum_is_refused() {
        let message = refused("checksum", WRONG);
        assert!(message.contains("the 5 bytes received have the SHA-256 "), "{message}");
        assert!(message.contains(&format!("should be {}", HELLO.1)), "{message}");
    }

    #[test]
    fn a_truncated_body_is_refused() {
        assert!(refused("truncated", TRUNCATED).contains("broke off after 3 bytes"));
    }

    #[test]
    fn an_http_error_is_reported() {
        assert!(refused("missing", MISSING).contains("404"));
    }

    #[test]
    fn a_file_beyond_the_cap_is_not_even_begun() {
        assert!(refused("huge", HUGE).contains("99999999999 bytes, more than 16777216"));
    }

    #[test]
    fn the_second_mirror_steps_in() {
        for (test, answer) in [("second-a", MISSING), ("second-b", WRONG), ("second-c", TRUNCATED)]
        {
            let folder = Folder::new(test);
            fetch_hello(&[&mirror(answer), &mirror(GOOD)], &folder.0).unwrap();
            assert_eq!(fs::read(folder.0.join("hello.gz")).unwrap(), b"hello");
            assert_eq!(folder.names(), ["hello.gz"]);
        }
    }

    #[test]
    fn every_mirror_is_quoted_when_all_fail() {
        let folder = Folder::new("all-fail");
        let (first, second) = (mirror(MISSING), mirror(WRONG));
        let message = fetch_hello(&[&first, &second], &folder.0).unwrap_err().to_string();
        for part in ["hello.gz: no mirror", &first, "404", &second, "SHA-256"] {
            assert!(message.contains(part), "{part} is not in: {message}");
        }
    }

    #[test]
    fn a_folder_that_cannot_be_written_is_an_io_error() {
        let folder = Folder::new("unwritable");
        fs::create_dir_all(folder.0.join("hello.gz")).unwrap();
        // A folder has the file's name, so that the last step fails.
        let error = fetch_hello(&[&mirror(GOOD)], &folder.0).unwrap_err();
        assert!(matches!(&error, Error::Io(io) if io.path.ends_with("hello.gz")), "{error}");
        assert_eq!(folder.names(), ["hello.gz"]);
        // A file has the folder's name.
        fs::write(folder.0.join("file"), "").unwrap();
        let error = fetch_hello(&[], &folder.0.join("file")).unwrap_err();
        assert!(matches!(&error, Error::Io(io) if io.path.ends_with("file")), "{error}");
    }

    #[cfg(target_os = "linux")]
    mod kills {
        use super::*;
        use crate::files::tests as killed;

        /// What the mirror sends for a value: more than one read returns.
        fn contents(value: u64) -> Vec<u8> {
            value.to_le_bytes().repeat(40_000)
        }

        #[test]
        #[ignore = "other tests run it in a process of its own"]
        fn fetches_for_ever() {
            // One file with a different checksum each time, as if the list had changed.
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let address = format!("http://{}/", listener.local_addr().unwrap());
            let (give, take) = std::sync::mpsc::channel::<Vec<u8>>();
            let serve = move |mut stream: TcpStream| {
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                let body = take.recv().unwrap();
                let head = format!(
                    "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                    body.len()
                );
                stream.write_all(head.as_bytes()).unwrap();
                stream.write_all(&body).unwrap();
            };
            std::thread::spawn(move || listener.incoming().flatten().for_each(serve));
            let mirrors: &'static [&'static str] = vec![&*String::leak(address)].leak();
            let agent: Agent = Agent::config_builder().proxy(None).build().into();
            killed::write_for_ever(|folder, value| {
                let body = contents(value);
                let sum: &'static str = String::leak(hexadecimal(&Sha256::digest(&body)));
                give.send(body).unwrap();
                let files: &'static [Wanted<'static>] = vec![("set.gz", sum)].leak();
                fetch_all(&agent, &Collection { mirrors, files, ..MNIST }, folder).unwrap();
            });
        }

        fn kill(kills: usize) {
            let part = "data::download::tests::kills::fetches_for_ever";
            killed::kill(part, "set.gz", kills, |path| {
                let bytes = path.exists().then(|| fs::read(path).unwrap())?;
                let value = u64::from_le_bytes(*bytes.first_chunk().unwrap());
                assert!(
                    bytes == contents(value),
                    "{} bytes, which begin with {value}",
                    bytes.len()
                );
                Some(value)
            });
        }

        #[test]
        fn a_download_that_is_killed_leaves_the_old_file_or_the_new_one() {
            kill(4);
        }

        #[test]
        #[ignore = "takes a while: CONTRIBUTING.md has the command"]
        fn a_download_is_killed_fifty_times() {
            kill(50);
        }
    }

    #[test]
    fn the_lists_are_well_formed() {
        for collection in [MNIST, FASHION_MNIST, CIFAR10] {
            let mirrors = collection.mirrors;
            assert!(mirrors.iter().all(|m| m.starts_with("https://") && m.ends_with('/')));
            for (name, sha256) in collection.files {
                assert!(name.ends_with(".gz"));
                assert!(sha256.len() == 64 && sha256.bytes().all(|b| b.is_ascii_hexdigit()));
            }
        }
    }
}
