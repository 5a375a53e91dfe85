//! How the threads of a GPU's workgroups share a recurrent layer's steps.

use std::sync::Arc;

use super::layout::{Cell, SequenceAttributes};
use crate::device::Caps;
use crate::dtype::DType;
use crate::graph::lower::Kernel;
use crate::wgsl::{expand, shader};

/// The most threads of a workgroup.
const THREADS: usize = 256;

/// A workgroup runs all steps if the recurrent kernel, which it reads in each step, has at most this many bytes. It
/// reads about 100 bytes in a nanosecond, and a launch for each step would cost some microseconds.
pub(super) const MOST_BYTES: usize = 512 << 10;

/// This many workgroups keep most GPUs busy. All read the recurrent kernel, so more of them with fewer rows each would
/// wait for the cache that they share.
const BUSY: usize = 32;

/// More slices would take longer to join than their sums take.
const MOST_SLICES: usize = 16;

/// The shape of a workgroup's work.
#[derive(Debug, PartialEq)]
pub(super) struct Team {
    /// A workgroup has all units of its rows and runs all steps; otherwise each step is a launch.
    pub(super) walks: bool,
    /// Threads compute the gates of one unit instead of four.
    pub(super) one: bool,
    rows: usize,
    threads: usize,
    /// Quads of units.
    tile: usize,
    /// The slices of a sum, and the quads of each.
    slices: usize,
    part: usize,
    groups: usize,
    /// The number of quads of a row in workgroup memory.
    room: usize,
    /// Steps of a launch.
    steps: usize,
}

impl Team {
    /// For each quad of units a step has `each` vectors of sums over `sums` quads; `weight` is the dtype of the
    /// recurrent kernel.
    pub(super) fn choose(
        walk: &SequenceAttributes,
        each: usize,
        sums: usize,
        weight: DType,
        caps: &Caps,
    ) -> Team {
        Team::walking(walk, each, sums, weight, caps)
            .unwrap_or_else(|| Team::stepping(walk, each, sums, caps))
    }

    fn walking(
        walk: &SequenceAttributes,
        each: usize,
        sums: usize,
        weight: DType,
        caps: &Caps,
    ) -> Option<Team> {
        let SequenceAttributes { batch, units, .. } = *walk;
        let quads = units / 4;
        let bytes = walk.cell.gates() * units * units * weight.size();
        let columns = each * quads;
        if bytes > MOST_BYTES || columns > THREADS {
            return None;
        }
        let threads = if columns * sums.min(MOST_SLICES) <= 64 { 64 } else { THREADS };
        let room = |rows: usize| (rows * sums).next_power_of_two();
        let fits = |rows: &usize| {
            let memory = 16 * (rows * threads + room(*rows));
            memory <= caps.workgroup[1] as usize && rows * quads <= threads
        };
        let rows =
            [4, 2, 1].into_iter().filter(|rows| *rows == 1 || batch >= BUSY * rows).find(fits)?;
        let mut team = Team {
            walks: true,
            one: rows * units <= threads,
            rows,
            threads,
            tile: quads,
            slices: 1,
            part: sums,
            groups: batch.div_ceil(rows),
            room: room(rows),
            steps: 1,
        };
        team.slice(each, sums);
        team.steps = caps.loop_iterations.saturating_sub(team.begin()) / team.iterations();
        (team.steps > 0).then_some(team)
    }

    fn stepping(walk: &SequenceAttributes, each: usize, sums: usize, caps: &Caps) -> Team {
        let SequenceAttributes { batch, units, .. } = *walk;
        let quads = units / 4;
        let fits = |rows: &usize| 16 * rows * THREADS <= caps.workgroup[1] as usize;
        let rows = [4, 2].into_iter().filter(|rows| batch >= *rows).find(fits).unwrap_or(1);
        let groups = |tile: usize| batch.div_ceil(rows) * quads.div_ceil(tile);
        let tile = [16, 8, 4].into_iter().find(|tile| groups(*tile) >= 4 * BUSY).unwrap_or(4);
        let mut team = Team {
            walks: false,
            one: false,
            rows,
            threads: THREADS,
            tile,
            slices: 1,
            part: sums,
            groups: groups(tile),
            room: 0,
            steps: 1,
        };
        team.slice(each, sums);
        team
    }

    fn slice(&mut self, each: usize, sums: usize) {
        let most = (self.threads / (each * self.tile)).clamp(1, MOST_SLICES);
        let part = sums.div_ceil(most);
        self.part = if part > 1 { part.next_multiple_of(self.at_once()) } else { part };
        self.slices = sums.div_ceil(self.part);
    }

    /// The quads whose weights a thread loads at once, as many as registers allow, because it waits for memory each
    /// time.
    fn at_once(&self) -> usize {
        if self.rows > 2 { 2 } else { 4 }
    }

    /// Iterations of a thread per step.
    fn iterations(&self) -> usize {
        let at_once = self.at_once();
        self.part / at_once + self.part.min(at_once - 1) + self.slices + 1
    }

    /// Iterations before the first step, to load the rows' workgroup memory or the parts of a state.
    fn begin(&self) -> usize {
        (4 * self.room).div_ceil(self.threads).max(6)
    }

    pub(super) fn expand(&self, text: &'static str, walk: &SequenceAttributes) -> Arc<str> {
        let lstm = walk.cell == Cell::Lstm;
        let counts = [("TR", self.rows), ("G", walk.cell.gates()), ("K", self.at_once())];
        expand(text, &counts, &[("WALKS", self.walks), ("ONE", self.one), ("LSTM", lstm)])
    }

    /// The first step of each launch, in the order of the kernel, and its number of steps.
    pub(super) fn launches(&self, steps: usize) -> impl Iterator<Item = (usize, usize)> + use<> {
        let most = self.steps;
        (0..steps).step_by(most).map(move |first| (first, most.min(steps - first)))
    }

    pub(super) fn launch(
        &self,
        kernel: Kernel,
        walk: &SequenceAttributes,
        first: usize,
        count: usize,
    ) -> Kernel {
        let (own, room) = match self.one {
            true => ("alias E = f32;\nalias X = T;", 4 * self.room),
            false => ("alias E = vec4<f32>;\nalias X = vec4<T>;", self.room),
        };
        let shared = shader!(include_str!("../../../shaders/recurrent_team.wgsl"));
        let kernel = kernel
            .declare(own)
            .declare(self.expand(shared, walk))
            .constant("WG", self.threads as u32);
        let kernel = if self.walks { kernel.constant("ROOM", room as u32) } else { kernel };
        kernel
            .param("first", first)
            .param("count", count)
            .param("backwards", usize::from(walk.backwards))
            .param("tile", self.tile)
            .param("slices", self.slices)
            .param("part", self.part)
            .workgroups(self.groups, self.begin() + count * self.iterations())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn teams_do_all_of_the_work_within_the_limits() {
        let mut walking = 0;
        for cell in [Cell::Lstm, Cell::Gru, Cell::Simple] {
            for units in [4, 8, 12, 36, 64, 128, 132, 180, 184, 256, 360, 516, 2048, 8192] {
                for batch in [1, 2, 3, 31, 32, 64, 65, 127, 128, 1000] {
                    for (memory, bound) in [(16_352, 32_768), (16_384, 256), (32 << 10, 32_768)] {
                        let mut caps = Caps::portable();
                        (caps.workgroup[1], caps.loop_iterations) = (memory, bound);
                        let walk = SequenceAttributes {
                            cell,
                            steps: 100,
                            batch,
                            units,
                            backwards: false,
                            masked: false,
                        };
                        let quads = units / 4;
                        if !super::super::kernels::fits(cell, [batch, 100, units], false, &caps) {
                            continue;
                        }
                        for (each, sums) in [(cell.gates(), quads), (1, cell.gates() * quads)] {
                            let team = Team::choose(&walk, each, sums, DType::F32, &caps);
                            let what = format!("{cell:?} {units} {batch} {memory}: {team:?}");
                            let Team { rows, threads, tile, slices, part, .. } = team;
                            walking += usize::from(team.walks);
                            assert!(16 * (rows * threads + team.room) <= memory as usize, "{what}");
                            assert!(rows * tile <= threads && threads <= 256, "{what}");
                            assert!(each * tile * slices <= threads, "{what}");
                            assert!(slices * part >= sums && (slices - 1) * part < sums, "{what}");
                            let tiles = quads.div_ceil(tile);
                            assert!(team.groups == batch.div_ceil(rows) * tiles, "{what}");
                            assert!(
                                !team.walks || tiles == 1 && team.room >= rows * sums,
                                "{what}"
                            );
                            let launch = team.begin() + team.steps * team.iterations();
                            assert!(launch <= bound, "{what}: {launch} iterations");
                            let mut next = 0;
                            for (first, count) in team.launches(100) {
                                assert!(first == next && (1..=team.steps).contains(&count));
                                next += count;
                            }
                            assert_eq!(next, 100, "{what}");
                        }
                    }
                }
            }
        }
        assert!(walking > 500, "{walking}");
    }

    #[test]
    fn wide_layers_step_by_launches_and_narrow_ones_walk() {
        let team = |units, batch, weight| {
            let cell = Cell::Lstm;
            let walk = SequenceAttributes {
                cell,
                steps: 10,
                batch,
                units,
                backwards: false,
                masked: false,
            };
            Team::choose(&walk, 4, units / 4, weight, &Caps::portable())
        };
        let narrow = team(128, 64, DType::F32);
        assert!(narrow.walks && narrow.steps >= 10, "{narrow:?}");
        assert_eq!((narrow.rows, narrow.groups, narrow.slices, narrow.part), (2, 32, 2, 16));
        assert!(!team(256, 64, DType::F32).walks);
        assert!(team(256, 64, DType::F16).walks);
        let wide = team(2048, 64, DType::F32);
        assert_eq!((wide.rows, wide.tile, wide.groups), (4, 16, 512));
    }
}
