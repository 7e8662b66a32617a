//! Reads new documents and represents them in the vocabulary of a fitted model.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use foldhash::fast::FixedState;
use rayon::prelude::*;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};

use super::file::Document;
use super::phrases::Units;
use super::sources::{Content, Skipped, Sources, Texts};
use super::tokens::{Tokeniser, on_one_line};
use crate::error::DataError;

/// A document that was read from the inputs.
#[derive(Clone, Debug, PartialEq)]
pub struct NewDocument {
    /// The position of the document in the inputs, counted from 1.
    pub number: u64,
    /// The name of the document, if the inputs contain names.
    pub id: Option<String>,
    /// The words of the document that belong to the vocabulary. If no word does, the document is empty.
    pub document: Document,
    /// The number of occurrences of words that do not belong to the vocabulary.
    pub unknown: u64,
}

/// Reads documents in order and calls `visit` for each chunk of them. Words are represented by their indices in
/// `words`. The size of a chunk is bounded and does not depend on the number of threads. Documents that are not valid
/// text have no words.
///
/// # Errors
/// Fails if an input cannot be read or is damaged. Errors that `visit` returns are also returned.
pub fn stream<E: From<DataError>>(
    sources: &Sources,
    words: &[String],
    tokeniser: &Tokeniser,
    mut visit: impl FnMut(Vec<NewDocument>) -> Result<(), E>,
) -> Result<Skipped, E> {
    let extract = Extract::new(sources, tokeniser);
    let terms: HashMap<&str, u32, FixedState> =
        (0..).zip(words).map(|(t, w)| (w.as_str(), t)).collect();
    let mut skipped = Skipped::default();
    let mut scratch = String::new();
    let mut reader = sources.reader();
    while let Some(chunk) = reader.chunk()? {
        let mut documents = Vec::new();
        for (i, number) in (0..chunk.len()).zip(chunk.first..) {
            let mut counts: Vec<(u32, u32)> = Vec::new();
            let (mut unknown, mut id, mut there) = (0, None, true);
            match &chunk.content {
                Content::Texts(texts) => match extract.text(texts, i)? {
                    Text::NotUtf8 => {
                        skipped.not_utf8 += 1;
                        there = false;
                    }
                    Text::Missing(name) => {
                        skipped.without_text += 1;
                        there = false;
                        id = name;
                    }
                    Text::Words(text) => {
                        extract.words(&text, &mut scratch, |word| match terms.get(word) {
                            Some(&term) => counts.push((term, 1)),
                            None => unknown += 1,
                        });
                        id = text.id;
                    }
                },
                Content::Bags(bags) => {
                    let old = sources.words().unwrap_or_default();
                    let (bag_terms, bag_counts) = bags.get(i);
                    for (&term, &count) in bag_terms.iter().zip(bag_counts) {
                        match terms.get(old[term as usize].as_str()) {
                            Some(&term) => counts.push((term, count)),
                            None => unknown += u64::from(count),
                        }
                    }
                }
            }
            counts.sort_unstable();
            let mut document = Document::default();
            for (term, count) in counts {
                if document.terms.last() == Some(&term) {
                    if let Some(last) = document.counts.last_mut() {
                        *last = last.saturating_add(count);
                    }
                } else {
                    document.terms.push(term);
                    document.counts.push(count);
                }
            }
            skipped.empty += u64::from(there && document.terms.is_empty());
            documents.push(NewDocument {
                number,
                id,
                document,
                unknown,
            });
        }
        visit(documents)?;
    }
    Ok(skipped)
}

/// The index that [`sequences`] gives to words outside the vocabulary.
pub const OTHER: u32 = u32::MAX;

/// Reads documents in order and calls `visit` for each chunk of them. A document is the sequence of its words, which are
/// represented by their indices in `words`, or by [`OTHER`]. Documents that are not valid text are empty.
///
/// # Errors
/// Fails if an input cannot be read or is damaged, or if the inputs are bags of words, which have no order. Errors that
/// `visit` returns are also returned.
pub fn sequences<E: From<DataError>>(
    sources: &Sources,
    words: &[String],
    tokeniser: &Tokeniser,
    mut visit: impl FnMut(Vec<Vec<u32>>) -> Result<(), E>,
) -> Result<(), E> {
    let extract = Extract::new(sources, tokeniser);
    let terms: HashMap<&str, u32, FixedState> =
        (0..).zip(words).map(|(t, w)| (w.as_str(), t)).collect();
    let mut reader = sources.reader();
    while let Some(chunk) = reader.chunk()? {
        let Content::Texts(texts) = &chunk.content else {
            let why = "bags of words have no order, so they have no windows: give the texts";
            return Err(DataError::invalid(why).into());
        };
        let of = |i: usize| {
            let mut document = Vec::new();
            if let Text::Words(text) = extract.text(texts, i)? {
                extract.words(&text, &mut String::new(), |word| {
                    document.push(terms.get(word).copied().unwrap_or(OTHER));
                });
            }
            Ok(document)
        };
        let documents = (0..chunk.len()).into_par_iter().map(of);
        visit(documents.collect::<Result<_, DataError>>()?)?;
    }
    Ok(())
}

pub(crate) struct Extract<'a> {
    sources: &'a Sources,
    tokeniser: &'a Tokeniser,
}

pub(crate) struct Found<'t> {
    written: Written<'t>,
    pub id: Option<String>,
}

enum Written<'t> {
    Text(Cow<'t, str>),
    List(Vec<String>),
}

pub(crate) enum Text<'t> {
    Words(Found<'t>),
    NotUtf8,
    /// An object that has no words but may have a name.
    Missing(Option<String>),
}

impl<'a> Extract<'a> {
    pub fn new(sources: &'a Sources, tokeniser: &'a Tokeniser) -> Self {
        Self { sources, tokeniser }
    }

    pub fn text<'t>(&self, texts: &'t Texts, i: usize) -> Result<Text<'t>, DataError> {
        let (file, line) = texts.locations[i];
        let input = &self.sources.inputs[file as usize];
        let Ok(text) = std::str::from_utf8(texts.get(i)) else {
            return Ok(Text::NotUtf8);
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if !input.format.has_fields() {
            return Ok(Text::Words(Found {
                written: Written::Text(Cow::Borrowed(text)),
                id: None,
            }));
        }
        let mut json = serde_json::Deserializer::from_str(text);
        let fields = Fields {
            text: &self.sources.field,
            id: self.sources.id.as_deref(),
        };
        let found = fields
            .deserialize(&mut json)
            .and_then(|found| json.end().map(|()| found));
        let (written, id) = found.map_err(|error| {
            DataError::invalid(format!(
                "`{}`, line {line}: expected a JSON object: {error}",
                input.path.display()
            ))
        })?;
        Ok(match written {
            Some(written) => Text::Words(Found { written, id }),
            None => Text::Missing(id),
        })
    }

    /// Calls `visit` for every word or phrase of a document, in order.
    pub fn words(&self, found: &Found<'_>, scratch: &mut String, visit: impl FnMut(&str)) {
        match self.tokeniser.phrases.is_empty() {
            true => self.single(found, scratch, visit),
            false => self.units(found, scratch).each(visit),
        }
    }

    /// Returns the words and phrases of a document.
    pub fn units(&self, found: &Found<'_>, scratch: &mut String) -> Units {
        let mut units = Units::default();
        self.single(found, scratch, |word| units.push(word));
        self.tokeniser.phrases.join(&mut units);
        units
    }

    /// Calls `visit` for every word of a document, in order. The elements of a list of words are not changed, apart from
    /// line ends.
    fn single(&self, found: &Found<'_>, scratch: &mut String, mut visit: impl FnMut(&str)) {
        match &found.written {
            Written::Text(text) => self.tokeniser.words(text, scratch, visit),
            Written::List(words) => words.iter().for_each(|word| visit(&on_one_line(word))),
        }
    }
}

struct Fields<'f> {
    text: &'f str,
    id: Option<&'f str>,
}

/// A string or a list of strings. Any other value is treated as if it were empty.
struct MaybeWords;

impl<'de> DeserializeSeed<'de> for MaybeWords {
    type Value = Option<Written<'de>>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for MaybeWords {
    type Value = Option<Written<'de>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Some(Written::Text(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Some(Written::Text(Cow::Owned(text.to_owned()))))
    }

    fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
        Ok(Some(Written::Text(Cow::Owned(text))))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
        let (mut words, mut all) = (Vec::new(), true);
        while let Some(element) = list.next_element::<serde_json::Value>()? {
            match element {
                serde_json::Value::String(word) if !word.is_empty() => words.push(word),
                serde_json::Value::String(_) | serde_json::Value::Null => {}
                _ => all = false,
            }
        }
        Ok(all.then_some(Written::List(words)))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(None)
    }
}

impl<'de> DeserializeSeed<'de> for Fields<'_> {
    type Value = (Option<Written<'de>>, Option<String>);

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Fields<'_> {
    type Value = (Option<Written<'de>>, Option<String>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut text, mut id) = (None, None);
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            if key == self.text {
                text = map.next_value_seed(MaybeWords)?;
            } else if self.id.is_some_and(|name| key == name) {
                id = match map.next_value::<serde_json::Value>()? {
                    serde_json::Value::String(id) => Some(id),
                    serde_json::Value::Null => None,
                    other => Some(other.to_string()),
                };
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok((text, id))
    }
}
