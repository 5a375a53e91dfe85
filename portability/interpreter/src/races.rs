//! Which accesses of different invocations nothing orders.
//!
//! Each word (or half, where kernels store f16) remembers who wrote and who read it last, and in which *phase*. A barrier of
//! the right kind begins a new phase: `workgroupBarrier` for workgroup memory, `storageBarrier` for storage. Within a phase
//! accesses of different invocations to one word are a race, unless all of them read or all are atomic. Between workgroups
//! of one dispatch nothing orders anything, whatever the phase.

use crate::finding::Kind;

/// Phases are numbers of one clock, so that a phase implies its workgroup and its dispatch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Now {
    /// The phase of the access.
    pub(crate) phase: u32,
    /// The first phase of the workgroup.
    pub(crate) group: u32,
    /// The first phase of the dispatch.
    pub(crate) dispatch: u32,
}

/// Who accesses: an invocation of the workgroup, or, beyond [`crate::mask::MOST`], a whole subgroup.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Access {
    pub(crate) who: u16,
    pub(crate) write: bool,
    pub(crate) atomic: bool,
}

/// What a word remembers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Mark {
    write: u32,
    read: u32,
    writer: Who,
    reader: Who,
    /// What earlier workgroups of this dispatch did, whose marks are overwritten.
    others: u8,
}

/// An invocation and how it accessed; [`MANY`] for several.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Who(u16);

const MANY: u16 = 0x3fff;
const ATOMIC: u16 = 0x8000;

impl Who {
    fn new(who: u16, atomic: bool) -> Self {
        Who(who | if atomic { ATOMIC } else { 0 })
    }

    fn is_atomic(self) -> bool {
        self.0 & ATOMIC != 0
    }

    /// True if somebody else is meant, too.
    fn is_other(self, who: u16) -> bool {
        self.0 & MANY != who
    }

    /// Both; atomic only if both are.
    fn and(self, who: u16, atomic: bool) -> Self {
        let both = if self.is_other(who) { MANY } else { who };
        Who::new(both, self.is_atomic() && atomic)
    }
}

const OTHER_READ: u8 = 1;
const OTHER_READ_ATOMIC: u8 = 2;
const OTHER_WRITE: u8 = 4;
const OTHER_WRITE_ATOMIC: u8 = 8;

impl Mark {
    /// Remembers an access, and returns with what it is in conflict.
    pub(crate) fn access(&mut self, now: Now, access: Access) -> Option<Kind> {
        self.forget(now);
        let Access { who, write, atomic } = access;
        let clash = |other: Who| other.is_other(who) && !(atomic && other.is_atomic());
        let accessed = |plain: u8, atomically: u8| {
            self.others & plain != 0 || (self.others & atomically != 0 && !atomic)
        };
        let found = if self.write == now.phase && clash(self.writer) {
            Some(if write { Kind::WriteAfterWrite } else { Kind::ReadAfterWrite })
        } else if write && self.read == now.phase && clash(self.reader) {
            Some(Kind::WriteAfterRead)
        } else if accessed(OTHER_WRITE, OTHER_WRITE_ATOMIC)
            || (write && accessed(OTHER_READ, OTHER_READ_ATOMIC))
        {
            Some(Kind::BetweenWorkgroups)
        } else {
            None
        };
        let (phase, last) = if write {
            (&mut self.write, &mut self.writer)
        } else {
            (&mut self.read, &mut self.reader)
        };
        *last = if *phase == now.phase { last.and(who, atomic) } else { Who::new(who, atomic) };
        *phase = now.phase;
        found
    }

    /// True if no invocation of this workgroup has written it.
    pub(crate) fn is_unwritten(&self, now: Now) -> bool {
        self.write < now.group
    }

    /// Turns marks of earlier workgroups into notes about others, and drops those of earlier dispatches.
    fn forget(&mut self, now: Now) {
        if self.write < now.dispatch && self.read < now.dispatch {
            self.others = 0;
        }
        if (now.dispatch..now.group).contains(&self.write) {
            let atomic = self.writer.is_atomic();
            self.others |= if atomic { OTHER_WRITE_ATOMIC } else { OTHER_WRITE };
        }
        if (now.dispatch..now.group).contains(&self.read) {
            let atomic = self.reader.is_atomic();
            self.others |= if atomic { OTHER_READ_ATOMIC } else { OTHER_READ };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Now = Now { phase: 5, group: 5, dispatch: 5 };

    fn read(who: u16) -> Access {
        Access { who, write: false, atomic: false }
    }

    fn write(who: u16) -> Access {
        Access { who, write: true, atomic: false }
    }

    fn atomic(who: u16) -> Access {
        Access { who, write: true, atomic: true }
    }

    /// What the last of these accesses is in conflict with, each at its phase; none before it is.
    fn last(accesses: &[(Now, Access)]) -> Option<Kind> {
        let mut mark = Mark::default();
        let (last, before) = accesses.split_last()?;
        for (now, access) in before {
            assert_eq!(mark.access(*now, *access), None);
        }
        mark.access(last.0, last.1)
    }

    #[test]
    fn accesses_of_one_phase_clash_if_one_writes() {
        let at =
            |accesses: &[Access]| last(&accesses.iter().map(|a| (NOW, *a)).collect::<Vec<_>>());
        assert_eq!(at(&[read(0), read(1), read(2)]), None);
        assert_eq!(at(&[write(0), read(0), write(0)]), None);
        assert_eq!(at(&[write(0), read(1)]), Some(Kind::ReadAfterWrite));
        assert_eq!(at(&[write(0), write(1)]), Some(Kind::WriteAfterWrite));
        assert_eq!(at(&[read(0), write(1)]), Some(Kind::WriteAfterRead));
        // The writer is one of those who read, but not the only one.
        assert_eq!(at(&[read(0), read(1), write(1)]), Some(Kind::WriteAfterRead));
        assert_eq!(at(&[read(1), read(0), write(1)]), Some(Kind::WriteAfterRead));
    }

    #[test]
    fn atomics_clash_with_plain_accesses_only() {
        let at =
            |accesses: &[Access]| last(&accesses.iter().map(|a| (NOW, *a)).collect::<Vec<_>>());
        assert_eq!(at(&[atomic(0), atomic(1), atomic(2)]), None);
        assert_eq!(at(&[atomic(0), atomic(1), read(1)]), Some(Kind::ReadAfterWrite));
        assert_eq!(at(&[read(0), atomic(1)]), Some(Kind::WriteAfterRead));
        let reads = Access { who: 0, write: false, atomic: true };
        assert_eq!(at(&[reads, atomic(1)]), None);
    }

    #[test]
    fn a_phase_orders_a_workgroup_and_no_others() {
        let later = Now { phase: 6, ..NOW };
        assert_eq!(last(&[(NOW, write(0)), (later, read(1))]), None);
        assert_eq!(last(&[(NOW, read(0)), (later, write(1))]), None);
        let other = Now { phase: 7, group: 7, dispatch: 5 };
        let between = Some(Kind::BetweenWorkgroups);
        assert_eq!(last(&[(NOW, write(0)), (other, read(0))]), between);
        assert_eq!(last(&[(NOW, write(0)), (other, write(0))]), between);
        assert_eq!(last(&[(NOW, read(0)), (other, write(0))]), between);
        assert_eq!(last(&[(NOW, read(0)), (other, read(0))]), None);
        // The first workgroup's mark is gone when a third one writes.
        let third = Now { phase: 9, group: 9, dispatch: 5 };
        assert_eq!(last(&[(NOW, read(0)), (third, read(0)), (third, write(0))]), between);
        assert_eq!(last(&[(NOW, atomic(0)), (other, atomic(0))]), None);
        assert_eq!(last(&[(NOW, atomic(0)), (other, atomic(0)), (other, read(0))]), between);
    }

    #[test]
    fn dispatches_are_ordered() {
        let next = Now { phase: 7, group: 7, dispatch: 7 };
        assert_eq!(last(&[(NOW, write(0)), (next, read(1))]), None);
        let other = Now { phase: 8, group: 8, dispatch: 7 };
        assert_eq!(last(&[(NOW, write(0)), (next, read(1)), (other, read(1))]), None);
    }

    #[test]
    fn what_nobody_wrote_is_known() {
        let mut mark = Mark::default();
        assert!(mark.is_unwritten(NOW));
        mark.access(NOW, write(3));
        assert!(!mark.is_unwritten(NOW));
        let next = Now { phase: 7, group: 7, dispatch: 5 };
        assert!(mark.is_unwritten(next), "another workgroup's memory is not this one's");
    }
}
