//! Ctrl-C while a model is trained: the first one ends the training after the current batch, a second one ends the process.
//!
//! The crate `signal-hook` installs a handler at the first training and cannot remove it. Between trainings, the handler ends
//! the process, as the system does by default. If the program already has a handler, this file does nothing.

#[cfg(all(feature = "ctrl-c", not(target_family = "wasm")))]
mod handler {
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::{Arc, OnceLock};

    use signal_hook::consts::SIGINT;
    use signal_hook::flag;

    /// True if the next Ctrl-C ends the process: no training runs, or Ctrl-C was already pressed during one.
    static ENDS: OnceLock<Option<Arc<AtomicBool>>> = OnceLock::new();
    static TRAININGS: AtomicUsize = AtomicUsize::new(0);

    fn install() -> Option<Arc<AtomicBool>> {
        if taken() {
            return None;
        }
        let ends = Arc::new(AtomicBool::new(true));
        // In this order: a Ctrl-C checks the flag before it sets it.
        flag::register_conditional_default(SIGINT, ends.clone()).ok()?;
        flag::register(SIGINT, ends.clone()).ok()?;
        Some(ends)
    }

    /// True if the program catches or ignores Ctrl-C itself, as far as the system reports it.
    fn taken() -> bool {
        let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return false };
        let has = |mask: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(mask));
            let bits = line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
            bits.is_some_and(|bits| bits & (1 << (SIGINT - 1)) != 0)
        };
        has("SigCgt:") || has("SigIgn:")
    }

    /// Held while a model is trained.
    pub(in super::super) struct CtrlC(Option<Arc<AtomicBool>>);

    impl CtrlC {
        pub(in super::super) fn listen(wanted: bool) -> Self {
            if !wanted {
                return CtrlC(None);
            }
            let ends = ENDS.get_or_init(install).clone();
            if let Some(ends) = &ends {
                if TRAININGS.fetch_add(1, Ordering::SeqCst) == 0 {
                    ends.store(false, Ordering::SeqCst);
                }
            }
            CtrlC(ends)
        }

        /// True once Ctrl-C was pressed.
        pub(in super::super) fn pressed(&self) -> bool {
            self.0.as_ref().is_some_and(|ends| ends.load(Ordering::SeqCst))
        }
    }

    impl Drop for CtrlC {
        fn drop(&mut self) {
            if let Some(ends) = &self.0 {
                if TRAININGS.fetch_sub(1, Ordering::SeqCst) == 1 {
                    ends.store(true, Ordering::SeqCst);
                }
            }
        }
    }
}

#[cfg(not(all(feature = "ctrl-c", not(target_family = "wasm"))))]
mod handler {
    /// Does nothing.
    pub(in super::super) struct CtrlC;

    impl CtrlC {
        pub(in super::super) fn listen(_: bool) -> Self {
            CtrlC
        }

        pub(in super::super) fn pressed(&self) -> bool {
            false
        }
    }
}

pub(super) use handler::CtrlC;
