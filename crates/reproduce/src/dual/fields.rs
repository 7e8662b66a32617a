//! Gaussian Markov random fields, Cox processes and stochastic volatility.

use jensen::data::{Table, read_bytes};
use jensen::latent::{Fit, LatentSpec, Settings, Solver, TableModel};
use jensen::report::figure::{Axis, Chart, Figure, HeatMap, Series};
use jensen::run::{Budget, Control};

use super::classification::SOLVERS;
use super::race::{Case, case, compare, fit, identity, learning, numbers, request};
use crate::context::Context;
use crate::failure::Failure;
use crate::results::{Ours, What};

/// Learns the precision of a field with the dual solver. The comparison of the solvers then uses sensible
/// hyperparameters.
fn learnt_prior(context: &mut Context<'_>, case: &Case, free: &str) -> Result<Vec<f64>, Failure> {
    context.keep(
        &format!("{}/learnt", case.name.replace(' ', "-")),
        |context| {
            let request = LatentSpec {
                prior: free.to_owned(),
                ..case.request.clone()
            };
            let model = TableModel::new(&request, &case.table, &case.files)?;
            let (_, learnt, _) = fit(context, &model, &learning(Solver::Dual, true), None)?;
            Ok(learnt.theta)
        },
    )
}

/// The number that is added to the diagonal of the precision matrix of an intrinsic field. This addition makes the
/// field proper. The comparison of solvers requires a proper field.
const PROPER: f64 = 1e-3;

pub(super) fn fields(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut figure = Figure::new("Gaussian Markov random fields");
    let limit = context.pick(20.0, 60.0);
    for case in cases(context)? {
        figure = figure.panel(compare(context, &case, &SOLVERS, limit)?);
    }
    context.figure("fields", &figure)
}

/// Returns the three fields at their learnt precisions. The function writes a row for each precision.
pub(super) fn cases(context: &mut Context<'_>) -> Result<Vec<Case>, Failure> {
    let germany = Table::read(&context.data("germany-oral-cancer/oral.txt")?)?;
    let scotland = scotland(context)?;
    let tokyo = Table::read(&context.data("tokyo-rainfall/tokyo.rainfall.data")?)?;
    let poisson = |response: &str, exposure: &str| LatentSpec {
        exposure: Some(exposure.to_owned()),
        ..request("", "poisson", response)
    };
    let binomial = LatentSpec {
        trials: Some("V2".to_owned()),
        ..request("", "binomial", "V3")
    };
    let cases = [
        (
            "Germany, oral cancer",
            germany,
            poisson("V3", "V2"),
            "icar(graph=germany-oral-cancer/germany.graph, on=V1, precision",
        ),
        (
            "Scotland, lip cancer",
            scotland,
            poisson("cases", "expected"),
            "fixed(outdoor, variance=1000) + icar(graph=scotland-lip-cancer/scotland.graph, precision",
        ),
        (
            "Tokyo, rainfall",
            tokyo,
            binomial,
            "rw2(on=V1, cyclic, precision",
        ),
    ];
    let learnt = cases.map(|(name, table, base, prior)| {
        let mut case = case(context, name, table, base)?;
        let theta = learnt_prior(context, &case, &format!("{prior}~10)"))?;
        let precision = theta.first().copied().unwrap_or(1.0);
        context.row(What::new(format!("{name}: learnt precision"), ""), |_| {
            Ok(Ours::value(precision))
        })?;
        case.request.prior = format!("{prior}={precision})");
        case.proper = PROPER;
        Ok(case)
    });
    learnt.into_iter().collect()
}

fn scotland(context: &Context<'_>) -> Result<Table, Failure> {
    let bytes = read_bytes(&context.data("scotland-lip-cancer/scotland.json")?)?;
    let data = jensen::data::DataSet::from_json(&bytes, "scotland.json")?;
    let column = |name: &str, key: &str| -> Result<(String, Vec<f64>), Failure> {
        Ok((name.to_owned(), data.reals(key, &[56])?.into_owned()))
    };
    numbers(
        "scotland.json",
        vec![
            column("expected", "E")?,
            column("outdoor", "x")?,
            column("cases", "y")?,
        ],
    )
}

/// Learns the hyperparameters of a case with the dual solver and fits the model. The function writes rows for the
/// bound, the duality gap and the time in seconds.
fn learn_and_fit(context: &mut Context<'_>, case: &Case) -> Result<Fit, Failure> {
    let model = TableModel::new(&case.request, &case.table, &case.files)?;
    let (_, learnt, seconds) = fit(context, &model, &learning(Solver::Dual, true), None)?;
    let again = jensen::latent::TableModel::model(&model, &learnt.theta, learnt.likelihood)?;
    let epoch = crate::now();
    let clock = || epoch.elapsed().as_secs_f64();
    let mut silent = jensen::run::Silent;
    let mut control = Control::new(Budget::iterations(10_000), &clock, &mut silent);
    let cold = jensen::latent::fit(
        &again,
        &Settings::default(),
        None,
        false,
        &identity(),
        &mut control,
    )
    .map_err(jensen::Error::from)?;
    let cold_seconds = epoch.elapsed().as_secs_f64();
    let values: Vec<String> = learnt.theta.iter().map(|t| format!("{t:.4}")).collect();
    let name = |what: &str| format!("{}: {what}", case.name);
    let note = format!(
        "hyperparameters {} learnt in {seconds:.1} s, gap {:.1e}",
        values.join(", "),
        cold.gap.unwrap_or(f64::NAN)
    );
    context.row(What::new(name("bound"), "nats"), |_| {
        Ok(Ours::value(cold.bound).note(note))
    })?;
    context.row(
        What::new(name("seconds of a fit at fixed hyperparameters"), "s"),
        |_| Ok(Ours::value(cold_seconds).note(format!("{} iterations", cold.iterations))),
    )?;
    Ok(cold)
}

pub(super) fn lgcp(context: &mut Context<'_>) -> Result<(), Failure> {
    let coal = Table::read(&context.data("coal/binned.csv")?)?;
    let years = coal.columns()[0].numbers()?.to_vec();
    let bins = numbers(
        "coal",
        vec![
            (
                "bin".to_owned(),
                (1..=years.len()).map(|i| i as f64).collect(),
            ),
            (
                "disasters".to_owned(),
                coal.columns()[1].numbers()?.to_vec(),
            ),
        ],
    )?;
    let coal = case(
        context,
        "Coal-mining disasters",
        bins,
        request("rw1(on=bin, precision~100)", "poisson", "disasters"),
    )?;
    let fit = learn_and_fit(context, &coal)?;
    let (mean, sd) = (&fit.predictor_mean, &fit.predictor_variance);
    let line = years.iter().copied().zip(mean.iter().map(|m| m.exp()));
    let band = mean.iter().zip(sd).map(|(m, v)| {
        let half = 1.96 * v.sqrt();
        ((m - half).exp(), (m + half).exp())
    });
    let chart = Chart::new("Coal-mining disasters: intensity a bin")
        .x(Axis::new("year"))
        .y(Axis::new("disasters"))
        .series(Series::line("", line).band(band))
        .without_legend();
    let mut figure = Figure::new("Log-Gaussian Cox processes").panel(chart);

    let (rows, columns) = (101, 201);
    let column = |file: &str, at: usize| -> Result<Vec<f64>, Failure> {
        let table = Table::read(&context.data(&format!("rainforest-lgcp/{file}-full.dat"))?)?;
        Ok(table.columns()[at].numbers()?.to_vec())
    };
    let table = numbers(
        "rainforest",
        vec![
            ("altitude".to_owned(), column("altitude", 1)?),
            ("gradient".to_owned(), column("gradient", 1)?),
            ("area".to_owned(), column("data", 1)?),
            ("trees".to_owned(), column("data", 2)?),
        ],
    )?;
    let forest = case(
        context,
        "Rainforest",
        table,
        LatentSpec {
            exposure: Some("area".to_owned()),
            ..request(
                "fixed(altitude, gradient, variance=1000) + grid(rw2, 101, 201, precision~1)",
                "poisson",
                "trees",
            )
        },
    )?;
    let fit = learn_and_fit(context, &forest)?;
    let flipped: Vec<f64> = (0..rows)
        .rev()
        .flat_map(|r| fit.predictor_mean[r * columns..(r + 1) * columns].to_vec())
        .collect();
    let map = HeatMap::new(
        "Rainforest: log intensity",
        (0.0, columns as f64),
        (0.0, rows as f64),
        columns,
        flipped,
    )
    .sized(700.0, 380.0);
    figure = figure.panel(map);
    context.figure("lgcp", &figure)
}

pub(super) fn volatility(context: &mut Context<'_>) -> Result<(), Failure> {
    let table = Table::read(&context.data("stochastic-volatility/poundd.dat")?)?;
    let case = case(
        context,
        "Pound against dollar",
        table,
        request(
            "intercept(variance=10) + ar1(on=V1, rho~0.95, variance~0.5)",
            "stochastic-volatility",
            "V2",
        ),
    )?;
    let fit = learn_and_fit(context, &case)?;
    let line =
        (0..fit.predictor_mean.len()).map(|i| (i as f64, (0.5 * fit.predictor_mean[i]).exp()));
    let band = fit
        .predictor_mean
        .iter()
        .zip(&fit.predictor_variance)
        .map(|(m, v)| {
            let half = 1.96 * v.sqrt();
            ((0.5 * (m - half)).exp(), (0.5 * (m + half)).exp())
        });
    let chart = Chart::new("Pound against dollar: volatility")
        .x(Axis::new("day"))
        .y(Axis::new("standard deviation of the return"))
        .series(Series::line("", line).band(band))
        .without_legend()
        .sized(700.0, 320.0);
    context.figure("volatility", &Figure::new("").panel(chart))
}
