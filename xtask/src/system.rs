//! Identifies this system, and installs packages with its package manager if this is possible without a prompt; otherwise names
//! the command to run.

use std::fs;

use anyhow::{Result, bail};

use crate::run::CommandLine;

/// The families of Linux distributions whose package names are known here, and the other systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Distribution {
    Debian,
    Fedora,
    Arch,
    Suse,
    Alpine,
    Unknown,
}

impl Distribution {
    /// The distribution of this machine; `Unknown` if it does not run Linux.
    pub fn of_this_machine() -> Self {
        let text = ["/etc/os-release", "/usr/lib/os-release"]
            .into_iter()
            .find_map(|path| fs::read_to_string(path).ok())
            .unwrap_or_default();
        Self::from_os_release(&text)
    }

    /// Reads `ID` and, for derivatives, `ID_LIKE` from an `os-release` file.
    fn from_os_release(text: &str) -> Self {
        let value = |key: &str| {
            text.lines()
                .filter_map(|line| line.trim().split_once('='))
                .find(|(name, _)| *name == key)
                .map_or("", |(_, value)| value.trim_matches(['"', '\'']))
        };
        let names = value("ID").split_whitespace().chain(value("ID_LIKE").split_whitespace());
        for name in names {
            match name {
                "debian" | "ubuntu" => return Self::Debian,
                "fedora" | "rhel" | "centos" => return Self::Fedora,
                "arch" => return Self::Arch,
                "suse" | "opensuse" => return Self::Suse,
                "alpine" => return Self::Alpine,
                _ => {}
            }
        }
        Self::Unknown
    }
}

/// Something to install, by the names of its packages. An empty list: no package of the distribution is known.
#[derive(Clone, Copy, Debug)]
pub struct Packages {
    pub debian: &'static [&'static str],
    pub fedora: &'static [&'static str],
    pub arch: &'static [&'static str],
    pub suse: &'static [&'static str],
    pub alpine: &'static [&'static str],
    /// A description of what to install, if no package names are known.
    pub otherwise: &'static str,
    pub arch_note: &'static str,
    pub suse_note: &'static str,
    pub alpine_note: &'static str,
}

impl Packages {
    /// Installs the packages if this is possible without a prompt, and otherwise fails with the command to run. `lack` is a
    /// sentence about what is missing, without its full stop; `again` is the command to repeat afterwards.
    pub fn install(&self, lack: &str, again: &str) -> Result<()> {
        let distribution = Distribution::of_this_machine();
        let privilege = match distribution {
            Distribution::Debian => Privilege::probe(),
            _ => Privilege::None,
        };
        match self.plan(distribution, privilege, again) {
            Plan::Advise(advice) => bail!("{lack}. {advice}"),
            Plan::Install(commands) => {
                eprintln!("setup: missing: {lack}; installing it");
                for command in commands {
                    if !command.run()?.is_success() {
                        bail!(
                            "`{command}` failed. Read its output above, correct what it names, and run `{again}` again."
                        );
                    }
                }
                Ok(())
            }
        }
    }

    fn plan(&self, distribution: Distribution, privilege: Privilege, again: &str) -> Plan {
        if distribution == Distribution::Debian
            && privilege != Privilege::None
            && !self.debian.is_empty()
        {
            let install = ["install", "-y", "--no-install-recommends"].into_iter();
            let install: Vec<&str> = install.chain(self.debian.iter().copied()).collect();
            return Plan::Install(vec![
                apt_get(privilege, &["update"]),
                apt_get(privilege, &install),
            ]);
        }
        Plan::Advise(match self.command(distribution) {
            Some((command, note)) => format!("Run `{command}`{note}, then `{again}` again."),
            None => format!(
                "Install {} with this system's package manager, then run `{again}` again.",
                self.otherwise
            ),
        })
    }

    /// The command to run, and a note on it.
    fn command(&self, distribution: Distribution) -> Option<(String, &'static str)> {
        let (start, packages, note) = match distribution {
            Distribution::Debian => (
                "sudo apt-get update && sudo apt-get install -y --no-install-recommends",
                self.debian,
                "",
            ),
            Distribution::Fedora => ("sudo dnf install", self.fedora, ""),
            Distribution::Arch => ("sudo pacman -S", self.arch, self.arch_note),
            Distribution::Suse => ("sudo zypper install", self.suse, self.suse_note),
            Distribution::Alpine => ("sudo apk add", self.alpine, self.alpine_note),
            Distribution::Unknown => return None,
        };
        (!packages.is_empty()).then(|| (format!("{start} {}", packages.join(" ")), note))
    }
}

/// How a package can be installed without a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Privilege {
    Root,
    PasswordlessSudo,
    None,
}

impl Privilege {
    fn probe() -> Self {
        let user = CommandLine::new("id").args(["-u"]).probe();
        if user.is_some_and(|id| id.trim() == "0") {
            Self::Root
        } else if CommandLine::new("sudo").args(["-n", "true"]).probe().is_some() {
            Self::PasswordlessSudo
        } else {
            Self::None
        }
    }
}

/// What to do if the machine lacks something.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    Install(Vec<CommandLine>),
    Advise(String),
}

fn apt_get(privilege: Privilege, arguments: &[&str]) -> CommandLine {
    match privilege {
        // sudo clears the environment, so the variable is set after it.
        Privilege::PasswordlessSudo => CommandLine::new("sudo")
            .args(["-n", "env", "DEBIAN_FRONTEND=noninteractive", "apt-get"])
            .args(arguments),
        Privilege::Root | Privilege::None => {
            CommandLine::new("apt-get").env("DEBIAN_FRONTEND", "noninteractive").args(arguments)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRIVERS: &Packages = &crate::setup::DRIVER_PACKAGES;
    const AGAIN: &str = "cargo xtask setup";

    #[test]
    fn distributions_are_recognized_by_id_and_id_like() {
        let parsed = |text| Distribution::from_os_release(text);
        let debian = "PRETTY_NAME=\"Debian GNU/Linux 12\"\nNAME=\"Debian GNU/Linux\"\nID=debian\n";
        assert_eq!(parsed(debian), Distribution::Debian);
        assert_eq!(parsed("ID_LIKE=\"ubuntu debian\"\nID=linuxmint"), Distribution::Debian);
        assert_eq!(parsed("ID=fedora\nVERSION_ID=42"), Distribution::Fedora);
        assert_eq!(parsed("ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\""), Distribution::Fedora);
        assert_eq!(parsed("ID=manjaro\nID_LIKE=arch"), Distribution::Arch);
        let leap = "ID=\"opensuse-leap\"\nID_LIKE=\"suse opensuse\"";
        assert_eq!(parsed(leap), Distribution::Suse);
        assert_eq!(parsed("ID='alpine'"), Distribution::Alpine);
        assert_eq!(parsed("ID=nixos\nID_LIKE=\"\""), Distribution::Unknown);
        assert_eq!(parsed(""), Distribution::Unknown);
    }

    #[test]
    fn debian_installs_as_root_or_through_sudo() {
        let lines = |privilege| match DRIVERS.plan(Distribution::Debian, privilege, AGAIN) {
            Plan::Install(commands) => commands.iter().map(ToString::to_string).collect(),
            Plan::Advise(advice) => vec![advice],
        };
        let install = "apt-get install -y --no-install-recommends mesa-vulkan-drivers libvulkan1";
        assert_eq!(
            lines(Privilege::Root),
            [
                "DEBIAN_FRONTEND=noninteractive apt-get update".to_owned(),
                format!("DEBIAN_FRONTEND=noninteractive {install}"),
            ]
        );
        assert_eq!(
            lines(Privilege::PasswordlessSudo),
            [
                "sudo -n env DEBIAN_FRONTEND=noninteractive apt-get update".to_owned(),
                format!("sudo -n env DEBIAN_FRONTEND=noninteractive {install}"),
            ]
        );
        let advice = lines(Privilege::None).join("\n");
        assert!(advice.contains(&format!("sudo {install}")), "{advice}");
    }

    #[test]
    fn other_distributions_get_the_command_to_type() {
        let advice = |distribution| match DRIVERS.plan(distribution, Privilege::Root, AGAIN) {
            Plan::Advise(advice) => advice,
            Plan::Install(commands) => panic!("{commands:?}"),
        };
        for (distribution, command) in [
            (Distribution::Fedora, "`sudo dnf install mesa-vulkan-drivers vulkan-loader`"),
            (Distribution::Arch, "`sudo pacman -S vulkan-icd-loader vulkan-swrast`"),
            (Distribution::Suse, "`sudo zypper install libvulkan1 libvulkan_lvp`"),
            (Distribution::Alpine, "`sudo apk add vulkan-loader mesa-vulkan-swrast`"),
        ] {
            let advice = advice(distribution);
            assert!(advice.contains(command), "{advice}");
        }
        assert!(advice(Distribution::Unknown).contains("package manager"));
    }
}
