//! Good and bad clients against trivial methods.

mod calls;
mod fakes;
mod frames;
mod slow_clients;
mod socket;
