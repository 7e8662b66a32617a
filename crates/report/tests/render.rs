//! The page is sound HTML, loads nothing, escapes everything and copes with any numbers.

use jensen_report::figure::{Axis, Chart, Figure, Series};
use jensen_report::{
    Khat, Marginal, Parameter, Report, Section, Sheet, Stage, Tone, TracePoint, render,
    render_sheet,
};
use proptest::collection::vec;
use proptest::prelude::*;

fn parameter(name: &str, mean: f64, sd: f64) -> Parameter {
    let q = |z: f64| mean + z * sd;
    Parameter {
        name: name.into(),
        mean,
        sd,
        q05: q(-1.645),
        q50: mean,
        q95: q(1.645),
        mcse: Some(sd / 30.0),
    }
}

fn wave(n: usize, phase: f64) -> Vec<f64> {
    (0..n)
        .map(|i| (i as f64 * 0.7 + phase).sin() * 2.0 + phase)
        .collect()
}

fn stage(name: &str, count: u64) -> Stage {
    let point = |i: u64| TracePoint {
        iteration: i,
        seconds: i as f64,
        elbo: -100.0 / (i + 1) as f64,
        se: 0.1,
    };
    Stage {
        name: name.into(),
        points: (0..count).map(point).collect(),
    }
}

fn full() -> Report {
    Report {
        title: "Schools".into(),
        model: "m.stan".into(),
        data: "d.json".into(),
        version: "0.1.0".into(),
        status: "done".into(),
        converged: true,
        trusted: true,
        advice: vec!["go on".into()],
        warnings: vec!["careful".into()],
        elbo: Some((-12345.678, 0.05)),
        khat: Some(Khat {
            value: 0.3,
            threshold: 0.67,
        }),
        facts: vec![("Draws".into(), "100".into())],
        settings: vec![("seed".into(), "0".into())],
        timing: vec![("fit".into(), 1.0), ("draws".into(), 0.5)],
        stages: vec![stage("mean-field", 30), stage("full-rank", 40)],
        sections: Vec::new(),
        log_weights: wave(100, 0.0),
        parameters: vec![
            parameter("mu", 1.0, 0.5),
            parameter("x[1]", 0.0, 1.0),
            parameter("x[2]", -3.0, 1e-9),
        ],
        marginals: vec![
            Marginal {
                name: "mu".into(),
                draws: wave(100, 1.0),
            },
            Marginal {
                name: "x[1]".into(),
                draws: wave(100, 2.0),
            },
            Marginal {
                name: "k".into(),
                draws: (0..100).map(|i| f64::from(i % 4)).collect(),
            },
        ],
    }
}

/// Every element is closed in order; names with markup would break this as well as real mistakes do.
fn check_tags(html: &str) {
    let mut open: Vec<&str> = Vec::new();
    let html = &html[html.find("</style>").unwrap() + "</style>".len()..];
    open.extend(["html", "head"]);
    let mut rest = 0;
    while let Some(at) = html[rest..].find('<').map(|i| i + rest) {
        let end = at
            + html[at..]
                .find('>')
                .unwrap_or_else(|| panic!("unclosed tag at {at}"));
        let tag = &html[at + 1..end];
        rest = end + 1;
        if tag.starts_with('!') || tag.ends_with('/') || tag.starts_with("meta") {
            continue;
        }
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "at {at}"),
            None => open.push(tag.split(' ').next().unwrap()),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

fn check_page(html: &str) {
    check_tags(html);
    for foreign in [
        "http:", "https:", "src=", "href=", "url(", "@import", "<script", "<iframe", "<img",
        "onload",
    ] {
        assert!(!html.contains(foreign), "{foreign}");
    }
    for attribute in [
        "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "d", "width", "height",
    ] {
        for part in html.split(&format!(" {attribute}=\"")).skip(1) {
            let value = part.split('"').next().unwrap();
            assert!(
                !value.contains("NaN") && !value.contains("inf"),
                "{attribute}={value}"
            );
        }
    }
}

#[test]
fn a_full_report_has_every_section_and_an_empty_one_none() {
    let html = render(&full());
    check_page(&html);
    let sections = [
        "The bound along the run",
        "Can the draws be trusted?",
        "Parameters",
        "Vectors and matrices",
        "Marginal distributions",
        "Correlations",
        "How it was made",
    ];
    let empty = render(&Report::default());
    check_page(&empty);
    for section in sections {
        assert!(html.contains(&format!("<h2>{section}</h2>")), "{section}");
        assert!(!empty.contains(&format!("<h2>{section}</h2>")), "{section}");
    }
    for text in [
        "−12\u{2009}345.678",
        "± 0.05 nats",
        "trusted to 0.67",
        "go on",
        "careful",
        "mean-field: ",
        "1.5 s",
    ] {
        assert!(html.contains(text), "{text}");
    }
}

#[test]
fn names_and_texts_are_escaped_wherever_they_stand() {
    let evil = "<script>alert(\"x\")</script>'&\u{1}";
    let mut report = full();
    for text in [
        &mut report.title,
        &mut report.model,
        &mut report.data,
        &mut report.version,
        &mut report.status,
        &mut report.advice[0],
        &mut report.warnings[0],
        &mut report.stages[0].name,
    ] {
        *text = evil.into();
    }
    for (a, b) in [&mut report.facts[0], &mut report.settings[0]] {
        (*a, *b) = (evil.into(), evil.into());
    }
    report.timing[0].0 = evil.into();
    for (i, p) in report.parameters.iter_mut().enumerate() {
        p.name = format!("{evil}[{i}]");
    }
    for (m, p) in report.marginals.iter_mut().zip(&report.parameters) {
        m.name = p.name.clone();
    }
    let html = render(&report);
    check_page(&html);
    assert!(html.contains("&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;&#39;&amp;\u{fffd}"));
}

#[test]
fn the_verdict_follows_the_flags() {
    let page = |converged, trusted| {
        render(&Report {
            converged,
            trusted,
            ..full()
        })
    };
    assert!(page(true, true).contains("verdict good"));
    assert!(page(true, false).contains("verdict fair"));
    assert!(page(false, true).contains("verdict fair"));
    assert!(page(false, false).contains("Not converged: do not use these results"));
}

#[test]
fn the_meaning_of_khat_follows_its_value() {
    let page = |value| {
        render(&Report {
            khat: Some(Khat {
                value,
                threshold: 0.67,
            }),
            ..full()
        })
    };
    assert!(page(0.2).contains("finite variance"));
    assert!(page(0.6).contains("a mean but no variance"));
    assert!(page(0.8).contains("errors are understated"));
    assert!(page(f64::INFINITY).contains("have no mean"));
    assert!(page(f64::NAN).contains("could not be estimated"));
    for khat in [0.2, 0.0, -0.5, 5.0, f64::INFINITY, f64::NAN] {
        check_page(&page(khat));
    }
}

#[test]
fn what_is_not_shown_is_counted() {
    let parameters: Vec<Parameter> = (0..620)
        .map(|i| parameter(&format!("x[{}]", i + 1), i as f64, 1.0))
        .collect();
    let marginals: Vec<Marginal> = parameters
        .iter()
        .map(|p| Marginal {
            name: p.name.clone(),
            draws: wave(50, p.mean),
        })
        .collect();
    let html = render(&Report {
        parameters,
        marginals,
        ..full()
    });
    check_page(&html);
    assert!(
        html.contains(
            "120 further parameters are not shown here; they are in <code>fit.json</code>"
        )
    );
    assert!(
        html.contains(
            "596 further marginals are not shown here; they are in <code>draws.csv</code>"
        )
    );
    assert!(html.contains("The first 40 elements; 580 more are not shown."));
    assert!(html.contains("604 further parameters are not shown."));
    assert!(html.len() < 3_000_000, "{}", html.len());
}

#[test]
fn long_traces_are_thinned_and_keep_their_end() {
    let mut report = Report {
        stages: vec![stage("s", 100_000)],
        ..Report::default()
    };
    assert!(render(&report).len() < 100_000);
    report.stages[0]
        .points
        .iter_mut()
        .for_each(|p| p.elbo = f64::NAN);
    assert!(!render(&report).contains("The bound along the run"));
}

fn any_number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => any::<f64>(),
        2 => -10.0..10.0,
        1 => Just(0.0), 1 => Just(f64::NAN), 1 => Just(f64::INFINITY), 1 => Just(f64::NEG_INFINITY), 1 => Just(f64::MAX),
        1 => Just(f64::MIN), 1 => Just(5e-324),
    ]
}

prop_compose! {
    fn any_report()(
        numbers in vec(any_number(), 8),
        draws in vec(vec(any_number(), 0..30), 0..5),
        log_weights in vec(any_number(), 0..20),
        points in vec((any::<u64>(), any_number(), any_number()), 0..12),
        names in vec(".{0,12}|x\\[[0-9]\\]", 5),
    ) -> Report {
        let points: Vec<TracePoint> = points
            .iter()
            .map(|(iteration, elbo, se)| TracePoint { iteration: *iteration, seconds: *se, elbo: *elbo, se: *se })
            .collect();
        let half = points.len() / 2;
        let marginals: Vec<Marginal> =
            draws.into_iter().zip(&names).map(|(draws, name)| Marginal { name: name.clone(), draws }).collect();
        let parameters = names
            .iter()
            .map(|name| Parameter {
                name: name.clone(), mean: numbers[0], sd: numbers[1], q05: numbers[2], q50: numbers[3], q95: numbers[4],
                mcse: Some(numbers[5]),
            })
            .collect();
        Report {
            elbo: Some((numbers[0], numbers[1])),
            khat: Some(Khat { value: numbers[6], threshold: numbers[7] }),
            timing: vec![("a".into(), numbers[0]), ("b".into(), numbers[1])],
            stages: vec![
                Stage { name: names[0].clone(), points: points[..half].to_vec() },
                Stage { name: names[1].clone(), points: points[half..].to_vec() },
            ],
            log_weights, parameters, marginals,
            ..Report::default()
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_numbers_and_names_give_a_sound_page(report in any_report()) {
        check_page(&render(&report));
    }
}

#[test]
fn pages_are_as_kept() {
    let small = Report {
        stages: vec![stage("mean-field", 6)],
        log_weights: wave(20, 0.0),
        marginals: vec![Marginal {
            name: "mu".into(),
            draws: wave(20, 1.0),
        }],
        ..full()
    };
    jensen_testkit::golden(env!("CARGO_MANIFEST_DIR"), "fit.html", &render(&small));
    let curve = (1..=8).map(|k| (f64::from(k), 3.0 - 2.0 / f64::from(k)));
    let chart = Chart::new("Bound")
        .x(Axis::new("iteration"))
        .y(Axis::new("nats"))
        .series(Series::line("bound", curve));
    let table = ["1", "2"].map(|k| vec![k.to_owned(), format!("0.{k}")]);
    let sheet = Sheet {
        title: "Two components".into(),
        subject: vec![("Data".into(), "points.csv".into())],
        verdict: (
            Tone::Good,
            "Converged".into(),
            "Nothing speaks against it.".into(),
        ),
        facts: vec![("ELBO".into(), "−3.20".into(), "nats".into())],
        warnings: vec!["read <this>".into()],
        sections: vec![Section {
            heading: "Course".into(),
            note: "The bound.".into(),
            figures: vec![(Figure::new("").panel(chart).to_svg(), "A caption".into())],
            table: (vec!["component".into(), "weight".into()], table.to_vec()),
        }],
        settings: vec![("seed".into(), "0".into())],
        timing: vec![("fit".into(), 1.5)],
        version: "0.1.0".into(),
    };
    jensen_testkit::golden(
        env!("CARGO_MANIFEST_DIR"),
        "sheet.html",
        &render_sheet(&sheet),
    );
}
