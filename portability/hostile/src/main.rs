//! `wgrad-hostile`: rewrites WGSL texts for the process that starts it.
//!
//! It reads frames from its standard input and answers each on its standard output. A frame is a length of four bytes,
//! the lowest first, and so many bytes: of a WGSL text. An answer is a byte, 0 for a text and 1 for an error's words, and
//! a frame with it. `WGRAD_HOSTILE` names the driver, as in `WGRAD_HOSTILE=round-far+contract` or `WGRAD_HOSTILE=draw:17`.
//! `WGRAD_HOSTILE_FUNCTIONS` may name a file of functions in WGSL; they replace those of the same names in each text before
//! it is rewritten.
//!
//! With `--once` it reads one text without a length and writes the other one; with `--list` it writes all names, and
//! with `--draw SEED` the names that a seed draws.

use std::io::{self, Read, Write};
use std::process::ExitCode;

use wgrad_hostile::{Driver, Latitude, Replacement, Rewriter};

/// Names the driver.
const DRIVER: &str = "WGRAD_HOSTILE";
/// Names a file of functions.
const FUNCTIONS: &str = "WGRAD_HOSTILE_FUNCTIONS";

/// A text is not longer than this; what says that it is longer is no frame.
const LONGEST: usize = 64 << 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match arguments[..] {
        [] => serve(),
        ["--once"] => once(),
        ["--list"] => list(),
        ["--draw", seed] => draw(seed),
        _ => Err("usage: wgrad-hostile [--once | --list | --draw SEED]".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("wgrad-hostile: {error}");
            ExitCode::FAILURE
        }
    }
}

type Done = Result<(), Box<dyn std::error::Error>>;

fn driver() -> Result<Driver, Box<dyn std::error::Error>> {
    let named = std::env::var(DRIVER).map_err(|_| {
        format!("{DRIVER} names no driver; set it to latitudes joined by +, or to draw:SEED")
    })?;
    Ok(named.parse()?)
}

/// What replaces functions of the texts.
fn replacement() -> Result<Option<Replacement>, Box<dyn std::error::Error>> {
    let Some(path) = std::env::var_os(FUNCTIONS).filter(|path| !path.is_empty()) else {
        return Ok(None);
    };
    let file = std::fs::read_to_string(&path)
        .map_err(|error| format!("{}: {error}", path.to_string_lossy()))?;
    Ok(Some(Replacement::of(&file)?))
}

/// Rewrites texts one after another.
struct Filter {
    rewriter: Rewriter,
    replacement: Option<Replacement>,
}

impl Filter {
    fn new() -> Result<Self, Box<dyn std::error::Error>> {
        Ok(Filter { rewriter: Rewriter::new(driver()?)?, replacement: replacement()? })
    }

    fn rewrite(&self, text: &str) -> wgrad_hostile::Result<String> {
        match &self.replacement {
            Some(replacement) => self.rewriter.rewrite(&replacement.apply(text)),
            None => self.rewriter.rewrite(text),
        }
    }
}

/// Answers frames until the input ends.
fn serve() -> Done {
    let filter = Filter::new()?;
    let (mut input, mut output) = (io::stdin().lock(), io::stdout().lock());
    loop {
        let mut length = [0; 4];
        match input.read_exact(&mut length) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        let length = u32::from_le_bytes(length) as usize;
        if length > LONGEST {
            return Err(format!("a frame of {length} bytes is longer than any text").into());
        }
        let mut text = vec![0; length];
        input.read_exact(&mut text)?;
        let answer = match String::from_utf8(text) {
            Ok(text) => filter.rewrite(&text).map_err(|error| error.to_string()),
            Err(_) => Err("the text is not UTF-8".to_string()),
        };
        let (kind, answer) = match &answer {
            Ok(text) => (0, text),
            Err(words) => (1, words),
        };
        output.write_all(&[kind])?;
        output.write_all(&u32::try_from(answer.len())?.to_le_bytes())?;
        output.write_all(answer.as_bytes())?;
        output.flush()?;
    }
}

fn once() -> Done {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let new = Filter::new()?.rewrite(&text)?;
    Ok(io::stdout().write_all(new.as_bytes())?)
}

fn list() -> Done {
    let names: String = Latitude::all().map(|latitude| format!("{latitude}\n")).collect();
    Ok(io::stdout().write_all(names.as_bytes())?)
}

fn draw(seed: &str) -> Done {
    let driver: Driver = format!("draw:{seed}").parse()?;
    Ok(writeln!(io::stdout(), "{driver}")?)
}
