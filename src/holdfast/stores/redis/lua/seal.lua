--- Seal: mark the store as moved; from now on every script answers where to.
--
-- KEYS  1 the store
-- ARGV  1 the command: to, at (the newest number when the copy began), target_at (that of the target at the end; or nothing)
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
  if command.target_at then
    call("SET", store .. ":target_at", text(command.target_at))
  end
  return true
end

commands.Seal = seal
