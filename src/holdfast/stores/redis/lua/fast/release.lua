--- Fast release: one lease, or one share of a name with capacity, still held.
-- @include fast/lease

local HELD = MAP_OF_1 .. "\164held\145" .. TRUE

repeat
  local name = command.names[1]
  local dict, key, id = name[1] ~= "" and name[1] or nil, name[2], LEASE_ID .. pack_text(name[3])
  local number, record, ends_at, floor = read_one(dict, key)
  if not number or number % TIDY == 0 or not record or ends_at <= now then
    break
  elseif string.sub(record, 1, #SHARED_HEAD) == SHARED_HEAD then
    -- @include fast/shared_release
    break
  elseif string.sub(record, -#id) ~= id then
    break
  end
  if not keep_answer(HELD) then
    break
  end
  local number_text, holder = text(number), string.sub(record, HOLDER_AT, -#id - 1)
  write_event(KEYS[2], number, number_text, "released", MAP_OF_2 .. "\163key" .. pack_text(key) .. holder)
  if dict then
    call("HDEL", KEYS[2] .. ":leases", key)
  else
    call("DEL", KEYS[2])
  end
  if not dict and (ends_at - now > RETAINED_S * 1000000 or not log_outlasts(record, now)) then
    keep_log_for(RETAINED_S, floor)
  end
  call("SET", counter_key, number_text)
  local watchers = dict and "watch:dict:" .. dict or "watch:lease::" .. key
  give_hints({ WAKE .. watchers, WAKE .. "lease:" .. (dict or "") .. ":" .. key }, { ALL, 1 })
  return HELD
until true
