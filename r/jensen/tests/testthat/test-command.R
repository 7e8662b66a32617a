test_that("the option jensen.path selects the command", {
  old <- options(jensen.path = tempfile())
  on.exit(options(old))
  expect_error(jensen_path(), "not a command", class = "jensen_error")
  expect_false(jensen_is_installed())
})

test_that("a binary is copied, and a folder that is no clone is an error", {
  skip_without_jensen()
  expect_true(jensen_version() >= "0.0.1")
  to <- tempfile()
  placed <- install_jensen(jensen_path(), to = to)
  expect_true(file.access(placed, 1) == 0)
  expect_error(install_jensen(tempdir(), to = to), "no clone", class = "jensen_error")
})

test_that("an interrupted fit resumes from its folder", {
  skip_without_jensen()
  skip_if_short()
  skip_on_os("windows")
  # A separate session loads the installed package.
  skip_if_not_installed("jensen")
  out <- tempfile()
  script <- tempfile(fileext = ".R")
  writeLines(c(
    "library(jensen)",
    "program <- \"parameters { vector[400] z; } model { for (i in 2:400) z[i] ~ normal(sin(z[i - 1]), 0.1 + square(z[i - 1])); }\"",
    sprintf("condition <- tryCatch(jensen_model(program)$fit(out = '%s', checkpoint_every = 0.1), error = identity)", out),
    "cat(class(condition)[1], '\\n')",
    "cat(conditionMessage(condition))"
  ), script)
  session <- processx::process$new(file.path(R.home("bin"), "Rscript"), script, stdout = "|", stderr = "2>&1",
                                   env = c("current", JENSEN = jensen_path(), R_LIBS = paste(.libPaths(), collapse = ":")))
  waited <- 0
  while (!dir.exists(out) && waited < 20) {
    Sys.sleep(0.1)
    waited <- waited + 0.1
  }
  Sys.sleep(1.5)
  session$interrupt()
  session$wait(30000)
  said <- paste(session$read_all_output_lines(), collapse = "\n")
  expect_match(said, "jensen_interrupted")
  expect_match(said, "jensen_resume")
  expect_true(file.exists(file.path(out, "fit.json")))
})
