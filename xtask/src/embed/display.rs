//! A display for a machine without one: Xvfb, an X server that draws into a file. The file is the screenshot.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::run::{CommandLine, workspace_root};
use crate::system::Packages;

/// The server, and the libraries of X11 that winit and Mesa load when they run.
const PACKAGES: Packages = Packages {
    debian: &[
        "xvfb",
        "libx11-6",
        "libx11-xcb1",
        "libxcb-shm0",
        "libxcursor1",
        "libxi6",
        "libxkbcommon-x11-0",
        "libxrandr2",
    ],
    fedora: &[
        "xorg-x11-server-Xvfb",
        "libX11-xcb",
        "libXcursor",
        "libXi",
        "libXrandr",
        "libxkbcommon-x11",
    ],
    arch: &["xorg-server-xvfb", "libx11", "libxcursor", "libxi", "libxkbcommon-x11", "libxrandr"],
    suse: &[
        "xorg-x11-server-Xvfb",
        "libX11-xcb1",
        "libXcursor1",
        "libXi6",
        "libXrandr2",
        "libxkbcommon-x11-0",
    ],
    alpine: &["xvfb", "libx11", "libxcursor", "libxi", "libxkbcommon-x11", "libxrandr"],
    otherwise: "Xvfb, and the libraries X11, X11-xcb, Xcursor, Xi, Xrandr and xkbcommon-x11",
    arch_note: "",
    suse_note: "",
    alpine_note: "",
};

/// Whether windows can be opened on this machine as it is.
pub fn exists() -> bool {
    let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !cfg!(target_os = "linux") || set("DISPLAY") || set("WAYLAND_DISPLAY")
}

/// An X server of this process. It ends when the value is dropped.
pub struct Display {
    server: Child,
    folder: PathBuf,
    /// The value of `DISPLAY`.
    pub name: String,
}

impl Display {
    /// Starts a server with one screen of 1280 x 800 pixels, and installs it first if it is missing.
    pub fn start() -> Result<Self> {
        let installed = ["Xvfb", "libxkbcommon-x11.so.0"].map(is_installed);
        if installed.contains(&false) {
            PACKAGES.install("Xvfb, or a library of X11", "cargo xtask embed")?;
        }
        let folder = workspace_root().join(format!("target/embed-display-{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let path = folder.to_string_lossy().into_owned();
        let screen = ["-screen", "0", "1280x800x24", "-nolisten", "tcp", "-fbdir", &path];
        // It looks for a free number, and writes it.
        let line = CommandLine::new("Xvfb").args(["-displayfd", "1"]).args(screen);
        let mut server = line.spawn_with(Stdio::piped(), Stdio::null())?;
        let mut number = String::new();
        if let Some(output) = server.stdout.take() {
            BufReader::new(output).read_line(&mut number)?;
        }
        let display = Display { server, folder, name: format!(":{}", number.trim()) };
        // Without a number, the server has ended.
        ensure!(!number.trim().is_empty(), "`{line}` did not start; run it to see why");
        Ok(display)
    }

    /// What the screen shows now.
    pub fn screen(&self) -> Result<Screen> {
        let path = self.folder.join("Xvfb_screen0");
        let file = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Screen::from_xwd(&file)
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        // The server may have ended already.
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Whether a program is on PATH, or a library among those that the linker knows.
fn is_installed(name: &str) -> bool {
    if !name.contains(".so") {
        let path = std::env::var_os("PATH").unwrap_or_default();
        return std::env::split_paths(&path).any(|folder| folder.join(name).is_file());
    }
    let known = CommandLine::new("ldconfig").args(["-p"]).probe();
    let known = known.or_else(|| CommandLine::new("/sbin/ldconfig").args(["-p"]).probe());
    // Without ldconfig, the example itself reports what is missing.
    known.is_none_or(|list| list.contains(name))
}

/// The pixels of a screen: red, green and blue, row by row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Screen {
    pub width: usize,
    pub height: usize,
    pub bytes: Vec<u8>,
}

impl Screen {
    /// Reads the format in which Xvfb keeps its screen: X's window dump with four bytes for each pixel.
    fn from_xwd(file: &[u8]) -> Result<Self> {
        let number = |at: usize| {
            let bytes = file.get(4 * at..4 * at + 4)?.try_into().ok()?;
            usize::try_from(u32::from_be_bytes(bytes)).ok()
        };
        let field = |at: usize| number(at).context("the window dump is too short");
        let [header, version, width, height, order, bits, row, colours] = [
            field(0)?,
            field(1)?,
            field(4)?,
            field(5)?,
            field(7)?,
            field(11)?,
            field(12)?,
            field(19)?,
        ];
        if (version, order, bits) != (7, 0, 32) {
            bail!(
                "a window dump of version {version} with {bits} bits for each pixel cannot be read"
            );
        }
        let pixels = file.get(header + 12 * colours..).unwrap_or_default();
        ensure!(
            row >= 4 * width && pixels.len() >= row * height,
            "a window dump of {width} x {height} pixels has {} bytes",
            file.len()
        );
        let rows = pixels.chunks(row.max(1)).take(height);
        let pixels = rows.flat_map(|row| row[..4 * width].chunks_exact(4));
        let bytes = pixels.flat_map(|pixel| [pixel[2], pixel[1], pixel[0]]).collect();
        Ok(Screen { width, height, bytes })
    }

    /// The share of pixels that are not black, as the screen is without a window.
    pub fn drawn(&self) -> f64 {
        let pixels = self.bytes.chunks_exact(3);
        let drawn = pixels.clone().filter(|pixel| pixel.iter().any(|&part| part > 8)).count();
        drawn as f64 / pixels.len().max(1) as f64
    }

    /// The number of different colours, counted to 1000.
    pub fn colours(&self) -> usize {
        let mut seen = std::collections::HashSet::new();
        for pixel in self.bytes.chunks_exact(3) {
            seen.insert(pixel);
            if seen.len() >= 1000 {
                break;
            }
        }
        seen.len()
    }

    /// Writes a PNG file.
    pub fn save(&self, path: &Path) -> Result<()> {
        let write = || -> Result<()> {
            let file = std::io::BufWriter::new(fs::File::create(path)?);
            let mut encoder = png::Encoder::new(file, self.width as u32, self.height as u32);
            encoder.set_color(png::ColorType::Rgb);
            encoder.set_depth(png::BitDepth::Eight);
            let mut writer = encoder.write_header()?;
            writer.write_image_data(&self.bytes)?;
            Ok(writer.finish()?)
        };
        write().with_context(|| format!("cannot write {}", path.display()))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// A dump of 2 x 2 pixels whose rows have 12 bytes.
    fn dump() -> Vec<u8> {
        let mut fields = [0u32; 25];
        for (at, value) in [(0, 104), (1, 7), (4, 2), (5, 2), (7, 0), (11, 32), (12, 12), (19, 1)] {
            fields[at] = value;
        }
        let mut file: Vec<u8> = fields.iter().flat_map(|field| field.to_be_bytes()).collect();
        // The rest of the header, and one colour.
        file.extend([0; 4 + 12]);
        file.extend([1, 2, 3, 0, 4, 5, 6, 0, 9, 9, 9, 9]);
        file.extend([0, 0, 0, 0, 0, 0, 200, 0, 9, 9, 9, 9]);
        file
    }

    #[test]
    fn a_window_dump_is_read_row_by_row() {
        let screen = Screen::from_xwd(&dump()).unwrap();
        assert_eq!((screen.width, screen.height), (2, 2));
        assert_eq!(screen.bytes, [3, 2, 1, 6, 5, 4, 0, 0, 0, 200, 0, 0]);
        assert_eq!((screen.drawn(), screen.colours()), (0.25, 4));
    }

    #[test]
    fn broken_dumps_are_errors() {
        let file = dump();
        for length in [0, 50, 100, 115, 130] {
            assert!(Screen::from_xwd(&file[..length]).is_err(), "{length}");
        }
        let mut other = file.clone();
        other[4 * 11 + 3] = 16;
        let error = Screen::from_xwd(&other).unwrap_err().to_string();
        assert!(error.contains("16 bits"), "{error}");
        let mut wide = file;
        wide[4 * 4 + 3] = 200;
        assert!(Screen::from_xwd(&wide).is_err());
    }
}
