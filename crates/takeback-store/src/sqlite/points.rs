//! Reads points: all of them, or the ones that a query selects, through an index.

use std::collections::BTreeMap;

use rusqlite::{Connection, Params, Row};

use super::encoding::{kinds, signed, unsigned};
use super::rows::{self, RowError, Rows};
use crate::chain::Sum;
use crate::id::{PointId, Seq, SessionId, Timestamp};
use crate::point::{GitState, Point, PointFilter, PointKind, PointQuery, id_prefix, messages_in};

macro_rules! select_points {
    ($rest:literal) => {
        concat!(
            "SELECT p.id, p.seq, s.name, p.kind, p.description, p.label, p.pinned, p.created_at,
                 p.git, p.git_head, p.git_branch,
                 (SELECT json_group_array(m.message ORDER BY m.position)
                  FROM point_message m WHERE m.point = p.number),
                 p.basis, p.sum
             FROM point p LEFT JOIN session s ON s.id = p.session ",
            $rest
        )
    };
}

pub(super) fn all(db: &Connection) -> Rows<Point> {
    read(db, select_points!("ORDER BY p.seq, p.number"), [])
}

pub(super) fn find(db: &Connection, query: PointQuery<'_>) -> Rows<Point> {
    let most = |most: usize| i64::try_from(most).unwrap_or(i64::MAX);
    match query {
        // A rewind looks up its target like this, so the record must be intact.
        PointQuery::Id(id) => {
            let mut select = db.prepare_cached(select_points!("WHERE p.id = ?1"))?;
            select.query_and_then([id.0.cast_signed()], intact_point)?.collect()
        }
        PointQuery::At(seq) => {
            let sql = select_points!("WHERE p.seq = ?1 ORDER BY p.number");
            read(db, sql, [signed(seq.0)])
        }
        PointQuery::From { seq, most: limit } => {
            let sql = select_points!("WHERE p.seq >= ?1 ORDER BY p.seq, p.number LIMIT ?2");
            read(db, sql, [signed(seq.0), most(limit)])
        }
        PointQuery::Before { seq, filter, most: limit } => {
            let sql = select_points!(
                "WHERE p.seq < ?1 AND p.kind <> ?2 ORDER BY p.seq DESC, p.number DESC LIMIT ?3"
            );
            let params = [signed(seq.0), excluded_kind(filter), most(limit)];
            Ok(reversed(read(db, sql, params)?))
        }
        PointQuery::Newest { filter, most: limit } => {
            let sql =
                select_points!("WHERE p.kind <> ?1 ORDER BY p.seq DESC, p.number DESC LIMIT ?2");
            Ok(reversed(read(db, sql, [excluded_kind(filter), most(limit)])?))
        }
        PointQuery::LastPromptOf(session) => {
            let sql = select_points!(
                "WHERE p.session = (SELECT id FROM session WHERE name = ?1) AND p.kind = ?2
                 ORDER BY p.seq DESC, p.number DESC LIMIT 1"
            );
            let prompt = kinds::number(&kinds::POINTS, &PointKind::Prompt);
            read(db, sql, (&session.0, prompt))
        }
        PointQuery::Name(name) => find_by_name(db, name),
    }
}

fn find_by_name(db: &Connection, name: &str) -> Rows<Point> {
    let sql = select_points!(
        "WHERE p.number IN (
             SELECT number FROM point WHERE label = ?1
             UNION SELECT number FROM point WHERE id BETWEEN ?2 AND ?3
             UNION SELECT point FROM point_message
                 WHERE message IN (SELECT value FROM json_each(?4)))
         ORDER BY p.seq, p.number"
    );
    // Four or more leading hex digits fix the sign of the stored number, so the ids in between are
    // one range.
    let (first, last) = id_prefix(name).unwrap_or((1, 0));
    let messages = serde_json::Value::from(messages_in(name)).to_string();
    read(db, sql, (name, first.cast_signed(), last.cast_signed(), messages))
}

pub(super) fn count(db: &Connection, filter: PointFilter) -> Result<usize, RowError> {
    let mut select = db.prepare_cached("SELECT count(*) FROM point WHERE kind <> ?1")?;
    let points: i64 = select.query_row([excluded_kind(filter)], |row| row.get(0))?;
    Ok(usize::try_from(points).unwrap_or(0))
}

/// Counts as [`Point::may_expire`] does.
pub(super) fn count_of(db: &Connection, session: Option<&SessionId>) -> Result<usize, RowError> {
    let mut select = db.prepare_cached(match session {
        Some(_) => {
            "SELECT count(*) FROM point WHERE session = (SELECT id FROM session WHERE name = ?1)
                 AND kind <> ?2 AND NOT pinned AND label IS NULL"
        }
        None => {
            "SELECT count(*) FROM point WHERE session IS ?1
                 AND kind <> ?2 AND NOT pinned AND label IS NULL"
        }
    })?;
    let safety = excluded_kind(PointFilter::WithoutSafety);
    let name = session.map(|session| session.0.as_str());
    let points: i64 = select.query_row((name, safety), |row| row.get(0))?;
    Ok(usize::try_from(points).unwrap_or(0))
}

/// Reads only the index, which has the sessions in order.
pub(super) fn by_session(db: &Connection) -> Result<BTreeMap<Option<SessionId>, usize>, RowError> {
    let mut select = db.prepare_cached(
        "SELECT s.name, p.points
         FROM (SELECT session, count(*) AS points FROM point GROUP BY session) p
         LEFT JOIN session s ON s.id = p.session",
    )?;
    let count = |row: &Row<'_>| -> Result<_, RowError> {
        let session = row.get::<_, Option<String>>(0)?.map(SessionId);
        Ok((session, usize::try_from(row.get::<_, i64>(1)?).unwrap_or(0)))
    };
    select.query_and_then([], count)?.collect()
}

/// The number of the kind to leave out; a number that no kind has, if none is.
fn excluded_kind(filter: PointFilter) -> i64 {
    match filter {
        PointFilter::All => -1,
        PointFilter::WithoutSafety => kinds::number(&kinds::POINTS, &PointKind::Safety),
    }
}

fn reversed(mut points: Vec<Point>) -> Vec<Point> {
    points.reverse();
    points
}

fn read(db: &Connection, sql: &str, params: impl Params) -> Rows<Point> {
    db.prepare_cached(sql)?.query_and_then(params, point)?.collect()
}

/// A point whose checksum is right; an error otherwise.
fn intact_point(row: &Row<'_>) -> Result<Point, RowError> {
    let point = point(row)?;
    if rows::stored_sum(row, SUM)? == Some(Sum::of_point(&point)) {
        return Ok(point);
    }
    let what = format!("point {}", point.id);
    Err(RowError::Damaged { what, why: rows::NOT_AS_RECORDED })
}

pub(super) const ALL: &str = select_points!("");
pub(super) const SUM: usize = 13;

pub(super) fn point(row: &Row<'_>) -> Result<Point, RowError> {
    let id = PointId(row.get::<_, i64>(0)?.cast_unsigned());
    let damaged = |why| RowError::Damaged { what: format!("point {id}"), why };
    let git = row.get::<_, bool>(8)?;
    Ok(Point {
        id,
        seq: Seq(unsigned(row.get(1)?)),
        session: row.get::<_, Option<String>>(2)?.map(SessionId),
        kind: kinds::value(&kinds::POINTS, row.get(3)?).ok_or_else(|| damaged("its kind"))?,
        description: row.get(4)?,
        label: row.get(5)?,
        pinned: row.get(6)?,
        created_at: Timestamp(row.get(7)?),
        message_ids: serde_json::from_str(&row.get::<_, String>(11)?)
            .map_err(|_not_json| damaged("its other ids"))?,
        git: if git { Some(GitState { head: row.get(9)?, branch: row.get(10)? }) } else { None },
        basis: kinds::value(&kinds::BASES, row.get(12)?).ok_or_else(|| damaged("its basis"))?,
    })
}
