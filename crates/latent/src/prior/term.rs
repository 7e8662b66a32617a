//! Builds a part of the prior from one term of a specification and from the table to which the term refers.

use std::sync::Arc;

use super::by::{self, Factors};
use super::correlated::{pairs, partial_prior};
use super::distribution::Distribution;
use super::field::Field;
use super::graph::{Graph, Lattice};
use super::inducing::Inducing;
use super::inputs::{Covariate, Index, Source, Spacing, Units, complete, complete_words};
use super::kernel::{KernelRow, Shape};
use super::read::{Piece, Reader};
use super::setting::Setting;
use super::spec::SpecError;
use super::spectral::Spectral;
use super::terms::Known;
use super::times::Apart;
use crate::linear::narrow::root_of;
use crate::model::symmetric;
use crate::{Error, PriorDensity, Range};

/// The nodes of a second-order walk. The precision of a walk of n evenly spaced nodes with standard deviation s has
/// entries up to 6 · 0.0017 n³ / s², where 0.0017 n³ is the generalised variance of the structure matrix. Rounding
/// errors in these entries can hide the information that a row contributes. For s = 1 and 10 000 nodes, the errors are
/// 2e-6 of this information. For 30 000 nodes they are 6e-5, and the duality gap no longer reaches its tolerance.
/// Uneven nodes have larger entries: for 25 000 uniform values and 7 400 nodes at least a 10 000th of the range apart, the
/// noise of the bound exceeded 0.1 nats, and no mode of the hyperparameters was found. Uneven nodes are therefore at least
/// a 2 000th of the range apart, and rows between them are interpolated. In that example the bound of 1 900 nodes is within
/// 1.4 nats of that of 7 400, and the variance of the noise within a share of 3e-5.
const RW2: Spacing = Spacing {
    most: 10_000,
    interpolated: true,
    otherwise: Some(Apart {
        share: 5e-4,
        interpolated: true,
    }),
};

/// The nodes of a first-order walk. With n nodes at random times, the entries of its precision are up to n² times those
/// of evenly spaced nodes. For values that are 3e-11 of the range apart, the entries times the variance of the walk are
/// 1e10, as in a second-order walk of 10 000 nodes, so closer values share a node. The walk changes by 5e-6 of its
/// standard deviation over this distance.
const RW1: Spacing = Spacing {
    most: 100_000,
    interpolated: true,
    otherwise: CLOSE,
};

const CLOSE: Option<Apart> = Some(Apart {
    share: 3e-11,
    interpolated: false,
});

const AR1: Spacing = Spacing {
    most: 100_000,
    interpolated: false,
    otherwise: CLOSE,
};

const RING: Spacing = Spacing {
    most: 100_000,
    interpolated: false,
    otherwise: None,
};

pub(super) struct Building {
    pub(super) piece: Piece,
    pub(super) body: Body,
}

pub(super) enum Body {
    Kernel {
        shape: Shape,
        variance: Option<Setting>,
        lengthscales: Vec<Setting>,
    },
    Field(Field),
    Independent(Setting),
    Spectral(Spectral),
    Inducing(Inducing),
}

pub(super) struct Builder<'a, 's> {
    pub(super) known: &'a Known<'s>,
    pub(super) label: String,
    pub(super) source: &'a dyn Source,
    pub(super) rows: &'a [usize],
    pub(super) process: bool,
    pub(super) later_factor: bool,
    pub(super) units: Units,
    /// Whether the sum contains a level. If it does, a constant column is redundant.
    pub(super) level: bool,
    pub(super) by: Factors,
}

impl Builder<'_, '_> {
    pub(super) fn call(
        mut self,
        notes: &mut Vec<String>,
        graphs: &mut Vec<(String, Graph)>,
    ) -> Result<Building, SpecError> {
        let known = self.known;
        self.by = self.factors()?;
        if let (Some(named), true) = (known.named("by"), self.later_factor) {
            let message = "`by=` in the first factor scales the whole product";
            return Err(known.error(&named.key.span, message));
        }
        let (reader, body) = match known.term.name {
            "gp" => self.gp(notes)?,
            "hsgp" => self.hsgp(notes)?,
            "svgp" => self.svgp(notes)?,
            "mesh" => self.mesh(notes)?,
            "te" => self.tensor()?,
            "tp" => self.radial(notes)?,
            "covariance" => self.covariance(notes)?,
            "iid" => {
                known.at_most(0)?;
                let reader = match known.one("on")? {
                    None => Reader::Own,
                    Some(word) => {
                        let text = word.text.as_str();
                        let mut levels = complete_words(self.source, text, self.rows)
                            .map_err(|m| known.error(&word.span, m))?;
                        levels.sort();
                        levels.dedup();
                        let column = word.text.clone();
                        Reader::At(Index::Groups { column, levels })
                    }
                };
                let body = match self.by.len() {
                    1 => match known.named("cor") {
                        Some(named) => {
                            let message = "`cor` is between several columns: by=(1, COLUMN)";
                            return Err(known.error(&named.key.span, message));
                        }
                        None => self.independent(Shape::Same)?,
                    },
                    _ => Body::Field(self.correlated(&reader)?),
                };
                (reader, body)
            }
            "fixed" => {
                let list = self.effects(notes)?;
                (Reader::Covariates(list), self.independent(Shape::Linear)?)
            }
            "intercept" => {
                known.at_most(0)?;
                (Reader::Common, self.independent(Shape::Constant)?)
            }
            name => {
                let (index, field) = self.field(name, notes, graphs)?;
                (Reader::At(index), Body::Field(field.named(&self.label)))
            }
        };
        let (repeats, body) = match self.repeats()? {
            None => (None, body),
            Some(repeats) => {
                let (repeats, body) = self.copies(repeats, &reader, body)?;
                (Some(repeats), body)
            }
        };
        Ok(Building {
            piece: Piece {
                name: self.label,
                repeats,
                reader,
                factors: self.by,
                latents: 0..0,
            },
            body,
        })
    }

    pub(super) fn setting(&self, name: &str, from_data: Option<f64>) -> Result<Setting, SpecError> {
        let effect = self.unit(&self.by[0]);
        let unit = effect.powf(self.known.hyper(name)?.power);
        self.known.setting(name, &self.label, from_data, unit)
    }

    /// Returns the effect in the table's units that corresponds to 1 in the model, for a variable with this factor.
    pub(super) fn unit(&self, factor: &Option<Covariate>) -> f64 {
        self.units.response / factor.as_ref().map_or(1.0, |covariate| covariate.scale)
    }

    /// Returns correlated effects of several columns in each group. They have a variance for each column and a
    /// correlation for each pair of columns.
    fn correlated(&self, reader: &Reader) -> Result<Field, SpecError> {
        let known = self.known;
        let fail = |message: &str| known.error(&known.call.name.span, message);
        if self.process {
            return Err(fail(
                "correlated effects cannot be in one sum with `gp` or `covariance`; use a field (`rw2`, `ar1`) \
                 instead of the process",
            ));
        }
        let Reader::At(index) = reader else {
            return Err(known.misused("several columns in `by=` need groups"));
        };
        let size = self.by.len();
        let names: Vec<String> = self.by.iter().map(by::name).collect();
        let labels: Vec<String> = (names.iter())
            .map(|name| format!("{}[{name}]", self.label))
            .collect();
        let units: Vec<f64> = self.by.iter().map(|f| self.unit(f).powi(2)).collect();
        let mut settings = known.settings("variance", &labels, &vec![None; size], &units)?;
        let labels: Vec<String> = pairs(size)
            .map(|(i, j)| {
                let given = match j {
                    0 => String::new(),
                    _ => format!("|{}", names[..j].join(",")),
                };
                format!("{}[{},{}{given}]", self.label, names[j], names[i])
            })
            .collect();
        let (starts, ones) = (vec![None; labels.len()], vec![1.0; labels.len()]);
        let mut partial = known.settings("cor", &labels, &starts, &ones)?;
        let shape = match known.distribution("cor")? {
            Some(Distribution::Density(PriorDensity::Lkj { shape })) => shape,
            Some(_) => return Err(fail("the prior of `cor` is `lkj(shape)`")),
            None => known.hyper("cor")?.usual.0,
        };
        for (setting, (_, j)) in partial.iter_mut().zip(pairs(size)) {
            setting.density = partial_prior(shape, size, j);
        }
        settings.extend(partial);
        Field::correlated(index.nodes(), size, settings).map_err(|error| fail(&error.to_string()))
    }

    fn independent(&self, shape: Shape) -> Result<Body, SpecError> {
        let variance = self.setting("variance", None)?;
        Ok(if self.process {
            Body::Kernel {
                shape,
                variance: Some(variance),
                lengthscales: Vec::new(),
            }
        } else {
            Body::Independent(variance)
        })
    }

    /// Returns the kernel that the term names. It must be one of the kernels in `offered`.
    pub(super) fn kernel(
        &self,
        offered: impl Fn(&KernelRow) -> bool,
    ) -> Result<&'static KernelRow, SpecError> {
        let known = self.known;
        known.at_most(1)?;
        let words = known.words();
        let Some(kernel) = words.first() else {
            return Err(known.misused(&format!("`{}` needs a kernel", known.term.name)));
        };
        let rows = || Shape::TABLE.iter().filter(|row| offered(row));
        rows().find(|row| row.name == kernel.text).ok_or_else(|| {
            let names: Vec<&str> = rows().map(|row| row.name).collect();
            let message = format!(
                "there is no kernel `{}`; choose one of {}",
                kernel.text,
                names.join(", ")
            );
            known.error(&kernel.span, message)
        })
    }

    fn gp(&self, notes: &mut Vec<String>) -> Result<(Reader, Body), SpecError> {
        let known = self.known;
        let row = self.kernel(|_| true)?;
        let mut inputs = self.inputs(notes)?;
        for key in ["ard", "lengthscale"] {
            let named = known.named(key).map(|n| &n.key.span);
            let flag = known.call.positional.iter().find(|w| w.text == key);
            if let (false, Some(span)) = (row.stationary, named.or(flag.map(|w| &w.span))) {
                let message = format!("the kernel `{}` has no lengthscale", row.name);
                return Err(known.error(span, message));
            }
        }
        let variance = self.variance()?;
        let mut lengthscales = self.scales(&mut inputs, row, notes)?;
        match known.named("alpha") {
            Some(named) if !row.shape.has_alpha() => {
                let message = format!("the kernel `{}` has no alpha, only `rq`", row.name);
                return Err(known.error(&named.key.span, message));
            }
            _ if row.shape.has_alpha() => {
                lengthscales.push(known.setting("alpha", &self.label, None, 1.0)?);
            }
            _ => {}
        }
        let reader = match row.shape {
            Shape::Constant => Reader::Common,
            _ => Reader::Inputs(inputs),
        };
        let body = Body::Kernel {
            shape: row.shape,
            variance: Some(variance),
            lengthscales,
        };
        Ok((reader, body))
    }

    /// Returns the variance of a factor of a product. For the second and later factors, the default is 1.
    fn variance(&self) -> Result<Setting, SpecError> {
        // Only the first factor of a product has the unit of the response.
        let mut variance = match self.later_factor {
            false => self.setting("variance", None)?,
            true => self.known.setting("variance", &self.label, None, 1.0)?,
        };
        if self.later_factor && self.known.named("variance").is_none() {
            variance.free = false;
        }
        Ok(variance)
    }

    fn covariance(&self, notes: &mut Vec<String>) -> Result<(Reader, Body), SpecError> {
        let known = self.known;
        known.at_most(0)?;
        let Some(file) = known.one("matrix")? else {
            return Err(known.misused("`covariance` needs a matrix"));
        };
        let sigma = self
            .source
            .matrix(&file.text)
            .map_err(|m| known.error(&file.span, m))?;
        let mut own = Vec::new();
        let root = symmetric(&sigma)
            .and_then(|()| root_of(&sigma, &mut own))
            .map_err(|e| known.error(&file.span, format!("{}: {e}", file.text)))?;
        notes.extend(own.iter().map(|note| format!("{}: {note}", file.text)));
        let reader = Reader::Given {
            index: self.regions(root.rows)?,
            root: Arc::new(root),
        };
        let body = Body::Kernel {
            // The inner products of the rows of the root form the matrix.
            shape: Shape::Linear,
            variance: Some(self.variance()?),
            lengthscales: Vec::new(),
        };
        Ok((reader, body))
    }

    /// Returns the field with the hyperparameters `names`. The settings receive starting values only. Later code
    /// decides which of them are free.
    fn with_settings(&self, mut field: Field, names: &[&str]) -> Result<Field, SpecError> {
        for (i, name) in names.iter().enumerate() {
            let stated = self.setting(name, Some(field.settings()[i].value))?;
            let density = field
                .prior(
                    self.known.hyper(name)?,
                    stated.density,
                    self.known.distribution(name)?,
                )
                .map_err(|e| self.known.error(&self.known.call.name.span, e.to_string()))?;
            let own = &mut field.settings_mut()[i];
            if let (Range::Between(low, high), Some(named)) = (own.range, self.known.named(name))
                && !(low < stated.value && stated.value < high)
            {
                let message = format!(
                    "`{name}` must be between {low} and {high}, because the nodes are not evenly spaced"
                );
                return Err(self.known.error(&named.key.span, message));
            }
            *own = Setting {
                name: own.name.clone(),
                range: own.range,
                density,
                ..stated
            };
        }
        Ok(field)
    }

    fn field(
        &self,
        name: &str,
        notes: &mut Vec<String>,
        graphs: &mut Vec<(String, Graph)>,
    ) -> Result<(Index, Field), SpecError> {
        let known = self.known;
        let fail = |error: Error| known.error(&known.call.name.span, error.to_string());
        match name {
            "icar" | "bym2" => {
                known.at_most(0)?;
                let Some(file) = known.one("graph")? else {
                    return Err(known.misused(&format!("`{name}` needs a graph")));
                };
                let graph = self
                    .source
                    .graph(&file.text)
                    .map_err(|m| known.error(&file.span, m))?;
                remark_components(&graph, &self.label, notes);
                graphs.push((self.label.clone(), graph.clone()));
                let index = self.regions(graph.nodes())?;
                let field = if name == "icar" {
                    self.with_settings(Field::laplace(&graph, None).map_err(fail)?, &["precision"])?
                } else {
                    let field = Field::bym2(&graph, None, None).map_err(fail)?;
                    self.with_settings(field, &["precision", "phi"])?
                };
                Ok((index, field))
            }
            "precision" => {
                known.at_most(0)?;
                let Some(file) = known.one("matrix")? else {
                    return Err(known.misused("`precision` needs a matrix"));
                };
                let at = |message: String| known.error(&file.span, message);
                let matrix = self.source.sparse(&file.text).map_err(at)?;
                let index = self.regions(matrix.rows)?;
                let field = Field::given(matrix, None)
                    .map_err(|error| at(format!("{}: {error}", file.text)))?;
                Ok((index, self.with_settings(field, &["precision"])?))
            }
            "grid" => self.grid(notes),
            _ => {
                known.at_most(0)?;
                let ends = ["from", "to", "step"].map(|key| known.number_of(key));
                let [from, to, step] = ends;
                let ends = [from?, to?, step?];
                self.line(name, ends, notes)
            }
        }
    }

    /// Returns a walk or an autoregression along a line or a ring.
    fn line(
        &self,
        name: &str,
        ends: [Option<f64>; 3],
        notes: &mut Vec<String>,
    ) -> Result<(Index, Field), SpecError> {
        let known = self.known;
        let fail = |error: Error| known.error(&known.call.name.span, error.to_string());
        let cyclic = known.flag("cyclic");
        let spacing = match name {
            _ if cyclic => RING,
            "rw1" => RW1,
            "rw2" => RW2,
            _ => AR1,
        };
        let index = match known.one("on")? {
            Some(word) => Index::line(self.source, &word.text, self.rows, ends, spacing)
                .map_err(|m| known.error(&word.span, m))?,
            None => Index::Rows {
                nodes: self.source.rows(),
            },
        };
        self.check_rows(&index)?;
        let nodes = index.nodes();
        if name == "rw2" && matches!(index, Index::Rows { .. }) && nodes > RW2.most {
            return Err(known.misused(&format!(
                "`rw2` of {nodes} rows: beyond {} nodes double precision cannot resolve second differences; \
                 name the column of positions with `on=`, so that the fit uses fewer nodes and interpolates",
                RW2.most
            )));
        }
        let (hyper, meaning): (&[&str], &str) = match name {
            "ar1" => (
                &["rho", "variance"],
                "`rho` is the correlation over a distance of",
            ),
            _ => (&["precision"], "`precision` refers to a distance of"),
        };
        let field = match (name, &index) {
            (_, Index::Times(times)) => {
                notes.push(times.note(&self.label, meaning));
                match name {
                    "rw1" => Field::rw1_over(&times.gaps(), None),
                    "rw2" => Field::rw2_over(&times.gaps(), None),
                    _ => Field::ornstein(times.gaps(), None, None),
                }
            }
            ("rw1", _) => Field::rw1(nodes, cyclic, None),
            ("rw2", _) => Field::rw2(nodes, cyclic, None),
            _ => Field::ar1(nodes, None, None),
        };
        Ok((index, self.with_settings(field.map_err(fail)?, hyper)?))
    }

    /// Checks that every row has a node. If one does not, the error points to the column in the specification.
    fn check_rows(&self, index: &Index) -> Result<(), SpecError> {
        let known = self.known;
        let position = known
            .list("on")
            .and_then(<[_]>::first)
            .map_or(&known.call.name.span, |word| &word.span);
        index
            .find(self.source, self.rows)
            .map(|_| ())
            .map_err(|m| known.error(position, m))
    }

    /// Returns the number of the first node. If the user does not give this number, it is 0 if the columns contain a 0,
    /// and 1 otherwise.
    fn first(&self, columns: &[String]) -> Result<usize, SpecError> {
        let known = self.known;
        if let Some(word) = known.one("first")? {
            return match word.text.as_str() {
                "0" => Ok(0),
                "1" => Ok(1),
                _ => Err(known.error(&word.span, "`first` is 0 or 1")),
            };
        }
        for (i, column) in columns.iter().enumerate() {
            let position = known
                .list("on")
                .map_or(&known.call.name.span, |w| &w[i].span);
            let values =
                complete(self.source, column, self.rows).map_err(|m| known.error(position, m))?;
            if values.contains(&0.0) {
                return Ok(0);
            }
        }
        Ok(usize::from(!columns.is_empty()))
    }

    /// Returns the nodes that the column `on=` selects, or one node per row if there is no such key.
    fn regions(&self, nodes: usize) -> Result<Index, SpecError> {
        let index = match self.known.one("on")? {
            None => Index::Rows { nodes },
            Some(word) => Index::Regions {
                first: self.first(std::slice::from_ref(&word.text))?,
                column: word.text.clone(),
                nodes,
            },
        };
        self.check_rows(&index)?;
        Ok(index)
    }

    fn grid(&self, notes: &mut Vec<String>) -> Result<(Index, Field), SpecError> {
        let known = self.known;
        known.at_most(3)?;
        let [kind, rows, columns] = known.words()[..] else {
            return Err(known.misused("`grid` needs a kind, rows and columns"));
        };
        let (height, width) = (known.count(rows)?, known.count(columns)?);
        let cells = height.checked_mul(width).filter(|n| *n < 100_000_000);
        let cells =
            cells.ok_or_else(|| known.error(&columns.span, "the grid has too many cells"))?;
        let mask = match known.one("mask")? {
            None => None,
            Some(file) => Some(
                self.source
                    .mask(&file.text, height, width)
                    .map_err(|m| known.error(&file.span, m))?,
            ),
        };
        let lattice = Lattice::new(height, width, mask.as_deref())
            .map_err(|error| known.error(&kind.span, error.to_string()))?;
        let on: Vec<String> = known
            .list("on")
            .unwrap_or(&[])
            .iter()
            .map(|w| w.text.clone())
            .collect();
        if let Some(extra) = known.list("on").and_then(|words| words.get(2)) {
            return Err(known.error(&extra.span, "cells need one number, or a row and a column"));
        }
        if on.is_empty() && self.source.rows() > cells {
            return Err(known.error(
                &known.call.name.span,
                format!(
                    "the table has {} rows, but the grid has {cells} cells, one per row; name cells with `on=`",
                    self.source.rows()
                ),
            ));
        }
        let fail = |error: Error| known.error(&kind.span, error.to_string());
        let foreign = |keys: &[&str]| {
            keys.iter().find_map(|key| known.named(key)).map(|named| {
                known.error(
                    &named.key.span,
                    format!("`grid({}, …)` has no `{}`", kind.text, named.key.text),
                )
            })
        };
        let intrinsic = kind.text != "spde";
        let wrong = if intrinsic {
            foreign(&["range", "variance"])
        } else {
            foreign(&["precision"])
        };
        if let Some(error) = wrong {
            return Err(error);
        }
        let (field, names): (_, &[&str]) = match kind.text.as_str() {
            "rw1" => (Field::laplace(&lattice.graph(), None), &["precision"]),
            "rw2" => (Field::thin_plate(&lattice, None), &["precision"]),
            "spde" => (Field::spde(&lattice, None, None), &["range", "variance"]),
            other => {
                let message = format!("there is no grid field `{other}`; choose rw1, rw2 or spde");
                return Err(known.error(&kind.span, message));
            }
        };
        if intrinsic {
            remark_components(&lattice.graph(), &self.label, notes);
        }
        let index = Index::Cells {
            first: self.first(&on)?,
            columns: on,
            lattice,
        };
        self.check_rows(&index)?;
        Ok((index, self.with_settings(field.map_err(fail)?, names)?))
    }
}

fn remark_components(graph: &Graph, label: &str, notes: &mut Vec<String>) {
    let (_, count) = graph.components();
    let alone = (0..graph.nodes())
        .filter(|i| graph.neighbours(*i).is_empty())
        .count();
    if count > 1 {
        notes.push(format!(
            "{label}: the graph has {count} components, and the prior is flat in the level of each{}",
            match alone {
                0 => String::new(),
                n => format!(", except {n} nodes without neighbours, which are independent"),
            }
        ));
    }
}
