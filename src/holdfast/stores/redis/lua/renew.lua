--- Renew: keep leases from now on, those that are still held.
--
-- KEYS  1 the store  2… the dicts, or the leases' own keys
-- ARGV  1 the command: names {dict or '', key, lease_id}, lease (none: without end), all_or_none
--       2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers leases, each as it is now, false where it was lost.
-- @include leases

local renew = {}

function renew.check(command)
  return held_leases(command)
end

function renew.write(command, held)
  local renewed = {}
  for i, name in ipairs(command.names) do
    local dict = name[1] ~= "" and name[1] or nil
    if held[i] then
      held[i]["until"] = command.lease and now + command.lease or NEVER
      save_lease(dict, name[2], held[i])
    end
    renewed[i] = held[i] and shown(dict, name[2], held[i])
  end
  return { leases = renewed }
end

commands.Renew = renew
