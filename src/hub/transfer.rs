//! Downloads one file: over redirects, in several attempts, with a check of its length and its SHA-256.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::Duration;

use sha2::{Digest, Sha256};
use ureq::http::Response;
use ureq::{Agent, Body};

use super::partial::Part;
use crate::error::{Error, Result, message};
use crate::files::http::{client, hexadecimal, progress};

/// The file that is wanted.
pub(super) struct Wanted<'a> {
    pub(super) url: &'a str,
    /// Where it goes.
    pub(super) path: &'a Path,
    /// The SHA-256 of its contents in lower-case hexadecimal digits, if it is known.
    pub(super) sha256: Option<&'a str>,
    /// The largest size.
    pub(super) most: u64,
}

/// What the server has.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The file is complete. The commit of the repository from which it is, if the server says so.
    Complete(Option<String>),
    /// It has no such file.
    Absent,
}

/// The reason why an attempt failed.
enum Failure {
    /// This machine failed.
    Here(Error),
    /// Another attempt would not help.
    Final(String),
    /// The connection or the server failed; `gained` bytes are there for the next attempt.
    Broken { what: String, gained: u64 },
}

/// A file whose length the server does not say may have as many bytes.
const UNKNOWN_LENGTH: u64 = 256 << 20;

/// Attempts that gain less than this are counted.
const GAIN: u64 = 1 << 20;
const ATTEMPTS: u32 = 4;

/// The client of all transfers.
pub(super) fn agent(direct: bool) -> Agent {
    // A longer transfer is continued in the next attempt.
    let config = client(Duration::from_secs(600)).http_status_as_error(false).max_redirects(0);
    match direct {
        // Without a proxy, which may be set for this machine.
        true => config.proxy(None).build().into(),
        false => config.build().into(),
    }
}

/// Downloads a file. What is there after an error is continued by the next call.
pub(super) fn fetch(agent: &Agent, wanted: &Wanted) -> Result<Outcome> {
    let mut left = ATTEMPTS;
    loop {
        match attempt(agent, wanted) {
            Ok(outcome) => return Ok(outcome),
            Err(Failure::Here(error)) => return Err(error),
            Err(Failure::Final(what)) => {
                return Err(Error::Data(message!("hub: {}: {what}.", wanted.url)));
            }
            Err(Failure::Broken { what, gained }) => {
                log::info!("{}: {what}", wanted.url);
                if gained < GAIN {
                    left -= 1;
                }
                if left == 0 {
                    return Err(Error::Data(message!(
                        "hub: {}: {what}. Check the network (a proxy is taken from HTTPS_PROXY) and try again: the transfer \
                         continues where it broke off, if the server can. Or fetch the files some other way, and pass their \
                         folder.",
                        wanted.url
                    )));
                }
                std::thread::sleep(Duration::from_millis(100 << (ATTEMPTS - left)));
            }
        }
    }
}

/// What a server says about a file.
struct Answer {
    response: Response<Body>,
    /// Identifies the contents.
    tag: Option<String>,
    sha256: Option<String>,
    /// The size according to the repository.
    size: Option<u64>,
    commit: Option<String>,
}

fn header<'a>(response: &'a Response<Body>, name: &str) -> Option<&'a str> {
    response.headers().get(name).and_then(|value| value.to_str().ok())
}

/// Requests the file from byte `from` on, and follows redirects, whose headers describe the file.
fn request(agent: &Agent, url: &str, from: u64) -> Result<Answer, Failure> {
    let broken = |what: String| Failure::Broken { what, gained: 0 };
    let mut at = url.to_string();
    let (mut linked, mut size, mut commit) = (None, None, None);
    for _ in 0..10 {
        let mut call = agent.get(&at);
        if from > 0 {
            call = call.header("Range", format!("bytes={from}-"));
        }
        let response = call.call().map_err(|error| match error {
            ureq::Error::BadUri(what) => Failure::Final(format!("{at} is not a URL: {what}")),
            error => broken(error.to_string()),
        })?;
        linked = linked.or(header(&response, "x-linked-etag").map(str::to_string));
        size = size.or(header(&response, "x-linked-size").and_then(|size| size.parse().ok()));
        commit = commit.or(header(&response, "x-repo-commit").map(str::to_string));
        if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
            let tag = linked.or(header(&response, "etag").map(str::to_string));
            // A weak tag does not say that the bytes are the same.
            let tag = tag.filter(|tag| !tag.starts_with("W/"));
            let sha256 = tag.as_deref().map(|tag| tag.trim_matches('"').to_ascii_lowercase());
            let sha256 = sha256.filter(|tag| is_sha256(tag));
            return Ok(Answer { response, tag, sha256, size, commit });
        }
        let to = header(&response, "location")
            .ok_or_else(|| broken("the server redirects to nowhere".into()))?;
        let to = joined(&at, to);
        if at.starts_with("https:") && !to.starts_with("https:") {
            return Err(Failure::Final(format!(
                "the server redirects to {to}, which is not safe; ask its owner, or fetch the files some other way and pass \
                 their folder"
            )));
        }
        at = to;
    }
    Err(Failure::Final(format!("the server redirects more than ten times, at last to {at}")))
}

/// Whether `text` has the digits of a SHA-256.
pub(super) fn is_sha256(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Where a redirect at `from` leads.
fn joined(from: &str, to: &str) -> String {
    let (scheme, rest) = from.split_once("://").unwrap_or(("https", from));
    let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let path = rest.split(['?', '#']).next().unwrap_or(rest);
    match to {
        _ if to.contains("://") => to.to_string(),
        _ if to.starts_with("//") => format!("{scheme}:{to}"),
        _ if to.starts_with('/') => format!("{scheme}://{host}{to}"),
        _ => {
            let folder = path.rsplit_once('/').map_or(path, |(folder, _)| folder);
            format!("{scheme}://{folder}/{to}")
        }
    }
}

/// A text that identifies the contents, short enough for the name of a file.
pub(super) fn key(text: &str) -> String {
    hexadecimal(&Sha256::digest(text)[..8])
}

/// The first byte and the whole size in `bytes 5-9/10`.
fn range(text: &str) -> Option<(u64, u64)> {
    let (range, size) = text.strip_prefix("bytes ")?.split_once('/')?;
    Some((range.split_once('-')?.0.parse().ok()?, size.parse().ok()?))
}

fn attempt(agent: &Agent, wanted: &Wanted) -> Result<Outcome, Failure> {
    let broken = |what: String| Failure::Broken { what, gained: 0 };
    let here = |error: io::Error| Failure::Here(Error::io(wanted.path, error));
    let part = Part::take(wanted.path);
    let from = part.as_ref().map_or(0, Part::bytes);
    let answer = request(agent, wanted.url, from)?;
    let status = answer.response.status().as_u16();
    match status {
        200 | 206 => {}
        404 | 410 => return Ok(Outcome::Absent),
        416 => {
            part.into_iter().for_each(Part::discard);
            return Err(broken(format!("the server cannot continue at byte {from}")));
        }
        401 | 403 => {
            return Err(Failure::Final(format!(
                "the server answers {status}: there is no such repository, or it is not open to all. Check the name; if its \
                 owner asks for an agreement, fetch the files in a browser and pass their folder"
            )));
        }
        408 | 425 | 429 | 500.. => return Err(broken(format!("the server answers {status}"))),
        _ => return Err(Failure::Final(format!("the server answers {status}"))),
    }
    let sha256 = wanted.sha256.or(answer.sha256.as_deref());
    let identity = sha256.map(str::to_string).or(answer.tag);
    let this = identity.map(|text| key(&text));
    let length = answer.response.body().content_length();
    let total = match status {
        206 => {
            let found = header(&answer.response, "content-range").and_then(range);
            match (found, &part) {
                // The same file, from where it broke off.
                (Some((begin, total)), Some(part))
                    if begin == from && this.is_some() && part.key() == this.as_deref() =>
                {
                    Some(total)
                }
                _ => {
                    part.into_iter().for_each(Part::discard);
                    return Err(broken("the file has changed since the last attempt".into()));
                }
            }
        }
        _ => length.or(answer.size),
    };
    if let (Some(size), Some(total)) = (answer.size, total) {
        if size != total {
            return Err(broken(format!(
                "the server sends {total} bytes, and the repository says that the file has {size}"
            )));
        }
    }
    let most = if total.is_some() { wanted.most } else { wanted.most.min(UNKNOWN_LENGTH) };
    if total.is_some_and(|total| total > most) {
        return Err(Failure::Final(format!(
            "the file has {} bytes, and at most {most} are allowed. If that is right, set HubOptions::max_bytes, or fetch the \
             file some other way and pass its folder",
            total.unwrap_or_default()
        )));
    }
    let (mut part, begin) = match (part, status) {
        (Some(part), 206) => (part, from),
        (old, _) => {
            // The server begins again.
            old.into_iter().for_each(Part::discard);
            (Part::begin(wanted.path, this).map_err(here)?, 0)
        }
    };
    let name = wanted.path.file_name().unwrap_or_default().to_string_lossy();
    let bar = progress(&name, total);
    bar.set_position(begin);
    let body = answer.response.into_body();
    let reader = body.into_with_config().limit(u64::MAX).reader();
    let written = copy(reader, &mut part, most - begin, |count| bar.inc(count));
    bar.finish_and_clear();
    let end = match written {
        Ok(written) => begin + written,
        Err(failure) => {
            if matches!(failure, Failure::Final(_)) {
                part.discard();
            }
            return Err(failure);
        }
    };
    if total.is_some_and(|total| total != end) {
        let what = format!("the transfer broke off after {end} of {} bytes", total.unwrap_or(0));
        return Err(Failure::Broken { what, gained: end - begin });
    }
    if let Some(sha256) = sha256 {
        let found = sha256_of(part.temporary()).map_err(here)?;
        if found != sha256 {
            part.discard();
            let what = format!(
                "the {end} bytes received have the SHA-256 {found}, and it should be {sha256}"
            );
            // The first piece may be to blame.
            return Err(match begin {
                0 => Failure::Final(what),
                _ => broken(what),
            });
        }
    }
    part.finish().map_err(here)?;
    Ok(Outcome::Complete(answer.commit))
}

/// Copies all of `reader` to the end of the part, and returns the count of the bytes.
fn copy(
    mut reader: impl Read,
    part: &mut Part,
    most: u64,
    mut count: impl FnMut(u64),
) -> Result<u64, Failure> {
    let name = part.temporary().to_path_buf();
    let mut buffer = vec![0; 64 << 10];
    let mut total = 0;
    loop {
        let read = match reader.read(&mut buffer) {
            Ok(0) => return Ok(total),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => {
                let what = format!("the transfer broke off after {total} bytes: {error}");
                return Err(Failure::Broken { what, gained: total });
            }
        };
        total += read as u64;
        if total > most {
            return Err(Failure::Final(format!("the file has more than {most} bytes")));
        }
        part.file()
            .write_all(&buffer[..read])
            .map_err(|error| Failure::Here(Error::io(&name, error)))?;
        count(read as u64);
    }
}

/// The SHA-256 of the contents of a file.
pub(super) fn sha256_of(path: &Path) -> io::Result<String> {
    let (mut file, mut sha256) = (File::open(path)?, Sha256::new());
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hexadecimal(&sha256.finalize())),
            read => sha256.update(&buffer[..read]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_lead_where_browsers_go() {
        let from = "https://a.org:8/b/c?d=/e";
        for (to, wanted) in [
            ("https://x.org/y", "https://x.org/y"),
            ("//x.org/y", "https://x.org/y"),
            ("/y?z", "https://a.org:8/y?z"),
            ("y", "https://a.org:8/b/y"),
        ] {
            assert_eq!(joined(from, to), wanted);
        }
        assert_eq!(range("bytes 5-9/10"), Some((5, 10)));
        for wrong in ["", "bytes */10", "bytes 5-9/*", "bytes -1-9/10", "5-9/10"] {
            assert_eq!(range(wrong), None, "{wrong}");
        }
    }
}
