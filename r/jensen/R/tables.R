#' Topics of texts
#'
#' Builds a corpus from texts, learns topics (latent Dirichlet allocation) with `jensen topics`, and returns them as
#' data frames.
#'
#' @param texts A character vector with one document per element, with or without names.
#' @param topics The number of topics.
#' @param min_df,max_df The smallest and the largest number of documents that may contain a word of the vocabulary.
#'   Numbers below 1 are shares of the documents.
#' @param stop_words `"english"`, `"none"`, or a file of words to remove.
#' @param heldout The share of documents to hold out for scoring.
#' @param words The number of words to show for each topic.
#' @param out A folder for the results. The default is a temporary folder of the session.
#' @param progress Whether to show progress.
#' @param ... Flags of `jensen topics fit` with `_` instead of `-`, such as `seed`, `passes`, `batch` and `tau`.
#' @param object A fit of `jensen_topics()`.
#' @param newdata Texts. The default is the texts of the fit.
#' @return An object of class `jensen_topics`, a list with the data frames `words` (`topic`, `rank`, `word`,
#'   `probability`) and `topics` (`topic`, `proportion`, and `npmi`, the coherence of its words), `trusted`, `verdict`,
#'   `info` (`fit.json`) and `folder`. Topics are numbered from 0, as in the command. Its `predict()` gives a data frame
#'   with a row for each document: `document` and the proportions `topic0`, `topic1`, .... The proportions are missing
#'   for a document without a word of the vocabulary.
#' @export
#' @examples
#' \dontrun{
#' fit <- jensen_topics(abstracts, topics = 20, seed = 1)
#' subset(fit$words, rank <= 3)
#' predict(fit)
#' }
jensen_topics <- function(texts, topics, min_df = NULL, max_df = NULL, stop_words = NULL, heldout = NULL, words = 10,
                          out = NULL, progress = interactive(), ...) {
  input <- text_file(texts)
  on.exit(unlink(input))
  corpus <- tempfile("jensen-corpus-", fileext = ".corpus")
  on.exit(unlink(corpus), add = TRUE)
  build <- list(min_df = min_df, max_df = max_df, stop_words = stop_words, heldout = heldout)
  run_jensen(c("topics", "build", input, "--out", corpus, flags_of(build), "--quiet"))
  folder <- if (is.null(out)) tempfile("jensen-topics-") else path.expand(out)
  arguments <- c("topics", "fit", corpus, "--topics", topics, "--out", folder, flags_of(list(...)))
  run_jensen(arguments, progress, folder)
  shown <- run_jensen(c("topics", "show", folder, "--json", "--words", words))
  shown <- jsonlite::fromJSON(shown$stdout, simplifyVector = FALSE)
  fit <- with_verdict(folder, list(
    words = do.call(rbind, lapply(shown, topic_words)),
    topics = do.call(rbind, lapply(shown, topic_row)),
    texts = texts
  ))
  structure(fit, class = "jensen_topics")
}

# Writes a file with a JSON line for each text.
text_file <- function(texts) {
  if (!is.character(texts) || anyNA(texts)) {
    fail("texts must be a character vector with one document per element, without missing values")
  }
  file <- tempfile("jensen-texts-", fileext = ".jsonl")
  lines <- vapply(enc2utf8(unname(texts)), function(text) {
    as.character(jsonlite::toJSON(list(text = text), auto_unbox = TRUE))
  }, "")
  writeLines(enc2utf8(lines), file, useBytes = TRUE)
  file
}

topic_words <- function(topic) {
  data.frame(
    topic = topic$topic,
    rank = seq_along(topic$words),
    word = vapply(topic$words, function(word) word[[1]], ""),
    probability = vapply(topic$words, function(word) as.numeric(word[[2]]), 0)
  )
}

topic_row <- function(topic) {
  data.frame(topic = topic$topic, proportion = topic$proportion, npmi = number(topic$npmi))
}

# Adds the verdict and the contents of a folder to a fit, and warns if the fit is not trusted.
with_verdict <- function(folder, made) {
  info <- jsonlite::fromJSON(file.path(folder, "fit.json"))
  fit <- c(made, list(
    trusted = isTRUE(info$trusted), verdict = verdict(info), info = info, folder = normalizePath(folder)
  ))
  if (!fit$trusted) {
    distrust(fit$verdict)
  }
  fit
}

#' @rdname jensen_topics
#' @export
predict.jensen_topics <- function(object, newdata = NULL, ...) {
  texts <- if (is.null(newdata)) object$texts else newdata
  input <- text_file(texts)
  on.exit(unlink(input))
  lines <- run_jensen(c("topics", "predict", object$folder, input, "--min-proportion", "0", "--quiet", flags_of(list(...))))
  lines <- strsplit(lines$stdout, "\n", fixed = TRUE)[[1]]
  shares <- matrix(NA_real_, length(texts), nrow(object$topics))
  for (line in lines[nzchar(lines)]) {
    found <- jsonlite::fromJSON(line)
    if (length(found$topics)) {
      shares[found$document, ] <- 0
      shares[found$document, found$topics[, 1] + 1] <- found$topics[, 2]
    }
  }
  colnames(shares) <- paste0("topic", seq_len(ncol(shares)) - 1)
  document <- if (is.null(names(texts))) seq_along(texts) else names(texts)
  data.frame(document = document, shares)
}

#' @export
print.jensen_topics <- function(x, ...) {
  cat("verdict  ", x$verdict, "\n\n", sep = "")
  words <- split(x$words$word, x$words$topic)
  for (topic in seq_len(nrow(x$topics))) {
    row <- x$topics[topic, ]
    cat(sprintf("%3d  %5.1f %%  %s\n", row$topic, 100 * row$proportion, paste(words[[as.character(row$topic)]], collapse = " ")))
  }
  invisible(x)
}

#' Gaussian processes of tables
#'
#' Fits a Gaussian process with a likelihood to a data frame with `jensen latent`.
#'
#' @param formula The response and the columns of the inputs, as in `y ~ x1 + x2`.
#' @param data A data frame.
#' @param likelihood The density of an observation, such as `"gaussian"`, `"poisson"`, `"bernoulli"` or
#'   `"student-t(degrees=4)"`.
#' @param kernel `"rbf"`, `"matern12"`, `"matern32"`, `"matern52"` or `"linear"`.
#' @param ard Whether each column has a separate lengthscale.
#' @param prior The whole prior, which replaces `kernel` and `ard`, such as `"intercept() + gp(rbf, on=x) + iid(on=g)"`.
#' @param exposure,trials,offset Columns, if the likelihood uses them.
#' @param out A folder for the results. The default is a temporary folder of the session.
#' @param progress Whether to show progress.
#' @param ... Flags of `jensen latent fit` with `_` instead of `-`, such as `restarts`, `seed` and `fixed`.
#' @param object A fit of `jensen_gp()`.
#' @param newdata A data frame with the columns that the prior names. The default is the data of the fit.
#' @param draws The number of joint draws, instead of means and intervals.
#' @return An object of class `jensen_gp`, a list with the data frame `hyperparameters`, the `bound` on the log evidence
#'   in nats, `trusted`, `verdict`, `info` (`fit.json`) and `folder`. Its `predict()` gives a data frame with a row for
#'   each row of `newdata`, or for each row of each draw.
#' @export
#' @examples
#' \donttest{
#' if (jensen_is_installed()) {
#'   fit <- jensen_gp(dist ~ speed, cars)
#'   fit
#'   predict(fit, data.frame(speed = c(5, 15, 30)))
#' }
#' }
jensen_gp <- function(formula, data, likelihood = "gaussian", kernel = "matern52", ard = FALSE, prior = NULL,
                      exposure = NULL, trials = NULL, offset = NULL, out = NULL, progress = interactive(), ...) {
  columns <- all.vars(formula)
  unknown <- setdiff(columns, c(names(data), "."))
  if (length(unknown)) {
    fail(sprintf("the data have no column `%s`", unknown[[1]]))
  }
  over <- setdiff(all.vars(stats::terms(formula, data = data)), columns[[1]])
  if (is.null(prior)) {
    on <- paste0("on=", paste(over, collapse = ","))
    prior <- sprintf("intercept() + gp(%s%s, %s)", kernel, if (ard) ", ard" else "", on)
  }
  table <- table_file(data)
  on.exit(unlink(table))
  folder <- if (is.null(out)) tempfile("jensen-gp-") else path.expand(out)
  flags <- list(response = columns[[1]], likelihood = likelihood, prior = prior, exposure = exposure, trials = trials,
                offset = offset, ...)
  run_jensen(c("latent", "fit", "--data", table, flags_of(flags), "--out", folder), progress, folder)
  fit <- with_verdict(folder, list(formula = formula, data = data))
  fit$hyperparameters <- as.data.frame(fit$info$hyperparameters)
  fit$bound <- number(fit$info$bound)
  structure(fit, class = "jensen_gp")
}

table_file <- function(data) {
  file <- tempfile("jensen-table-", fileext = ".csv")
  utils::write.csv(data, file, row.names = FALSE, na = "NA")
  file
}

#' @rdname jensen_gp
#' @export
predict.jensen_gp <- function(object, newdata = NULL, draws = NULL, ...) {
  table <- table_file(if (is.null(newdata)) object$data else newdata)
  answer <- tempfile("jensen-predictions-", fileext = ".csv")
  on.exit(unlink(c(table, answer)))
  run_jensen(c("latent", "predict", object$folder, "--at", table, "--out", answer, flags_of(list(draws = draws, ...))))
  utils::read.csv(answer)
}

#' @export
print.jensen_gp <- function(x, ...) {
  cat("verdict  ", x$verdict, "\n", sep = "")
  cat(sprintf("bound    %.3f nats\n\n", x$bound))
  print(x$hyperparameters, row.names = FALSE)
  invisible(x)
}
