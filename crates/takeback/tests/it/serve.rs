//! `takeback serve`, as another program talks to it.

mod clients;
mod limits;
mod methods;
mod news;
mod seed_003;
mod socket;
mod watching;
mod wire;
