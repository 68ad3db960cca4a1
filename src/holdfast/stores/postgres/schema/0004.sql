-- The fields of a message that have no column of their own, as a JSON object: what later releases add to messages is kept here.
alter table messages add column extra jsonb;
