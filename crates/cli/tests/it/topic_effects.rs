//! Tests `jensen topics effects`: columns of a table and the shares of topics.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use crate::common::{Desk, jensen, read_json};
use jensen::data::table::read_bytes;
use serde_json::Value;

/// Writes 420 abstracts as JSON lines, and a table with their fields. Returns both paths.
fn abstracts(desk: &Desk) -> (String, String) {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data");
    let bytes = read_bytes(&data.join("arxiv_abstracts/abstracts.jsonl.gz")).unwrap();
    let lines = String::from_utf8(bytes).unwrap();
    let mut table = "id,field,length\n".to_owned();
    for line in lines.lines() {
        let row: Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| row[name].as_str().unwrap();
        let field = text("category").split('.').next().unwrap();
        let length = text("text").len();
        writeln!(table, "\"{}\",{field},{length}", text("id")).unwrap();
    }
    (
        desk.file("abstracts.jsonl", &lines),
        desk.file("abstracts.csv", &table),
    )
}

fn topics(desk: &Desk, documents: &str) -> String {
    let (corpus, out) = (desk.name("a.corpus"), desk.name("topics"));
    let build = [
        "topics", "build", documents, "--min-df", "5", "--max-df", "0.2", "--quiet",
    ];
    jensen(build.into_iter().chain(["--out", &corpus])).expect(0);
    let fit = [
        "topics", "fit", &corpus, "--topics", "6", "--batch", "20", "--tau", "16", "--passes", "20",
    ];
    jensen(
        fit.into_iter()
            .chain(["--out", &out, "--quiet", "--exit-zero"]),
    )
    .expect(0);
    out
}

#[test]
fn fields_have_their_topics() {
    let desk = Desk::new();
    let (documents, table) = abstracts(&desk);
    let folder = topics(&desk, &documents);
    let out = desk.name("effects");
    let args = [
        "topics",
        "effects",
        &folder,
        &documents,
        "--table",
        &table,
        "--id",
        "id",
        "--formula",
        "~ field + length",
        "--out",
        &out,
    ];
    let printed = jensen(args).expect(0).stdout;
    assert!(printed.contains("verdict   trusted"), "{printed}");
    let found = read_json(&desk.path("effects/effects.json"));
    assert_eq!(found["documents"], 420);

    // A field has most of its words in one or two topics.
    let share = |field: &str| {
        let rows = found["shares"].as_array().unwrap().iter();
        let own = rows.filter(|row| row["variable"] == "field" && row["value"] == field);
        let shares: Vec<f64> = own.map(|row| row["share"].as_f64().unwrap()).collect();
        assert_eq!(shares.len(), 6);
        assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
        shares
    };
    for field in ["math", "cs", "quant-ph", "hep-th"] {
        let mut shares = share(field);
        shares.sort_by(|a, b| b.total_cmp(a));
        assert!(shares[0] + shares[1] > 0.6, "{field}: {shares:?}");
    }
    // Mathematics and computer science have no topic in common.
    let (math, cs) = (share("math"), share("cs"));
    let overlap: f64 = math.iter().zip(&cs).map(|(a, b)| a.min(*b)).sum();
    assert!(overlap < 0.4, "{math:?} {cs:?}");

    let csv = fs::read_to_string(desk.path("effects/effects.csv")).unwrap();
    assert!(csv.starts_with("column,topic,words,mean,sd,q05,q95\n"));
    assert_eq!(csv.lines().count(), 1 + 6 * 6);
    let page = fs::read_to_string(desk.path("effects/report.html")).unwrap();
    assert!(page.contains("<svg") && page.contains("Which topics change"));

    // Effects are in units of the column, so a column in thousands of characters has effects a thousand times as large.
    let thousands: String = (fs::read_to_string(&table).unwrap().lines().enumerate())
        .map(|(at, line)| match line.rsplit_once(',') {
            Some((rest, length)) if at > 0 => {
                let length: f64 = length.parse().unwrap();
                format!("{rest},{}\n", length / 1e3)
            }
            _ => format!("{line}\n"),
        })
        .collect();
    let other = desk.file("thousands.csv", &thousands);
    let args = [
        "topics",
        "effects",
        &folder,
        &documents,
        "--table",
        &other,
        "--id",
        "id",
        "--formula",
        "field + length",
        "--json",
    ];
    let again = jensen(args).expect(0).json();
    let effects = |found: &Value, key: &str| -> Vec<f64> {
        let rows = found["effects"].as_array().unwrap().iter();
        let own = rows.filter(|row| row["column"] == "length");
        own.map(|row| row[key].as_f64().unwrap()).collect()
    };
    // Rounding changes some of the draws, and with them the noise of the estimates.
    let sds = effects(&again, "sd");
    let means = effects(&found, "mean")
        .into_iter()
        .zip(effects(&again, "mean"));
    for ((a, b), sd) in means.zip(sds) {
        assert!((1e3 * a - b).abs() < 0.5 * sd, "{a} {b} ± {sd}");
    }
}

#[test]
fn bad_tables_and_formulas_are_one_clear_error() {
    let desk = Desk::new();
    let (documents, table) = abstracts(&desk);
    let folder = topics(&desk, &documents);
    let text = fs::read_to_string(&table).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let short = desk.file("short.csv", &(lines[..400].join("\n") + "\n"));
    let twice = desk.file("twice.csv", &format!("{text}{}\n", lines[1]));
    for (table, formula, id, said) in [
        (&table, "~ year", true, "no column `year`"),
        (&table, "~ (1 | field)", true, "group effect"),
        (&table, "~ s(length)", true, "not possible here"),
        (&table, "0 + field", true, "no intercept"),
        (&table, "~", true, "formula is empty"),
        (&table, "~ field +", true, "formula"),
        (&short, "~ field", true, "no row whose `id`"),
        (
            &short,
            "~ field",
            false,
            "399 rows, but there are 420 documents",
        ),
        (&twice, "~ field", true, "same `id`"),
    ] {
        let mut args = vec![
            "topics",
            "effects",
            &folder,
            &documents,
            "--table",
            table,
            "--formula",
            formula,
        ];
        if id {
            args.extend(["--id", "id"]);
        }
        let refused = jensen(args).expect(3).stderr;
        assert!(refused.contains(said), "{formula}: {refused}");
    }
    let args = [
        "topics",
        "effects",
        &folder,
        &documents,
        "--table",
        &table,
        "--formula",
        "field",
    ];
    jensen(args.into_iter().chain(["--prior-sd", "0"])).expect(2);
    let refused = jensen(args.into_iter().chain(["--memory-limit", "20KiB"]))
        .expect(3)
        .stderr;
    assert!(refused.contains("memory"), "{refused}");
    let corpus = desk.name("a.corpus");
    let args = [
        "topics",
        "effects",
        &folder,
        &corpus,
        "--table",
        &table,
        "--formula",
        "field",
    ];
    assert!(jensen(args).expect(2).stderr.contains("original texts"));
}
