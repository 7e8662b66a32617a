//! `jensen compare`.

use std::fmt::Write;

use jensen::compare::{Candidate, compare};

use crate::args::CompareArgs;
use crate::failure::{CommandResult, Exit, Failure, print, remark};

/// Runs the command, which prints one row for each fit. The best fit comes first.
pub fn run(args: &CompareArgs) -> CommandResult {
    let candidates = compare(&args.dirs, &args.log_lik)?;
    if args.json {
        let text = serde_json::to_string_pretty(&candidates).map_err(Failure::output)?;
        print(&(text + "\n"))?;
    } else {
        print(&table(&candidates))?;
    }
    let mut exit = Exit::Done;
    for candidate in &candidates {
        let name = &candidate.fit;
        if !candidate.trusted {
            remark(&format!(
                "warning: the fit in `{name}` is not trusted, so its row is not trusted either"
            ));
            exit = Exit::Untrusted;
        }
        let Some(loo) = &candidate.loo else {
            remark(&format!(
                "`{name}` has no log likelihood of each observation, which leave-one-out needs: in a Stan program it is the \
                 generated quantity `{}` (--log-lik names another), and a latent fit of categories has none",
                args.log_lik
            ));
            continue;
        };
        if loo.unreliable() > 0 {
            remark(&format!(
                "warning: in `{name}`, leave-one-out is unreliable for {} of {} observations (k̂ above {:.2}), so its elpd is too \
                 high; use more draws (--draws) of a Stan program, or refit without these observations",
                loo.unreliable(),
                loo.khat.len(),
                loo.khat_limit
            ));
            exit = Exit::Untrusted;
        }
    }
    Ok(exit)
}

fn table(candidates: &[Candidate]) -> String {
    let width = candidates.iter().map(|c| c.fit.chars().count()).max();
    let width = width.unwrap_or(0).max(3);
    let mut text = format!(
        "{:<width$} {:>10} {:>8} {:>8} {:>10} {:>8} {:>22}\n",
        "fit", "elpd", "se", "p_loo", "difference", "se", "log evidence"
    );
    for candidate in candidates {
        let cell = |x: Option<f64>| x.map_or(String::new(), |x| format!("{x:.2}"));
        let loo = candidate.loo.as_ref();
        let evidence = match (candidate.log_evidence, candidate.elbo) {
            (Some((mean, error)), _) => format!("{mean:.2} ± {error:.2}"),
            (None, (bound, _)) => format!("≥ {bound:.2} (ELBO)"),
        };
        let _ = writeln!(
            text,
            "{:<width$} {:>10} {:>8} {:>8} {:>10} {:>8} {:>22}",
            candidate.fit,
            cell(loo.map(|loo| loo.elpd)),
            cell(loo.map(|loo| loo.elpd_se)),
            cell(loo.map(|loo| loo.p_loo)),
            cell(candidate.difference.map(|d| d.0)),
            cell(candidate.difference.map(|d| d.1)),
            evidence,
        );
    }
    text
}
