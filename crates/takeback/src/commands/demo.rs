//! `demo`: shows the main workflow for real, in a temporary folder.
//!
//! An agent edits a file with its tool; a person edits another part of the same file; the agent's shell
//! command deletes a folder and rewrites files. Then come the timeline, a preview, the rewind and its undo,
//! all through the same library calls as the other commands.

#![expect(
    clippy::disallowed_methods,
    reason = "the demo's agent and person write files of their own"
)]

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use takeback_core::history::{LogRow, PointRow};
use takeback_core::rewind::{RewindRequest, Target, preview, rewind};
use takeback_core::{AgentEvent, CallTargets, Outcome, Workspace, record};
use takeback_store::{CallId, PointId, SessionId};

use super::filediff::{Contents, between};
use super::log;
use super::patch::for_people;
use super::receipt::{self, Tense};
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::screen::{HEADING, HINT, NAME, SUCCESS, Screen, WARNING};

const CART: &str = "\
def total(items):
    \"\"\"The price of all items, with tax.\"\"\"
    price = 0
    for item in items:
        price = price + item.price
    return price * 1.2


def is_empty(items):
    # retuns True for an empty cart
    return len(items) == 0
";
const TAX: &str = "RATE = 0.2\n";
const TEST: &str = "from shop.cart import total\n\ndef test_total():\n    assert total([]) == 0\n";

/// Deletes, rewrites and makes files, as agents' commands do.
const COMMAND: &str = "rm -rf tests; sed -i s/0.2/0.25/ shop/tax.py; echo ok > report.txt";

const SESSION: &str = "claude-1";

pub(crate) fn demo(screen: &mut Screen) -> Result<u8, CommandError> {
    if screen.json {
        return Err(CommandError::new(Kind::Usage, "the demo has no JSON answer")
            .hint("Run it without --json."));
    }
    let folder = tempfile::tempdir()?;
    let root = folder.path().join("shop-project");
    for folder in ["shop", "tests"] {
        fs::create_dir_all(root.join(folder))?;
    }
    for (path, text) in [("shop/cart.py", CART), ("shop/tax.py", TAX), ("tests/test_cart.py", TEST)]
    {
        fs::write(root.join(path), text)?;
    }
    let root = fs::canonicalize(root)?;
    let mut place = place::open_at(&root, &folder.path().join("home"), Store::Temporary)?;
    let workspace = &mut place.workspace;

    let out = &mut screen.out;
    writeln!(
        out,
        "{HEADING}Takeback records every change with its author, and takes back what you choose.{HEADING:#}"
    )?;
    writeln!(out, "{HINT}This runs now, with three small files in a temporary folder.{HINT:#}")?;

    heading(out, 1, "An agent and you work in the same folder")?;
    let point = prompt(workspace, "Make the cart handle discounts")?;
    actor(out, "prompt", "Make the cart handle discounts", "a point is made")?;
    edit(workspace, &root, "shop/cart.py", |text| {
        text.replace("def total(items):", "def total(items, discount=0):")
            .replace("return price * 1.2", "return price * 1.2 * (1 - discount)")
    })?;
    actor(out, "agent", "Edit shop/cart.py", "its edit tool: two lines")?;
    let cart = root.join("shop/cart.py");
    fs::write(&cart, fs::read_to_string(&cart)?.replace("retuns", "returns"))?;
    actor(out, "you", "shop/cart.py", "you fix a typo further down")?;
    shell(workspace, &root)?;
    actor(out, "agent", &format!("$ {COMMAND}"), "")?;
    record(workspace, &AgentEvent::TurnEnd { session: session(), model: None })?;

    heading(out, 2, "takeback log")?;
    let store = &*workspace.store;
    let rows: Vec<LogRow> = store
        .points()?
        .into_iter()
        .map(|point| Ok(LogRow::Point(Box::new(PointRow::of(store, point, None)?))))
        .collect::<Result<_, CommandError>>()?;
    log::print(workspace, &rows, false, out)?;

    heading(out, 3, "takeback rewind @ --dry-run")?;
    let request = RewindRequest::new(Target::Point(point));
    let shown = preview(workspace, &request)?;
    receipt::print(out, &shown.receipt(), &shown.windows, Tense::Would, false)?;

    heading(out, 4, "takeback rewind @")?;
    let done = rewind(workspace, &request, Some(&shown))?;
    receipt::print(out, &done, &[], Tense::Did, false)?;
    let expected = CART.replace("retuns", "returns");
    expect(
        done.success && fs::read_to_string(&cart)? == expected,
        "your edit survives the rewind",
    )?;
    expect(root.join("tests/test_cart.py").exists(), "the deleted folder is back")?;
    writeln!(
        out,
        "\n{SUCCESS}The agent's work is gone, your edit is still there.{SUCCESS:#} What still differs:\n"
    )?;
    for diff in between(
        &takeback_core::history::by_path(
            workspace.store.changes_after(place_of(workspace, point)?)?,
        ),
        None,
    ) {
        for_people(&diff, Contents::of(&*workspace.store), out)?;
    }

    heading(out, 5, "takeback undo")?;
    let undone = rewind(workspace, &RewindRequest::new(Target::Undo), None)?;
    receipt::print(out, &undone, &[], Tense::Did, false)?;
    expect(
        undone.success && root.join("report.txt").exists(),
        "the undo brings the agent's work back",
    )?;
    writeln!(out, "\n{SUCCESS}Everything is as the agent left it, your edit included.{SUCCESS:#}")?;
    writeln!(
        out,
        "\nTry it: {NAME}takeback run -- YOUR-AGENT{NAME:#} {HINT}in any folder{HINT:#}"
    )?;
    Ok(0)
}

fn heading(out: &mut dyn std::io::Write, number: usize, text: &str) -> std::io::Result<()> {
    writeln!(out, "\n{WARNING}{number}{WARNING:#} {HEADING}{text}{HEADING:#}\n")
}

fn actor(out: &mut dyn std::io::Write, who: &str, what: &str, note: &str) -> std::io::Result<()> {
    let style = if who == "you" { SUCCESS } else { NAME };
    writeln!(out, "  {style}{who:<6}{style:#}  {what:<32}  {HINT}{note}{HINT:#}")
}

fn session() -> SessionId {
    SessionId::from(SESSION)
}

fn prompt(workspace: &mut Workspace, text: &str) -> Result<PointId, CommandError> {
    let event = AgentEvent::Prompt {
        session: session(),
        message: None,
        text: text.to_owned(),
        model: None,
    };
    record(workspace, &event)?
        .point
        .ok_or_else(|| CommandError::new(Kind::Error, "the prompt made no point"))
}

fn edit(
    workspace: &mut Workspace,
    root: &Path,
    path: &str,
    change: impl Fn(&str) -> String,
) -> Result<(), CommandError> {
    let file = root.join(path);
    around(workspace, "1", "Edit", CallTargets::Paths(vec![file.clone()]), || {
        fs::write(&file, change(&fs::read_to_string(&file)?))
    })
}

fn shell(workspace: &mut Workspace, root: &Path) -> Result<(), CommandError> {
    let touches = CallTargets::anything(Some(COMMAND.to_owned()));
    around(workspace, "2", "Bash", touches, || {
        Command::new("sh").arg("-c").arg(COMMAND).current_dir(root).status().map(drop)
    })
}

fn around(
    workspace: &mut Workspace,
    call: &str,
    tool: &str,
    touches: CallTargets,
    act: impl FnOnce() -> std::io::Result<()>,
) -> Result<(), CommandError> {
    let (call, tool) = (CallId::from(call), tool.to_owned());
    record(
        workspace,
        &AgentEvent::BeforeTool { session: session(), call: call.clone(), tool, touches },
    )?;
    act()?;
    record(
        workspace,
        &AgentEvent::AfterTool {
            session: session(),
            call,
            outcome: Outcome::Done,
            report: takeback_core::CallReport::default(),
        },
    )?;
    Ok(())
}

fn place_of(workspace: &Workspace, id: PointId) -> Result<takeback_store::Seq, CommandError> {
    let points = workspace.store.points()?;
    let point = points.iter().find(|point| point.id == id);
    point.map(|point| point.seq).ok_or_else(|| CommandError::new(Kind::Error, "the point is gone"))
}

/// The demo checks what it claims.
fn expect(holds: bool, claim: &str) -> Result<(), CommandError> {
    if holds {
        Ok(())
    } else {
        Err(CommandError::new(Kind::Error, format!("the demo failed: {claim}")))
    }
}
