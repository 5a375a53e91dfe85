//! Tests of where a program's marks cut its stream. The programs consist only of marks and counts of nodes.

use super::stream_limits::STREAM_LIMIT;
use super::turns::Mark;
use super::turns::Turns;

/// A device without ops: how many nodes wait, and how many waited at each flush.
#[derive(Default)]
struct Program {
    turns: Turns,
    passed: u64,
    waiting: usize,
    flushes: Vec<usize>,
}

impl Program {
    fn flush(&mut self) {
        self.passed += self.waiting as u64;
        if self.waiting > 0 {
            self.flushes.push(self.waiting);
        }
        self.waiting = 0;
    }

    fn nodes(&mut self, count: usize) {
        for _ in 0..count {
            self.waiting += 1;
            if self.waiting >= self.turns.room().unwrap_or(STREAM_LIMIT) {
                self.flush();
            }
        }
    }

    fn mark(&mut self, mark: Mark) {
        if self.turns.mark(mark, self.passed + self.waiting as u64, self.waiting) {
            self.flush();
        }
    }

    fn tape(&mut self) {
        self.mark(Mark::Turn);
    }

    /// Assigns a value that `nodes` nodes compute to a cell.
    fn assign(&mut self, cell: u64, nodes: usize) {
        self.nodes(nodes);
        self.mark(Mark::Replaced(cell));
    }

    /// The end of an optimizer's step.
    fn step_ends(&mut self) {
        self.flush();
        self.turns.asked(self.passed, true);
    }

    fn read(&mut self) {
        self.flush();
        self.turns.asked(self.passed, false);
    }

    /// Runs `turn` `times` times and returns the flushes of each.
    fn run(&mut self, times: usize, mut turn: impl FnMut(&mut Self)) -> Vec<Vec<usize>> {
        let turns = (0..times).map(|_| {
            self.flushes.clear();
            turn(self);
            self.flushes.clone()
        });
        turns.collect()
    }
}

/// Checks that all turns from the sixth on were flushed as in `wanted`.
#[track_caller]
fn settles(turns: &[Vec<usize>], wanted: &[usize]) {
    assert!(turns[5..].iter().all(|turn| turn == wanted), "{turns:?}");
}

#[test]
fn a_tape_begins_a_turn() {
    let mut program = Program::default();
    program.nodes(7);
    let turns = program.run(50, |p| {
        p.tape();
        p.nodes(30);
        p.assign(1, 2);
        p.assign(2, 2);
    });
    settles(&turns, &[34]);
    assert_eq!(turns[1], [7 + 34], "the second tape completes the first turn");
    // The same if the stream begins between two tapes.
    let mut program = Program::default();
    let turns = program.run(50, |p| {
        p.assign(1, 20);
        p.tape();
        p.assign(2, 20);
        p.nodes(20);
    });
    settles(&turns, &[60]);
}

#[test]
fn a_pause_is_no_long_turn() {
    let mut program = Program::default();
    program.run(20, |p| {
        p.tape();
        p.nodes(100);
    });
    // Long enough to be a turn that waits longer than others, if the label had not been absent.
    program.nodes(STREAM_LIMIT + 1000);
    program.tape();
    assert_eq!(program.turns.room(), None);
}

#[test]
fn a_long_turn_has_room_for_a_quarter_more() {
    let mut program = Program::default();
    program.tape();
    program.nodes(STREAM_LIMIT + 904);
    program.tape();
    assert_eq!(program.turns.room(), Some(6250));
}

#[test]
fn few_nodes_are_no_turn() {
    let turns = Program::default().run(60, |p| {
        p.tape();
        p.assign(1, 7);
    });
    let all: Vec<usize> = turns.concat();
    assert!(all.iter().all(|&flush| flush == 21), "{all:?}");
}

#[test]
fn a_loop_of_assignments_is_cut_behind_the_last() {
    let mut program = Program::default();
    let turns = program.run(50, |p| {
        p.nodes(20);
        p.assign(1, 2);
        p.assign(2, 2);
    });
    settles(&turns, &[24]);
    // The cut is at the end of the turn: nothing waits.
    assert_eq!(program.waiting, 0);
}

#[test]
fn an_inner_loop_over_parameters_is_not_cut() {
    let turns = Program::default().run(50, |p| {
        p.nodes(200);
        for cell in 0..120 {
            p.assign(cell, 5);
        }
    });
    settles(&turns, &[800]);
    // The same with a tape.
    let turns = Program::default().run(50, |p| {
        p.tape();
        p.nodes(200);
        for cell in 0..120 {
            p.assign(cell, 20);
        }
    });
    settles(&turns, &[2600]);
}

#[test]
fn cells_that_get_two_values_a_turn_do_not_cut_it_to_pieces() {
    let mut program = Program::default();
    let turns = program.run(60, |p| {
        p.nodes(300);
        for cell in 0..50 {
            p.assign(cell, 10);
            p.assign(cell, 20);
        }
    });
    assert!(turns[40..].iter().all(|turn| *turn == turns[40]), "{turns:?}");
    assert!(turns[40].len() <= 2, "{:?}", turns[40]);
}

#[test]
fn layers_that_assign_twice_a_turn_give_way_to_the_tape() {
    let turns = Program::default().run(50, |p| {
        p.tape();
        p.assign(1, 40);
        p.assign(1, 40);
        p.nodes(100);
        p.assign(2, 2);
    });
    settles(&turns, &[182]);
}

#[test]
fn several_tapes_a_turn_are_each_a_cut() {
    let turns = Program::default().run(50, |p| {
        p.tape();
        p.assign(1, 100);
        p.assign(1, 50);
        p.tape();
        p.assign(2, 1000);
        p.assign(2, 100);
    });
    settles(&turns, &[1100, 150]);
}

#[test]
fn a_long_turn_is_one_flush() {
    let turns = Program::default().run(50, |p| {
        p.tape();
        p.assign(1, 2049);
    });
    settles(&turns, &[2049]);
    // One that is too long is cut in the same way every time.
    let turns = Program::default().run(50, |p| {
        p.tape();
        p.assign(1, 10_000);
    });
    assert!(turns[5..].iter().all(|turn| *turn == turns[5]), "{turns:?}");
    assert_eq!(turns[5], [10_000 % 4096, 4096, 4096]);
}

#[test]
fn a_rare_tape_does_not_take_a_loop_of_assignments_over() {
    let mut count = 0;
    let turns = Program::default().run(200, |p| {
        count += 1;
        if count % 50 == 0 {
            p.tape();
        }
        p.nodes(500);
        p.assign(1, 4);
    });
    settles(&turns, &[504]);
}

#[test]
fn another_loop_gets_another_label() {
    let mut program = Program::default();
    let tapes = |p: &mut Program| {
        p.tape();
        p.nodes(50);
        p.assign(1, 2);
    };
    settles(&program.run(20, tapes), &[52]);
    let assignments = |p: &mut Program| {
        p.nodes(30);
        p.assign(7, 2);
        p.assign(8, 2);
    };
    let turns = program.run(20, assignments);
    assert!(turns[8..].iter().all(|turn| *turn == [34]), "{turns:?}");
    settles(&program.run(20, tapes), &[52]);
}

#[test]
fn a_program_that_flushes_itself_is_left_alone() {
    // An optimizer's loop: nothing to cut.
    let mut program = Program::default();
    let optimizer = |p: &mut Program| {
        p.nodes(3);
        p.tape();
        p.nodes(300);
        p.step_ends();
        p.assign(9, 20);
    };
    settles(&program.run(20, optimizer), &[323]);
    // After different loops: an evaluation that updates a metric, a manual loop.
    settles(&program.run(20, |p| p.assign(9, 40)), &[40]);
    settles(&program.run(20, optimizer), &[323]);
    let by_hand = |p: &mut Program| {
        p.tape();
        p.assign(1, 100);
    };
    program.run(40, by_hand);
    settles(&program.run(20, optimizer), &[323]);
    // Several tapes per step, whose gradients are summed.
    let mut program = Program::default();
    let turns = program.run(20, |p| {
        for _ in 0..4 {
            p.tape();
            p.nodes(60);
        }
        p.step_ends();
    });
    settles(&turns, &[240]);
    // A value is read in the middle of every turn.
    let mut program = Program::default();
    program.run(20, by_hand);
    let turns = program.run(20, |p| {
        p.tape();
        p.nodes(50);
        p.read();
        p.assign(1, 50);
    });
    settles(&turns, &[100]);
}

#[test]
fn a_read_now_and_then_changes_nothing() {
    let mut count = 0;
    let turns = Program::default().run(100, |p| {
        p.tape();
        p.nodes(50);
        count += 1;
        if count % 10 == 0 {
            p.read();
        }
        p.assign(1, 20);
    });
    let whole = turns[10..].iter().filter(|turn| **turn == [70]).count();
    assert!(whole >= 60, "{turns:?}");
}

#[test]
fn marks_without_end_are_forgotten() {
    let mut program = Program::default();
    for cell in 0..100_000 {
        program.assign(cell, 1);
    }
    assert!(program.flushes.iter().all(|&flush| flush == STREAM_LIMIT), "{:?}", program.flushes);
}
