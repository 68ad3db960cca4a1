--- Look: who holds the leases on keys of a dict, or with no dict on names of their own.
--
-- KEYS  1 the store  2… the dict, or the leases' own keys
-- ARGV  1 the command: dict (none: names of their own), keys  2 ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers leases, each {lease, ends_in, holders} or false where nobody holds it, and the newest event's number.
-- @include share_commands

local look = {}

local function shown_held(dict, key, lease)
  if not lease then
    return false
  end
  return { lease = shown(dict, key, lease), ends_in = lease["until"] < NEVER and lease["until"] - now or nil }
end

function look.check(command)
  local found = {}
  for i, key in ipairs(command.keys) do
    local lease = held_lease(command.dict, key)
    if lease and lease.capacity then
      found[i] = shares.seen(key, #command.keys) or false
    else
      found[i] = shown_held(command.dict, key, lease)
    end
  end
  return { leases = found, index = numbers.latest() }
end

function look.write(_, plan)
  return plan
end

commands.Look = look
