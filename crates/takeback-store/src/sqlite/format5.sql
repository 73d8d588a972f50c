ALTER TABLE point ADD COLUMN vouched INTEGER NOT NULL DEFAULT 0;
CREATE INDEX point_in_order ON point (seq);
CREATE INDEX point_of_session ON point (session, seq);
CREATE INDEX point_by_label ON point (label) WHERE label IS NOT NULL;
CREATE INDEX point_by_message ON point_message (message);
CREATE INDEX open_rewind ON rewind (state) WHERE state = 0;
