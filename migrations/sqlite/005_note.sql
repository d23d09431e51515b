-- What the writer of a scope wants to know of it when it begins again.
ALTER TABLE scopes ADD COLUMN note BLOB;
