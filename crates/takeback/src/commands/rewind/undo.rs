//! `undo` and `redo`.

use takeback_core::rewind::{Exactness, RewindRequest, Target};
use takeback_store::{RewindHeader, Store as LogStore};

use super::{TitledRequest, run_request};
use crate::args::{Options, RedoArgs, UndoArgs};
use crate::commands::log::operation_title;
use crate::error::{CommandError, Kind};
use crate::place::{self, Store};
use crate::screen::{Screen, plain};

pub(crate) fn undo(
    options: &Options,
    args: &UndoArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_recovered(options, Store::MustExist)?;
    let store = &*place.workspace.store;
    let (target, title) = match &args.operation {
        None => (Target::Undo, "Undo the last operation".to_owned()),
        Some(name) => {
            let operation = find_operation(store, name)?;
            let title = format!("Undo the {}", operation_title(store, &operation)?);
            (Target::Operation(operation.id), title)
        }
    };
    let mut request = RewindRequest::new(target);
    request.conflicts = args.conflicts.into();
    request.exactness = exactness(&args.how);
    run_request(
        &mut place.workspace,
        options,
        TitledRequest { title, request },
        &args.how.doing,
        screen,
    )
}

pub(crate) fn redo(
    options: &Options,
    args: &RedoArgs,
    screen: &mut Screen,
) -> Result<u8, CommandError> {
    let mut place = place::open_recovered(options, Store::MustExist)?;
    let mut request = RewindRequest::new(Target::Redo);
    request.exactness = exactness(args);
    let titled = TitledRequest { title: "Redo the last undo".to_owned(), request };
    run_request(&mut place.workspace, options, titled, &args.doing, screen)
}

fn exactness(args: &RedoArgs) -> Exactness {
    if args.exact { Exactness::Exact } else { Exactness::AgentsOnly }
}

/// The operation with this id, or whose id alone begins like this.
pub(crate) fn find_operation(
    store: &dyn LogStore,
    name: &str,
) -> Result<RewindHeader, CommandError> {
    let lowercase = name.to_lowercase();
    let mut found: Vec<RewindHeader> = store.rewind_headers()?;
    found.retain(|operation| !name.is_empty() && operation.id.to_string().starts_with(&lowercase));
    let named = plain(name);
    match found.as_slice() {
        [operation] => Ok(*operation),
        [] => Err(CommandError::new(Kind::Error, format!("there is no operation {named}"))
            .hint("`takeback log --ops` lists the operations with their ids.")),
        [one, other, ..] => Err(CommandError::new(
            Kind::Error,
            format!("{named} could be operation {} or {}", one.id, other.id),
        )
        .hint("Type more of the id.")),
    }
}
