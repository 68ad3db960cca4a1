--- Length: how many entries a dict has.
--
-- KEYS  1 the store  2 the dict
-- ARGV  1 the command: dict  2 ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers the number.
-- @include dict

local length = {}

function length.check(command)
  return entry_count(open_dict(command.dict))
end

function length.write(_, count)
  return count
end

commands.Length = length
