//! What is written for other tools: notes on commits, and Agent Trace records.

mod notes;
mod repository;
mod traces;
