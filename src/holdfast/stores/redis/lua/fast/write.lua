--- Fast write: one entry without an end is put into a dict that is there, and nothing stands in its way.
-- @include begin

--- Whether a change is one that needs no more than the entry before it to be judged, and meets what it expects.
local function is_met(change, entry)
  local expect = change.expect
  return expect == "any"
    or (expect == "absent" and not entry)
    or (expect == "value" and entry and entry.value == change.expected)
    or (expect == "revision" and (entry and entry.revision or 0) == change.revision)
end

local function is_held(change)
  local packed = call("HGET", KEYS[2] .. ":leases", change.key)
  local lease = packed and cmsgpack.unpack(packed)
  return lease and lease["until"] > now and lease.lease_id == change.lease
end

--- The highest fence that wrote the key so far; nothing where that, or the change's own, is too high for the change.
local function fence_before(change, newest)
  local fence = tonumber(call("HGET", KEYS[2] .. ":fences", change.key) or 0)
  if change.fence and (change.fence > newest or change.fence < fence) then
    return nil
  end
  return fence
end

repeat
  local dict, change = KEYS[2], command.changes[1]
  local known = call("MGET", counter_key, moved_key)
  local number = math.max((known[1] or 0) + 1, now)
  if change["do"] ~= "put" or change.ttl or known[2] or number % TIDY == 0 or (known[1] or 0) % TIDY == 0 or not call("HGET", dict, "created_at") then
    break
  end
  local packed = call("HGET", dict .. ":entries", change.key)
  local before = packed and cmsgpack.unpack(packed) or nil
  local fence = before and not change.fence and (before.fence or 0) or fence_before(change, tonumber(known[1] or 0))
  if (before and before.expires_at) or not fence or not is_met(change, before) or (change.lease and not is_held(change)) then
    break
  end
  local entry = { value = change.value, revision = number, fence = change.fence or (fence > 0 and fence or nil) }
  packed = cmsgpack.pack(entry)
  entry.key = change.key
  local answer = cmsgpack.pack({ { entry = entry, because = "" } })
  if not keep_answer(answer) then
    break
  end
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
  give_hints({ WAKE .. "watch:dict:" .. command.dict }, { ALL })
  return answer
until true
