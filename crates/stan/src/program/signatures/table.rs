//! Parses `library.sig`. The comments at the start of this file explain the notation.
//!
//! The table is part of the source code, so a mistake in the table is a bug and causes a panic. The tests expand every
//! line.

use std::sync::{LazyLock, OnceLock};

use crate::program::signatures::{Entry, param};
use crate::program::{FunctionType, Level, ParamType, Type};

static TEXT: &str = include_str!("library.sig");

pub(super) struct Library {
    pub(super) entries: Vec<Entry>,
    classes: Vec<(&'static str, &'static str)>,
}

pub(super) fn library() -> &'static Library {
    static LIBRARY: LazyLock<Library> = LazyLock::new(read);
    &LIBRARY
}

fn read() -> Library {
    let mut classes = Vec::new();
    let mut entries: Vec<Entry> = Vec::new();
    let mut names: Vec<&'static str> = Vec::new();
    let mut patterns: Vec<&'static str> = Vec::new();
    let mut flush = |names: &mut Vec<&'static str>, patterns: &mut Vec<&'static str>| {
        let shared: &'static [&'static str] = std::mem::take(patterns).leak();
        for name in names.drain(..) {
            entries.push(Entry {
                name,
                patterns: shared,
                signatures: OnceLock::new(),
                function_positions: OnceLock::new(),
            });
        }
    };
    for line in TEXT.lines() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(rest) = line.strip_prefix("class ") {
            if let Some((name, types)) = rest.split_once(" = ") {
                classes.push((name, types));
            }
        } else if line.starts_with(' ') {
            patterns.push(line.trim());
        } else {
            if !patterns.is_empty() {
                flush(&mut names, &mut patterns);
            }
            names.extend(line.trim_end_matches('\\').split_whitespace());
        }
    }
    flush(&mut names, &mut patterns);
    entries.sort_by_key(|entry| entry.name);
    Library { entries, classes }
}

fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut out, mut depth, mut start) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            _ if c == separator && depth == 0 => {
                out.push(text[start..at].trim());
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    let last = text[start..].trim();
    if !last.is_empty() {
        out.push(last);
    }
    out
}

fn split_signature(text: &str) -> (Vec<&str>, &str) {
    let mut depth = 0;
    let close = text
        .char_indices()
        .find(|(_, c)| {
            match c {
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            depth == 0
        })
        .map_or(text.len(), |(at, _)| at);
    let result = text[close + 1..].trim_start_matches(" -> ");
    (split(&text[1..close], ','), result)
}

struct Pattern<'a> {
    variable: Vec<&'a str>,
    depth: usize,
    args: Vec<&'a str>,
    result: &'a str,
}

fn pattern(text: &str) -> Pattern<'_> {
    let mut rest = text;
    let mut variable = vec![""];
    if let Some(after) = rest.strip_prefix("$ = ")
        && let Some((types, tail)) = after.split_once(": ")
    {
        variable = types.split('|').flat_map(class).collect();
        rest = tail;
    }
    let mut depth = 0;
    if let Some(after) = rest.strip_prefix("[0..")
        && let Some((number, tail)) = after.split_once("] ")
    {
        depth = number.parse().unwrap_or(0);
        rest = tail;
    }
    let (args, result) = split_signature(rest);
    Pattern {
        variable,
        depth,
        args,
        result,
    }
}

fn class(word: &str) -> Vec<&str> {
    match library_classes().iter().find(|(name, _)| *name == word) {
        Some((_, types)) => types.split('|').collect(),
        None => vec![word],
    }
}

fn library_classes() -> &'static [(&'static str, &'static str)] {
    &library().classes
}

pub(super) fn expand(patterns: &[&str]) -> Vec<FunctionType> {
    let mut out = Vec::new();
    for text in patterns.iter().filter(|text| !text.contains("...")) {
        let pattern = pattern(text);
        for variable in &pattern.variable {
            for depth in 0..=pattern.depth {
                let args: Vec<Vec<ParamType>> = pattern
                    .args
                    .iter()
                    .map(|arg| alternatives(arg, variable, depth))
                    .collect();
                let result = single(pattern.result, variable, depth);
                product(&args, &mut Vec::new(), &result, &mut out);
            }
        }
    }
    out
}

fn product(
    args: &[Vec<ParamType>],
    chosen: &mut Vec<ParamType>,
    result: &Type,
    out: &mut Vec<FunctionType>,
) {
    let Some((first, rest)) = args.split_first() else {
        let signature = FunctionType {
            params: chosen.clone(),
            result: result.clone(),
        };
        out.push(signature);
        return;
    };
    for alternative in first {
        chosen.push(alternative.clone());
        product(rest, chosen, result, out);
        chosen.pop();
    }
}

fn alternatives(text: &str, variable: &str, depth: usize) -> Vec<ParamType> {
    let (data, text) = match text.strip_prefix("data ") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let mut out = Vec::new();
    for alternative in split(text, '|') {
        let (word, star) = match alternative.strip_suffix('*') {
            Some(word) => (word, depth),
            None => (alternative, 0),
        };
        let (word, dims) = dimensions(word);
        for member in class(word) {
            let (member, inner) = dimensions(member);
            for extra in dims.clone() {
                let ty = named(member, variable).array(star + extra + inner.start());
                out.push(param(ty, data));
            }
        }
    }
    out
}

/// Splits `T[]`, `T[2]` or `T[0..7]` into T and the numbers of dimensions.
fn dimensions(word: &str) -> (&str, std::ops::RangeInclusive<usize>) {
    let Some((base, rest)) = word
        .strip_suffix(']')
        .filter(|_| !word.starts_with("fn") && !word.starts_with("tuple"))
        .and_then(|w| w.split_once('['))
    else {
        return (word, 0..=0);
    };
    if rest.is_empty() {
        return (base, 1..=1);
    }
    if let Some((from, to)) = rest.split_once("..") {
        return (base, from.parse().unwrap_or(0)..=to.parse().unwrap_or(0));
    }
    let depth = rest.parse().unwrap_or(0);
    (base, depth..=depth)
}

fn single(text: &str, variable: &str, depth: usize) -> Type {
    alternatives(text, variable, depth).swap_remove(0).ty
}

fn named(word: &str, variable: &str) -> Type {
    match word {
        "int" => Type::Int,
        "real" => Type::Real,
        "complex" => Type::Complex,
        "vector" => Type::Vector,
        "row_vector" => Type::RowVector,
        "matrix" => Type::Matrix,
        "complex_vector" => Type::ComplexVector,
        "complex_row_vector" => Type::ComplexRowVector,
        "complex_matrix" => Type::ComplexMatrix,
        "$" => named(variable, ""),
        _ => {
            if let Some(signature) = word.strip_prefix("fn") {
                let (args, result) = split_signature(signature);
                return Type::Function(Box::new(FunctionType {
                    params: args
                        .iter()
                        .map(|arg| {
                            function_param(alternatives(arg, variable, 0).swap_remove(0), arg)
                        })
                        .collect(),
                    result: single(result, variable, 0),
                }));
            }
            if let Some(parts) = word
                .strip_prefix("tuple(")
                .and_then(|w| w.strip_suffix(')'))
            {
                return Type::Tuple(
                    split(parts, ',')
                        .into_iter()
                        .map(|part| single(part, variable, 0))
                        .collect(),
                );
            }
            panic!("`{word}` is not a type of the table of library functions")
        }
    }
}

/// Keeps the mark `data` of a parameter in a function type, because the mark restricts the functions that a call may
/// pass.
fn function_param(param: ParamType, text: &str) -> ParamType {
    let level = if text.starts_with("data ") {
        Level::Data
    } else {
        Level::Param
    };
    ParamType { level, ..param }
}

pub(super) fn function_positions(patterns: &[&str]) -> Vec<usize> {
    let Some(first) = patterns.first() else {
        return Vec::new();
    };
    let (args, _) = split_signature(first);
    (0..args.len())
        .filter(|at| args[*at].starts_with("fn("))
        .collect()
}

fn rest_group(word: &str) -> Option<usize> {
    match word {
        "..." => Some(0),
        "...2" => Some(1),
        _ => None,
    }
}

pub(super) fn instantiate(text: &str, passed: &[&FunctionType]) -> Option<FunctionType> {
    let (args, result) = split_signature(text);
    let mut rest: [Vec<ParamType>; 2] = [Vec::new(), Vec::new()];
    let mut slice = None;
    let mut functions = passed.iter();
    let mut params = Vec::new();
    // Functions come first, because they determine the other arguments.
    for arg in args.iter().filter(|arg| arg.starts_with("fn(")) {
        let actual = functions.next()?;
        let (wanted, wanted_result) = split_signature(&arg[2..]);
        let fixed = wanted.iter().filter(|w| rest_group(w).is_none()).count();
        if actual.params.len() < fixed || single(wanted_result, "", 0) != actual.result {
            return None;
        }
        for (want, have) in wanted.iter().zip(&actual.params) {
            if *want == "$slice" {
                if !matches!(have.ty, Type::Array(_)) {
                    return None;
                }
                slice = Some(have.clone());
            } else if rest_group(want).is_none() {
                let want_param = function_param(alternatives(want, "", 0).swap_remove(0), want);
                let data_ok = have.level == Level::Param
                    || want_param.level == Level::Data
                    || have.ty.is_discrete();
                if want_param.ty != have.ty || !data_ok {
                    return None;
                }
            }
        }
        let group = wanted.iter().find_map(|w| rest_group(w));
        match group {
            Some(group) => rest[group] = actual.params[fixed..].to_vec(),
            None if actual.params.len() > fixed => return None,
            None => {}
        }
    }
    let mut functions = passed.iter();
    for arg in &args {
        if arg.starts_with("fn(") {
            let ty = Type::Function(Box::new((*functions.next()?).clone()));
            params.push(ParamType {
                ty,
                level: Level::Param,
            });
        } else if let Some(group) = rest_group(arg) {
            params.extend(rest[group].iter().cloned());
        } else if let Some(inner) = arg.strip_prefix("tuple(...") {
            let group = usize::from(inner.starts_with('2'));
            let parts = &rest[group];
            let level = parts.iter().map(|p| p.level).min().unwrap_or(Level::Param);
            let ty = Type::Tuple(parts.iter().map(|p| p.ty.clone()).collect());
            params.push(ParamType { ty, level });
        } else if *arg == "$slice" {
            params.push(slice.clone()?);
        } else {
            params.push(alternatives(arg, "", 0).swap_remove(0));
        }
    }
    Some(FunctionType {
        params,
        result: single(result, "", 0),
    })
}
