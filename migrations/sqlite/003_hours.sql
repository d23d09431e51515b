-- Hours are made a part at a time. hours: as made, of rows of an hour alone;
-- hour_series: in the hour that begins there, those of series up to it are made.
ALTER TABLE scopes ADD COLUMN hours INTEGER NOT NULL DEFAULT -9223372036854775808;

ALTER TABLE scopes ADD COLUMN hour_series INTEGER NOT NULL DEFAULT 0;

UPDATE scopes SET hours = made;
