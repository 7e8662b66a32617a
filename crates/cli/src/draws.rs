//! `jensen draws` and `jensen generate`.

use std::path::Path;

use jensen::blackbox::{Approximation, Init, NoiseSource, RefinedDraws};
use jensen::data::{
    Artefact, Coordinates, Digests, NetcdfAttributes, Roles, StanCsvHeader, read_draws_csv,
    read_text, write_atomic_bytes, write_draws_csv, write_draws_netcdf,
};
use jensen::density::Posterior;
use jensen::job::folder;
use jensen::program::{Program, Source, StoredFit};
use jensen::stan::Build;
use jensen::{Generator, Sample, SampleRequest, Save, advi_config};

use crate::args::{DrawsArgs, GenerateArgs};
use crate::failure::{CommandResult, Exit, Failure, print, remark};
use crate::limits;
use crate::terminal::start_threads;

pub fn run(args: &DrawsArgs) -> CommandResult {
    let (run, mut stored) = StoredFit::open(&args.dir)?;
    stored.flags.save = args.save.clone().or(stored.flags.save);
    let encoded = folder::approximation(&run, "jensen fit")?;
    let threads = start_threads(args.threads)?;
    let source = stored.source(&run)?;
    let source = source.with_coordinates(args.coords.as_deref())?;
    let simd = stored.flags.simd()?;
    let seed = stored.flags.seed();
    let name = source.model.clone();
    let halt = limits::halt(None, stored.flags.memory_limit());
    let program = Program::of_stored(&stored, source, stored.flags.clone(), threads, halt)?;
    let (approximation, identity) =
        Approximation::decode(&encoded).map_err(|error| folder::bad_approximation(&run, error))?;
    let subject = program.subject()?;
    if (&identity.model_hash, &identity.data_hash) != (&subject.model_hash, &subject.data_hash) {
        return Err(Failure::input(format!(
            "the approximation in `{}` belongs to another model or other data",
            args.dir.display()
        )));
    }
    let draws_seed = args.seed.unwrap_or(seed);
    let request = SampleRequest {
        first: 0,
        draws: args.draws as usize,
        resample: args.importance_resample,
        source: NoiseSource::new(draws_seed, simd),
        seed: draws_seed,
        threads,
    };
    let refined = Digests::archive(&run, Artefact::Refined)?;
    let refined = refined.filter(|_| !args.importance_resample);
    let from_refined = refined.is_some();
    let drawn = if let Some(refined) = refined {
        let (refined, _) = RefinedDraws::decode(&refined)
            .map_err(|error| folder::bad_approximation(&run, error))?;
        if request.draws > refined.draws.count {
            remark(&format!(
                "there are only {} refined draws, so Jensen repeats them and draws new random numbers for \
                 generated quantities",
                refined.draws.count
            ));
        }
        program.sample_refined(&refined, &request)?
    } else {
        program.sample(&approximation, &request)?
    };
    warn_of_rejected(&drawn);
    let advi = advi_config(&stored.flags.settings(Init::Zero)?.method);
    // The step-size scale that a search found is stored only in the draws of the fit.
    let read = read_draws_csv(&run.artefact(Artefact::DrawsCsv));
    let header = StanCsvHeader {
        model: name,
        family: approximation.name().to_string(),
        draws_of: if from_refined {
            "refined"
        } else {
            "approximation"
        }
        .to_owned(),
        seed: draws_seed,
        eta: read.map_or(advi.eta, |(_, comments)| comments.eta),
        advi,
        settings: Vec::new(),
    };
    let coordinates = program.coordinates();
    write_or_print(args.out.as_deref(), &header, &drawn, &coordinates)
}

pub fn generate(args: &GenerateArgs) -> CommandResult {
    let (run, stored) = StoredFit::open(&args.dir)?;
    let threads = start_threads(args.threads)?;
    let source = Source::read(
        &args.model,
        &args.include,
        args.data.as_deref(),
        stored.flags.memory_limit(),
    )?;
    let mut source = source.with_coordinates(args.coords.as_deref())?;
    let fitted = stored.source(&run)?.data;
    let values = match (&source.data, &fitted) {
        // Words are represented by the same numbers as in the fit.
        (Some(data), Some(fitted)) => data.parse_like(fitted)?,
        (Some(data), None) => data.parse_apart()?,
        (None, _) => {
            source.data = fitted;
            source.values()?
        }
    };
    let seed = args.seed.unwrap_or(stored.flags.seed());
    let build = Build {
        includes: &source.includes,
        data_name: source.data_name(),
        seed,
        simd: stored.flags.simd()?,
        threads,
        memory_limit: stored.flags.memory_limit(),
        save: Save::of_words(&args.save),
        halt: limits::halt(None, stored.flags.memory_limit()),
        ..Build::default()
    };
    let (draws, comments) = read_draws_csv(&run.artefact(Artefact::DrawsCsv))?;
    let generator = Generator::compile(&source.text, &source.model, &values, &build)?;
    if generator.model().bound().variables().is_empty() {
        return Err(Failure::input(format!(
            "`{}` has no generated quantities to write; --save all writes its parameters too",
            source.model
        )));
    }
    let declared = generator.model().program().dimension_names();
    let shapes = generator.model().bound().variables().into_iter();
    let shapes = shapes.map(|variable| (variable.name, variable.shape));
    let checked = source.coordinates.check(&declared, &shapes.collect());
    checked.map_err(|error| Failure::input(format!("--coords: {error}")))?;
    let coordinates = source.coordinates.over(declared);
    let made = generator.generate(&draws, seed)?;
    warn_of_rejected(&made);
    if let Some(file) = &args.summary {
        let text = serde_json::to_string_pretty(&made.summaries()).map_err(Failure::output)?;
        write_atomic_bytes(file, (text + "\n").as_bytes()).map_err(Failure::output)?;
    }
    let approximation = folder::approximation(&run, "jensen fit")?;
    let (approximation, _) = Approximation::decode(&approximation)
        .map_err(|error| folder::bad_approximation(&run, error))?;
    let header = StanCsvHeader {
        model: source.model.clone(),
        family: approximation.name().to_string(),
        draws_of: match run.artefact(Artefact::Refined).exists() {
            true => "refined",
            false => "approximation",
        }
        .to_owned(),
        seed,
        eta: comments.eta,
        advi: advi_config(&stored.flags.settings(Init::Zero)?.method),
        settings: Vec::new(),
    };
    write_or_print(args.out.as_deref(), &header, &made, &coordinates)
}

fn warn_of_rejected(drawn: &Sample) {
    if drawn.rejected > 0 {
        let reason = drawn.rejection.as_deref().unwrap_or("");
        remark(&format!(
            "warning: the model rejects {} of {} draws, which are omitted; the first because: {reason}",
            drawn.rejected,
            drawn.rejected + drawn.table.len()
        ));
    }
}

fn write_or_print(
    out: Option<&Path>,
    header: &StanCsvHeader,
    drawn: &Sample,
    coordinates: &Coordinates,
) -> CommandResult {
    match out {
        Some(file) => write(file, header, drawn, coordinates)?,
        None => {
            // The writer requires a file that it can replace.
            let scratch = tempfile::tempdir()
                .map_err(|error| Failure::output(format!("no temporary folder: {error}")))?;
            let file = scratch.path().join("draws.csv");
            write(&file, header, drawn, coordinates)?;
            print(&read_text(&file)?)?;
        }
    }
    Ok(Exit::Done)
}

fn write(
    path: &Path,
    header: &StanCsvHeader,
    drawn: &Sample,
    coordinates: &Coordinates,
) -> Result<(), Failure> {
    let netcdf = path.extension().is_some_and(|extension| extension == "nc");
    if netcdf {
        let attributes = NetcdfAttributes {
            model: header.model.clone(),
            extra: vec![
                ("family".into(), header.family.clone()),
                ("seed".into(), header.seed.to_string()),
            ],
        };
        let approximate = header.draws_of == "approximation";
        let roles = Roles {
            coordinates: coordinates.clone(),
            ..drawn.roles(approximate)
        };
        write_draws_netcdf(path, &drawn.table, &roles, &attributes, None)
    } else {
        write_draws_csv(path, &drawn.table, &header.comments(drawn.table.len()))
    }
    .map_err(Failure::output)
}
