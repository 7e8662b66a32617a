//! The trajectory of accepted steps, and the adjoints of these steps from the last to the first.

use std::ops::Range;

use super::Differentiable;
use super::ode::{Arguments, Attempt, Front, Ode};

/// The largest number of values that are stored for the accepted steps of one lane. They take 32 MiB. If a lane needs
/// more values, it has no gradient.
const KEPT: usize = 1 << 22;

/// The trajectory also stores stages that can be recomputed, as long as all lanes together have at most this many
/// stored values. They take 16 MiB.
const STAGED: usize = 1 << 21;

/// The number of rows before the states. These rows contain the clock, the length, the interval, and whether the
/// interval ends with the step.
const HEAD: usize = 4;

/// An attempted step of every lane of a front, as rows of lanes. The length is 0 in lanes that rejected the step.
#[derive(Debug)]
struct Block {
    front: usize,
    /// The rows of the step: first [`HEAD`] rows, then the states at the start of the step, and then the stages.
    rows: Range<usize>,
}

/// The accepted steps of every lane, stored for the backward pass.
#[derive(Debug, Default)]
pub struct Trajectory {
    fronts: Vec<Vec<Option<usize>>>,
    blocks: Vec<Block>,
    rows: Vec<f64>,
    numbers: Vec<usize>,
    failed: Vec<bool>,
}

impl Trajectory {
    /// Discards all steps, but keeps the allocated memory unless it is large. Allocating the memory again took a fifth
    /// of the time of a gradient.
    pub(super) fn begin(&mut self, lanes: usize) {
        self.fronts.clear();
        self.blocks.clear();
        self.rows.clear();
        self.rows.shrink_to(STAGED);
        for_all(&mut self.numbers, lanes, 0);
        for_all(&mut self.failed, lanes, false);
    }

    pub(super) fn enter(&mut self, front: &Front) {
        self.fronts.push(front.who.clone());
    }

    /// Stores an attempted step. Its stages are stored if `must` is set or if memory allows.
    pub(super) fn push(&mut self, front: &Front, attempt: &Attempt, take: &[bool], must: bool) {
        if !take.contains(&true) {
            return;
        }
        let lanes = front.lanes;
        let staged = must || self.blocks.len() * (attempt.stages.len() + lanes) < STAGED;
        let stages = if staged { &attempt.stages[..] } else { &[] };
        let (first, rows) = (self.rows.len(), &mut self.rows);
        rows.extend_from_slice(&front.clock);
        let lengths = front.trial.iter().zip(take);
        rows.extend(lengths.map(|(length, take)| if *take { *length } else { 0.0 }));
        rows.extend(front.interval.iter().map(|k| *k as f64));
        rows.extend(front.ends.iter().map(|ends| f64::from(u8::from(*ends))));
        rows.extend_from_slice(&front.states);
        rows.extend_from_slice(stages);
        // Unlike the memory for stages, the limit of a lane does not depend on the other lanes.
        let counted = front.states.len() + if must { stages.len() } else { 0 };
        let each = HEAD + counted / lanes;
        for (lane, _) in front.who.iter().zip(take).filter(|(_, take)| **take) {
            if let Some(lane) = lane {
                self.numbers[*lane] += each;
            }
        }
        let (front, rows) = (self.fronts.len() - 1, first..rows.len());
        self.blocks.push(Block { front, rows });
    }

    pub(super) fn is_full(&self, lane: usize) -> bool {
        self.numbers[lane] > KEPT
    }

    pub(super) fn fail(&mut self, lane: usize) {
        self.failed[lane] = true;
    }
}

fn for_all<T: Clone>(list: &mut Vec<T>, lanes: usize, value: T) {
    list.clear();
    list.resize(lanes, value);
}

/// Returns, for each lane, whether it contributes. A lane contributes if it did not fail and has a nonzero weight.
fn counted(kept: &Trajectory, weights: &[f64], lanes: usize) -> Vec<bool> {
    let mut weighs = vec![false; lanes];
    for row in weights.chunks_exact(lanes) {
        for (weighs, weight) in weighs.iter_mut().zip(row) {
            *weighs |= *weight != 0.0;
        }
    }
    let failed = weighs.iter().zip(&kept.failed);
    failed.map(|(weighs, failed)| *weighs && !failed).collect()
}

impl Ode {
    /// Multiplies `weights` by the derivatives of the result of [`solve`](Self::solve) with respect to the first copy
    /// of the arguments, along this trajectory. `weights` has `copies · results` rows, and the returned products have
    /// `arguments` rows. If a lane failed, its products are NaN, unless all its weights are 0.
    pub fn pull(
        &self,
        system: &mut dyn Differentiable,
        x: Arguments<'_>,
        kept: &Trajectory,
        weights: &[f64],
        out: &mut [f64],
    ) {
        out.fill(0.0);
        let counts = counted(kept, weights, x.lanes);
        let mut scheme = self.scheme();
        let rows = x.copies * self.states;
        let all = (0..x.lanes).map(Some).collect();
        let mut front = self.front(x, all, 0);
        let mut adjoint = vec![0.0; rows * x.lanes];
        let mut parameters = Vec::new();
        let mut which = None;
        for block in kept.blocks.iter().rev() {
            if which != Some(block.front) {
                let who = kept.fronts[block.front].clone();
                let wide = self.front(x, who, 0);
                adjoint = match which {
                    Some(_) => widened(&front, &adjoint, &wide, x.lanes),
                    None => vec![0.0; rows * wide.lanes],
                };
                (front, which) = (wide, Some(block.front));
            }
            let rows = &kept.rows[block.rows.clone()];
            if self.load(x, &mut front, rows, &counts) {
                self.seed(x, &front, &rows[3 * front.lanes..], weights, &mut adjoint);
                parameters.clear();
                parameters.resize(front.parameters.len(), 0.0);
                scheme.pull(system, &front, &mut adjoint, &mut parameters);
                self.collect(x, &front, &parameters, out);
            }
        }
        for (slot, lane) in front.who.iter().enumerate() {
            let Some(lane) = lane.filter(|lane| counts[*lane]) else {
                continue;
            };
            for i in 0..self.states {
                out[i * x.lanes + lane] = adjoint[i * front.lanes + slot];
            }
        }
        let lost = |lane: usize| {
            let own = weights.iter().skip(lane).step_by(x.lanes);
            kept.failed[lane] && own.into_iter().any(|w| *w != 0.0)
        };
        for lane in (0..x.lanes).filter(|lane| lost(*lane)) {
            let own = out.iter_mut().skip(lane).step_by(x.lanes);
            own.for_each(|o| *o = f64::NAN);
        }
    }

    fn load(&self, x: Arguments<'_>, front: &mut Front, rows: &[f64], counts: &[bool]) -> bool {
        let lanes = front.lanes;
        let (head, rest) = rows.split_at(HEAD * lanes);
        let (states, stages) = rest.split_at(front.states.len());
        front.clock.copy_from_slice(&head[..lanes]);
        front.states.copy_from_slice(states);
        front.stages.clear();
        front.stages.extend_from_slice(stages);
        let mut any = false;
        for slot in 0..lanes {
            let lane = front.who[slot].filter(|lane| counts[*lane]);
            front.trial[slot] = if lane.is_some() {
                head[lanes + slot]
            } else {
                0.0
            };
            any |= front.trial[slot] > 0.0;
            let interval = head[2 * lanes + slot] as usize;
            if let Some(lane) = lane.filter(|_| front.interval[slot] != interval) {
                self.enter(x, front, slot, lane, interval);
            }
        }
        any
    }

    fn seed(
        &self,
        x: Arguments<'_>,
        front: &Front,
        ends: &[f64],
        weights: &[f64],
        adjoint: &mut [f64],
    ) {
        for slot in 0..front.lanes {
            let taken = front.trial[slot] > 0.0 && ends[slot] != 0.0;
            let Some(lane) = front.who[slot].filter(|_| taken) else {
                continue;
            };
            for copy in 0..x.copies {
                for i in 0..self.states {
                    let row = copy * self.results() + front.interval[slot] * self.states + i;
                    adjoint[(copy * self.states + i) * front.lanes + slot] +=
                        weights[row * x.lanes + lane];
                }
            }
        }
    }

    fn collect(&self, x: Arguments<'_>, front: &Front, parameters: &[f64], out: &mut [f64]) {
        let lanes = front.lanes;
        for slot in 0..lanes {
            let Some(lane) = front.who[slot].filter(|_| front.trial[slot] > 0.0) else {
                continue;
            };
            for i in 0..self.parameters {
                out[(self.states + i) * x.lanes + lane] += parameters[i * lanes + slot];
            }
            let time = self.states + self.parameters + front.interval[slot];
            for end in 0..2 {
                out[(time + end) * x.lanes + lane] +=
                    parameters[(self.parameters + end) * lanes + slot];
            }
        }
    }
}

fn widened(front: &Front, adjoint: &[f64], wide: &Front, lanes: usize) -> Vec<f64> {
    let mut slot_of = vec![None; lanes];
    for (slot, lane) in wide.who.iter().enumerate() {
        if let Some(lane) = lane {
            slot_of[*lane] = Some(slot);
        }
    }
    let rows = adjoint.len() / front.lanes;
    let mut all = vec![0.0; rows * wide.lanes];
    for (from, lane) in front.who.iter().enumerate() {
        if let Some(to) = lane.and_then(|lane| slot_of[lane]) {
            for row in 0..rows {
                all[row * wide.lanes + to] = adjoint[row * front.lanes + from];
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::super::{Method, Point, System};
    use super::*;

    /// The equation is y' = (ω y₂, −ω y₁).
    struct Oscillator;

    impl System for Oscillator {
        fn rate(&mut self, at: Point<'_>, out: &mut [f64]) {
            for i in 0..at.lanes {
                let [omega, a, b] = [0, 1, 2].map(|k| at.parameters[k * at.lanes + i]);
                let speed = (b - a) * omega;
                out[i] = speed * at.states[at.lanes + i];
                out[at.lanes + i] = -speed * at.states[i];
            }
        }
    }

    impl Differentiable for Oscillator {
        fn pull(
            &mut self,
            at: Point<'_>,
            weights: &[f64],
            states: &mut [f64],
            parameters: &mut [f64],
        ) {
            let lanes = at.lanes;
            for i in 0..lanes {
                let [omega, a, b] = [0, 1, 2].map(|k| at.parameters[k * lanes + i]);
                let [y, z] = [0, 1].map(|k| at.states[k * lanes + i]);
                let [w, v] = [0, 1].map(|k| weights[k * lanes + i]);
                states[i] = -(b - a) * omega * v;
                states[lanes + i] = (b - a) * omega * w;
                let turn = w * z - v * y;
                parameters[i] = (b - a) * turn;
                parameters[lanes + i] = -omega * turn;
                parameters[2 * lanes + i] = omega * turn;
            }
        }
    }

    #[test]
    fn steps_beyond_the_room_for_stages_are_computed_again() {
        let (lanes, end) = (64, 2000.0);
        let ode = Ode {
            method: Method::DormandPrince,
            states: 2,
            parameters: 1,
            times: 1,
            relative: 1e-10,
            absolute: vec![1e-10; 2],
            max_steps: 1_000_000,
            fixed_times: false,
        };
        let omegas: Vec<f64> = (0..lanes).map(|i| 1.0 + 0.01 * i as f64).collect();
        let mut rows = vec![0.0; lanes];
        for row in [
            vec![1.0; lanes],
            omegas.clone(),
            vec![0.0; lanes],
            vec![end; lanes],
        ] {
            rows.extend(row);
        }
        let x = Arguments {
            rows: &rows,
            copies: 1,
            lanes,
        };
        let (mut out, mut kept) = (vec![0.0; 2 * lanes], Trajectory::default());
        ode.solve(&mut Oscillator, x, &mut out, Some(&mut kept), u64::MAX);
        let staged =
            |block: &&Block| block.rows.len() > (HEAD + 2) * kept.fronts[block.front].len();
        let count = kept.blocks.iter().filter(staged).count();
        assert!(0 < count && count < kept.blocks.len(), "{count}");
        let mut weights = vec![1.0; lanes];
        weights.resize(2 * lanes, 0.0);
        let mut slopes = vec![0.0; ode.arguments() * lanes];
        ode.pull(&mut Oscillator, x, &kept, &weights, &mut slopes);
        for (i, omega) in omegas.iter().enumerate() {
            let angle = omega * end;
            assert!((out[i] - angle.sin()).abs() < 1e-6, "{omega}");
            let (found, expected) = (slopes[2 * lanes + i], end * angle.cos());
            assert!(
                (found - expected).abs() < 1e-4 * end,
                "{omega}: {found}, {expected}"
            );
        }
    }
}
