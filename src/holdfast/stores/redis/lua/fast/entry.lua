--- What fast write and fast checkpoint share: one entry without an end is put into a dict that is there, and nothing stands in its way.
-- @include begin

--- Whether a change is one that needs no more than the entry before it to be judged, and meets what it expects.
local function is_met(change, entry)
  local expect = change.expect
  return expect == nil
    or (expect == "absent" and not entry)
    or (expect == "value" and entry and entry.value == change.expected)
    or (expect == "revision" and (entry and entry.revision or 0) == (change.revision or 0))
end

local function is_lease_held(dict, change)
  local packed = call("HGET", dict .. ":leases", change.key)
  local lease = packed and cmsgpack.unpack(packed)
  return lease and lease["until"] > now and lease.lease_id == change.lease
end

--- The highest fence that wrote the key so far; nothing where that, or the change's own, is too high, or was lost with a backup.
local function fence_before(dict, change, newest)
  local fence = tonumber(call("HGET", dict .. ":fences", change.key) or 0)
  if change.fence and (change.fence > newest or change.fence < fence or was_skipped(change.fence)) then
    return nil
  end
  return fence
end

--- The entry that a change makes, the same packed, and the entry and the fence before; nothing where the full rules must decide.
local function plan_entry(dict, change, newest, number)
  if change["do"] or change.ttl or not call("HGET", dict, "created_at") then
    return nil
  end
  local packed = call("HGET", dict .. ":entries", change.key)
  local before = packed and cmsgpack.unpack(packed) or nil
  local fence = before and not change.fence and (before.fence or 0) or fence_before(dict, change, newest)
  if (before and before.expires_at) or not fence or not is_met(change, before) or (change.lease and not is_lease_held(dict, change)) then
    return nil
  end
  local entry = { value = change.value, revision = number, fence = change.fence or (fence > 0 and fence or nil) }
  packed = cmsgpack.pack(entry)
  entry.key = change.key
  return entry, packed, before, fence
end

--- Write a planned entry, and tell of it.
local function put_entry(dict, name, change, number, packed, before, fence)
  call("HSET", dict .. ":entries", change.key, packed)
  if not before then
    call("ZADD", dict .. ":order", "0", change.key)
  end
  local number_text = text(number)
  if change.fence and change.fence > fence then
    call("HSET", dict .. ":fences", change.key, text(change.fence))
  end
  call("SET", counter_key, number_text)
  write_event(dict, number, number_text, "written", MAP_OF_2 .. cmsgpack.pack("key", change.key, "value", change.value))
  give_hints({ WAKE .. "watch:dict:" .. name }, { ALL })
end
