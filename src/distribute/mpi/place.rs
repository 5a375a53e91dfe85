//! [`Place`]: where a process stands in its job.

use super::END;
use crate::error::{Error, message};

/// Where this process stands in the job.
#[derive(Debug, Clone)]
pub(in super::super) struct Place {
    pub(in super::super) rank: usize,
    /// Its number among the processes of this machine.
    pub(in super::super) local_rank: usize,
    /// The machine and the process number of each process.
    pub(super) names: Vec<String>,
}

impl Place {
    /// A process in a message.
    pub(super) fn name(&self, rank: usize) -> String {
        format!("rank {rank} ({})", self.names.get(rank).map_or("unknown", |name| name))
    }

    /// The error of this process, which called `what`, if the processes have made these calls.
    pub(super) fn disagreement(
        &self,
        what: &str,
        signature: u64,
        calls: &[(String, u64)],
    ) -> Error {
        // Long calls are cut, this one, too.
        let own = calls.get(self.rank).map_or(what, |(own, _)| own);
        let elsewhere = calls.iter().position(|(other, _)| other != own);
        if let Some(rank) = elsewhere {
            let (call, name) = (&calls[rank].0, self.name(rank));
            if call == END {
                return Error::Unavailable(message!(
                    "{what}: {name} has ended its strategy, and this process (rank {}) has not. Look for an error of that process, or give \
                     all processes the same number of batches and epochs.",
                    self.rank
                ));
            }
            return Error::Unavailable(message!(
                "{what}: {name} called {call} at this point. All processes have to make the same calls in the same order: start the same \
                 program with the same settings, and give each the same number of batches.",
            ));
        }
        // Most processes are right, if there are enough to tell.
        let count = |of: u64| calls.iter().filter(|(_, other)| *other == of).count();
        let other = calls.iter().position(|(_, other)| *other != signature);
        let rare = calls.iter().position(|(_, other)| count(*other) * 2 < calls.len());
        let rank = rare.or(other).unwrap_or(0);
        let (name, own) = (self.name(rank), self.name(self.rank));
        Error::Unavailable(message!(
            "{what}: {name} has another model, optimizer or batch than the other processes ({:016x}; {own}: {signature:016x}). Start the same \
             program with the same settings and files in all processes.",
            calls[rank].1
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(rank: usize) -> Place {
        let names = ["a, process 1", "a, process 2", "b, process 7"].map(String::from).to_vec();
        Place { rank, local_rank: 0, names }
    }

    fn text(rank: usize, what: &str, signature: u64, calls: &[(&str, u64)]) -> String {
        let calls: Vec<(String, u64)> =
            calls.iter().map(|(what, signature)| (what.to_string(), *signature)).collect();
        place(rank).disagreement(what, signature, &calls).to_string()
    }

    #[test]
    fn the_error_names_the_process_that_differs() {
        let calls = [("step", 5), ("step", 6), ("step", 5)];
        for rank in [0, 1] {
            let text = text(rank, "step", calls[rank].1, &calls);
            assert!(text.starts_with("step: rank 1 (a, process 2) has another model"), "{text}");
        }
        let ended = text(0, "step", 5, &[("step", 5), ("step", 5), (END, 0)]);
        assert!(ended.starts_with("step: rank 2 (b, process 7) has ended its strategy"), "{ended}");
        let other = text(2, "step", 5, &[("step", 5), ("batch 3", 5), ("step", 5)]);
        assert!(other.starts_with("step: rank 1 (a, process 2) called batch 3"), "{other}");
    }
}
