# R at a server. Arguments: port, user, password, database, a file of statements with a line of "\1" between them, or
# "verbs". Standard output: for each of them a line "\2refused" or rows of values with "\3" between, then a line "\4".
suppressWarnings(suppressMessages({library(DBI); library(RPostgreSQL); library(dplyr); library(dbplyr)}))
given <- commandArgs(trailingOnly = TRUE)
con <- dbConnect(RPostgreSQL::PostgreSQL(), host = "127.0.0.1", port = as.integer(given[1]), user = given[2],
                 password = given[3], dbname = given[4])
rows <- function(frame) for (i in seq_len(nrow(frame))) {
  values <- sapply(seq_along(frame), function(k) { v <- frame[[k]][i]; if (is.na(v)) "" else format(v, digits = 15, scientific = FALSE) })
  cat(values, sep = "\3"); cat("\n")
}
answered <- function(ask) {
  tryCatch(rows(as.data.frame(ask())), error = function(e) cat("\2", conditionMessage(e), "\n", sep = ""))
  cat("\4\n"); flush(stdout()); message("\4")
}
if (given[5] != "verbs") {
  for (sql in strsplit(readChar(given[5], file.size(given[5]), useBytes = TRUE), "\n\1\n", fixed = TRUE)[[1]]) {
    answered(function() {
      result <- dbSendQuery(con, sql)
      on.exit(dbClearResult(result))
      fetch(result, -1)
    })
  }
} else {
  orders <- suppressWarnings(tbl(con, "orders")); cities <- tbl(con, "cities")
  answered(function() data.frame(name = sort(dbListTables(con))))
  answered(function() orders %>% filter(city %in% c("Bonn", "Oslo"), amount < 50, day >= as.Date("2024-01-10")) %>% count() %>% collect())
  answered(function() orders %>% group_by(city) %>% summarise(n = n(), s = sum(items, na.rm = TRUE)) %>% arrange(city) %>% collect())
  answered(function() orders %>% mutate(m = floor_date(day, "month")) %>% count(m) %>% filter(!is.na(m)) %>% arrange(m) %>% collect())
  answered(function() orders %>% mutate(b = if_else(amount > 50, "big", "small")) %>% count(b) %>% filter(!is.na(b)) %>% arrange(b) %>% collect())
  answered(function() orders %>% inner_join(cities, by = "city") %>% count(land) %>% arrange(land) %>% collect())
  answered(function() cities %>% arrange(city) %>% collect())
}
invisible(dbDisconnect(con))
