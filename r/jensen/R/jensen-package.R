#' Variational inference for Stan programs and models of brms
#'
#' The package runs the command `jensen`, which must be installed: see [install_jensen()].
#'
#' * [jensen_model()] takes a Stan program; its `$fit()` gives draws, a summary and a verdict.
#' * [brm_jensen()] fits the models of `brms::brm()`, and returns a `brmsfit`.
#' * [jensen_topics()] and [jensen_gp()] fit topic models to text and Gaussian processes to tables.
#'
#' A fit that is not trusted gives a warning of class `jensen_trust_warning` with the reasons. If the command rejects
#' its input, the result is an error of class `jensen_error` with the command's message.
#'
#' @keywords internal
"_PACKAGE"
