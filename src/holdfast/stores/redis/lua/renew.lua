--- Renew: keep leases from now on, those that are still held.
--
-- KEYS  1 the store  2… the dicts, or the leases' own keys
-- ARGV  1 the command: names {dict or '', key, lease_id}, lease (none: without end), all_or_none
--       2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers leases, each as it is now, false where it was lost.
-- @include share_commands

local renew = {}

function renew.check(command)
  return shares.of_names(command)
end

--- Keep a share, but not a place in line, which only asking again keeps; answer the share.
local function renew_share(key, share, span)
  if share.token == 0 then
    return share
  end
  local renewed = {}
  for field, content in pairs(share) do
    renewed[field] = content
  end
  renewed["until"] = span and now + span or NEVER
  shares.save(key, renewed)
  local name = shares.name_of(key)
  name.ends_at = math.max(name.ends_at or 0, renewed["until"])
  shares.save_name(name)
  return renewed
end

function renew.write(command, held)
  local renewed = {}
  for i, name in ipairs(command.names) do
    local dict = name[1] ~= "" and name[1] or nil
    if held[i] and held[i].place then
      held[i] = renew_share(name[2], held[i], command.lease)
    elseif held[i] then
      held[i]["until"] = command.lease and now + command.lease or NEVER
      save_lease(dict, name[2], held[i])
    end
    renewed[i] = held[i] and held[i].token > 0 and shown(dict, name[2], held[i])
  end
  return { leases = renewed }
end

commands.Renew = renew
