#' Variational inference for Stan programs and models of brms
#'
#' The package drives the command `jensen`, which must be installed: see [install_jensen()].
#'
#' * [jensen_model()] takes a Stan program; its `$fit()` gives draws, a summary and a verdict.
#' * [brm_jensen()] fits what `brms::brm()` fits, and returns a `brmsfit`.
#' * [jensen_topics()] and [jensen_gp()] fit topic models of text and Gaussian processes of tables.
#'
#' A fit that is not to be trusted warns, with a condition of class `jensen_trust_warning` that says why. What the command
#' refuses is an error of class `jensen_error`, whose message is the command's own diagnostic.
#'
#' @keywords internal
"_PACKAGE"
