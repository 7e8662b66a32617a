#' Regressions by a formula
#'
#' Fits a regression to a data frame with `jensen regress`, which reads the formulas of R, lme4 and brms. The package
#' brms is not needed.
#'
#' @param formula A formula, a text, or a list of formulas: the first is for the response, the others are for further
#'   parameters of the family, such as `sigma ~ x`.
#' @param data A data frame. Factors and words are factors.
#' @param family A family of R, or the name of a family of the command, with its link if that is not the default:
#'   `"poisson"`, `"binomial(probit)"`, `"cumulative"`.
#' @param prior Priors, such as `"b ~ normal(0, 1)"` and `"sd ~ exponential(1)"`.
#' @param seed,draws,refine,max_seconds,threads,out,progress As for `$fit()` of a [jensen_model].
#' @param ... Other flags of `jensen regress` with `_` instead of `-`, such as `contrasts = "sum"`.
#' @param object A fit of `jensen_regress()`.
#' @param newdata A data frame with the columns that the formula names right of `~`. The default is the data of the fit.
#' @return A [jensen_fit] of class `jensen_regression`. Its `predict()` gives a data frame with a row for each row of
#'   `newdata` without missing values: the number of the `row`, the mean, standard deviation and 90 % interval of the
#'   expected value, or the probability of each category, and the 90 % interval of a response.
#' @export
#' @examples
#' \donttest{
#' if (jensen_is_installed()) {
#'   fit <- jensen_regress(mpg ~ wt + (1 | cyl), mtcars, seed = 1)
#'   fit
#'   predict(fit, data.frame(wt = c(2, 3), cyl = 4))
#' }
#' }
jensen_regress <- function(formula, data, family = "gaussian", prior = NULL, seed = NULL, draws = NULL, refine = NULL,
                           max_seconds = NULL, threads = NULL, out = NULL, progress = interactive(), ...) {
  formulas <- vapply(if (is.list(formula)) formula else list(formula), formula_text, "")
  table <- table_file(data)
  on.exit(unlink(table))
  flags <- list(family = family_text(family), prior = prior, seed = seed, draws = draws, refine = refine,
                max_seconds = max_seconds, threads = threads, ...)
  fit <- fit_in_folder(c("regress", table, formulas, flags_of(flags)), out, progress)
  fit$data <- data
  structure(fit, class = c("jensen_regression", class(fit)))
}

formula_text <- function(formula) {
  if (is.character(formula)) formula else paste(deparse(formula, width.cutoff = 500), collapse = " ")
}

family_text <- function(family) {
  if (is.function(family)) {
    family <- family()
  }
  if (inherits(family, "family")) sprintf("%s(%s)", tolower(family$family), family$link) else family
}

#' @rdname jensen_regress
#' @export
predict.jensen_regression <- function(object, newdata = NULL, ...) {
  table <- table_file(if (is.null(newdata)) object$data else newdata)
  answer <- tempfile("jensen-predictions-", fileext = ".csv")
  on.exit(unlink(c(table, answer)))
  run_jensen(c("regress", "predict", object$folder, table, "--out", answer, flags_of(list(...))))
  utils::read.csv(answer, check.names = FALSE)
}
