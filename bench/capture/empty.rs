//! A Rust program that does nothing: what every other one costs at least.

fn main() {}
