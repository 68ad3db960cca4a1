--- Seal: mark the store as moved; from now on every script answers where to.
--
-- KEYS  1 the store
-- ARGV  1 the command: to, at (the newest number when the copy began)
--       2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers true.
-- @include step

local seal = {}

function seal.check(command)
  if numbers.latest() ~= command.at then
    refuse("WrittenMeanwhile", { at = command.at })
  end
end

function seal.write(command)
  call("SET", moved_key, command.to)
  return true
end

commands.Seal = seal
