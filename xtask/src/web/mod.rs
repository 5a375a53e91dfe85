//! `cargo xtask web`: the build for browsers. The crate `wgrad-web` becomes the npm package in `web/pkg`; the package and the
//! page become the static files in `web/dist`. Both can then be served locally or tested in real browsers.

mod browsers;
mod debian;
mod licences;
mod node;
mod package;
mod target;

use std::path::{Path, PathBuf};
use std::thread;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::Value;

use crate::run::{CommandLine, Status, first_failure, today};
use browsers::Browser;

const BROWSERS: [Browser; 2] = [Browser::Chromium, Browser::Firefox];
/// Draws one of them.
const DRAWN: &str = "drawn";

/// The default port of `--serve`.
const PORT: u16 = 8080;

const HELP: &str = "\
Usage: cargo xtask web [OPTIONS]

Builds the npm package (web/pkg) and the page (web/dist), and prints what a visitor downloads.

Options:
  --check                     fail if the page is above its limit: 385 kB, compressed, before the first step
  --serve                     then serve web/dist on localhost
  --port N                    the port of --serve (8080)
  --test [BROWSER]            then run the tests in chromium, in firefox, or in both; `drawn`: in one of them, and a part of the
                              tests, depending on the day; implies --check
  --only TEXT                 run only tests whose name contains TEXT
  --draft [package]           compile in a fraction of the time, for tests: what is compiled is larger and slower, and both
                              modules of the package load models. `package`: the page is as released. Otherwise it is a
                              draft, too, and its size is not checked
  --no-build                  serve or test the existing build
  --address URL               the page's future address, which link previews need
  --source URL, --package URL where the source and the npm package are, for the links at the top of the page
";

/// Builds, then serves or tests if requested.
pub fn run(arguments: &[String]) -> Result<Status> {
    let options = Options::parse(arguments)?;
    if options.help {
        print!("{HELP}");
        return Ok(Status::SUCCESS);
    }
    let project = Project::read()?;
    node::require()?;
    if options.build {
        let check = options.check || options.test.is_some() && options.draft != Draft::All;
        let status = build(&project, options.draft, check, &options.links)?;
        if !status.is_success() {
            return Ok(status);
        }
    } else if !project.dist().join("index.html").is_file() {
        bail!("web/dist holds no page yet; run `cargo xtask web` without --no-build");
    }
    node::install_modules(&project.web())?;
    if let Some(browsers) = &options.test {
        let status = package::test()?;
        if !status.is_success() {
            return Ok(status);
        }
        return browsers::test(&project, browsers, options.part, options.only.as_deref());
    }
    if options.serve {
        return node::serve(&project, options.port);
    }
    Ok(Status::SUCCESS)
}

/// Compares exported models instead of training steps.
const MODELS: &str = "--models";

/// `cargo xtask bench --web`: compares wgrad with TensorFlow.js and jax-js in Chromium; with `--models`, how exported models load and
/// run, also with onnxruntime-web. The package is built first from the present sources.
pub fn bench(arguments: &[String]) -> Result<Status> {
    let project = Project::read()?;
    node::require()?;
    let status = build(&project, Draft::None, false, &[])?;
    if !status.is_success() {
        return Ok(status);
    }
    let program = Browser::Chromium.require()?;
    let folder = project.root.join("benches/peers/web");
    // The server and the driver are those of the tests.
    node::install_modules(&project.web())?;
    node::install_modules(&folder)?;
    let models = project.scratch().join("benchmark");
    let line = if arguments.iter().any(|argument| argument == MODELS) {
        let status = browsers::models_for_the_benchmark(&models)?;
        if !status.is_success() {
            return Ok(status);
        }
        let rest = arguments.iter().filter(|argument| *argument != MODELS);
        let given = ["models.mjs", MODELS, &models.display().to_string()];
        CommandLine::new("node").args(given).args(rest)
    } else {
        CommandLine::new("node").args(["bench.mjs"]).args(arguments)
    };
    let line = line.folder(&folder);
    line.env("WGRAD_BROWSER", "chromium")
        .env("WGRAD_CHROMIUM", &program.display().to_string())
        .run()
}

/// All steps from the compiler to `web/dist`; with `check`, fails if the page is too large.
fn build(project: &Project, draft: Draft, check: bool, links: &[String]) -> Result<Status> {
    let profile = if draft == Draft::None { package::PROFILE } else { package::DRAFT };
    let page_profile = if draft == Draft::All { package::DRAFT } else { package::PROFILE };
    let cargo = target::WasmCargo::find(&project.scratch())?;
    node::install_modules(&project.web())?;
    let (plain, models, page) = (project.pkg(), project.models_pkg(), project.page_pkg());
    let compile = |pkgs: &[&Path], profile: &str, features: &[&str]| -> Result<Status> {
        let line = cargo.build(package::CRATE, profile, features);
        let status = line.env("CARGO_ENCODED_RUSTFLAGS", &target::remapped_paths()).run()?;
        if !status.is_success() {
            return Ok(status);
        }
        for pkg in pkgs {
            let status = package::bind(project, profile, pkg)?;
            // The page's calls are type-checked.
            let guarded = *pkg != page;
            let status =
                if status.is_success() && guarded { package::guard(project, pkg)? } else { status };
            if !status.is_success() {
                return Ok(status);
            }
        }
        Ok(Status::SUCCESS)
    };
    let with_models = ["--features", "models"];
    let compile_plain = || compile(&[&plain], profile, &[]);
    let compile_models = || compile(&[&models], profile, &with_models);
    let compile_page = || compile(&[&page], page_profile, &["--no-default-features"]);
    type Job<'a> = &'a (dyn Fn() -> Result<Status> + Sync);
    let both = |one: Job<'_>, other: Job<'_>| -> Result<[Status; 2]> {
        thread::scope(|scope| {
            let one = scope.spawn(one);
            let other = other();
            let one = one.join().unwrap_or_else(|_| Err(anyhow!("a thread panicked")));
            Ok([one?, other?])
        })
    };
    // The package has a module that also loads models of other programs. The page uses a part of the package, and its visitors
    // load only that part. What is optimized as a whole uses one core most of the time, and so does shrinking a wasm; hence two
    // at a time.
    let statuses = if draft != Draft::None {
        // Both modules of a draft have everything. Writing the first empties the folder that holds the second.
        let package = || compile(&[&plain, &models], profile, &with_models);
        // A draft of the page is compiled into the same folder as that of the package, so one waits for the other.
        if draft == Draft::All {
            match package()? {
                status if status.is_success() => [status, compile_page()?],
                failed => [failed, failed],
            }
        } else {
            both(&compile_page, &package)?
        }
    } else {
        let shrink = |pkg: &Path| package::shrink(project, pkg, false);
        let first = compile_plain()?;
        if !first.is_success() {
            return Ok(first);
        }
        let second = both(&|| shrink(&plain), &compile_models)?;
        if second.iter().any(|status| !status.is_success()) {
            return Ok(first_failure(second));
        }
        both(&|| shrink(&models), &compile_page)?
    };
    let status = first_failure(statuses);
    if !status.is_success() {
        return Ok(status);
    }
    if draft != Draft::All {
        let status = package::shrink(project, &page, true)?;
        if !status.is_success() {
            return Ok(status);
        }
    }
    let status = package::pack(&project.page_pkg())?;
    if !status.is_success() {
        return Ok(status);
    }
    package::describe(project)?;
    node::bundle(project, check, links)
}

/// Prints one line about a finding to standard error, like the command lines.
fn report(what: &str, result: &str) {
    eprintln!("web: {what}: {result}");
}

/// What is compiled faster, and becomes larger and slower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Draft {
    None,
    Package,
    /// The package and the page.
    All,
}

/// The parsed command line.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    help: bool,
    build: bool,
    draft: Draft,
    check: bool,
    serve: bool,
    port: u16,
    test: Option<Vec<Browser>>,
    /// Which part of the tests runs; none: all of them.
    part: Option<usize>,
    only: Option<String>,
    /// The address arguments of `build.mjs`.
    links: Vec<String>,
}

impl Options {
    fn parse(arguments: &[String]) -> Result<Self> {
        let mut options = Self {
            help: false,
            build: true,
            draft: Draft::None,
            check: false,
            serve: false,
            port: PORT,
            test: None,
            part: None,
            only: None,
            links: Vec::new(),
        };
        let mut rest = arguments.iter().map(String::as_str).peekable();
        while let Some(argument) = rest.next() {
            match argument {
                "--help" | "-h" => options.help = true,
                "--draft" => {
                    let package = rest.next_if_eq(&"package").is_some();
                    options.draft = if package { Draft::Package } else { Draft::All };
                }
                "--no-build" => options.build = false,
                "--check" => options.check = true,
                "--serve" => options.serve = true,
                "--port" => {
                    let port = rest.next().and_then(|port| port.parse().ok());
                    options.port =
                        port.ok_or_else(|| anyhow!("--port takes a number from 0 to 65535"))?;
                }
                "--only" => {
                    options.only = Some(
                        rest.next()
                            .ok_or_else(|| anyhow!("--only takes a part of a name"))?
                            .to_owned(),
                    );
                }
                "--address" | "--source" | "--package" => {
                    let address = rest.next().filter(|next| next.starts_with("http"));
                    let address = address
                        .ok_or_else(|| anyhow!("{argument} takes an address (https://...)"))?;
                    options.links.extend([argument.to_owned(), address.to_owned()]);
                }
                "--test" => {
                    let named = rest.peek().filter(|next| !next.starts_with('-')).copied();
                    options.test = Some(match named {
                        None => BROWSERS.to_vec(),
                        Some(DRAWN) => {
                            rest.next();
                            let day = today()? as usize;
                            options.part = Some(day / BROWSERS.len());
                            vec![BROWSERS[day % BROWSERS.len()]]
                        }
                        Some(name) => {
                            rest.next();
                            vec![Browser::from_name(name).ok_or_else(|| {
                                anyhow!(
                                    "--test knows `chromium`, `firefox` and `drawn`, and `{name}` is none of them"
                                )
                            })?]
                        }
                    });
                }
                other => bail!("`cargo xtask web` has no argument `{other}`.\n\n{HELP}"),
            }
        }
        if options.serve && options.test.is_some() {
            bail!("--serve and --test exclude each other: --serve does not end");
        }
        Ok(options)
    }
}

/// The workspace according to cargo.
struct Project {
    root: PathBuf,
    /// Cargo's target folder.
    target: PathBuf,
    /// The metadata of the member `wgrad-web`.
    package: Value,
}

impl Project {
    fn read() -> Result<Self> {
        let line = CommandLine::cargo(["metadata", "--format-version", "1", "--no-deps"]);
        let text = line.probe().ok_or_else(|| anyhow!("`{line}` failed; run it to see why"))?;
        let metadata: Value =
            serde_json::from_str(&text).context("cargo's metadata is not JSON")?;
        let folder = |key: &str| {
            metadata[key]
                .as_str()
                .map(PathBuf::from)
                .ok_or_else(|| anyhow!("cargo's metadata lacks `{key}`"))
        };
        let package = metadata["packages"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|p| p["name"] == package::CRATE);
        let package = package
            .ok_or_else(|| anyhow!("the workspace has no member `{}`", package::CRATE))?
            .clone();
        Ok(Self { root: folder("workspace_root")?, target: folder("target_directory")?, package })
    }

    fn web(&self) -> PathBuf {
        self.root.join("web")
    }

    /// The npm package.
    fn pkg(&self) -> PathBuf {
        self.web().join("pkg")
    }

    /// The module of the package that also loads models of other programs.
    fn models_pkg(&self) -> PathBuf {
        self.pkg().join(package::MODELS)
    }

    /// The part of the package that the page needs.
    fn page_pkg(&self) -> PathBuf {
        self.web().join("page-pkg")
    }

    /// The static site.
    fn dist(&self) -> PathBuf {
        self.web().join("dist")
    }

    /// For downloads and intermediate files.
    fn scratch(&self) -> PathBuf {
        self.target.join("web")
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&words)
    }

    #[test]
    fn options_are_distinguished() {
        let plain = parse("").unwrap();
        assert!(
            plain.build
                && !plain.check
                && !plain.serve
                && plain.test.is_none()
                && plain.port == PORT
        );
        assert_eq!(plain.draft, Draft::None);
        assert_eq!(parse("--draft --test").unwrap().draft, Draft::All);
        assert_eq!(parse("--test --draft package").unwrap().draft, Draft::Package);
        let serve = parse("--serve --port 0 --no-build").unwrap();
        assert!(serve.serve && serve.port == 0 && !serve.build);
        assert_eq!(parse("--test").unwrap().test, Some(vec![Browser::Chromium, Browser::Firefox]));
        let test = parse("--test firefox --only digits").unwrap();
        assert_eq!(
            (test.test, test.only.as_deref()),
            (Some(vec![Browser::Firefox]), Some("digits"))
        );
        assert_eq!(parse("--test --check").unwrap().test.unwrap().len(), 2);
        assert_eq!(parse("--test").unwrap().part, None);
        let drawn = parse("--test drawn --only digits").unwrap();
        assert!(drawn.test.unwrap().len() == 1 && drawn.part.is_some());
        let links = parse("--source https://example.org/wgrad --check").unwrap();
        assert_eq!(links.links, ["--source", "https://example.org/wgrad"]);
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in [
            "--test opera",
            "--port",
            "--port 70000",
            "--port x",
            "--only",
            "--bake",
            "--serve --test",
            "--source",
            "--package wgrad",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }
}
