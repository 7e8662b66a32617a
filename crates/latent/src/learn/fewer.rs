//! The beginning of a search for hyperparameters with few of the rows.

use super::{LearnSettings, Search, Surface};

/// A search with fewer rows has every eighth row. It takes an eighth of the time, so even a search that does not help costs
/// little.
const THINNED: usize = 8;

/// The smallest number of rows per latent variable of a search with fewer rows. With fewer rows than inducing points, the
/// prior determines the hyperparameters of the process as much as the rows do.
const ROWS_A_LATENT: usize = 4;

/// A search with fewer rows ends when the estimated gain of the next step is less than this, in nats. Its maximum is half
/// a nat per hyperparameter from that of all rows, so more accuracy would be lost.
const ROUGH: f64 = 0.01;

/// The end of a search with fewer rows.
pub(super) struct Fewer {
    pub(super) x: Vec<f64>,
    /// An estimate of the inverse Hessian of −objective with all rows.
    pub(super) inverse: Vec<f64>,
}

/// Searches for the maximum of the objective with every [`THINNED`]-th row, if the prior can be thinned and if at least
/// [`ROWS_A_LATENT`] rows per latent variable remain. This search itself begins with fewer rows if it can. Returns `None`
/// if there is no such search, or if it fails or is stopped.
///
/// The hyperparameters at its end are about as far from those of all rows as their posterior standard deviation with the
/// fewer rows. The inverse Hessian is divided by the ratio of the numbers of rows.
pub(super) fn reach(surface: &Surface<'_>, from: &[f64]) -> Option<Fewer> {
    let prior = surface.prior.thinned(THINNED)?;
    let model = surface.model.thinned(THINNED)?;
    let rows = model.predictors();
    if rows < ROWS_A_LATENT * model.prior.len() {
        return None;
    }
    let settings = LearnSettings {
        tolerance: ROUGH,
        ..surface.settings.clone()
    };
    let part = Surface::new(&*prior, &model, &settings, surface.watch);
    let mut search = Search {
        surface: &part,
        evaluations: 0,
        error: None,
        stopped: false,
    };
    let before = reach(&part, from);
    let from = before.as_ref().map_or(from, |fewer| &fewer.x);
    let mut state = search.begin_at(from.to_vec(), None).ok()?;
    state.inverse = before.map_or_else(Vec::new, |fewer| fewer.inverse);
    for _ in 0..surface.settings.max_steps {
        let (direction, slope) = state.ascent(&part);
        if search.settled(&state, slope).is_some() {
            break;
        }
        match search.search(&state, &direction, slope) {
            Some(reached) => state.move_to(reached),
            None if search.stopped => return None,
            None => break,
        }
    }
    let share = rows as f64 / surface.model.predictors() as f64;
    state.inverse.iter_mut().for_each(|h| *h *= share);
    Some(Fewer {
        x: state.best,
        inverse: state.inverse,
    })
}
