--- EndImport: make the store one as any other; the copy is complete.
--
-- KEYS  1 the store
-- ARGV  1 the command: nothing  2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers what was remembered of the copy, false where none is under way.
-- @include copying

local end_import = {}

function end_import.check()
  return running_copy()
end

function end_import.write(_, plan)
  call("DEL", COPYING)
  return plan or false
end

commands.EndImport = end_import
