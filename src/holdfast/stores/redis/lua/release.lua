--- Release: give leases back, those that are still held, and places in the line for one.
--
-- KEYS  1 the store  2… the dicts, or the leases' own keys
-- ARGV  1 the command: names {dict or '', key, lease_id}, all_or_none
--       2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers held, a flag each.
-- @include share_commands

local release = {}

function release.check(command)
  return shares.of_names(command)
end

function release.write(command, held)
  local flags = {}
  for i, name in ipairs(command.names) do
    local dict = name[1] ~= "" and name[1] or nil
    if held[i] and held[i].place then
      shares.release(name[2], name[3])
    elseif held[i] and lease_of(dict, name[2]) then
      end_lease(dict, name[2])
    end
    flags[i] = held[i] and held[i].token > 0 or false
  end
  return { held = flags }
end

commands.Release = release
