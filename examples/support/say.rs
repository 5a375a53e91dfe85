//! Printing for a program whose reader may leave before its end, as `| head` does.

use std::io::ErrorKind;
use std::process::ExitCode;

pub type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// As `println!`, but where that panics the function returns the error.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        writeln!(std::io::stdout(), $($text)*)?
    }};
}
pub(crate) use say;

/// What the program ends with. Whoever reads no further has seen enough, which is no failure.
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
