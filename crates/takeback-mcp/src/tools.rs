//! The tools, as they are announced: what a model reads before it chooses one.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};

use crate::{inputs, outputs};

pub(crate) const LIST_POINTS: &str = "list_points";
pub(crate) const SHOW_POINT: &str = "show_point";
pub(crate) const DIFF: &str = "diff";
pub(crate) const PREVIEW_REWIND: &str = "preview_rewind";
pub(crate) const CHECKPOINT: &str = "checkpoint";
pub(crate) const REWIND: &str = "rewind";

pub(crate) const INSTRUCTIONS: &str = "Takeback records every change in this workspace with its author \
    (an agent, the user, a command). A point is a moment that the files can be taken back to; one is made \
    before every prompt. Use `checkpoint` before something risky. To undo your own work: `list_points` \
    to find the point before it, `preview_rewind` to see what would happen, then `rewind`. What the user \
    changed is kept. The user is asked before a rewind, and can take it back with `takeback undo`.";

pub(crate) fn all() -> Vec<Tool> {
    vec![
        tool(
            LIST_POINTS,
            "List checkpoints",
            "List the points that the files of this workspace can be taken back to, newest first: id, time, \
             session, the prompt or label, and how much was changed after it. Call it to find the point \
             that another tool needs.",
            inputs::list_points(),
            outputs::points(),
            looks(),
        ),
        tool(
            SHOW_POINT,
            "Show a checkpoint",
            "Show one point and every change between it and the next, with its author: an agent's session \
             and tool, the user, or unclear. Call it to find out who changed a file.",
            inputs::show_point(),
            outputs::one_point(),
            looks(),
        ),
        tool(
            DIFF,
            "Compare with a checkpoint",
            "Show as a unified diff what changed since a point, or between two points, whoever changed it. A \
             long diff is cut: name `paths`, or set `stat` for the numbers alone.",
            inputs::diff(),
            outputs::diff(),
            looks(),
        ),
        tool(
            PREVIEW_REWIND,
            "Preview a rewind",
            "Show what `rewind` with the same arguments would do: files to restore, delete and merge, what \
             would be kept because the user changed it, conflicts, and what cannot come back. Changes \
             nothing.",
            inputs::rewind(),
            outputs::preview(),
            looks(),
        ),
        tool(
            CHECKPOINT,
            "Make a checkpoint",
            "Make a point of the files as they are now, with an optional label. Call it before a risky or \
             large change, or when something works. Nothing in the workspace is changed.",
            inputs::checkpoint(),
            outputs::checkpoint(),
            ToolAnnotations::new().read_only(false).destructive(false).idempotent(false),
        ),
        tool(
            REWIND,
            "Rewind files",
            "Take back what agents did to the files since a point, and prove it with a receipt. What the user \
             changed is kept, unless `exact` is set. The user is asked first and sees the preview; if they \
             decline, nothing is done, and it is not to be tried again unless they say so. Only files of this \
             workspace change; the conversation does not.",
            inputs::rewind(),
            outputs::rewind(),
            ToolAnnotations::new().read_only(false).destructive(true).idempotent(true),
        ),
    ]
}

fn looks() -> ToolAnnotations {
    ToolAnnotations::new().read_only(true)
}

fn tool(
    name: &'static str,
    title: &str,
    description: &'static str,
    input: Arc<JsonObject>,
    output: Arc<JsonObject>,
    annotations: ToolAnnotations,
) -> Tool {
    Tool::new(name, description, input)
        .with_title(title)
        .with_raw_output_schema(output)
        .with_annotations(annotations.open_world(false))
}
