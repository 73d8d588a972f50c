//! `takeback serve`, as another program talks to it.

mod clients;
mod methods;
mod news;
mod seed_003;
mod socket;
mod watching;
mod wire;
