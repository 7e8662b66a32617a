//! Tests of small tables with known answers, with which every trusted fit must agree.
#![cfg(feature = "full")]

use std::path::{Path, PathBuf};

use jensen::Error;
use jensen::data::Table;
use jensen::job::Judgement;
use jensen::latent::{AnalysisData, AnalysisRequest, fit_analysis};
use jensen::points::{
    ChainsRequest, FactorsRequest, MixtureRequest, PointRequest, Points, fit_chains, fit_factors,
    fit_mixture,
};
use jensen::vae::{VaeData, VaeRequest, fit_vae};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::common::alone;

/// A case, whose format is described in `models/tables/README.md`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    table: String,
    half: String,
    request: Value,
    least: Option<f64>,
    trusted: Option<bool>,
    says: Option<String>,
    refused: Option<String>,
}

fn request<T: DeserializeOwned>(case: &Case) -> T {
    serde_json::from_value(case.request.clone()).unwrap()
}

type Found = (Judgement, Option<f64>);

fn fitted(case: &Case, path: &Path) -> Result<Found, Error> {
    let table = Table::read(path)?;
    let points = || Points::of_table(&table, &PointRequest::default());
    let of_points = |summary: jensen::points::PointsSummary| (summary.judgement, summary.elbo);
    match case.half.as_str() {
        "mixture" => {
            let (asked, points) = (request::<MixtureRequest>(case), points()?);
            alone(|around| fit_mixture(&asked, &points, around)).map(|fit| of_points(fit.1))
        }
        "factors" => {
            let (asked, points) = (request::<FactorsRequest>(case), points()?);
            alone(|around| fit_factors(&asked, &points, around)).map(|fit| of_points(fit.1))
        }
        "hmm" => {
            let (asked, points) = (request::<ChainsRequest>(case), points()?);
            let all = [points.count()];
            alone(|around| fit_chains(&asked, &points, &all, around)).map(|fit| of_points(fit.1))
        }
        "factor-analysis" => {
            let (asked, data) = (request::<AnalysisRequest>(case), AnalysisData::read(path)?);
            let summary = alone(|around| fit_analysis(&asked, &data, around))?;
            Ok((summary.judgement, Some(summary.bound)))
        }
        "vae" => {
            let asked = request::<VaeRequest>(case);
            let data = VaeData::open(PathBuf::from(path), None, asked, 8 << 30)?;
            let summary = alone(|around| fit_vae(&data, 0.0, around, |done| done.summary))?;
            Ok((summary.judgement, summary.bound))
        }
        other => panic!("{other}"),
    }
}

fn judged(folder: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../models/tables")
        .join(folder);
    let text = std::fs::read_to_string(folder.join("cases.json")).unwrap();
    let cases: Vec<Case> = serde_json::from_str(&text).unwrap();
    let mut wrong = Vec::new();
    for case in &cases {
        let said = |what: String| format!("{} ({}): {what}", case.name, case.half);
        let (judgement, bound) = match (fitted(case, &folder.join(&case.table)), &case.refused) {
            (Ok(found), None) => found,
            (Ok(_), Some(_)) => {
                wrong.push(said("is not refused".to_owned()));
                continue;
            }
            (Err(error), Some(words)) if error.to_string().contains(words) => continue,
            (Err(error), _) => {
                wrong.push(said(error.to_string()));
                continue;
            }
        };
        let warnings = judgement.warnings.join("; ");
        if judgement.trusted
            && case
                .least
                .is_some_and(|least| bound.is_none_or(|b| b < least))
        {
            wrong.push(said(format!(
                "trusted at {bound:?}, below {:?}",
                case.least
            )));
        }
        if case
            .trusted
            .is_some_and(|trusted| trusted != judgement.trusted)
        {
            wrong.push(said(format!(
                "trusted: {}, at {bound:?}; {warnings}",
                judgement.trusted
            )));
        }
        if case
            .says
            .as_ref()
            .is_some_and(|says| !warnings.contains(says.as_str()))
        {
            wrong.push(said(format!("says only: {warnings}")));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n")
    );
}

#[test]
fn what_is_trusted_of_points_is_right() {
    judged("points");
}

#[test]
fn what_is_trusted_of_autoencoders_is_right() {
    judged("vae");
}
