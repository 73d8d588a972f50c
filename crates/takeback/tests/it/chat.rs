//! `takeback chat`, as somebody sits before it.

mod claude;
mod seat;
mod story;
