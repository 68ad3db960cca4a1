--- Fast write: one plain entry; see fast/entry.lua.
-- @include fast/entry

repeat
  local dict, change = KEYS[2], command.changes[1]
  local known = call("MGET", counter_key, moved_key)
  local newest = tonumber(known[1] or 0)
  local number = math.max(newest + 1, now)
  if known[2] or number % TIDY == 0 or newest % TIDY == 0 then
    break
  end
  local entry, packed, before, fence = plan_entry(dict, change, newest, number)
  if not entry then
    break
  end
  local answer = cmsgpack.pack({ { entry = entry, because = "" } })
  if not keep_answer(answer) then
    break
  end
  put_entry(dict, command.dict, change, number, packed, before, fence)
  return answer
until true
