//! Dual variational inference for latent Gaussian models (Khan, Aravkin, Friedlander and Seeger 2013).
//!
//! Every solver runs on the same model with the same kernels and threads; the curves are the lower bound against seconds.

use std::path::PathBuf;
use std::time::Instant;

use jensen::data::{Adjacency, Cells, Column, Table, read_bytes};
use jensen::latent::{
    Files, Fit, Learning, Request, Settings, Solver, Stored, TableModel, fit_table, outcome,
    posterior_at,
};
use jensen::report::figure::{Axis, Chart, Figure, HeatMap, Series};
use jensen::run::{Budget, Control, Identity, Record};
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::experiment::{Experiment, Part};
use crate::failure::Failure;
use crate::results::{Ours, Scale, What};

/// The experiment.
pub const EXPERIMENT: Experiment = Experiment {
    name: "dual",
    about: "Fast dual variational inference for non-conjugate latent Gaussian models (2013)",
    data: "uci/{ionosphere,sonar}.csv and uci/australian.dat (UCI repository), usps/zip.{train,test}.gz (Elements of Statistical \
           Learning), germany-oral-cancer, scotland-lip-cancer, tokyo-rainfall, rainforest-lgcp (examples of R-INLA), coal (Jarrett \
           1979), stochastic-volatility/poundd.dat (Durbin and Koopman)",
    parts: &[
        Part {
            name: "gp",
            about: "Gaussian process classification: the bound against time, all solvers",
            from: Scale::Quick,
            run: gp,
        },
        Part {
            name: "logistic",
            about: "Bayesian logistic regression: the bound against time, all solvers",
            from: Scale::Quick,
            run: logistic,
        },
        Part {
            name: "fields",
            about: "Gaussian Markov random fields: the bound against time",
            from: Scale::Quick,
            run: fields,
        },
        Part {
            name: "lgcp",
            about: "log-Gaussian Cox processes",
            from: Scale::Quick,
            run: lgcp,
        },
        Part {
            name: "volatility",
            about: "stochastic volatility of the pound against the dollar",
            from: Scale::Quick,
            run: volatility,
        },
        Part {
            name: "hyperparameters",
            about: "the bound and held-out log loss over lengthscale and variance",
            from: Scale::Quick,
            run: hyperparameters,
        },
        Part {
            name: "factors",
            about: "factor analysis of votes",
            from: Scale::Paper,
            run: factors,
        },
    ],
};

/// Graphs below the folder of the data.
struct Folder(PathBuf);

impl Files for Folder {
    fn graph(&self, file: &str) -> Result<Adjacency, String> {
        Adjacency::read(&self.0.join(file)).map_err(|e| e.to_string())
    }

    fn table(&self, file: &str) -> Result<Table, String> {
        Table::read(&self.0.join(file)).map_err(|e| e.to_string())
    }
}

/// A model and its data.
struct Case {
    name: &'static str,
    table: Table,
    request: Request,
    files: Folder,
}

/// What a solver did.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Run {
    solver: String,
    /// Absent where the solver does not serve the model; the reason is in `note`.
    bound: Option<f64>,
    gap: Option<f64>,
    seconds: f64,
    iterations: u64,
    /// Seconds and bound along the run.
    curve: Vec<(f64, f64)>,
    note: String,
}

impl Run {
    /// Seconds until the bound was within `slack` nats of `best`.
    fn reaches(&self, best: f64, slack: f64) -> Option<f64> {
        let ends = self.bound.map(|bound| (self.seconds, bound));
        let mut points = self.curve.iter().copied().chain(ends);
        points
            .find(|(_, bound)| *bound >= best - slack)
            .map(|(s, _)| s)
    }
}

fn identity() -> Identity {
    Identity {
        algorithm: "latent".to_owned(),
        settings: serde_json::Value::Null,
        seed: 0,
        model_hash: String::new(),
        data_hash: String::new(),
        simd: String::new(),
    }
}

/// Fits a case; the records, the fit and its hyperparameters.
fn fit(
    context: &Context<'_>,
    model: &TableModel,
    learning: &Learning,
    max_seconds: Option<f64>,
) -> Result<(Vec<Record>, jensen::latent::Learnt, f64), jensen::Error> {
    let epoch = Instant::now();
    let clock = || epoch.elapsed().as_secs_f64();
    let mut records: Vec<Record> = Vec::new();
    let budget = Budget {
        max_iterations: 100_000,
        max_seconds,
    };
    let mut control = Control::new(budget, &clock, &mut records);
    control.cancel = context.cancel();
    let learnt = fit_table(model, learning, &identity(), &mut control)?;
    Ok((records, learnt, epoch.elapsed().as_secs_f64()))
}

fn learning(solver: Solver, learn: bool) -> Learning {
    Learning {
        settings: Settings {
            solver,
            ..Settings::default()
        },
        learn,
        starts: 1,
        seed: 0,
    }
}

/// One solver on one case, kept for a resumed run.
fn race(
    context: &mut Context<'_>,
    case: &Case,
    solver: Solver,
    max_seconds: f64,
) -> Result<Run, Failure> {
    let key = format!("{}/{}", case.name.replace(' ', "-"), solver.name());
    context.keep(&key, |context| {
        context.say(format!("{}: {}", case.name, solver.name()));
        let model = TableModel::new(&case.request, &case.table, &case.files)?;
        match fit(context, &model, &learning(solver, false), Some(max_seconds)) {
            Ok((records, learnt, seconds)) => Ok(Run {
                solver: solver.name().to_owned(),
                bound: learnt.fit.bound.is_finite().then_some(learnt.fit.bound),
                gap: learnt.fit.gap.filter(|g| g.is_finite()),
                seconds,
                iterations: learnt.iterations,
                curve: records
                    .iter()
                    .filter_map(|r| Some((r.seconds, r.elbo.filter(|b| b.is_finite())?)))
                    .collect(),
                note: learnt.status.name().to_owned(),
            }),
            // A solver that does not serve the model is a finding, not the end of the run.
            Err(error @ jensen::Error::Latent(jensen::latent::Error::Unsupported(_))) => Ok(Run {
                solver: solver.name().to_owned(),
                bound: None,
                gap: None,
                seconds: 0.0,
                iterations: 0,
                curve: Vec::new(),
                note: error.to_string(),
            }),
            Err(error) => Err(error.into()),
        }
    })
}

/// All solvers on a case: rows and a chart of the distance from the best bound against seconds.
fn compare(
    context: &mut Context<'_>,
    case: &Case,
    solvers: &[Solver],
    max_seconds: f64,
) -> Result<Chart, Failure> {
    let mut runs = Vec::new();
    for solver in solvers {
        runs.push(race(context, case, *solver, max_seconds)?);
    }
    let best = runs
        .iter()
        .filter_map(|r| r.bound)
        .fold(f64::NEG_INFINITY, f64::max);
    let dual_seconds = runs.first().and_then(|r| r.reaches(best, 1e-4));
    for run in &runs {
        let name = |what: &str| format!("{}, {}: {what}", case.name, run.solver);
        let Some(bound) = run.bound else {
            context.not_run(What::new(name("bound"), "nats"), &run.note)?;
            continue;
        };
        let gap = run
            .gap
            .map_or(String::new(), |gap| format!(", gap {gap:.1e}"));
        let note = format!("{}{gap}, {} iterations", run.note, run.iterations);
        context.row(What::new(name("bound"), "nats"), |_| {
            Ok(Ours::value(bound).note(note))
        })?;
        context.row(What::new(name("seconds to within 1e-4 nats"), "s"), |_| {
            Ok(match run.reaches(best, 1e-4) {
                Some(seconds) => {
                    let ratio = dual_seconds.map_or(f64::NAN, |dual| seconds / dual);
                    Ours::value(seconds).note(format!("{ratio:.1} times the dual's"))
                }
                None => Ours::none(format!("not reached in {:.1} s", run.seconds)),
            })
        })?;
    }
    let mut chart = Chart::new(case.name)
        .x(Axis::new("seconds").log())
        .y(Axis::new("nats below the best bound").log());
    for (i, run) in runs.iter().enumerate() {
        let points = run.curve.iter().map(|(s, b)| (*s, (best - b).max(1e-9)));
        chart = chart.series(Series::line(&run.solver, points).marked().colour(i));
    }
    Ok(chart)
}

/// A table from columns of numbers.
fn numbers(name: &str, columns: Vec<(String, Vec<f64>)>) -> Result<Table, Failure> {
    let columns = columns
        .into_iter()
        .map(|(name, values)| Column::new(name, Cells::Numbers(values)))
        .collect();
    Ok(Table::new(name, columns)?)
}

fn request(prior: &str, likelihood: &str, response: &str) -> Request {
    Request {
        prior: prior.to_owned(),
        likelihood: likelihood.to_owned(),
        response: Some(response.to_owned()),
        ..Request::default()
    }
}

fn case(
    context: &Context<'_>,
    name: &'static str,
    table: Table,
    request: Request,
) -> Result<Case, Failure> {
    Ok(Case {
        name,
        table,
        request,
        files: Folder(context.data("")?),
    })
}

fn ionosphere(context: &Context<'_>) -> Result<Table, Failure> {
    Ok(Table::read(&context.data("uci/ionosphere.csv")?)?)
}

/// Digits 3 (label 0) and 5 (label 1), train and test together.
fn usps(context: &Context<'_>) -> Result<Table, Failure> {
    let mut rows: Vec<Vec<f64>> = Vec::new();
    for file in ["usps/zip.train.gz", "usps/zip.test.gz"] {
        let table = Table::read(&context.data(file)?)?;
        let columns: Vec<&[f64]> = table
            .columns()
            .iter()
            .map(Column::numbers)
            .collect::<Result<_, _>>()?;
        for i in 0..table.rows() {
            if columns[0][i] == 3.0 || columns[0][i] == 5.0 {
                rows.push(columns.iter().map(|c| c[i]).collect());
            }
        }
    }
    let width = rows.first().map_or(0, Vec::len);
    let mut columns: Vec<(String, Vec<f64>)> = (1..width)
        .map(|j| (format!("x{j}"), rows.iter().map(|r| r[j]).collect()))
        .collect();
    let label = rows.iter().map(|r| f64::from(r[0] == 5.0)).collect();
    columns.push(("five".to_owned(), label));
    numbers("USPS 3 and 5", columns)
}

const GP_SOLVERS: [Solver; 4] = [
    Solver::Dual,
    Solver::Primal,
    Solver::Opper,
    Solver::Coordinate,
];
const SOLVERS: [Solver; 3] = [Solver::Dual, Solver::Primal, Solver::Opper];

fn gp(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut figure = Figure::new("Gaussian process classification");
    let ionosphere = case(
        context,
        "Ionosphere",
        ionosphere(context)?,
        request("gp(rbf, lengthscale=2.7, variance=7.4)", "bernoulli", "V35"),
    )?;
    let limit = context.pick(40.0, 600.0);
    figure = figure.panel(compare(context, &ionosphere, &GP_SOLVERS, limit)?);
    let usps = case(
        context,
        "USPS 3 and 5",
        usps(context)?,
        request("gp(rbf, lengthscale=12, variance=20)", "bernoulli", "five"),
    )?;
    let limit = context.pick(60.0, 3600.0);
    figure = figure.panel(compare(context, &usps, &GP_SOLVERS, limit)?);
    for case in [&ionosphere, &usps] {
        let exact = Case {
            name: if case.name == "Ionosphere" {
                "Ionosphere, exact"
            } else {
                "USPS 3 and 5, exact"
            },
            table: case.table.clone(),
            request: Request {
                bound: Some("exact".to_owned()),
                ..case.request.clone()
            },
            files: Folder(case.files.0.clone()),
        };
        compare(context, &exact, &[Solver::Dual], 600.0)?;
    }
    context.figure("gp", &figure)
}

/// Columns with mean 0 and standard deviation 1, but for the response, which is 1 for `positive`.
fn standardised(table: &Table, response: usize, positive: &str) -> Result<Table, Failure> {
    let mut columns = Vec::new();
    for (j, column) in table.columns().iter().enumerate() {
        if j == response {
            continue;
        }
        let x = column.numbers()?;
        let n = x.len() as f64;
        let mean = x.iter().sum::<f64>() / n;
        let sd = (x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n).sqrt();
        let values = x
            .iter()
            .map(|x| if sd > 0.0 { (x - mean) / sd } else { 0.0 });
        columns.push((column.name.clone(), values.collect()));
    }
    let levels = [positive.to_owned()];
    let own = &table.columns()[response];
    let all = own.levels();
    let is_positive = |code: Option<usize>| code.is_some_and(|c| all[c] == levels[0]);
    let codes = own.codes(&all)?;
    columns.push((
        "y".to_owned(),
        codes
            .into_iter()
            .map(|c| f64::from(is_positive(c)))
            .collect(),
    ));
    numbers(table.source(), columns)
}

/// A prior of fixed effects of all columns but the last.
fn all_columns(table: &Table, variance: f64) -> String {
    let names: Vec<&str> = table.names();
    let inputs = names[..names.len() - 1].join(", ");
    format!("intercept(variance={variance}) + fixed({inputs}, variance={variance})")
}

fn logistic(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut figure = Figure::new("Bayesian logistic regression");
    let sonar = Table::read(&context.data("uci/sonar.csv")?)?;
    let sonar = standardised(&sonar, 60, "M")?;
    let australian = Table::read(&context.data("uci/australian.dat")?)?;
    let australian = standardised(&australian, 14, "1")?;
    let digits = usps(context)?;
    let cases = [
        ("Sonar", sonar, "y"),
        ("Australian credit", australian, "y"),
        ("USPS, linear", digits, "five"),
    ];
    let limit = context.pick(20.0, 600.0);
    for (name, table, response) in cases {
        let prior = all_columns(&table, 1.0);
        let case = case(context, name, table, request(&prior, "bernoulli", response))?;
        figure = figure.panel(compare(context, &case, &SOLVERS, limit)?);
    }
    context.figure("logistic", &figure)
}

/// Learns the precision of a field by the dual, so that all solvers run at sensible hyperparameters.
fn learnt_prior(context: &mut Context<'_>, case: &Case, free: &str) -> Result<Vec<f64>, Failure> {
    context.keep(
        &format!("{}/learnt", case.name.replace(' ', "-")),
        |context| {
            let request = Request {
                prior: free.to_owned(),
                ..case.request.clone()
            };
            let model = TableModel::new(&request, &case.table, &case.files)?;
            let (_, learnt, _) = fit(context, &model, &learning(Solver::Dual, true), None)?;
            Ok(learnt.theta)
        },
    )
}

fn fields(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut figure = Figure::new("Gaussian Markov random fields");
    let limit = context.pick(20.0, 600.0);

    let germany = Table::read(&context.data("germany-oral-cancer/oral.txt")?)?;
    let scotland = scotland(context)?;
    let tokyo = Table::read(&context.data("tokyo-rainfall/tokyo.rainfall.data")?)?;
    let poisson = |response: &str, exposure: &str| Request {
        exposure: Some(exposure.to_owned()),
        ..request("", "poisson", response)
    };
    let binomial = Request {
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
            "fixed(outdoor) + icar(graph=scotland-lip-cancer/scotland.graph, precision",
        ),
        (
            "Tokyo, rainfall",
            tokyo,
            binomial,
            "rw2(on=V1, cyclic, precision",
        ),
    ];
    for (name, table, base, prior) in cases {
        let mut case = case(context, name, table, base)?;
        let theta = learnt_prior(context, &case, &format!("{prior}~10)"))?;
        let precision = theta.first().copied().unwrap_or(1.0);
        context.row(What::new(format!("{name}: learnt precision"), ""), |_| {
            Ok(Ours::value(precision))
        })?;
        case.request.prior = format!("{prior}={precision})");
        figure = figure.panel(compare(context, &case, &SOLVERS, limit)?);
    }
    context.figure("fields", &figure)
}

/// The districts of Scotland as a table.
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

/// One dual fit at learnt hyperparameters: rows of bound, gap and seconds; the fit.
fn learn_and_fit(context: &mut Context<'_>, case: &Case) -> Result<Fit, Failure> {
    let model = TableModel::new(&case.request, &case.table, &case.files)?;
    let (_, learnt, seconds) = fit(context, &model, &learning(Solver::Dual, true), None)?;
    let again = jensen::latent::TableModel::model(&model, &learnt.theta, learnt.likelihood)?;
    let epoch = Instant::now();
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

fn lgcp(context: &mut Context<'_>) -> Result<(), Failure> {
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
        Request {
            exposure: Some("area".to_owned()),
            ..request(
                "fixed(altitude, gradient) + grid(rw2, 101, 201, precision~1)",
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

fn volatility(context: &mut Context<'_>) -> Result<(), Failure> {
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

/// Rows of a table.
fn rows_of(table: &Table, rows: &[usize]) -> Result<Table, Failure> {
    let columns = table
        .columns()
        .iter()
        .map(|column| {
            let cells = match &column.cells {
                Cells::Numbers(x) => Cells::Numbers(rows.iter().map(|i| x[*i]).collect()),
                Cells::Words(x) => Cells::Words(rows.iter().map(|i| x[*i].clone()).collect()),
            };
            Column::new(column.name.clone(), cells)
        })
        .collect();
    Ok(Table::new(table.source(), columns)?)
}

fn hyperparameters(context: &mut Context<'_>) -> Result<(), Failure> {
    let steps = context.pick(7usize, 15);
    let table = ionosphere(context)?;
    // Two thirds for the fit, every third row held out.
    let (held, fitted): (Vec<usize>, Vec<usize>) = (0..table.rows()).partition(|i| i % 3 == 0);
    let (train, test) = (rows_of(&table, &fitted)?, rows_of(&table, &held)?);
    let between =
        |low: f64, high: f64, k: usize| low * (high / low).powf((k as f64 + 0.5) / steps as f64);
    let (lengths, variances) = ((0.5, 12.0), (0.5, 500.0));
    let cells: Vec<(f64, f64)> = context.keep("ionosphere-grid", |context| {
        let mut cells = Vec::new();
        let files = Folder(context.data("")?);
        for i in 0..steps {
            context.check_stopped()?;
            for j in 0..steps {
                let prior = format!(
                    "gp(rbf, lengthscale={}, variance={})",
                    between(lengths.0, lengths.1, j),
                    between(variances.0, variances.1, i)
                );
                let model = TableModel::new(&request(&prior, "bernoulli", "V35"), &train, &files)?;
                let (_, learnt, _) = fit(context, &model, &learning(Solver::Dual, false), None)?;
                let stored = Stored::new(&learnt.theta, learnt.likelihood, &learnt.fit);
                let rows: Vec<usize> = (0..test.rows()).collect();
                let at = model.at(&stored.theta, &test, &rows, &files)?;
                let (mean, variance) = posterior_at(&model, &stored, &at)?;
                let score = outcome(&model, stored.likelihood, &mean, &variance, &at);
                let loss = -score.log_predictive().unwrap_or(0.0);
                cells.push((learnt.fit.bound, loss));
            }
        }
        Ok(cells)
    })?;
    let best = (0..cells.len())
        .max_by(|a, b| cells[*a].0.total_cmp(&cells[*b].0))
        .unwrap_or(0);
    let least = cells.iter().map(|c| c.1).fold(f64::INFINITY, f64::min);
    let place = format!(
        "lengthscale {:.2}, variance {:.1}",
        between(lengths.0, lengths.1, best % steps),
        between(variances.0, variances.1, best / steps)
    );
    context.row(What::new("Ionosphere grid: largest bound", "nats"), |_| {
        Ok(Ours::value(cells[best].0).note(place))
    })?;
    context.row(
        What::new("Ionosphere grid: held-out log loss there", "nats"),
        |_| Ok(Ours::value(cells[best].1).note(format!("the least on the grid is {least:.4}"))),
    )?;
    let map = |title: &str, pick: fn(&(f64, f64)) -> f64| {
        HeatMap::new(
            title,
            lengths,
            variances,
            steps,
            cells.iter().map(pick).collect(),
        )
        .x(Axis::new("lengthscale").log())
        .y(Axis::new("variance").log())
        .value(Axis::new("nats"))
    };
    let figure = Figure::new("Ionosphere: hyperparameters")
        .panel(map("lower bound", |c| c.0))
        .panel(map("held-out log loss", |c| c.1));
    context.figure("hyperparameters", &figure)
}

fn factors(context: &mut Context<'_>) -> Result<(), Failure> {
    context.not_run(
        What::new(
            "Votes: factor analysis, log predictive of held-out votes",
            "nats",
        ),
        "variational EM over loadings is not offered",
    )
}
