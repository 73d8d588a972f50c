//! `takeback serve`, as another program talks to it.

mod seed_003;
mod wire;
