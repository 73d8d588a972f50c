//! The `claude` program, spoken to over its standard input and output.
