//! Clients good and bad, against methods that do nothing much.

mod calls;
mod fakes;
mod frames;
mod slow;
mod socket;
