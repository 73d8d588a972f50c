//! Notes on commits, as other tools leave them.

use super::{GitError, Repository};

impl Repository {
    /// The notes of these commits below `reference` (`refs/notes/ai`), in their order.
    pub fn notes(
        &self,
        reference: &str,
        commits: &[String],
    ) -> Result<Vec<Option<Vec<u8>>>, GitError> {
        if self.commit(reference)?.is_none() {
            return Ok(vec![None; commits.len()]);
        }
        // Beyond some hundred notes, git spreads them over folders.
        let names = commits.iter().flat_map(|id| {
            let (a, b, c) =
                (id.get(..2).unwrap_or(""), id.get(2..4).unwrap_or(""), id.get(4..).unwrap_or(""));
            [
                format!("{reference}:{id}"),
                format!("{reference}:{a}/{b}{c}"),
                format!("{reference}:{a}/{b}/{c}"),
            ]
        });
        let names: Vec<Vec<u8>> = names.map(String::into_bytes).collect();
        let contents = self.contents(&names)?;
        Ok(contents.chunks(3).map(|forms| forms.iter().flatten().next().cloned()).collect())
    }
}
