# Design matrices of R's model.matrix for the tests of crates/regress: a table of 24 made-up rows and the columns of each formula.
#
#   Rscript tools/oracle/model_matrix.R crates/regress/tests/data
#
# Needs R with its packages stats and splines. Column names of truth values, factors and functions are R's own.
library(splines)
out <- commandArgs(trailingOnly = TRUE)[1]
set.seed(1)
n <- 24
d <- data.frame(
  x = round(rnorm(n), 3),
  z = round(runif(n, 1, 5), 3),
  n = rep(c(3L, 1L, 4L, 2L), length.out = n),
  a = rep(c("lo", "mid", "top"), each = 8),
  b = rep(c("u", "v"), length.out = n),
  c = sample(rep(c("k", "l", "m", "q"), length.out = n)),
  t = rep(c(TRUE, FALSE, FALSE), length.out = n)
)
write.csv(d, file.path(out, "table.csv"), row.names = FALSE, quote = FALSE)
formulas <- c(
  "x", "x + z", "0 + x", "x - 1", "1", "a", "a + b", "0 + a", "0 + a + b", "a - 1",
  "a * b", "a:b", "a + a:b", "b + a:b", "0 + a:b", "a * x", "a:x", "a + a:x", "x + a:x", "0 + a:x",
  "0 + a * x", "a * b * c", "(a + b + x)^2", "(a + b + x)^2 - a:b", "a / b", "a / x", "x %in% a", "b %in% a + a", "(a + b) / x", "a * b - a",
  "log(z)", "I(x^2)", "x + I(x^2)", "exp(x) + sqrt(z)", "I(x * z)", "I(x / z) + x:z", "I(x > 0)", "x:z", "x * z", "x:z:a",
  "poly(x, 2)", "poly(x, 3) + a", "poly(z, 2):b", "poly(x, 2, raw = TRUE)", "scale(x)", "scale(x) * a", "scale(x):scale(z)",
  "factor(n)", "factor(n):x", "factor(n) * b", "t", "t + a", "t * x", "0 + t",
  "bs(x)", "bs(x, df = 5)", "bs(x, df = 5, degree = 2)", "ns(x, df = 3)", "ns(x, df = 4) + a", "ordered(n)", "ordered(n) * b",
  "c + x + a:b", "log(z) * (a + b)", "a + b + c + x + z + n"
)
number <- function(v) paste0("[", paste(formatC(v, digits = 15, format = "g", width = 1), collapse = ","), "]")
entry <- function(formula, contrasts) {
  m <- model.matrix(as.formula(paste("~", formula)), d, contrasts.arg = contrasts)
  names <- paste0("\"", colnames(m), "\"", collapse = ",")
  columns <- paste(apply(m, 2, number), collapse = ",")
  paste0("{\"formula\":\"", formula, "\",\"names\":[", names, "],\"columns\":[", columns, "]}")
}
entries <- vapply(formulas, entry, "", contrasts = NULL)
writeLines(paste0("[\n", paste(entries, collapse = ",\n"), "\n]"), file.path(out, "designs.json"))
for (kind in c("sum", "helmert")) {
  contrasts <- list(a = paste0("contr.", kind), c = paste0("contr.", kind))
  writeLines(paste0("[\n", paste(vapply(c("a", "c + x", "a:x + a"), entry, "", contrasts = contrasts), collapse = ",\n"), "\n]"),
             file.path(out, paste0("designs_", kind, ".json")))
}
