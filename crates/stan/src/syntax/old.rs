//! Translates programs from the syntax before Stan 2.33 to today's syntax. The translation covers arrays declared as
//! `real x[N]` or `real[] x`, the assignment `<-`, `#` comments, and functions whose name or form of call has changed.
//!
//! The translation works on tokens, so it recognises types only by the keywords of declarations. Text between tokens,
//! such as blanks and comments, is preserved.

use std::collections::BTreeMap;
use std::ops::Range;

use super::scan::scan;
use super::token::TokenKind;

const RENAMED: &[(&str, &str)] = &[
    ("fabs", "abs"),
    ("multiply_log", "lmultiply"),
    ("binomial_coefficient_log", "lchoose"),
    ("cov_exp_quad", "gp_exp_quad_cov"),
    ("log_gamma", "lgamma"),
];

/// Returns whether at least one array is declared in the syntax before Stan 2.33, and no array in today's syntax.
pub fn is_old(text: &str) -> bool {
    let old = Old::scanned(text, &|_| false);
    let positions = 0..old.tokens.len();
    !positions.clone().any(|at| old.begins_array(at))
        && positions.clone().any(|at| old.is_old_type(at))
}

/// Returns the program in today's syntax. `known` must return whether a name is that of a library function.
pub fn modernise(text: &str, known: &dyn Fn(&str) -> bool) -> String {
    let mut old = Old::scanned(text, known);
    old.find_densities();
    let mut out = old.rewritten(0..old.tokens.len());
    let end = old.tokens.last().map_or(0, |(_, range)| range.end);
    out.push_str(&text[end..]);
    out
}

struct Old<'a> {
    text: &'a str,
    tokens: Vec<(TokenKind, Range<usize>)>,
    known: &'a dyn Fn(&str) -> bool,
    /// The densities that the program defines under names that end in `_log`, each with its name in today's syntax.
    densities: BTreeMap<String, String>,
}

struct Declaration {
    ty: Range<usize>,
    names: Vec<Named>,
    end: usize,
}

/// The position of a name, the tokens of its sizes, and the tokens of its initial value.
type Named = (usize, Option<Range<usize>>, Option<Range<usize>>);

impl<'a> Old<'a> {
    fn scanned(text: &'a str, known: &'a dyn Fn(&str) -> bool) -> Self {
        let tokens = scan(text).map(|(kind, range)| (kind.unwrap_or(TokenKind::Str), range));
        Self {
            text,
            tokens: tokens.collect(),
            known,
            densities: BTreeMap::new(),
        }
    }

    fn begins_array(&self, at: usize) -> bool {
        self.kind(at) == TokenKind::Array && self.kind(at + 1) == TokenKind::LBracket
    }

    /// Whether this token starts a type that declares an array in the old syntax.
    fn is_old_type(&self, at: usize) -> bool {
        if !self.kind(at).starts_type() || self.kind(at) == TokenKind::Array {
            return false;
        }
        let end = self.type_end(at);
        self.unsized_end(end).is_some() || self.old_declaration(at, end).is_some()
    }

    fn kind(&self, at: usize) -> TokenKind {
        self.tokens
            .get(at)
            .map_or(TokenKind::Eof, |(kind, _)| *kind)
    }

    fn word(&self, at: usize) -> &str {
        &self.text[self.tokens[at].1.clone()]
    }

    fn gap(&self, at: usize) -> &str {
        let before = match at {
            0 => 0,
            _ => self.tokens[at - 1].1.end,
        };
        &self.text[before..self.tokens[at].1.start]
    }

    fn closing(&self, open: usize) -> Option<usize> {
        use TokenKind::*;
        let mut depth = 0usize;
        for at in open..self.tokens.len() {
            match self.kind(at) {
                LParen | LBracket | LBrace => depth += 1,
                RParen | RBracket | RBrace => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(at);
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn split(&self, range: Range<usize>, wanted: &[TokenKind]) -> Vec<usize> {
        use TokenKind::*;
        let (mut depth, mut found) = (0usize, Vec::new());
        for at in range {
            match self.kind(at) {
                LParen | LBracket | LBrace => depth += 1,
                RParen | RBracket | RBrace => depth = depth.saturating_sub(1),
                kind if depth == 0 && wanted.contains(&kind) => found.push(at),
                _ => {}
            }
        }
        found
    }

    /// The type consists of a keyword, bounds and sizes. Array brackets do not belong to the type here.
    fn type_end(&self, start: usize) -> usize {
        let mut at = start + 1;
        if self.kind(at) == TokenKind::Less {
            let Some(close) = self
                .split(at..self.tokens.len(), &[TokenKind::Greater])
                .first()
                .copied()
            else {
                return at;
            };
            at = close + 1;
        }
        let scalar = matches!(self.kind(start), TokenKind::IntType | TokenKind::RealType);
        if !scalar
            && self.kind(at) == TokenKind::LBracket
            && let Some(close) = self.closing(at)
            && !self.is_unsized(at, close)
        {
            return close + 1;
        }
        at
    }

    /// Whether brackets contain only commas, as in the types of arguments.
    fn is_unsized(&self, open: usize, close: usize) -> bool {
        (open + 1..close).all(|at| self.kind(at) == TokenKind::Comma)
    }

    /// Returns the position of the bracket that closes the dimensions of an argument or a result, as in `real[,] x`.
    fn unsized_end(&self, open: usize) -> Option<usize> {
        let brackets = self.kind(open) == TokenKind::LBracket;
        let close = brackets.then(|| self.closing(open)).flatten()?;
        self.is_unsized(open, close).then_some(close)
    }

    fn find_densities(&mut self) {
        for at in 0..self.tokens.len() {
            if self.kind(at) != TokenKind::RealType
                || self.kind(at + 1) != TokenKind::Ident
                || self.kind(at + 2) != TokenKind::LParen
            {
                continue;
            }
            let Some(stem) = self.word(at + 1).strip_suffix("_log") else {
                continue;
            };
            let first = match self.kind(at + 3) {
                TokenKind::Data => at + 4,
                _ => at + 3,
            };
            let suffix = match self.kind(first) {
                TokenKind::IntType => "_lpmf",
                _ => "_lpdf",
            };
            let modern = format!("{stem}{suffix}");
            self.densities.insert(self.word(at + 1).to_owned(), modern);
        }
    }

    fn rewritten(&self, range: Range<usize>) -> String {
        let mut out = String::new();
        let mut at = range.start;
        while at < range.end {
            out.push_str(self.gap(at));
            at = self.token(at, &mut out);
        }
        out
    }

    /// Writes the construct at a token, without the gap before it, and returns the position of the next construct.
    fn token(&self, at: usize, out: &mut String) -> usize {
        let kind = self.kind(at);
        if kind.starts_type() {
            return self.typed(at, out);
        }
        match kind {
            TokenKind::ArrowAssign => out.push('='),
            TokenKind::Hash => {
                out.push_str("//");
                out.push_str(&self.word(at)[1..]);
            }
            TokenKind::Ident if self.kind(at + 1) == TokenKind::LParen => {
                if let Some(close) = self.closing(at + 1) {
                    return self.call(at, close, out);
                }
                out.push_str(self.word(at));
            }
            _ => out.push_str(self.word(at)),
        }
        at + 1
    }

    fn typed(&self, start: usize, out: &mut String) -> usize {
        // Declarations in today's syntax remain unchanged.
        if self.kind(start) == TokenKind::Array {
            out.push_str(self.word(start));
            return start + 1;
        }
        let end = self.type_end(start);
        if let Some(close) = self.unsized_end(end) {
            let commas = ",".repeat(close - end - 1);
            out.push_str(&format!("array[{commas}] "));
            out.push_str(&self.type_text(start, end));
            return self.defined(close + 1, out);
        }
        if let Some(declaration) = self.old_declaration(start, end) {
            self.declare(&declaration, out);
            return declaration.end + 1;
        }
        out.push_str(&self.type_text(start, end));
        self.defined(end, out)
    }

    fn type_text(&self, start: usize, end: usize) -> String {
        self.word(start).to_owned() + &self.rewritten(start + 1..end)
    }

    /// Writes the name of a function at its definition, in today's syntax, and returns the position after the name.
    fn defined(&self, at: usize, out: &mut String) -> usize {
        if self.kind(at) != TokenKind::Ident || self.kind(at + 1) != TokenKind::LParen {
            return at;
        }
        let name = self.word(at);
        out.push_str(self.gap(at));
        out.push_str(self.densities.get(name).map_or(name, String::as_str));
        at + 1
    }

    fn old_declaration(&self, start: usize, end: usize) -> Option<Declaration> {
        let last = *self
            .split(end..self.tokens.len(), &[TokenKind::Semi])
            .first()?;
        let mut names = Vec::new();
        let mut bounds = vec![end];
        for comma in self.split(end..last, &[TokenKind::Comma]) {
            bounds.extend([comma, comma + 1]);
        }
        bounds.push(last);
        for pair in bounds.chunks(2) {
            let &[from, to] = pair else { return None };
            if self.kind(from) != TokenKind::Ident {
                return None;
            }
            let (mut at, mut dims) = (from + 1, None);
            if self.kind(at) == TokenKind::LBracket {
                let close = self.closing(at)?;
                dims = Some(at + 1..close);
                at = close + 1;
            }
            let init = match self.kind(at) {
                TokenKind::Assign | TokenKind::ArrowAssign => Some(at + 1..to),
                _ if at == to => None,
                _ => return None,
            };
            names.push((from, dims, init));
        }
        let old = names.iter().any(|(_, dims, _)| dims.is_some());
        old.then_some(Declaration {
            ty: start..end,
            names,
            end: last,
        })
    }

    fn declare(&self, declaration: &Declaration, out: &mut String) {
        let ty = self.type_text(declaration.ty.start, declaration.ty.end);
        for (i, (name, dims, init)) in declaration.names.iter().enumerate() {
            if i > 0 {
                out.push(' ');
            }
            if let Some(dims) = dims {
                out.push_str(&format!("array[{}] ", self.rewritten(dims.clone()).trim()));
            }
            out.push_str(&ty);
            out.push(' ');
            out.push_str(self.word(*name));
            if let Some(init) = init {
                out.push_str(" =");
                out.push_str(&self.rewritten(init.clone()));
            }
            out.push(';');
        }
    }

    fn call(&self, at: usize, close: usize, out: &mut String) -> usize {
        let name = self.word(at);
        let open = at + 1;
        let within = open + 1..close;
        match name {
            "increment_log_prob" => {
                out.push_str("target +=");
                let value = self.rewritten(within);
                out.push_str(if value.starts_with(' ') { "" } else { " " });
                out.push_str(value.trim_end());
                return close + 1;
            }
            "get_lp" => {
                out.push_str("target()");
                return close + 1;
            }
            "if_else" => {
                let commas = self.split(within.clone(), &[TokenKind::Comma]);
                if let &[first, second] = commas.as_slice() {
                    let part = |range| self.rewritten(range).trim().to_owned();
                    out.push_str(&format!(
                        "({} ? {} : {})",
                        part(within.start..first),
                        part(first + 1..second),
                        part(second + 1..close)
                    ));
                    return close + 1;
                }
            }
            _ => {}
        }
        // A distribution after `~` has no suffix, so `poisson_log` there is the distribution of that name.
        let distribution = at > 0 && self.kind(at - 1) == TokenKind::Tilde;
        let modern = match distribution {
            true => name.to_owned(),
            false => self.modern(name),
        };
        out.push_str(&modern);
        out.push_str(self.gap(open));
        out.push('(');
        let conditional = ["_lpdf", "_lpmf", "_cdf", "_lcdf", "_lccdf"]
            .iter()
            .any(|suffix| modern.ends_with(suffix));
        let barred = !self.split(within.clone(), &[TokenKind::Bar]).is_empty();
        let comma = self
            .split(within.clone(), &[TokenKind::Comma])
            .first()
            .copied();
        match comma.filter(|_| conditional && !barred) {
            Some(comma) => {
                out.push_str(&self.rewritten(within.start..comma));
                out.push_str(" |");
                out.push_str(&self.rewritten(comma + 1..close));
            }
            None => out.push_str(&self.rewritten(within)),
        }
        out.push_str(self.gap(close));
        out.push(')');
        close + 1
    }

    fn modern(&self, name: &str) -> String {
        if let Some(modern) = self.densities.get(name) {
            return modern.clone();
        }
        if let Some((_, modern)) = RENAMED.iter().find(|(old, _)| *old == name) {
            return (*modern).to_owned();
        }
        const SUFFIXES: [(&str, &[&str]); 3] = [
            ("_ccdf_log", &["_lccdf"]),
            ("_cdf_log", &["_lcdf"]),
            ("_log", &["_lpdf", "_lpmf"]),
        ];
        for (old, modern) in SUFFIXES {
            let Some(stem) = name.strip_suffix(old).filter(|_| !(self.known)(name)) else {
                continue;
            };
            for suffix in modern {
                let candidate = format!("{stem}{suffix}");
                if (self.known)(&candidate) {
                    return candidate;
                }
            }
        }
        name.to_owned()
    }
}
