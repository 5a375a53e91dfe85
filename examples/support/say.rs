//! Printing for a program whose output pipe may close early, as with `| head`.

use std::io::ErrorKind;
use std::process::ExitCode;

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Like `println!`, but returns an error from the function instead of panicking.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        writeln!(std::io::stdout(), $($text)*)?
    }};
}
pub(crate) use say;

/// The program's exit code. A closed output pipe is not a failure.
pub fn exit_code(result: Result<()>) -> ExitCode {
    let Err(error) = result else { return ExitCode::SUCCESS };
    match error.downcast_ref::<std::io::Error>() {
        Some(error) if error.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        _ => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
