-- Fields of a message that have no column of their own, as one JSON object; null where it uses none of them.
alter table holdfast_messages add column extra blob;
