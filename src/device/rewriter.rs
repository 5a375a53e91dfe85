//! Passes each kernel's text through another program before the driver compiles it, and allows choosing kernels as for
//! another adapter. For tests of permitted driver behaviour; only with the feature `kernel-hooks`.
//!
//! `WGRAD_KERNEL_REWRITER` names the program. One process of it serves all devices of this one. A request is a length
//! of four bytes (little-endian) and a WGSL text. A response is a byte, 0 for a text and 1 for an error message,
//! followed by a length and bytes as in the request. The program ends when its input ends.
//!
//! `WGRAD_SUBGROUPS=8,32` sets the minimum and maximum number of threads of a subgroup; `off` disables subgroups.

use std::io::{self, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, OnceLock, PoisonError};

use super::{Caps, ShaderSource, platform};
use crate::error::{DeviceFault, Error, Result, message};

const PROGRAM: &str = "WGRAD_KERNEL_REWRITER";
const SUBGROUPS: &str = "WGRAD_SUBGROUPS";

/// The longest valid response; a larger length is an error.
const LONGEST: usize = 256 << 20;

/// The program that rewrites texts, if there is one.
fn program() -> Option<&'static str> {
    static PROGRAM_NAME: OnceLock<Option<String>> = OnceLock::new();
    let named = || platform::env_var(PROGRAM).filter(|name| !name.is_empty());
    PROGRAM_NAME.get_or_init(named).as_deref()
}

/// Whether texts are rewritten. If so, cached data for unmodified kernels is neither stored nor used.
pub(super) fn is_active() -> bool {
    program().is_some()
}

/// The kernel with the text that the driver is to compile.
pub(super) fn rewritten(source: &ShaderSource) -> Result<ShaderSource> {
    let Some(program) = program() else { return Ok(source.clone()) };
    static SERVER: Mutex<Option<Server>> = Mutex::new(None);
    let mut server = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    let answer = match &mut *server {
        Some(server) => server.answer(&source.wgsl),
        none => match Server::start(program) {
            Ok(started) => none.insert(started).answer(&source.wgsl),
            Err(error) => Err(error),
        },
    };
    match answer {
        Ok(Ok(wgsl)) => Ok(ShaderSource { wgsl: wgsl.into(), ..source.clone() }),
        Ok(Err(words)) => Err(fault(program, source, &words)),
        Err(error) => {
            // The data left in the pipe does not belong to a request.
            *server = None;
            Err(fault(program, source, &error.to_string()))
        }
    }
}

fn fault(program: &str, source: &ShaderSource, words: &str) -> Error {
    let label = &source.label;
    Error::Device(
        DeviceFault::Validation,
        message!(
            "Device: {program}, which {PROGRAM} names, did not rewrite the kernel {label}: {words}\n{}",
            source.wgsl
        ),
    )
}

/// The process of the program.
struct Server {
    child: Child,
    requests: ChildStdin,
    answers: ChildStdout,
}

impl Server {
    fn start(program: &str) -> io::Result<Self> {
        let mut command = Command::new(program);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take());
        let (Some(requests), Some(answers)) = pipes else {
            return Err(io::Error::other("it has no pipes"));
        };
        Ok(Server { child, requests, answers })
    }

    fn answer(&mut self, text: &str) -> io::Result<std::result::Result<String, String>> {
        let length = u32::try_from(text.len()).map_err(io::Error::other)?;
        self.requests.write_all(&length.to_le_bytes())?;
        self.requests.write_all(text.as_bytes())?;
        self.requests.flush()?;
        let mut head = [0; 5];
        self.answers.read_exact(&mut head)?;
        let [kind, length @ ..] = head;
        let length = u32::from_le_bytes(length) as usize;
        if kind > 1 || length > LONGEST {
            return Err(io::Error::other("its answer is not text"));
        }
        let mut answer = vec![0; length];
        self.answers.read_exact(&mut answer)?;
        let answer = String::from_utf8(answer).map_err(io::Error::other)?;
        Ok(if kind == 0 { Ok(answer) } else { Err(answer) })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may wait for the rest of a request.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Makes kernels be chosen as for an adapter with other subgroups.
pub(super) fn override_caps(caps: &mut Caps) -> Result<()> {
    if let Some(text) = platform::env_var(SUBGROUPS).filter(|text| !text.is_empty()) {
        caps.subgroups = subgroups(&text)?;
    }
    Ok(())
}

fn subgroups(text: &str) -> Result<Option<[u32; 2]>> {
    if text == "off" {
        return Ok(None);
    }
    let sizes: Option<Vec<u32>> = text.split(',').map(|size| size.trim().parse().ok()).collect();
    match sizes.as_deref() {
        Some(&[least, most])
            if least <= most
                && least.is_power_of_two()
                && most.is_power_of_two()
                && most <= 128 =>
        {
            Ok(Some([least, most]))
        }
        _ => Err(Error::Device(
            DeviceFault::Limit,
            message!(
                "Device: {SUBGROUPS} is {text:?}, and must be `off` or two powers of two up to 128, as in `8,32`."
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_subgroups_are_read() {
        assert_eq!(subgroups("8,32").unwrap(), Some([8, 32]));
        assert_eq!(subgroups("off").unwrap(), None);
        for wrong in ["8", "32,8", "6,8", "8,256", "a,b", "0,8"] {
            let refused = subgroups(wrong).unwrap_err().to_string();
            assert!(refused.contains("two powers of two up to 128"), "{refused}");
        }
    }
}
