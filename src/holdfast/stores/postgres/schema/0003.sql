-- What keeps the store's clock from going back when the server's does. Sequences, not rows: they are of no transaction and nobody waits.

-- The highest moment seen, up to ten milliseconds behind.
create sequence clock_seen minvalue 0 start 0;

-- How far the store's clock is ahead of the server's, which was set back.
create sequence clock_ahead minvalue 0 start 0;
