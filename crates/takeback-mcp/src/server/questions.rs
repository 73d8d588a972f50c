//! The tools that answer questions about files over time. All but `bisect` read only.

use serde_json::json;
use takeback_answers::{
    BisectAnswer, BlameReport, CatAnswer, HistoryAnswer, StatsAnswer, WhyAnswer,
};

use super::{Reply, Server, ToolError};
use crate::backend::CallKind;
use crate::inputs::questions as inputs;
use crate::outputs::questions::{Bisect, Blame, Contents, History, MOST_BYTES, Stats, Why};
use crate::text::questions as text;

impl Server {
    pub(super) async fn blame(&self, input: inputs::Blame) -> Result<Reply, ToolError> {
        let inputs::Blame { path, lines } = input;
        let params = json!({"path": path, "lines": lines});
        let blame = Blame::from(self.read::<BlameReport>("history:blame", params).await?);
        Ok(Reply::new(text::blame(&path, &blame), &blame))
    }

    pub(super) async fn why(&self, input: inputs::Why) -> Result<Reply, ToolError> {
        let inputs::Why { path, line } = input;
        let params = json!({"line": format!("{path}:{line}")});
        let why = Why::from(self.read::<WhyAnswer>("history:why", params).await?);
        Ok(Reply::new(text::why(&path, &why), &why))
    }

    pub(super) async fn history(&self, input: inputs::History) -> Result<Reply, ToolError> {
        let params = json!({"path": input.path, "limit": input.limit()});
        let rows: HistoryAnswer = self.read("history:path", params).await?;
        let history = History::new(rows, input.limit());
        Ok(Reply::new(text::history(&input.path, &history), &history))
    }

    pub(super) async fn stats(&self, input: inputs::Stats) -> Result<Reply, ToolError> {
        let inputs::Stats { range, since } = input;
        let params = json!({"range": range, "since": since});
        let stats = Stats::from(self.read::<StatsAnswer>("history:stats", params).await?);
        Ok(Reply::new(text::stats(&stats), &stats))
    }

    pub(super) async fn cat(&self, input: inputs::Cat) -> Result<Reply, ToolError> {
        let inputs::Cat { point, path, lines } = input;
        let file = format!("{point}:{path}");
        let params = json!({"file": file, "lines": lines, "maxBytes": MOST_BYTES});
        let contents = Contents::from(self.read::<CatAnswer>("history:cat", params).await?);
        Ok(Reply::new(text::contents(&contents), &contents))
    }

    pub(super) async fn bisect(&self, input: inputs::Bisect) -> Result<Reply, ToolError> {
        let found = self.backend.call(CallKind::Change, "history:bisect", json!(input));
        let found: Bisect = found.await.map(|answer: BisectAnswer| answer.into())?;
        Ok(Reply::new(text::bisect(&found), &found))
    }
}
