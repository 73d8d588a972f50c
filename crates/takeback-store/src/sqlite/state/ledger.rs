//! The SQL of retries, effects and documents.

use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::Value;

use super::nodes::Nodes;
use super::rows::{Result, RowError};
use super::tree;
use crate::blob::Digest;
use crate::id::Timestamp;
use crate::state::{Category, DocumentKey, Effect, StateError, StepIndex};

pub(super) fn retries(db: &Connection, execution: i64, step: StepIndex) -> Result<u32> {
    let mut select =
        db.prepare_cached("SELECT count FROM retry WHERE execution = ? AND step = ?")?;
    let count = select.query_row(params![execution, step.0], |row| row.get(0));
    Ok(count.optional()?.unwrap_or(0))
}

pub(super) fn has_retries(db: &Connection, execution: i64) -> Result<bool> {
    Ok(db.prepare_cached("SELECT 1 FROM retry WHERE execution = ?")?.exists([execution])?)
}

pub(super) fn set_retries(
    db: &Connection,
    execution: i64,
    step: StepIndex,
    count: u32,
) -> Result<()> {
    let mut upsert = db.prepare_cached("INSERT OR REPLACE INTO retry VALUES (?, ?, ?)")?;
    upsert.execute(params![execution, step.0, count])?;
    Ok(())
}

pub(super) fn forget_retries(db: &Connection, execution: i64, step: StepIndex) -> Result<()> {
    let mut delete = db.prepare_cached("DELETE FROM retry WHERE execution = ? AND step = ?")?;
    delete.execute(params![execution, step.0])?;
    Ok(())
}

// --- effects ------------------------------------------------------------------------------------

const EFFECT: &str = "key, step, intent, intended_at, receipt, received_at";

fn effect_row(row: &Row<'_>) -> Result<Effect> {
    let key = String::from_utf8(row.get(0)?).unwrap_or_default();
    let damaged = |why: &str| {
        RowError::State(StateError::Damaged {
            what: format!("the effect {key:?}"),
            why: why.to_owned(),
        })
    };
    let json = |text: String| serde_json::from_str::<Value>(&text).ok();
    let step: Option<u32> = row.get(1)?;
    let receipt: Option<String> = row.get(4)?;
    let receipt = match receipt {
        Some(text) => {
            let receipt = json(text).ok_or_else(|| damaged("its receipt is not JSON"))?;
            Some((receipt, Timestamp(row.get(5)?)))
        }
        None => None,
    };
    Ok(Effect {
        step: step.map(StepIndex),
        intent: json(row.get(2)?).ok_or_else(|| damaged("its intent is not JSON"))?,
        intended_at: Timestamp(row.get(3)?),
        receipt,
        key,
    })
}

pub(super) fn effects(db: &Connection, execution: i64) -> Result<Vec<Effect>> {
    let mut select =
        db.prepare_cached(&format!("SELECT {EFFECT} FROM effect WHERE execution = ? ORDER BY id"))?;
    let rows = select.query_and_then([execution], effect_row)?;
    rows.collect()
}

pub(super) fn effect(db: &Connection, execution: i64, key: &str) -> Result<Option<Effect>> {
    let mut select =
        db.prepare_cached(&format!("SELECT {EFFECT} FROM effect WHERE execution = ? AND key = ?"))?;
    let mut rows = select.query(params![execution, key.as_bytes()])?;
    rows.next()?.map(effect_row).transpose()
}

/// The JSON text of a value. Fails if it is nested too deeply to be parsed again.
pub(super) fn json_text(what: &str, value: &Value) -> std::result::Result<String, StateError> {
    let text = value.to_string();
    match serde_json::from_str::<Value>(&text) {
        Ok(_) => Ok(text),
        Err(_) => Err(StateError::Unserialisable {
            path: format!("/{what}"),
            why: "it is nested too deep",
        }),
    }
}

pub(super) fn insert_effect(
    db: &Connection,
    execution: i64,
    effect: &Effect,
    intent: &str,
) -> Result<()> {
    let mut insert = db.prepare_cached(
        "INSERT INTO effect (execution, key, step, intent, intended_at) VALUES (?, ?, ?, ?, ?)",
    )?;
    insert.execute(params![
        execution,
        effect.key.as_bytes(),
        effect.step.map(|step| step.0),
        intent,
        effect.intended_at.0,
    ])?;
    Ok(())
}

/// Returns whether there is such an intent.
pub(super) fn set_receipt(
    db: &Connection,
    execution: i64,
    key: &str,
    receipt: &str,
    time: Timestamp,
) -> Result<bool> {
    let mut update = db.prepare_cached(
        "UPDATE effect
         SET receipt = coalesce(receipt, ?), received_at = coalesce(received_at, ?)
         WHERE execution = ? AND key = ?",
    )?;
    Ok(update.execute(params![receipt, time.0, execution, key.as_bytes()])? > 0)
}

/// Returns whether there was such an intent without a receipt.
pub(super) fn delete_intent(db: &Connection, execution: i64, key: &str) -> Result<bool> {
    let mut delete = db
        .prepare_cached("DELETE FROM effect WHERE execution = ? AND key = ? AND receipt IS NULL")?;
    Ok(delete.execute(params![execution, key.as_bytes()])? > 0)
}

// --- documents ----------------------------------------------------------------------------------

/// The numbers are part of the store's format.
fn number(category: Category) -> i64 {
    match category {
        Category::Conversation => 1,
        Category::History => 2,
        Category::Session => 3,
        Category::Config => 4,
    }
}

pub(super) fn put_document(
    db: &Connection,
    category: Category,
    key: &DocumentKey,
    digest: &Digest,
    body: &[u8],
) -> Result<()> {
    let mut upsert = db.prepare_cached("INSERT OR REPLACE INTO document VALUES (?, ?, ?, ?)")?;
    upsert.execute(params![number(category), key.as_str().as_bytes(), digest.0, body,])?;
    Ok(())
}

pub(super) fn document(
    db: &Connection,
    category: Category,
    key: &DocumentKey,
) -> Result<Option<Value>> {
    let mut select =
        db.prepare_cached("SELECT digest, body FROM document WHERE category = ? AND key = ?")?;
    let row = select.query_row(params![number(category), key.as_str().as_bytes()], |row| {
        Ok((row.get::<_, Vec<u8>>(0)?, row.get::<_, Vec<u8>>(1)?))
    });
    let Some((expected, packed)) = row.optional()? else { return Ok(None) };
    let damaged =
        |why: String| StateError::Damaged { what: format!("the {} {key}", category.name()), why };
    let body = tree::unpack(&packed).ok_or_else(|| damaged("it cannot be unpacked".to_owned()))?;
    let mut hasher = blake3::Hasher::new();
    let mut values =
        tree::read(&body, 1, &mut hasher, &mut Nodes::of(db)?).map_err(|error| match error {
            RowError::Tree(broken) => damaged(broken.to_string()).into(),
            error => error,
        })?;
    let found = Digest(*hasher.finalize().as_bytes());
    if found.0 != *expected {
        return Err(damaged(format!("its digest is {found}")).into());
    }
    Ok(values.pop())
}

pub(super) fn documents(db: &Connection, category: Category) -> Result<Vec<DocumentKey>> {
    let mut select =
        db.prepare_cached("SELECT key FROM document WHERE category = ? ORDER BY key")?;
    let rows = select.query_and_then([number(category)], |row| {
        let key = String::from_utf8(row.get(0)?).ok();
        key.and_then(|key| DocumentKey::new(key).ok()).ok_or_else(|| {
            let what = format!("the key of a {}", category.name());
            RowError::State(StateError::Damaged { what, why: "it is not a valid key".to_owned() })
        })
    })?;
    rows.collect()
}

pub(super) fn delete_document(
    db: &Connection,
    category: Category,
    key: &DocumentKey,
) -> Result<bool> {
    let mut delete = db.prepare_cached("DELETE FROM document WHERE category = ? AND key = ?")?;
    Ok(delete.execute(params![number(category), key.as_str().as_bytes()])? > 0)
}

/// Adds what is wrong with effects and documents to `damage`.
pub(super) fn check(db: &Connection, damage: &mut Vec<String>) -> Result<()> {
    let mut select = db.prepare(&format!("SELECT {EFFECT} FROM effect"))?;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        match effect_row(row) {
            Err(RowError::State(error)) => damage.push(error.to_string()),
            other => drop(other?),
        }
    }
    for category in Category::ALL {
        for key in documents(db, category)? {
            match document(db, category, &key) {
                Err(RowError::State(error)) => damage.push(error.to_string()),
                other => drop(other?),
            }
        }
    }
    Ok(())
}
