//! The arguments: `--frames`, `--picture` and `--seed`, and those of one example.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use lexopt::prelude::*;

/// An argument that only some examples have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extra {
    /// `--no-training`: frames without training, to compare their times.
    NoTraining,
    /// `--budget-ms N`: how much of the network's work a frame may send to the GPU.
    Budget,
    /// `--width N`: how wide the window is.
    Width,
}

impl Extra {
    fn usage(self) -> &'static str {
        match self {
            Extra::NoTraining => {
                "  --no-training      Draw without training, to compare the times of frames\n"
            }
            Extra::Budget => {
                "  --budget-ms <MS>   Milliseconds of a frame that training may take [default: a whole step]\n"
            }
            Extra::Width => {
                "  --width <PIXELS>   Width of the window, from 64 to 8192; it is half as high [default: 1024]\n"
            }
        }
    }
}

/// The arguments of an example.
#[derive(Clone, Debug, PartialEq)]
pub struct Arguments {
    /// The program ends after this many frames, and checks what it has learned; without a number, when its window is closed.
    pub frames: Option<u64>,
    /// Where to save a picture of the last frame.
    pub picture: Option<PathBuf>,
    /// Seed of the random numbers.
    pub seed: u64,
    pub training: bool,
    pub budget: Option<Duration>,
    /// The window's width, in pixels.
    pub width: u32,
}

impl Arguments {
    /// Reads the program's arguments. For `--help` or an argument that it does not know, prints the usage and ends the program.
    pub fn parse(about: &str, extras: &[Extra]) -> Self {
        read(std::env::args_os().skip(1), extras).unwrap_or_else(|problem| {
            let usage = usage(about, extras);
            match problem {
                None => {
                    println!("{usage}");
                    std::process::exit(0)
                }
                Some(problem) => {
                    eprintln!("error: {problem}\n\n{usage}");
                    std::process::exit(2)
                }
            }
        })
    }

    /// Whether this is the last frame; the first has the number 0.
    pub fn is_last(&self, frame: u64) -> bool {
        self.frames.is_some_and(|frames| frame + 1 >= frames)
    }
}

fn usage(about: &str, extras: &[Extra]) -> String {
    let extras: String = extras.iter().map(|extra| extra.usage()).collect();
    format!(
        "{about}\n\nOptions:\n  \
         --frames <N>       End after N frames, with an error if the network has not learned by then\n  \
         --picture <FILE>   Save a picture of the last frame as a PNG file; needs --frames\n  \
         --seed <SEED>      Seed of the random numbers [default: 1]\n{extras}  \
         --help             Print this text"
    )
}

/// `Err(None)` if help was requested.
fn read(
    words: impl IntoIterator<Item = impl Into<OsString>>,
    extras: &[Extra],
) -> std::result::Result<Arguments, Option<lexopt::Error>> {
    let mut arguments = Arguments {
        frames: None,
        picture: None,
        seed: 1,
        training: true,
        budget: None,
        width: 1024,
    };
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("frames") => {
                let frames = parser.value()?.parse()?;
                if frames == 0 {
                    return Err(Some("--frames must be a whole number from 1 on".into()));
                }
                arguments.frames = Some(frames);
            }
            Long("picture") => arguments.picture = Some(parser.value()?.into()),
            Long("seed") => arguments.seed = parser.value()?.parse()?,
            Long("no-training") if extras.contains(&Extra::NoTraining) => {
                arguments.training = false;
            }
            Long("budget-ms") if extras.contains(&Extra::Budget) => {
                let milliseconds: f64 = parser.value()?.parse()?;
                let budget = Duration::try_from_secs_f64(milliseconds / 1e3);
                arguments.budget = Some(budget.map_err(|_| -> lexopt::Error {
                    format!("--budget-ms must be a number of milliseconds, not {milliseconds}")
                        .into()
                })?);
            }
            Long("width") if extras.contains(&Extra::Width) => {
                arguments.width = parser.value()?.parse()?;
                if !(64..=8192).contains(&arguments.width) {
                    let refused =
                        format!("--width must be from 64 to 8192, not {}", arguments.width);
                    return Err(Some(refused.into()));
                }
            }
            Short('h') | Long("help") => return Err(None),
            other => return Err(Some(other.unexpected())),
        }
    }
    if arguments.picture.is_some() && arguments.frames.is_none() {
        return Err(Some("--picture saves the last frame, so it needs --frames".into()));
    }
    Ok(arguments)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of(line: &str, extras: &[Extra]) -> std::result::Result<Arguments, Option<String>> {
        read(line.split_whitespace(), extras).map_err(|error| error.map(|error| error.to_string()))
    }

    #[test]
    fn arguments_are_read() {
        let none = of("", &[]).unwrap();
        assert!(none.training && none.frames.is_none() && !none.is_last(1_000_000));
        let line = "--frames 3 --picture a.png --seed=7 --no-training --budget-ms 2.5";
        let all = of(line, &[Extra::NoTraining, Extra::Budget]).unwrap();
        assert_eq!((all.frames, all.seed, all.training), (Some(3), 7, false));
        assert_eq!(all.picture, Some("a.png".into()));
        assert_eq!(all.budget, Some(Duration::from_micros(2500)));
        assert!(!all.is_last(1) && all.is_last(2) && all.is_last(3));
    }

    #[test]
    fn wrong_arguments_are_named() {
        let message = |line| of(line, &[Extra::Budget]).unwrap_err().unwrap();
        assert!(message("--frames 0").contains("from 1 on"));
        assert!(message("--picture a.png").contains("needs --frames"));
        assert!(message("--budget-ms -1").contains("not -1"));
        let width = of("--width 20", &[Extra::Width]).unwrap_err().unwrap();
        assert!(width.contains("not 20"), "{width}");
        assert_eq!(of("--width 512", &[Extra::Width]).unwrap().width, 512);
        assert!(message("--budget-ms NaN").contains("milliseconds"));
        assert!(message("--no-training").contains("--no-training"));
        assert!(message("left").contains("left"));
        assert_eq!(of("--help", &[]), Err(None));
    }

    #[test]
    fn the_usage_lists_what_an_example_has() {
        let text = usage("About.", &[Extra::Budget]);
        assert!(text.contains("--budget-ms") && !text.contains("--no-training"), "{text}");
    }
}
