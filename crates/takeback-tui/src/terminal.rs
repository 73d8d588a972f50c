//! The terminal itself: the one file here that touches it.
