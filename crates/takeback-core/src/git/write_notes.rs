//! Writes notes: the only place that changes a repository, and only below the reference that it is given.
//!
//! `git fast-import` makes one commit of all notes, arranged as `git notes` would, and moves the reference
//! only forward: if another program has moved it meanwhile, nothing is written. HEAD, the index, other
//! references and the working tree are not touched.

use super::{GitError, Repository};

/// A note to write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewNote {
    /// The commit that it is on.
    pub(crate) commit: String,
    /// The note.
    pub(crate) text: Vec<u8>,
}

/// What became of the notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WrittenNotes {
    /// They are in the repository.
    Written,
    /// Another program moved the reference first. Nothing was written.
    Moved,
}

impl Repository {
    /// Writes notes below `reference`, whose commit must still be `tip`.
    pub(crate) fn write_notes(
        &self,
        reference: &str,
        tip: Option<&str>,
        notes: &[NewNote],
    ) -> Result<WrittenNotes, GitError> {
        if self.commit(reference)?.as_deref() != tip {
            return Ok(WrittenNotes::Moved);
        }
        let committer = self.run(["var", "GIT_COMMITTER_IDENT"], b"")?;
        let committer = committer.trim_ascii_end().to_owned();
        let message = "Notes written by Takeback";
        let mut stream = Vec::new();
        stream.extend(format!("feature done\ncommit {reference}\ncommitter ").into_bytes());
        stream.extend(committer);
        stream.extend(format!("\ndata {}\n{message}\n", message.len()).into_bytes());
        if let Some(tip) = tip {
            stream.extend(format!("from {tip}\n").into_bytes());
        }
        for NewNote { commit, text } in notes {
            stream.extend(format!("N inline {commit}\ndata {}\n", text.len()).into_bytes());
            stream.extend(text);
            stream.push(b'\n');
        }
        stream.extend(b"done\n");
        let imported = self.run(["fast-import", "--quiet", "--date-format=raw"], &stream);
        // It may fail because the reference has moved, and it may say so and still succeed.
        let commits: Vec<String> = notes.iter().map(|note| note.commit.clone()).collect();
        let found = self.notes(reference, &commits)?;
        let is_written = |(new, found): (&NewNote, &Option<Vec<u8>>)| {
            found
                .as_deref()
                .is_some_and(|found| found.trim_ascii_end() == new.text.trim_ascii_end())
        };
        if notes.iter().zip(&found).all(is_written) {
            return Ok(WrittenNotes::Written);
        }
        if self.commit(reference)?.as_deref() != tip {
            return Ok(WrittenNotes::Moved);
        }
        imported?;
        Err(GitError::Failed {
            command: "fast-import".to_owned(),
            message: "the notes are not there afterwards".to_owned(),
        })
    }

    /// The person that git takes for the author of new commits, as `NAME <ADDRESS>`; `None`: git has no
    /// name for the user.
    pub(crate) fn user(&self) -> Option<GitUser> {
        let identity = self.run(["var", "GIT_AUTHOR_IDENT"], b"").ok()?;
        let identity = String::from_utf8_lossy(&identity).into_owned();
        let (name, rest) = identity.split_once(" <")?;
        let (email, _) = rest.split_once('>')?;
        Some(GitUser { name: name.to_owned(), email: email.to_owned() })
    }
}

/// A person as git knows them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitUser {
    /// The name.
    pub(crate) name: String,
    /// The address.
    pub(crate) email: String,
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_reference_that_has_moved_is_not_overwritten() {
        let dir = tempfile::tempdir().unwrap();
        let git = |line: &str| {
            let output = Command::new("git").args(line.split(' ')).current_dir(dir.path()).output();
            let output = output.expect("git runs");
            assert!(output.status.success(), "git {line}: {output:?}");
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        git("init -q");
        git("config user.name Me");
        git("config user.email me@example.com");
        git("commit -q --allow-empty -m one");
        let commit = git("rev-parse HEAD");
        let repository = Repository::around(dir.path()).unwrap();
        let note = |text: &str| [NewNote { commit: commit.clone(), text: text.into() }];
        let reference = "refs/notes/ai";
        let write = |tip: Option<&str>, text: &str| {
            repository.write_notes(reference, tip, &note(text)).unwrap()
        };
        assert_eq!(write(None, "first\n"), WrittenNotes::Written);
        let tip = repository.commit(reference).unwrap();
        assert_eq!(write(None, "stale\n"), WrittenNotes::Moved);
        assert_eq!(git("notes --ref=ai show HEAD"), "first");
        assert_eq!(write(tip.as_deref(), "second\n"), WrittenNotes::Written);
        assert_eq!(write(tip.as_deref(), "stale\n"), WrittenNotes::Moved);
        assert_eq!(git("notes --ref=ai show HEAD"), "second");
        assert_eq!(git("log --format=%s -1 refs/notes/ai"), "Notes written by Takeback");
    }
}
