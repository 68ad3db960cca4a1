--- What moving to another store needs to know of this one.
--
-- Beside the objects lie
--   copying   what the target of a copy remembers until it is complete, packed
--   floor     up to which number events count as pruned, whatever their topic
--   moved     where everything was copied to: every script asks for it
--   target_at the newest number there when the copy was complete
-- @include queue
-- @include dict
-- @include shares

local COPYING = store .. ":copying"

--- A number above every message's, which the next one will have or exceed.
local function next_n()
  return math.max(numbers.latest() + 1, now)
end

local function keep_held(found, limit, dict, key, packed)
  local lease = packed and cmsgpack.unpack(packed)
  if lease and lease.capacity then
    for _, share in ipairs(shares.by_end(key, "g", now, limit - #found)) do
      found[#found + 1] = shown(nil, key, share)
    end
  elseif lease and #found < limit and lease["until"] > now then
    found[#found + 1] = shown(dict, key, lease)
  end
end

--- Leases that somebody holds, of any dict or none, up to a limit.
local function all_held(limit)
  local found = {}
  for _, member in ipairs(call("ZRANGEBYLEX", store .. ":logs", "-", "+")) do
    local kind, name = string.match(member, "^(%a+):(.*)$")
    if kind == "lease" then
      keep_held(found, limit, nil, name, call("GET", key_of("lease", name)))
    elseif kind == "dict" then
      local fields = call("HGETALL", key_of("dict", name) .. ":leases")
      for i = 1, #fields, 2 do
        keep_held(found, limit, name, fields[i], fields[i + 1])
      end
    end
  end
  return found
end

--- The copy that this store is the target of, or nil.
local function running_copy()
  local packed = call("GET", COPYING)
  return packed and cmsgpack.unpack(packed) or nil
end
