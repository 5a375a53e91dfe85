//! Runs child processes. Each command line is echoed before it runs, in the workspace root and with this process's own standard
//! streams.

use std::ffi::OsString;
use std::fmt;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, anyhow};

/// The arguments of `cargo test` for unit tests. With `--lib` alone, some dependencies have other features than in the whole test
/// suite, and cargo compiles the crate once more.
pub const UNIT_TESTS: [&str; 2] = ["--lib", "--bins"];

/// A child process that has not started yet. What is echoed is exactly what runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    program: String,
    args: Vec<String>,
    envs: Vec<(String, String)>,
    folder: Option<PathBuf>,
}

impl CommandLine {
    /// `program` without arguments.
    pub fn new(program: impl Into<String>) -> Self {
        Self { program: program.into(), args: Vec::new(), envs: Vec::new(), folder: None }
    }

    /// `cargo` with `args`.
    pub fn cargo<S: AsRef<str>>(args: impl IntoIterator<Item = S>) -> Self {
        Self::new("cargo").args(args)
    }

    /// `cargo test`, as all commands here call it: always with the same features, so that build results are shared. Programs
    /// whose required features are off are left out.
    pub fn cargo_test() -> Self {
        let features = "wgrad/csv,wgrad/download,wgrad/estimator,wgrad/image-files,wgrad/kernel-hooks,wgrad/keras-files,wgrad/npy,\
            wgrad/inventory,wgrad/preprocessing,wgrad/saved-model,wgrad/saved-plans,wgrad/summary,wgrad/tfrecord,\
            wgrad/tokenizers,wgrad-examples/serve";
        let features = match crate::mpi::is_installed() {
            true => format!("{features},wgrad/mpi"),
            false => features.to_owned(),
        };
        Self::cargo(["test", "--workspace", "--features", &features])
    }

    /// Appends arguments.
    pub fn args<S: AsRef<str>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets an environment variable of the child.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.envs.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Runs the child in `folder` instead of the workspace root.
    pub fn folder(mut self, folder: &Path) -> Self {
        self.folder = Some(folder.to_path_buf());
        self
    }

    /// Echoes the command line, runs it in the workspace root and waits for its end.
    pub fn run(&self) -> Result<Status> {
        eprintln!("$ {self}");
        let status = self.command().status().with_context(|| self.start_failure())?;
        Ok(Status::of(status))
    }

    /// Like `run`, and returns what the child wrote to its standard output.
    pub fn read(&self) -> Result<(Status, String)> {
        eprintln!("$ {self}");
        let output = self
            .command()
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| self.start_failure())?;
        Ok((Status::of(output.status), String::from_utf8_lossy(&output.stdout).into_owned()))
    }

    /// Like `run`, and returns all output of the child.
    fn read_all(&self) -> Result<(Status, Vec<u8>)> {
        eprintln!("$ {self}");
        self.read_quietly()
    }

    /// Runs without echo or input, and returns all output of the child.
    pub fn read_quietly(&self) -> Result<(Status, Vec<u8>)> {
        let (mut reader, writer) = std::io::pipe().context("cannot make a pipe")?;
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        let mut child = command.spawn().with_context(|| self.start_failure())?;
        // The reader waits until the last writer is closed.
        drop(command);
        let mut written = Vec::new();
        reader.read_to_end(&mut written).with_context(|| format!("cannot read from `{self}`"))?;
        let status = child.wait().with_context(|| format!("cannot wait for `{self}`"))?;
        Ok((Status::of(status), written))
    }

    /// Runs without echo or streams and returns the child's standard output, or `None` if it could not start or failed.
    pub fn probe(&self) -> Option<String> {
        let output = self.command().stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Starts the child without echo or input; `streams` sets its output.
    pub fn spawn(&self, streams: impl Fn() -> Stdio) -> Result<Child> {
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(streams()).stderr(streams());
        command.spawn().with_context(|| self.start_failure())
    }

    /// Starts the child without echo or input, with these streams for its output and its errors.
    pub fn spawn_with(&self, output: Stdio, errors: Stdio) -> Result<Child> {
        let mut command = self.command();
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        command.spawn().with_context(|| self.start_failure())
    }

    fn command(&self) -> Command {
        // `CARGO` names the installed cargo that started this process.
        let program = match std::env::var_os("CARGO") {
            Some(cargo) if self.program == "cargo" => cargo,
            _ => (&self.program).into(),
        };
        let mut command = Command::new(program);
        command.args(&self.args).current_dir(self.folder.clone().unwrap_or_else(workspace_root));
        if let Some(folder) = runtime_folder(std::env::var_os(RUNTIME_DIR), &workspace_root()) {
            command.env(RUNTIME_DIR, folder);
        }
        if self.program == "cargo" {
            let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
            for name in names.filter(|name| describes_this_package(name)) {
                command.env_remove(name);
            }
        }
        command.envs(self.envs.iter().map(|(name, value)| (name, value)));
        command
    }

    fn start_failure(&self) -> String {
        format!("`{}` could not be started; check that it is installed and on PATH", self.program)
    }
}

/// Whether cargo sets this variable for the package that it runs, which is xtask here. Some build scripts watch them (that of `ring`,
/// on which downloads depend): with other values than in a `cargo test` by hand, most of the workspace is compiled again.
fn describes_this_package(variable: &str) -> bool {
    const OTHERS: [&str; 6] = [
        "CARGO_MANIFEST_DIR",
        "CARGO_MANIFEST_PATH",
        "CARGO_MANIFEST_LINKS",
        "CARGO_CRATE_NAME",
        "CARGO_BIN_NAME",
        "OUT_DIR",
    ];
    variable.starts_with("CARGO_PKG_") || OTHERS.contains(&variable)
}

/// Runs all lines, one after another. Returns the first failure.
pub fn in_turn(lines: &[CommandLine]) -> Result<Status> {
    let statuses = lines.iter().map(CommandLine::run).collect::<Result<Vec<_>>>()?;
    Ok(first_failure(statuses))
}

/// Runs the lines, `threads` of them at a time. The first one's output is shown immediately, the others' afterwards in their order.
pub fn side_by_side(lines: &[CommandLine], threads: usize) -> Result<Vec<Status>> {
    let Some(first) = lines.first() else { return Ok(Vec::new()) };
    let next = AtomicUsize::new(1);
    let others = || {
        let turns = std::iter::from_fn(|| {
            let at = next.fetch_add(1, Ordering::Relaxed);
            lines.get(at).map(|line| (at, line.read_all()))
        });
        turns.collect::<Vec<_>>()
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (1..threads).map(|_| scope.spawn(others)).collect();
        let mut statuses = vec![first.run()];
        let mut done = others();
        for worker in workers {
            done.extend(worker.join().map_err(|_| anyhow!("a thread panicked"))?);
        }
        done.sort_unstable_by_key(|(at, _)| *at);
        for (_, ended) in done {
            let (status, written) = ended?;
            std::io::stdout().write_all(&written).context("cannot write what a test printed")?;
            statuses.push(Ok(status));
        }
        statuses.into_iter().collect()
    })
}

/// The first status that is not a success, if there is one.
pub fn first_failure(statuses: impl IntoIterator<Item = Status>) -> Status {
    statuses.into_iter().find(|status| !status.is_success()).unwrap_or(Status::SUCCESS)
}

/// The command line in shell syntax.
impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(folder) = &self.folder {
            write!(f, "cd {} && ", quoted(&folder.display().to_string()))?;
        }
        for (name, value) in &self.envs {
            write!(f, "{name}={} ", quoted(value))?;
        }
        write!(f, "{}", quoted(&self.program))?;
        for arg in &self.args {
            write!(f, " {}", quoted(arg))?;
        }
        Ok(())
    }
}

/// How a child process ended, as the exit status to pass on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status(u8);

impl Status {
    /// The status of a successful process.
    pub const SUCCESS: Self = Self(0);

    /// The status of a failed process.
    pub const FAILURE: Self = Self(1);

    /// Whether the process succeeded.
    pub fn is_success(self) -> bool {
        self == Self::SUCCESS
    }

    /// The status of a child that has ended.
    pub fn of(status: ExitStatus) -> Self {
        if status.success() {
            return Self::SUCCESS;
        }
        // Windows has statuses larger than a byte; a failure must not wrap around to a success.
        let code = status.code().or_else(|| signal_code(status)).unwrap_or(1);
        Self(u8::try_from(code).unwrap_or(1).max(1))
    }
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        ExitCode::from(status.0)
    }
}

/// The status that shells report for a process ended by a signal.
#[cfg(unix)]
fn signal_code(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status).map(|signal| 128 + signal)
}

#[cfg(not(unix))]
fn signal_code(_status: ExitStatus) -> Option<i32> {
    None
}

/// The folder that a desktop session provides for its user. Without it Mesa prints two warnings for each device that is opened.
const RUNTIME_DIR: &str = "XDG_RUNTIME_DIR";

/// A private folder to use if `given`, the session's folder, is missing: its access rights are those that are required.
#[cfg(target_os = "linux")]
fn runtime_folder(given: Option<OsString>, root: &Path) -> Option<PathBuf> {
    use std::os::unix::fs::PermissionsExt;

    if given.is_some_and(|folder| !folder.is_empty()) {
        return None;
    }
    let folder = root.join("target/xdg-runtime");
    std::fs::create_dir_all(&folder).ok()?;
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).ok()?;
    Some(folder)
}

#[cfg(not(target_os = "linux"))]
fn runtime_folder(_given: Option<OsString>, _root: &Path) -> Option<PathBuf> {
    None
}

/// The days since 1970, which select samples.
pub fn today() -> Result<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("the clock is before 1970")?;
    Ok(now.as_secs() / 86_400)
}

/// The folder of the workspace's `Cargo.toml`.
pub fn workspace_root() -> PathBuf {
    // Cargo sets the variable when it runs this program; the compiled-in path is for a direct start.
    let xtask = std::env::var_os("CARGO_MANIFEST_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    xtask.parent().map(Path::to_path_buf).unwrap_or(xtask)
}

/// Cargo's target folder.
pub fn target_folder() -> PathBuf {
    let given = std::env::var_os("CARGO_TARGET_DIR");
    workspace_root().join(given.unwrap_or_else(|| "target".into()))
}

/// `word`, quoted if a shell would split it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%\\".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("\"{}\"", word.replace('"', "\\\""))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn cargo_is_called_as_by_hand() {
        let removed = |line: CommandLine| {
            let command = line.command();
            let gone = command.get_envs().filter(|(_, value)| value.is_none());
            gone.map(|(name, _)| name.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        // Cargo sets them for this test, too.
        let names = removed(CommandLine::cargo(["--version"]));
        for name in ["CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "CARGO_PKG_VERSION_MAJOR"] {
            assert!(names.iter().any(|removed| removed == name), "{name} of {names:?}");
        }
        assert!(!names.iter().any(|name| name == "CARGO_INCREMENTAL" || name == "CARGO_HOME"));
        assert!(removed(CommandLine::new("python3")).is_empty());
    }

    #[test]
    fn the_echo_reads_like_a_shell_line() {
        let line = CommandLine::cargo(["doc", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings");
        assert_eq!(line.to_string(), "RUSTDOCFLAGS=\"-D warnings\" cargo doc --no-deps");
        assert_eq!(CommandLine::new("a").args([""]).to_string(), "a \"\"");
    }

    #[test]
    fn lines_run_in_turn_or_side_by_side_and_one_failure_is_enough() {
        let line = |argument: &str| CommandLine::cargo([argument]);
        let one = |lines: &[CommandLine]| side_by_side(lines, 1).map(first_failure);
        let two = |lines: &[CommandLine]| side_by_side(lines, 2).map(first_failure);
        for run in [in_turn, one, two] {
            assert_eq!(run(&[]).unwrap(), Status::SUCCESS);
            assert_eq!(run(&[line("--version"), line("--version")]).unwrap(), Status::SUCCESS);
            assert!(!run(&[line("--version"), line("--no-such-flag")]).unwrap().is_success());
            assert!(!run(&[line("--no-such-flag"), line("--version")]).unwrap().is_success());
            assert!(run(&[CommandLine::new("no-such-program"), line("--version")]).is_err());
        }
        // With more lines than threads.
        let lines = ["--version", "--no-such-flag", "--version", "--list", "--no-such-flag"];
        let statuses = side_by_side(&lines.map(line), 2).unwrap();
        let successes: Vec<bool> = statuses.into_iter().map(Status::is_success).collect();
        assert_eq!(successes, [true, false, true, true, false]);
    }

    #[test]
    fn both_streams_of_a_child_are_kept() {
        let (status, written) = CommandLine::cargo(["--no-such-flag"]).read_all().unwrap();
        assert!(!status.is_success());
        assert!(String::from_utf8(written).unwrap().contains("--no-such-flag"));
        let (_, written) = CommandLine::cargo(["--version"]).read_all().unwrap();
        assert!(String::from_utf8(written).unwrap().starts_with("cargo "));
    }

    #[test]
    fn a_child_runs_in_the_folder_that_it_is_given() {
        let line = CommandLine::cargo(["version"]).folder(Path::new("/"));
        assert_eq!(line.to_string(), "cd / && cargo version");
        assert!(line.probe().unwrap().starts_with("cargo "));
        assert_eq!(line.folder(Path::new("/no/such/folder")).probe(), None);
    }

    #[test]
    fn the_workspace_root_holds_the_manifest_of_the_workspace() {
        let text = std::fs::read_to_string(workspace_root().join("Cargo.toml")).unwrap();
        assert!(text.contains("[workspace]"));
    }

    #[test]
    fn a_program_that_does_not_exist_is_named() {
        let error = CommandLine::new("no-such-program-of-wgrad").run().unwrap_err();
        assert!(error.to_string().contains("`no-such-program-of-wgrad`"));
        assert_eq!(CommandLine::new("no-such-program-of-wgrad").probe(), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_machine_without_a_desktop_gets_a_private_folder() {
        use std::os::unix::fs::PermissionsExt;

        let root = std::env::temp_dir().join(format!("xtask-runtime-{}", std::process::id()));
        assert_eq!(runtime_folder(Some("/run/user/1000".into()), &root), None);
        assert!(!root.exists());
        for given in [None, Some(OsString::new())] {
            let made = runtime_folder(given, &root).unwrap();
            assert_eq!(made, root.join("target/xdg-runtime"));
            assert_eq!(made.metadata().unwrap().permissions().mode() & 0o777, 0o700);
            // The call above restores the private access rights.
            std::fs::set_permissions(&made, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        std::fs::remove_dir_all(&root).unwrap();
        // A child receives its command's environment.
        let seen = CommandLine::new("printenv").args([RUNTIME_DIR]);
        assert!(!seen.probe().unwrap().trim().is_empty());
        assert_eq!(seen.env(RUNTIME_DIR, "/own").probe().unwrap().trim(), "/own");
    }

    #[cfg(unix)]
    #[test]
    fn a_childs_status_is_passed_on() {
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(Status::of(ExitStatus::from_raw(0)), Status::SUCCESS);
        assert_eq!(Status::of(ExitStatus::from_raw(101 << 8)), Status(101));
        assert_eq!(Status::of(ExitStatus::from_raw(9)), Status(128 + 9));
    }
}
