//! The tools, as they are announced: what a model reads before it chooses one.

use rmcp::model::{Tool, ToolAnnotations};
use schemars::JsonSchema;
use takeback_answers::CheckpointAnswer;

use crate::inputs::questions;
use crate::schema::{input, output};
use crate::server::Commands;
use crate::{inputs, outputs};

pub(crate) const LIST_POINTS: &str = "list_points";
pub(crate) const SHOW_POINT: &str = "show_point";
pub(crate) const DIFF: &str = "diff";
pub(crate) const BLAME: &str = "blame";
pub(crate) const WHY: &str = "why";
pub(crate) const HISTORY: &str = "history";
pub(crate) const STATS: &str = "stats";
pub(crate) const CAT: &str = "cat";
pub(crate) const BISECT: &str = "bisect";
pub(crate) const PREVIEW_REWIND: &str = "preview_rewind";
pub(crate) const CHECKPOINT: &str = "checkpoint";
pub(crate) const REWIND: &str = "rewind";
pub(crate) const PREVIEW_REVERT: &str = "preview_revert";
pub(crate) const REVERT: &str = "revert";
pub(crate) const RESTORE: &str = "restore";

pub(crate) const INSTRUCTIONS: &str = "Takeback records every change in this workspace with its author \
    (an agent, the user, a command). A point is a state of the files to go back to; one is made before \
    every prompt. To learn about code before you change it: `blame` says who wrote each line, `why` the \
    prompt and the change behind one line, `history` what happened to a file, `stats` how much each author \
    wrote, `diff` with `POINT!` what one prompt changed. Use `checkpoint` before something risky. To undo your own work: `list_points` to find \
    the point before it, `preview_rewind` to see what would happen, then `rewind`. `revert` takes back one \
    prompt or one call and keeps what came later; `restore` brings single files back. The user's changes are \
    kept. The user is asked before any of these, and can undo it with `takeback undo`.";

/// The tools that a server offers.
pub(crate) fn offered(commands: Commands) -> Vec<Tool> {
    let mut tools = reading();
    tools.extend(changing());
    if commands == Commands::Allowed {
        tools.push(bisect());
    }
    tools
}

fn bisect() -> Tool {
    let annotations = ToolAnnotations::new().read_only(false).destructive(true).idempotent(false);
    tool::<questions::Bisect, outputs::questions::Bisect>(
        BISECT,
        "Find what broke a command",
        "Run a command again and again on the files as they were at different points, and say after which \
         prompt and tool call it begins to fail. It needs a command that succeeds at an older point and fails \
         now, such as one test. It runs in a scratch copy of the recorded files, without build output and .git; \
         nothing in the workspace is changed. This can take long: choose a command that is quick and ends.",
        // The command may do anything.
        annotations.open_world(true),
    )
}

/// They change nothing.
fn reading() -> Vec<Tool> {
    vec![
        tool::<inputs::ListPoints, outputs::Points>(
            LIST_POINTS,
            "List checkpoints",
            "List the points of this workspace, newest first, and the rewinds between them: id, time, session, \
             the prompt or label, who changed how much after it, and whether that was taken back. Filters choose \
             by path, author, time, prompt, text and tool. Call it to find the point that another tool needs.",
            read_only(),
        ),
        tool::<inputs::ShowPoint, outputs::PointDetails>(
            SHOW_POINT,
            "Show a checkpoint",
            "Show one point and every change between it and the next, with its author: an agent's session \
             and tool, the user, or unclear. Call it to find out what happened after one prompt.",
            read_only(),
        ),
        tool::<inputs::Diff, outputs::Diff>(
            DIFF,
            "Compare with a checkpoint",
            "Show a unified diff of what changed since a point, or between two points, by any author or by one. \
             `POINT!` shows what one prompt changed. A long diff is cut: name `paths`, or set `stat` for the \
             numbers alone.",
            read_only(),
        ),
        tool::<questions::Blame, outputs::questions::Blame>(
            BLAME,
            "Who wrote each line",
            "Say for each line of a file as it is now who wrote it: the user, an agent's session with its prompt \
             and tool, another person by git, or unknown. Lines keep their author when they move or the file is \
             renamed. A long file is cut: name `lines`.",
            read_only(),
        ),
        tool::<questions::Why, outputs::questions::Why>(
            WHY,
            "Why a line is there",
            "Show the whole prompt, the tool call and the change that wrote one line. Call it before you change or \
             remove code whose purpose is not clear.",
            read_only(),
        ),
        tool::<questions::History, outputs::questions::History>(
            HISTORY,
            "History of a file",
            "List the points after which a file changed, newest first, with who changed how much, across renames; \
             also for a deleted file. Call it to find the point at which a file was as it should be.",
            read_only(),
        ),
        tool::<questions::Stats, outputs::questions::Stats>(
            STATS,
            "Who wrote how much",
            "Count the lines that the user and each session and prompt wrote, and how many of them are left.",
            read_only(),
        ),
        tool::<questions::Cat, outputs::questions::Contents>(
            CAT,
            "Show a file at a point",
            "Show the contents of a file as it was at a point, also if it was deleted since. A long file is cut: \
             name `lines`. Nothing is written; `restore` brings it back.",
            read_only(),
        ),
        tool::<inputs::Rewind, outputs::RewindReceipt>(
            PREVIEW_REWIND,
            "Preview a rewind",
            "Show what `rewind` with the same arguments would do: files to restore, delete and merge, files to \
             keep because the user changed them, conflicts, and what cannot be restored. Changes nothing.",
            read_only(),
        ),
        tool::<inputs::Revert, outputs::RewindReceipt>(
            PREVIEW_REVERT,
            "Preview a revert",
            "Show what `revert` with the same arguments would do. Changes nothing.",
            read_only(),
        ),
    ]
}

/// They make points or change files.
fn changing() -> Vec<Tool> {
    vec![
        tool::<inputs::Checkpoint, CheckpointAnswer>(
            CHECKPOINT,
            "Make a checkpoint",
            "Make a point of the files as they are now, with an optional label. Call it before a risky or \
             large change, or when something works. Nothing in the workspace is changed.",
            ToolAnnotations::new()
                .read_only(false)
                .destructive(false)
                .idempotent(false)
                .open_world(false),
        ),
        tool::<inputs::Rewind, outputs::Rewind>(
            REWIND,
            "Rewind files",
            "Take back what agents did to the files since a point, and return a receipt. The user's changes are \
             kept, unless `exact` is set. The user is asked first and sees the preview; if they decline, \
             nothing is done; do not try again unless they ask for it. Only files of this workspace change; \
             the conversation does not.",
            changes_files(),
        ),
        tool::<inputs::Revert, outputs::Rewind>(
            REVERT,
            "Revert one change",
            "Take back one turn, one tool call or a range, keep what came later, and return a receipt. Lines that \
             were changed again since stay and are listed as conflicts. The user is asked first, as before a \
             `rewind`.",
            changes_files(),
        ),
        tool::<inputs::Restore, outputs::Rewind>(
            RESTORE,
            "Restore files",
            "Bring files back as they were at a point, whoever changed or deleted them since, the user too, and \
             return a receipt. `diff` from that point with the same `paths` shows what would change. The user is \
             asked first, as before a `rewind`.",
            changes_files(),
        ),
    ]
}

fn changes_files() -> ToolAnnotations {
    ToolAnnotations::new().read_only(false).destructive(true).idempotent(true).open_world(false)
}

fn read_only() -> ToolAnnotations {
    ToolAnnotations::new().read_only(true).open_world(false)
}

fn tool<Input: JsonSchema, Output: JsonSchema>(
    name: &'static str,
    title: &str,
    description: &'static str,
    annotations: ToolAnnotations,
) -> Tool {
    Tool::new(name, description, input::<Input>())
        .with_title(title)
        .with_raw_output_schema(output::<Output>())
        .with_annotations(annotations)
}
