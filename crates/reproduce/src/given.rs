//! Programs with data that the user supplies in a folder.

use std::path::{Path, PathBuf};

use jensen::Problem;
use jensen::data::list_folder;
use jensen::density::LogDensity;

use crate::context::Context;
use crate::corpus::Entry;
use crate::failure::Failure;

/// The endings of the data files of a program. They are those of the collections of the Stan project.
const DATA: [&str; 3] = [".json", ".data.json", ".data.R"];

/// The programs of a folder that can be used, and the reasons why the others cannot be used.
#[derive(Debug, Default)]
pub struct Given {
    /// The programs that compile with their data and have parameters.
    pub usable: Vec<Entry>,
    /// The names of the other programs, each with the reason in one line.
    pub refused: Vec<(String, String)>,
}

/// Finds all programs `NAME.stan` of a folder and of the folders in it, and compiles each of them once.
///
/// The data of `NAME.stan` are in the file `NAME.json`, `NAME.data.json` or `NAME.data.R` of its folder. If there is no
/// such file, the programs `rats_vec.stan` and `rats_vec_unit.stan` use the data of `rats`, because variants of a
/// program usually share their data. A program without any data is compiled without data.
///
/// # Errors
/// Fails if the folder cannot be read, if it contains no programs, or if the user stops the reproduction.
pub fn programs(context: &mut Context<'_>, root: &Path) -> Result<Given, Failure> {
    let mut files = Vec::new();
    collect(root, &mut files)?;
    if files.is_empty() {
        return Err(Failure::Data(format!(
            "`{}` contains no Stan programs: --models DIR names a folder with programs NAME.stan and their data \
             NAME.json, NAME.data.json or NAME.data.R",
            root.display()
        )));
    }
    let mut given = Given::default();
    context.say(format!("compiling {} programs", files.len()));
    for file in files {
        context.check_stopped()?;
        let name = file.strip_prefix(root).unwrap_or(&file).with_extension("");
        let name = name.display().to_string();
        let data = data_of(&file);
        match usable(root, &name, &file, data.as_deref()) {
            Ok(entry) => given.usable.push(entry),
            Err(why) => {
                let why = match data {
                    Some(_) => why,
                    None => format!("there are no data {}: {why}", wanted(&file)),
                };
                given.refused.push((name, why));
            }
        }
    }
    Ok(given)
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Failure> {
    for path in list_folder(folder)? {
        // A link to a folder could lead back to a folder that contains it.
        if path.is_dir() && !path.is_symlink() {
            collect(&path, found)?;
        } else if path
            .extension()
            .is_some_and(|extension| extension == "stan")
        {
            found.push(path);
        }
    }
    Ok(())
}

/// Returns the data file of a program, or `None` if there is none.
fn data_of(program: &Path) -> Option<PathBuf> {
    let mut stem = program.file_stem()?.to_str()?;
    loop {
        let files = DATA.iter().map(|ending| format!("{stem}{ending}"));
        let mut files = files.map(|file| program.with_file_name(file));
        if let Some(file) = files.find(|file| file.is_file()) {
            return Some(file);
        }
        stem = &stem[..stem.rfind('_')?];
    }
}

fn wanted(program: &Path) -> String {
    let stem = program.file_stem().unwrap_or_default().display();
    DATA.map(|ending| format!("{stem}{ending}")).join(" or ")
}

/// Compiles a program with its data. The error is one line with the reason why the program cannot be used.
fn usable(root: &Path, name: &str, file: &Path, data: Option<&Path>) -> Result<Entry, String> {
    let entry = Entry::of_files(name, root, file, data);
    let line = |error: &dyn std::fmt::Display| {
        let text = error.to_string();
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.take(1).collect::<String>()
    };
    let model = entry.compile().map_err(|error| line(&error))?;
    if model.density().dim() == 0 {
        return Err("the program has no parameters".to_owned());
    }
    let subject = model.subject();
    Ok(entry.digested(&subject.model_hash, &subject.data_hash))
}
