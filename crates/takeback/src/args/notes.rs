//! Arguments of `notes`.

use clap::{Args as ClapArgs, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum NotesCommand {
    /// Write who wrote the lines of commits, as notes that git-ai and other tools read
    ///
    /// Writes git-ai's format to refs/notes/ai, and only there: HEAD, the index, other references and your
    /// files are not touched. A note has only lines that the log explains. Lines are found by content, so
    /// this also works after a rebase, a squash or an amended commit. Notes are not pushed by themselves:
    /// `git push REMOTE refs/notes/ai`.
    Write(NotesWriteArgs),
    /// Print the note of a commit
    Show(NotesShowArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct NotesWriteArgs {
    /// The commits, as git names them: HEAD, v1.0, main..HEAD. A single name is one commit
    #[arg(value_name = "RANGE", default_value = "HEAD")]
    pub(crate) range: String,
    /// Also replace notes that another tool wrote
    #[arg(long)]
    pub(crate) replace: bool,
    /// Print the notes, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct NotesShowArgs {
    /// The commit
    #[arg(default_value = "HEAD")]
    pub(crate) commit: String,
}
