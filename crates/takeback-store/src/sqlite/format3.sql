ALTER TABLE meta ADD COLUMN state_sweeps INTEGER NOT NULL DEFAULT 0;
ALTER TABLE meta ADD COLUMN steps_deleted INTEGER NOT NULL DEFAULT 0;

CREATE TABLE execution (
    id INTEGER PRIMARY KEY,
    name BLOB NOT NULL UNIQUE,
    branch INTEGER,
    session INTEGER REFERENCES session ON DELETE CASCADE
) STRICT;
CREATE INDEX execution_of_session ON execution (session) WHERE session IS NOT NULL;

CREATE TABLE branch (
    id INTEGER PRIMARY KEY,
    execution INTEGER NOT NULL REFERENCES execution ON DELETE CASCADE,
    name BLOB NOT NULL,
    line INTEGER NOT NULL,
    UNIQUE (execution, name)
) STRICT;

CREATE TABLE line (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    execution INTEGER NOT NULL REFERENCES execution ON DELETE CASCADE,
    branch INTEGER NOT NULL,
    parent INTEGER,
    forked_at INTEGER,
    head INTEGER
) STRICT;
CREATE INDEX line_of_execution ON line (execution);

CREATE TABLE head_move (
    rewind INTEGER PRIMARY KEY,
    execution INTEGER NOT NULL REFERENCES execution ON DELETE CASCADE,
    branch INTEGER NOT NULL,
    left_line INTEGER NOT NULL,
    line INTEGER NOT NULL
) STRICT;
CREATE INDEX head_move_of_execution ON head_move (execution);

CREATE TABLE step (
    id INTEGER PRIMARY KEY,
    execution INTEGER NOT NULL REFERENCES execution ON DELETE CASCADE,
    line INTEGER NOT NULL,
    parent INTEGER,
    step INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    name TEXT NOT NULL,
    status INTEGER NOT NULL,
    error TEXT,
    time INTEGER NOT NULL,
    point INTEGER,
    digest BLOB NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX step_attempt ON step (execution, step, attempt);
CREATE TRIGGER step_deleted AFTER DELETE ON step BEGIN
    UPDATE meta SET steps_deleted = steps_deleted + 1;
END;

CREATE TABLE node (
    id INTEGER PRIMARY KEY,
    start INTEGER NOT NULL,
    rest BLOB NOT NULL,
    body BLOB NOT NULL
) STRICT;
CREATE INDEX node_of_digest ON node (start);

CREATE TABLE retry (
    execution INTEGER NOT NULL REFERENCES execution ON DELETE CASCADE,
    step INTEGER NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (execution, step)
) STRICT, WITHOUT ROWID;

CREATE TABLE effect (
    id INTEGER PRIMARY KEY,
    execution INTEGER NOT NULL REFERENCES execution ON DELETE CASCADE,
    key BLOB NOT NULL,
    step INTEGER,
    intent TEXT NOT NULL,
    intended_at INTEGER NOT NULL,
    receipt TEXT,
    received_at INTEGER,
    UNIQUE (execution, key)
) STRICT;

CREATE TABLE document (
    category INTEGER NOT NULL,
    key BLOB NOT NULL,
    digest BLOB NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (category, key)
) STRICT, WITHOUT ROWID;
