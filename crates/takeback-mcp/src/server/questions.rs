//! The tools that answer questions about files over time. They read only.

use serde_json::json;
use takeback_answers::{BlameAnswer, CatAnswer, HistoryAnswer, StatsAnswer, WhyAnswer};

use super::{Reply, Server, ToolError};
use crate::inputs::questions as inputs;
use crate::outputs::questions::{Blame, Contents, History, MOST_BYTES, Stats, Why};
use crate::text::questions as text;

impl Server {
    pub(super) async fn blame(&self, input: inputs::Blame) -> Result<Reply, ToolError> {
        let inputs::Blame { path, lines } = input;
        let params = json!({"path": path, "lines": lines});
        let blame = Blame::from(self.read::<BlameAnswer>("history:blame", params).await?);
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
}
