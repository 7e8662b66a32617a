# R values as Stan JSON.

# Converts a list of values to one JSON object. `dims` has the number of dimensions that a program declares for each value.
# A value that it does not name is a scalar if it has length one and no dimensions.
stan_json <- function(data, dims = integer()) {
  if (inherits(data, "environment")) {
    data <- as.list(data)
  }
  if (!is.list(data) || (length(data) && (is.null(names(data)) || !all(nzchar(names(data)))))) {
    fail("data must be a list with a name for every value, such as list(N = 3, y = c(1.5, 2, 4))")
  }
  texts <- vapply(names(data), function(name) json_value(data[[name]], name, dims[name]), "")
  names <- vapply(names(data), jsonlite::toJSON, "", auto_unbox = TRUE)
  paste0("{", paste0(names, ": ", texts, collapse = ",\n"), "}")
}

json_value <- function(x, name, rank) {
  if (is.null(x)) {
    return("[]")
  }
  if (is.list(x) && !is.data.frame(x)) {
    return(json_list(x, name, rank))
  }
  x <- plain_numbers(x, name)
  rank <- if (is.na(rank)) natural_rank(x) else rank
  json_array(with_rank(x, rank))
}

# A list of values of one shape becomes an array. A list with the names 1, 2, ... is a tuple of Stan.
json_list <- function(x, name, rank) {
  if (identical(names(x), as.character(seq_along(x))) && length(x)) {
    slots <- vapply(x, json_value, "", name = name, rank = NA)
    return(paste0("{", paste0("\"", names(x), "\": ", slots, collapse = ", "), "}"))
  }
  elements <- vapply(x, json_value, "", name = name, rank = rank - 1)
  paste0("[", paste(elements, collapse = ", "), "]")
}

# Converts factors and logical values to whole numbers, and tables and data frames to arrays.
plain_numbers <- function(x, name) {
  if (is.data.frame(x)) {
    x <- data.matrix(x)
  }
  if (is.factor(x) || is.logical(x)) {
    shape <- dim(x)
    x <- as.integer(x)
    dim(x) <- shape
  }
  if (inherits(x, c("Date", "POSIXt", "difftime")) || !is.numeric(x)) {
    fail(sprintf("`%s` is of class %s, which Stan programs cannot read: give numbers, factors or logical values",
                 name, paste(class(x), collapse = "/")))
  }
  if (anyNA(x) && !all(is.nan(x[is.na(x)]))) {
    fail(sprintf("`%s` has missing values, which Stan does not support: omit them, or declare them as parameters", name))
  }
  x
}

# The number of dimensions of a value whose declaration is unknown.
natural_rank <- function(x) {
  if (!is.null(dim(x))) length(dim(x)) else as.integer(length(x) != 1)
}

# Reshapes the value to the declared number of dimensions. A number becomes an array of length one, or an array of length
# one a number, if the program declares it that way.
with_rank <- function(x, rank) {
  shape <- if (is.null(dim(x))) length(x) else dim(x)
  if (rank == 0 && length(x) == 1) {
    return(as.vector(x))
  }
  if (rank > length(shape) && length(x) <= 1) {
    shape <- rep(length(x), rank)
  }
  array(as.vector(x), shape)
}

json_array <- function(x) {
  text <- number_text(unname(as.vector(x)))
  text[is.nan(x)] <- "\"NaN\""
  text[is.infinite(x)] <- ifelse(x[is.infinite(x)] > 0, "\"Inf\"", "\"-Inf\"")
  if (is.null(dim(x))) {
    return(text)
  }
  # Join from the last dimension to the first, so that rows of a matrix become lists.
  shape <- dim(x)
  for (axis in rev(seq_along(shape))) {
    text <- matrix(text, prod(shape[seq_len(axis - 1)]), shape[[axis]])
    joined <- if (ncol(text)) do.call(paste, c(asplit(text, 2), list(sep = ", ", recycle0 = TRUE))) else rep("", nrow(text))
    text <- paste0("[", joined, "]", recycle0 = TRUE)
  }
  text
}

# Reads the number of dimensions of each data variable from the program's text as the command prints it: one variable per
# line, with array sizes first.
declared_dims <- function(tree) {
  lines <- strsplit(tree, "\n", fixed = TRUE)[[1]]
  first <- which(lines == "data {")
  if (!length(first)) {
    return(integer())
  }
  block <- lines[seq(first + 1, length(lines))]
  block <- trimws(block[seq_len(which(block == "}")[[1]] - 1)])
  # The list of a tuple shows its dimensions.
  block <- block[!grepl("^(array\\[.*\\] )?tuple\\(", block)]
  name <- sub("^.* ([A-Za-z][A-Za-z0-9_]*);$", "\\1", block)
  type <- sub("^array\\[.*?\\] (?=[a-z_]+[ <\\[])", "", block, perl = TRUE)
  type <- sub("[^a-z_].*$", "", type)
  sizes <- ifelse(startsWith(block, "array["), sub("^array\\[", "", block), "")
  stats::setNames(vapply(sizes, count_sizes, 1L, USE.NAMES = FALSE) + inner_rank(type), name)
}

inner_rank <- function(type) {
  matrices <- c("matrix", "complex_matrix", "cov_matrix", "corr_matrix", "cholesky_factor_cov", "cholesky_factor_corr",
                "column_stochastic_matrix", "row_stochastic_matrix", "sum_to_zero_matrix")
  # A complex number is a pair.
  scalar <- type %in% c("int", "real")
  pair <- startsWith(type, "complex")
  ifelse(scalar, 0L, ifelse(type %in% matrices, 2L, 1L)) + ifelse(pair & type != "complex", 1L, 0L)
}

# Counts the sizes before the closing bracket.
count_sizes <- function(text) {
  if (!nzchar(text)) {
    return(0L)
  }
  depth <- 0L
  commas <- 0L
  for (character in strsplit(text, "")[[1]]) {
    if (character == "]" && depth == 0L) {
      break
    }
    depth <- depth + (character %in% c("[", "(", "{")) - (character %in% c("]", ")", "}"))
    commas <- commas + (character == "," && depth == 0L)
  }
  commas + 1L
}
