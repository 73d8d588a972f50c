//! `takeback serve`, as its clients use it.

mod clients;
mod limits;
mod methods;
mod seed_003;
mod socket;
mod subscriptions;
mod watch;
mod wire;
