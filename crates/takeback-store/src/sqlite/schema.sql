CREATE TABLE meta (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    revision INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    last_scan INTEGER,
    last_cleanup INTEGER,
    state_sweeps INTEGER NOT NULL DEFAULT 0,
    steps_deleted INTEGER NOT NULL DEFAULT 0,
    records BLOB NOT NULL
) STRICT;

CREATE TABLE path (
    id INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL UNIQUE
) STRICT;

-- A session that another record refers to before its own record comes has no started_at and no sum.
CREATE TABLE session (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    agent TEXT,
    parent INTEGER REFERENCES session ON DELETE SET NULL,
    owner_pid INTEGER,
    owner_started INTEGER,
    started_at INTEGER,
    ended_at INTEGER,
    archived_at INTEGER,
    open_turn INTEGER,
    model TEXT,
    sum BLOB
) STRICT;

CREATE TABLE turn (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES session ON DELETE CASCADE,
    message TEXT,
    prompt TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    closed_at INTEGER,
    model TEXT,
    sum BLOB NOT NULL
) STRICT;

CREATE TABLE call (
    session INTEGER NOT NULL REFERENCES session ON DELETE CASCADE,
    id TEXT NOT NULL,
    turn INTEGER NOT NULL,
    tool TEXT NOT NULL,
    paths BLOB,
    command TEXT,
    named BLOB,
    state INTEGER NOT NULL,
    opened_at INTEGER NOT NULL,
    began_at INTEGER,
    closed_at INTEGER,
    active_at INTEGER,
    sum BLOB NOT NULL,
    PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX live_call ON call (state) WHERE state <= 3;

CREATE TABLE author (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES session ON DELETE CASCADE,
    turn INTEGER NOT NULL,
    call TEXT NOT NULL,
    tool TEXT NOT NULL
) STRICT;
CREATE INDEX author_of_turn ON author (session, turn);

CREATE TABLE change (
    seq INTEGER PRIMARY KEY,
    path INTEGER NOT NULL REFERENCES path,
    before BLOB NOT NULL,
    after BLOB NOT NULL,
    kind INTEGER NOT NULL,
    author INTEGER REFERENCES author ON DELETE SET NULL,
    rewind INTEGER,
    evidence INTEGER NOT NULL,
    time INTEGER NOT NULL,
    changed_at INTEGER,
    correction INTEGER,
    corrected_for INTEGER REFERENCES session ON DELETE SET NULL,
    cancels BLOB,
    sum BLOB NOT NULL
) STRICT;
CREATE INDEX change_of_path ON change (path, seq);
CREATE INDEX change_of_author ON change (author) WHERE author IS NOT NULL;
CREATE INDEX change_of_rewind ON change (seq) WHERE rewind IS NOT NULL;
-- The bytes of an entry that could not be read.
CREATE INDEX unreadable_change ON change (seq) WHERE before = x'0403' OR after = x'0403';

CREATE TABLE suspect (
    change INTEGER NOT NULL REFERENCES change ON DELETE CASCADE,
    position INTEGER NOT NULL,
    session INTEGER NOT NULL REFERENCES session ON DELETE CASCADE,
    PRIMARY KEY (change, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX suspect_of_session ON suspect (session);

CREATE TABLE point (
    number INTEGER PRIMARY KEY,
    id INTEGER NOT NULL UNIQUE,
    seq INTEGER NOT NULL,
    session INTEGER REFERENCES session ON DELETE CASCADE,
    kind INTEGER NOT NULL,
    description TEXT NOT NULL,
    label TEXT,
    pinned INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    git INTEGER NOT NULL,
    git_head TEXT,
    git_branch TEXT,
    basis INTEGER NOT NULL,
    sum BLOB NOT NULL
) STRICT;
CREATE INDEX point_in_order ON point (seq);
CREATE INDEX point_of_session ON point (session, seq);
CREATE INDEX point_by_label ON point (label) WHERE label IS NOT NULL;

CREATE TABLE point_message (
    point INTEGER NOT NULL REFERENCES point ON DELETE CASCADE,
    position INTEGER NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (point, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX point_by_message ON point_message (message);

CREATE TABLE rewind (
    number INTEGER PRIMARY KEY,
    id INTEGER NOT NULL UNIQUE,
    kind INTEGER NOT NULL,
    target INTEGER NOT NULL,
    state INTEGER NOT NULL,
    began_at INTEGER NOT NULL,
    safety_point INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    plan BLOB NOT NULL,
    receipt TEXT,
    sum BLOB NOT NULL
) STRICT;
CREATE INDEX open_rewind ON rewind (state) WHERE state = 0;

CREATE TABLE blob (
    digest BLOB PRIMARY KEY,
    segment INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    length INTEGER NOT NULL,
    size INTEGER NOT NULL,
    encoding INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE link (
    revision INTEGER PRIMARY KEY,
    seq INTEGER NOT NULL,
    body BLOB NOT NULL,
    hash BLOB NOT NULL
) STRICT;

CREATE TABLE loss (
    number INTEGER PRIMARY KEY,
    revision INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    lost_revision INTEGER NOT NULL,
    lost_seq INTEGER NOT NULL
) STRICT;

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
