//! Jobs of several processes.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Jobs use all cores, so they run one after another.
static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// What a job printed, and whether it succeeded.
pub struct Ended {
    pub success: bool,
    pub text: String,
    pub after: Duration,
}

/// The command of the MPI library that this program was compiled with.
fn mpirun() -> String {
    std::env::var("WGRAD_MPIRUN").unwrap_or_else(|_| "mpirun".into())
}

/// A job of `ranks` processes, each of which runs the test `program` of the module `ranks`. Files are in `folder`.
pub fn command(ranks: usize, program: &str, folder: &Path) -> Command {
    let mut command = Command::new(mpirun());
    command
        .args(["-n", &ranks.to_string()])
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "--nocapture", &format!("ranks::{program}")])
        .env("WGRAD_TEST_FOLDER", folder)
        .env("RUST_BACKTRACE", "0")
        // More processes than cores, and in containers as root.
        .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
        .env("OMPI_MCA_btl_vader_single_copy_mechanism", "none")
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .stdin(Stdio::null());
    command
}

/// Starts a job whose output goes to a file.
pub fn start(command: &mut Command, folder: &Path) -> Child {
    let out = std::fs::File::create(folder.join("output.txt")).unwrap();
    let err = out.try_clone().unwrap();
    command.stdout(out).stderr(err).spawn().unwrap_or_else(|error| {
        panic!(
            "{} does not start: {error}. Install it: on Debian, `apt-get install openmpi-bin`.",
            mpirun()
        )
    })
}

/// Waits for a job, at most three minutes.
pub fn wait(mut job: Child, folder: &Path) -> Ended {
    let began = Instant::now();
    let status = loop {
        if let Some(status) = job.try_wait().unwrap() {
            break status;
        }
        if began.elapsed() > Duration::from_secs(180) {
            let _ = job.kill();
            let text = std::fs::read_to_string(folder.join("output.txt")).unwrap_or_default();
            panic!("the job did not end within three minutes: {text}");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let bytes = std::fs::read(folder.join("output.txt")).unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ended { success: status.success(), text, after: began.elapsed() }
}

/// Runs a job to its end.
pub fn run(ranks: usize, program: &str, folder: &Path, variables: &[(&str, &str)]) -> Ended {
    let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let job = start(command(ranks, program, folder).envs(variables.iter().copied()), folder);
    wait(job, folder)
}

/// As [`run`], for a job that must succeed.
pub fn succeeds(ranks: usize, program: &str, folder: &Path, variables: &[(&str, &str)]) {
    let ended = run(ranks, program, folder, variables);
    assert!(ended.success, "{}", ended.text);
}

/// Takes the turn of a job that the caller starts itself.
pub fn turn() -> std::sync::MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
