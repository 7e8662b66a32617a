#' A fit
#'
#' The result of `$fit()` of a [jensen_model]. Printing it shows the verdict first.
#'
#' * `$trusted`: whether the result can be trusted. `$verdict`: the verdict in words, with the reasons against the
#'   result.
#' * `$draws(variables = NULL, format = "matrix")`: draws of the posterior as an object of the package posterior. The
#'   formats are `"matrix"`, `"array"`, `"df"`, `"list"` and `"rvars"`. `lp__` is the log density of the model on the
#'   unconstrained scale. For draws of the approximation, `lp_approx__` is the log density of the approximation.
#' * `$summary(variables = NULL, ...)`: a data frame with a row for every scalar: mean, median, sd and quantiles, the
#'   Monte-Carlo standard error of the mean and the effective sample size, as computed by the command. Summaries of
#'   draws of the approximation use importance weights. For a regression the rows are those of the output of `jensen
#'   regress`, with the names of the columns, unless you name `variables`. Functions in `...` are applied to the draws,
#'   as in `posterior::summarise_draws()`.
#' * `$loo(variable = "log_lik", ...)`: leave-one-out cross-validation with the package loo. Draws of an approximation
#'   are weighted.
#' * `$log_evidence()`: the log marginal likelihood in nats with its standard error, for refined fits
#'   (`refine = "always"`). For other fits it is an error; their `$elbo` is a lower bound.
#' * `$lp()`: log densities of the draws. `$elbo`, `$khat`, `$refined`.
#' * `$report()`: opens the report of the fit, and returns its file.
#' * `$save_object(file)`: writes the fit with its draws, for [readRDS()].
#' * `$info`: the contents of `fit.json`. `$folder`: the folder with all files of the fit.
#'
#' Functions of posterior such as `as_draws()` and `as_draws_df()`, and `loo()` of loo, also accept a fit.
#'
#' @name jensen_fit
#' @aliases jensen_fit
NULL

new_fit <- function(folder) {
  file <- file.path(folder, "fit.json")
  if (!file.exists(file)) {
    fail(sprintf("'%s' has no finished fit; jensen_resume(\"%s\") continues a stopped fit", folder, folder))
  }
  folder <- normalizePath(folder)
  info <- jsonlite::fromJSON(file)
  regression <- file.path(folder, "regression.json")
  shown <- if (file.exists(regression)) jsonlite::fromJSON(regression)$shown
  refined <- isTRUE(info$refinement$used)
  # Draws are read at their first use.
  kept <- new.env(parent = emptyenv())
  stored <- function() {
    if (is.null(kept$draws)) {
      kept$draws <- read_draws(file.path(folder, "draws.csv"), refined || resampled(folder))
    }
    kept$draws
  }
  fit <- list(
    folder = folder,
    info = info,
    trusted = isTRUE(info$trusted),
    verdict = verdict(info),
    refined = refined,
    elbo = c(estimate = number(info$elbo), se = number(info$elbo_se)),
    khat = number(info$khat),
    draws = function(variables = NULL, format = c("matrix", "array", "df", "list", "rvars")) {
      drawn(stored(), variables, match.arg(format))
    },
    summary = function(variables = NULL, ...) {
      if (...length()) {
        return(posterior::summarise_draws(drawn(stored(), variables, "array"), ...))
      }
      summary_table(info$parameters, variables, shown)
    },
    loo = function(variable = "log_lik", ...) leave_one_out(stored(), variable, ...),
    log_evidence = function() log_evidence(info$refinement),
    lp = function() as.vector(stored()[, "lp__"]),
    report = function() {
      page <- file.path(folder, "report.html")
      if (interactive()) {
        utils::browseURL(page)
      }
      invisible(page)
    }
  )
  fit$save_object <- function(file) {
    stored()
    saveRDS(structure(fit, class = "jensen_fit"), file)
    invisible(file)
  }
  structure(fit, class = "jensen_fit")
}

verdict <- function(info) {
  if (isTRUE(info$trusted)) {
    return("trusted")
  }
  paste0("NOT to be trusted:\n", paste0("- ", info$warnings, collapse = "\n"))
}

number <- function(x) if (is.null(x)) NA_real_ else as.numeric(x)

# Whether the draws of a folder were resampled by their importance weights.
resampled <- function(folder) {
  run <- jsonlite::fromJSON(file.path(folder, "run.json"), simplifyVector = FALSE)
  isTRUE(run$flags$importance_resample)
}

# Reads the draws of a file in Stan's CSV format as a draws_matrix. Equally weighted draws of the posterior have no log
# density of an approximation.
read_draws <- function(file, of_posterior) {
  # The file starts with comments and the names. Two comments and the row of the mean, which is no draw, follow.
  head <- readLines(file, n = 200, warn = FALSE)
  line <- which(!startsWith(head, "#"))[[1]]
  names <- strsplit(head[[line]], ",", fixed = TRUE)[[1]]
  values <- scan(file, sep = ",", skip = line, comment.char = "#", quiet = TRUE)
  values <- matrix(values, ncol = length(names), byrow = TRUE)[-1, , drop = FALSE]
  approximation <- if (!of_posterior) "log_g__"
  order <- c("log_p__", approximation, setdiff(names, c("lp__", "log_p__", "log_g__")))
  values <- values[, match(order, names), drop = FALSE]
  colnames(values) <- c("lp__", if (!of_posterior) "lp_approx__", bracketed(order[-seq_len(1 + !of_posterior)]))
  posterior::as_draws_matrix(values)
}

# Writes indices in brackets: `theta.1.2` becomes `theta[1,2]`.
bracketed <- function(names) {
  indexed <- grepl(".", names, fixed = TRUE)
  parts <- sub(".", "[", names[indexed], fixed = TRUE)
  names[indexed] <- paste0(gsub(".", ",", parts, fixed = TRUE), "]")
  names
}

drawn <- function(draws, variables, format) {
  if (!is.null(variables)) {
    draws <- tryCatch(
      posterior::subset_draws(draws, variable = variables),
      error = function(e) fail(conditionMessage(e))
    )
  }
  convert <- switch(format,
    matrix = posterior::as_draws_matrix,
    array = posterior::as_draws_array,
    df = posterior::as_draws_df,
    list = posterior::as_draws_list,
    rvars = posterior::as_draws_rvars
  )
  convert(draws)
}

# Renames the columns of the summary as in the package posterior.
COLUMNS <- c(name = "variable", mean = "mean", q50 = "median", sd = "sd", q05 = "q5", q95 = "q95", mcse = "mcse_mean",
             ess = "ess", rhat = "rhat")

summary_table <- function(parameters, variables, shown) {
  there <- intersect(names(COLUMNS), names(parameters))
  table <- stats::setNames(parameters[there], COLUMNS[there])
  table$variable <- bracketed(table$variable)
  if (is.null(variables) && !is.null(shown)) {
    of <- sub("\\[.*$", "", table$variable)
    rows <- order(match(of, shown))[seq_len(sum(of %in% shown))]
    if (!is.null(parameters$label)) {
      table$variable <- ifelse(is.na(parameters$label), table$variable, parameters$label)
    }
    table <- table[rows, , drop = FALSE]
  }
  if (!is.null(variables)) {
    base <- sub("\\[.*$", "", table$variable)
    unknown <- setdiff(variables, c(base, table$variable))
    if (length(unknown)) {
      fail(sprintf("the fit has no variable `%s`", unknown[[1]]))
    }
    table <- table[table$variable %in% variables | base %in% variables, , drop = FALSE]
  }
  rownames(table) <- NULL
  table
}

log_evidence <- function(refinement) {
  if (is.null(refinement$log_evidence)) {
    fail("the fit was not refined, so only a lower bound on its log evidence is known, `$elbo`: fit with refine = \"always\"")
  }
  c(estimate = refinement$log_evidence, se = number(refinement$log_evidence_se))
}

leave_one_out <- function(draws, variable, ...) {
  need("loo", "leave-one-out cross-validation")
  columns <- grepl(paste0("^", variable, "(\\[|$)"), posterior::variables(draws))
  if (!any(columns)) {
    fail(sprintf("the program has no generated quantity `%s` with the log likelihood of every observation", variable))
  }
  terms <- unclass(draws)[, columns, drop = FALSE]
  attr(terms, "nchains") <- NULL
  if ("lp_approx__" %in% posterior::variables(draws)) {
    log_p <- as.vector(draws[, "lp__"])
    log_g <- as.vector(draws[, "lp_approx__"])
    return(loo::loo_approximate_posterior(terms, log_p = log_p, log_g = log_g, ...))
  }
  loo::loo(terms, r_eff = rep(1, ncol(terms)), ...)
}

#' @export
print.jensen_fit <- function(x, max_rows = 10, digits = 3, ...) {
  cat("verdict  ", x$verdict, "\n", sep = "")
  cat(sprintf("ELBO     %.3f \u00b1 %.3f nats, k\u0302 %.2f\n", x$elbo[["estimate"]], x$elbo[["se"]], x$khat))
  if (x$refined) {
    evidence <- x$log_evidence()
    cat(sprintf("refined  draws are the posterior's; log evidence %.3f \u00b1 %.3f nats\n", evidence[[1]], evidence[[2]]))
  }
  cat("\n")
  table <- x$summary()
  print(utils::head(table, max_rows), digits = digits, row.names = FALSE)
  if (nrow(table) > max_rows) {
    cat(sprintf("... and %d more: $summary() has them all\n", nrow(table) - max_rows))
  }
  invisible(x)
}

#' @export
summary.jensen_fit <- function(object, ...) object$summary(...)

#' @importFrom posterior as_draws
#' @export
as_draws.jensen_fit <- function(x, ...) x$draws(...)

#' @importFrom posterior as_draws_matrix
#' @export
as_draws_matrix.jensen_fit <- function(x, ...) x$draws(..., format = "matrix")

#' @importFrom posterior as_draws_array
#' @export
as_draws_array.jensen_fit <- function(x, ...) x$draws(..., format = "array")

#' @importFrom posterior as_draws_df
#' @export
as_draws_df.jensen_fit <- function(x, ...) x$draws(..., format = "df")

#' @importFrom posterior as_draws_list
#' @export
as_draws_list.jensen_fit <- function(x, ...) x$draws(..., format = "list")

#' @importFrom posterior as_draws_rvars
#' @export
as_draws_rvars.jensen_fit <- function(x, ...) x$draws(..., format = "rvars")

#' @exportS3Method loo::loo
loo.jensen_fit <- function(x, ...) x$loo(...)
