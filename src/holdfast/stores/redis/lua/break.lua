--- Break: end a lease that somebody else holds, and say why.
--
-- KEYS  1 the store  2 the dict, or the lease's own key
-- ARGV  1 the command: dict (none: a name of its own), key, reason, token (none: any holder)
--       2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers leases, those that were ended.
-- @include share_commands

local break_lease = {}

function break_lease.check(command)
  local lease, found = held_lease(command.dict, command.key), {}
  local held = { lease }
  if lease and lease.capacity then
    held = shares.by_end(command.key, "g", now, {{BROKEN}})
  end
  for _, one in ipairs(held) do
    if not command.token or command.token == one.token then
      found[#found + 1] = one
    end
  end
  return found
end

function break_lease.write(command, plan)
  local ended = {}
  for i, one in ipairs(plan) do
    ended[i] = shown(command.dict, command.key, one)
    if one.place then
      shares.release(command.key, one.lease_id, "broken", command.reason)
    else
      end_lease(command.dict, command.key, "broken", command.reason)
    end
  end
  return { leases = ended }
end

commands.Break = break_lease
