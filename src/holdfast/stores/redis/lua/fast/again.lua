--- What fast claim makes of messages that are not fresh: they were claimed before, have a key, or had to be started by a moment.
-- @include begin

--- One of them, claimed: packed without and with its value, its key and group, and its place among those that may come too late.
--
-- What became of it, where that is known, is all of it: what only a first claim added is of a claim that has not ended.
local function lease(put, later, token, ends_at, tied)
  local message = cmsgpack.unpack(put)
  local value = message.value
  message = later and cmsgpack.unpack(later) or message
  local late = message.start_by and not message.attempts and struct.pack(MOMENT, message.start_by, message.n)
  message.state, message.holder, message.token, message.since = "leased", command.holder, token, now
  message["until"], message.expired_to, message.attempts = ends_at, command.expired_to, (message.attempts or 0) + 1
  tied = tied or (message.group and {{TOLD_GROUP}} or 0)
  message.tied = tied > 0 and tied or nil
  message.value = nil
  local packed = cmsgpack.pack(message)
  message.value = value
  return packed, cmsgpack.pack(message), message.key, message.group, late
end

--- Lease those that are not fresh, of which none can come too late any more; answer what is told of keys and groups, and how many lists that is.
--
-- `lined` has the groups of all of them, where they stand in lanes.
local function lease_stale(stale, later, found, kept, token, ends_at, tied, lined)
  local keys, groups, has_keys, has_groups, late = {}, {}, false, false, {}
  for i = 1, #found do
    keys[i], groups[i] = false, lined and lined[i] or false
    has_groups = has_groups or groups[i]
  end
  for place, i in ipairs(stale) do
    local key, group, moment
    kept[2 * i], found[i], key, group, moment = lease(found[i], later[place], token, ends_at, tied)
    keys[i], has_keys, groups[i], has_groups = key or false, has_keys or key, group or false, has_groups or group
    late[#late + 1] = moment and moment .. string.sub(kept[2 * i - 1], 1, -2) or nil
  end
  if #late > 0 then
    call("ZREM", KEYS[2] .. ":late", unpack(late))
  end
  local told = (has_keys and cmsgpack.pack("keys", keys) or "") .. (has_groups and cmsgpack.pack("groups", groups) or "")
  return told, (has_keys and 1 or 0) + (has_groups and 1 or 0)
end
