CREATE TABLE meta (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    revision INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    last_scan INTEGER
) STRICT;
INSERT INTO meta VALUES (1, 0, 0, NULL);

CREATE TABLE path (
    id INTEGER PRIMARY KEY,
    bytes BLOB NOT NULL UNIQUE
) STRICT;

-- A session that others name before its own record comes has no started_at.
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
    open_turn INTEGER
) STRICT;

CREATE TABLE turn (
    id INTEGER PRIMARY KEY,
    session INTEGER NOT NULL REFERENCES session ON DELETE CASCADE,
    message TEXT,
    prompt TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    closed_at INTEGER
) STRICT;

CREATE TABLE call (
    session INTEGER NOT NULL REFERENCES session ON DELETE CASCADE,
    id TEXT NOT NULL,
    turn INTEGER NOT NULL,
    tool TEXT NOT NULL,
    paths BLOB,
    command TEXT,
    state INTEGER NOT NULL,
    opened_at INTEGER NOT NULL,
    closed_at INTEGER,
    PRIMARY KEY (session, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX live_call ON call (state) WHERE state <= 1;

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
    cancels BLOB
) STRICT;
CREATE INDEX change_of_path ON change (path, seq);
CREATE INDEX change_of_author ON change (author) WHERE author IS NOT NULL;

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
    git_branch TEXT
) STRICT;

CREATE TABLE point_message (
    point INTEGER NOT NULL REFERENCES point ON DELETE CASCADE,
    position INTEGER NOT NULL,
    message TEXT NOT NULL,
    PRIMARY KEY (point, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE rewind (
    number INTEGER PRIMARY KEY,
    id INTEGER NOT NULL UNIQUE,
    kind INTEGER NOT NULL,
    target INTEGER NOT NULL,
    state INTEGER NOT NULL,
    began_at INTEGER NOT NULL,
    safety_point INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    plan TEXT NOT NULL,
    receipt TEXT
) STRICT;

CREATE TABLE blob (
    digest BLOB PRIMARY KEY,
    segment INTEGER NOT NULL,
    offset INTEGER NOT NULL,
    length INTEGER NOT NULL,
    size INTEGER NOT NULL,
    encoding INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
