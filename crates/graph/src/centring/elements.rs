//! Recentres independent elements of a group: θ = μ + (σ/σ₀)^(1−λ) (θ̃ − λ μ).

use super::{Group, Power, Taken, Way};
use crate::ir::{Graph, NodeId};

/// Returns the coordinates of a group for which a power is given, with the values that replace them. Returns `None` if
/// no power is given for any of them. `own` contains all coordinates of the group.
pub(super) fn replace(
    group: &Group,
    taken: &Taken,
    out: &mut Graph,
    [location, scale, own]: [NodeId; 3],
    way: &mut Way<'_>,
) -> Option<(Vec<u32>, NodeId)> {
    let chosen: Vec<(u32, Power)> = (0u32..)
        .zip(&group.coordinates)
        .filter_map(|(at, coordinate)| Some((at, *taken.powers.get(coordinate)?)))
        .collect();
    if chosen.is_empty() {
        return None;
    }
    let indices: Vec<u32> = chosen.iter().map(|(at, _)| *at).collect();
    let pick = |out: &mut Graph, node: NodeId| match out.shape(node).is_scalar() {
        true => node,
        false => out.gather(node, &indices),
    };
    let (location, scale) = (pick(out, location), pick(out, scale));
    let numbers = |f: fn(&Power) -> f64| chosen.iter().map(|(_, p)| f(p)).collect::<Vec<_>>();
    let log_scale = out.log(scale);
    let reference = out.vector(&numbers(|p| p.log_scale));
    let relative = out.sub(log_scale, reference);
    let share = out.vector(&numbers(|p| 1.0 - p.lambda));
    let log_stretch = out.mul(share, relative);
    let lambda = out.vector(&numbers(|p| p.lambda));
    let coordinates: Vec<u32> = chosen.iter().map(|(_, p)| p.coordinate).collect();
    let own = out.gather(own, &coordinates);
    let shift = out.mul(lambda, location);
    let new = match way {
        Way::Forth(jacobian) => {
            jacobian.push(out.sum(log_stretch));
            let rest = out.sub(own, shift);
            let stretch = out.exp(log_stretch);
            let scaled = out.mul(stretch, rest);
            out.add(location, scaled)
        }
        Way::Back => {
            let rest = out.sub(own, location);
            let shrink = out.neg(log_stretch);
            let shrink = out.exp(shrink);
            let scaled = out.mul(shrink, rest);
            out.add(shift, scaled)
        }
    };
    Some((coordinates, new))
}
