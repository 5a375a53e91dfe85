//! Tests of replacing files: leftovers, paths that are not files, and files that another process still writes.

use std::io::Write;
use std::process::{Child, Command, Stdio};

use super::*;
use crate::device::fresh_id;

struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        let name = format!("wgrad-files-{}-{}", std::process::id(), fresh_id());
        let folder = Folder(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0).unwrap();
        folder
    }

    fn names(&self) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let names = fs::read_dir(&self.0).unwrap().map(name);
        let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn put(path: &Path, text: &str) -> io::Result<()> {
    replace(path, |file| file.write_all(text.as_bytes()))
}

#[test]
fn a_file_is_replaced_whole_or_not_at_all() {
    let folder = Folder::new();
    let path = folder.0.join("file.txt");
    put(&path, "old").unwrap();
    let full = |file: &mut File| {
        file.write_all(b"ne")?;
        Err(io::Error::from(io::ErrorKind::StorageFull))
    };
    assert_eq!(replace(&path, full).unwrap_err().kind(), io::ErrorKind::StorageFull);
    assert_eq!(read(&path).unwrap(), b"old");
    put(&path, "new").unwrap();
    assert_eq!(read(&path).unwrap(), b"new");
    assert_eq!(folder.names(), ["file.txt"]);
}

#[test]
fn names_say_whose_files_they_are() {
    let this = Owner::this();
    let file = this.file(Path::new("some/w.safetensors"));
    assert_eq!(file.parent(), Some(Path::new("some")));
    let name = file.file_name().unwrap().to_str().unwrap();
    assert_eq!(Owner::parse(name), Some(("w.safetensors", this)));
    let strange = [
        "w.safetensors",
        "w.safetensors.tmp",
        "w.safetensors.1234-5.tmp",
        "w.safetensors.0123456789abcdef-5.tmp",
        "w.safetensors.0123456789abcdef-5-6-7.tmp",
        "w.safetensors.0123456789abcdef-+5-6.tmp",
        "w.safetensors.0123456789abcdef--6.tmp",
        "w.safetensors.0123456789abcdeg-5-6.tmp",
        "w.safetensors.0123456789abcdef-5-6.tmp.bak",
    ];
    for name in strange {
        assert_eq!(Owner::parse(name), None, "{name}");
    }
}

/// Starts this test program again, which writes next to `path` and does not end.
#[cfg(target_os = "linux")]
fn writer(path: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "files::replacement::tests::writing_for_ever",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env("WGRAD_TEST_FILE", path)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It reports when it has begun.
    let mut output = io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    while !line.contains("half is written") {
        line.clear();
        assert_ne!(io::BufRead::read_line(&mut output, &mut line).unwrap(), 0);
    }
    child
}

#[test]
#[ignore = "run by what_a_killed_process_has_left_is_removed"]
fn writing_for_ever() {
    let path = PathBuf::from(std::env::var_os("WGRAD_TEST_FILE").unwrap());
    let endless = |file: &mut File| {
        file.write_all(b"half")?;
        println!("half is written");
        loop {
            std::thread::park();
        }
    };
    replace(&path, endless).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn what_a_killed_process_has_left_is_removed() {
    let folder = Folder::new();
    let path = folder.0.join("file.txt");
    let (mut killed, mut alive) = (writer(&path), writer(&path));
    // Files of others, however similar.
    let other = folder.0.join("other.txt.0123456789abcdef-1-2.tmp");
    let strange = folder.0.join("file.txt.1234-5.tmp");
    let elsewhere = folder.0.join("file.txt.0123456789abcdef-1-2.tmp");
    for path in [&other, &strange, &elsewhere] {
        fs::write(path, "").unwrap();
    }
    assert_eq!(folder.names().len(), 5);
    put(&path, "one").unwrap();
    assert_eq!(folder.names().len(), 6, "both still write: {:?}", folder.names());

    killed.kill().unwrap();
    killed.wait().unwrap();
    put(&path, "two").unwrap();
    let names = folder.names();
    assert_eq!(names.len(), 5, "{names:?}");
    let left = Owner { process: alive.id(), ..Owner::this() };
    assert!(
        names.iter().any(|name| Owner::parse(name).as_ref() == Some(&("file.txt", left.clone()))),
        "{names:?}"
    );

    // For a process on another machine, only the time of its last write is known.
    let then = std::time::SystemTime::now() - 2 * OLD;
    File::options().write(true).open(&elsewhere).unwrap().set_modified(then).unwrap();
    alive.kill().unwrap();
    alive.wait().unwrap();
    put(&path, "three").unwrap();
    assert_eq!(
        folder.names(),
        ["file.txt", "file.txt.1234-5.tmp", "other.txt.0123456789abcdef-1-2.tmp"]
    );
    assert_eq!(read(&path).unwrap(), b"three");
}

#[test]
#[cfg(unix)]
fn what_is_no_file_is_neither_read_nor_replaced() {
    let folder = Folder::new();
    let (pipe, below) = (folder.0.join("pipe"), folder.0.join("folder"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    fs::create_dir(&below).unwrap();
    let null = Path::new("/dev/null");
    let pipe_or_device = "it is a pipe or a device and not a file";
    for (path, words) in [
        (&*pipe, pipe_or_device),
        (null, pipe_or_device),
        (&below, "it is a folder and not a file"),
    ] {
        assert_eq!(read(path).unwrap_err().to_string(), words);
        assert_eq!(put(path, "text").unwrap_err().to_string(), words);
    }
    assert_eq!(folder.names(), ["folder", "pipe"]);
}

// ---- processes that are killed ------------------------------------------------------------------------------------
//
// `tests/kills/writers.rs` does so with the public functions. The process is this test program again, which then runs a single
// test that calls `write_for_ever`.

/// Writes increasing values into the folder of the test that will kill this process.
#[cfg(target_os = "linux")]
pub(crate) fn write_for_ever(mut write: impl FnMut(&Path, u64)) {
    let variable = |name: &str| std::env::var(name).unwrap();
    let folder = PathBuf::from(variable("WGRAD_KILLS_FOLDER"));
    let [begin, rounds] =
        ["WGRAD_KILLS_BEGIN", "WGRAD_KILLS_ROUNDS"].map(|name| variable(name).parse().unwrap());
    for value in begin..u64::saturating_add(begin, rounds) {
        write(&folder, value);
        io::stdout().write_all(format!("\ndone {value}\n").as_bytes()).unwrap();
    }
}

#[cfg(target_os = "linux")]
fn start(part: &str, folder: &Path, begin: u64, rounds: u64) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([part, "--exact", "--ignored", "--nocapture"])
        .env("WGRAD_KILLS_FOLDER", folder)
        .env("WGRAD_KILLS_BEGIN", begin.to_string())
        .env("WGRAD_KILLS_ROUNDS", rounds.to_string())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Kills the test `part` this many times while it writes the file `name` in its folder. `read` returns the value that the whole
/// file has, or none if there is no file; it fails if the file was not written whole.
#[cfg(target_os = "linux")]
pub(crate) fn kill(part: &str, name: &str, kills: usize, read: impl Fn(&Path) -> Option<u64>) {
    let folder = format!("wgrad-kills-{name}-{}-{}", std::process::id(), fresh_id());
    let folder = std::env::temp_dir().join(folder);
    fs::create_dir_all(&folder).unwrap();
    let files = || -> Vec<String> {
        let entries = fs::read_dir(&folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let mut random = fastrand::Rng::new();
    println!("the moments are drawn from the seed {}", random.get_seed());
    let (mut known, mut unfinished) = (0, 0);
    for _ in 0..kills {
        let mut child = start(part, &folder, known + 1, u64::MAX);
        let out = io::BufReader::new(child.stdout.take().unwrap());
        let (give, lines) = std::sync::mpsc::channel();
        let reading = std::thread::spawn(move || {
            io::BufRead::lines(out).map_while(Result::ok).try_for_each(|line| give.send(line))
        });
        let mut done = known;
        // A line that the kill cut off has a smaller number.
        let mut hear = |line: String| {
            let value = line.strip_prefix("done ").and_then(|value| value.parse().ok());
            done = done.max(value.unwrap_or(0));
        };
        for _ in 0..random.usize(1..40) {
            hear(lines.recv_timeout(Duration::from_secs(120)).expect("it writes"));
        }
        std::thread::sleep(Duration::from_micros(random.u64(0..4_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let _ = reading.join().unwrap();
        lines.iter().for_each(&mut hear);
        let found = read(&folder.join(name)).unwrap_or(0);
        assert!(found >= done, "value {done} was written, and {found} is there");
        assert!(found <= done + 1, "{found} is there, and no more than {done} was written");
        unfinished += usize::from(files().iter().any(|file| file.ends_with(".tmp")));
        known = found;
    }
    // The next writer removes what the killed ones left.
    assert!(start(part, &folder, known + 1, 2).wait_with_output().unwrap().status.success());
    assert_eq!(read(&folder.join(name)), Some(known + 2));
    assert_eq!(files(), [name]);
    println!("{kills} kills, {unfinished} of them within a file, {known} values written");
    fs::remove_dir_all(&folder).unwrap();
}
