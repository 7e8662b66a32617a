//! The words of settings: sizes of images and temperatures.

use jensen_neural::Temper;

const HOT: f64 = 10.0;

pub(super) fn image(text: &str) -> Result<(usize, usize), String> {
    let fail = || "expected width and height in pixels such as 28x28".to_owned();
    let (width, height) = text.split_once('x').ok_or_else(fail)?;
    match (width.parse(), height.parse()) {
        (Ok(w @ 1..=65_536), Ok(h @ 1..=65_536)) => Ok((w, h)),
        _ => Err(fail()),
    }
}

#[cfg(any(feature = "clap", test))]
pub(super) fn parse_image(text: &str) -> Result<String, String> {
    image(text).map(|_| text.to_owned())
}

pub(super) fn temper(text: &str) -> Result<Temper, String> {
    let fail = || {
        "expected none or anneal=PASSES[:FROM], such as anneal=10 or anneal=10:5 with a temperature of at least 1; inferred \
         temperatures (global, local) are for conjugate models: a decoder's weights would undo them"
            .to_owned()
    };
    if text == "none" {
        return Ok(Temper::None);
    }
    let schedule = text.strip_prefix("anneal=").ok_or_else(fail)?;
    let (passes, from) = match schedule.split_once(':') {
        Some((passes, from)) => (passes.parse(), from.parse()),
        None => (schedule.parse(), Ok(HOT)),
    };
    let (Ok(passes), Ok(from)) = (passes, from) else {
        return Err(fail());
    };
    let policy = Temper::Anneal { passes, from };
    policy.check().map_err(|_| fail())?;
    Ok(policy)
}

#[cfg(any(feature = "clap", test))]
pub(super) fn parse_temper(text: &str) -> Result<String, String> {
    temper(text).map(|_| text.to_owned())
}
