--- Fast acquire: a key that is held, or that was given back by its last holder, with its entry if a default is given; or a free share of a
-- name with capacity.
-- @include fast/lease

--- The entry under the key of a dict, nil for none.
local function read_entry(key)
  local packed = call("HGET", KEYS[2] .. ":entries", key)
  local entry = packed and cmsgpack.unpack(packed)
  if entry and (entry.expires_at == nil or entry.expires_at > now) then
    entry.key = key
    return entry
  end
  return nil
end

--- Tell of the lease, in a log that lasts and that Prune finds.
local function tell_acquired(dict, key, number, number_text, floor, told)
  local seconds = LOG_S + math.ceil(command.lease / 1000000)
  local has_log = not dict and keep_log_for(seconds, floor)
  write_event(KEYS[2], number, number_text, "acquired", told)
  if has_log then
    return
  end
  call("ZADD", store .. ":logs", "0", dict and "dict:" .. dict or "lease:" .. key)
  if not dict then
    keep_log_for(seconds, floor)
  end
end

repeat
  local dict, key = command.dict, command.key
  local number, held, ends_at, floor = read_one(dict, key)
  if not command.lease or not number or number % TIDY == 0 then
    break
  elseif command.capacity then
    -- @include fast/shared_acquire
    break
  elseif held and (ends_at <= now or ends_at >= NEVER) then
    break
  end
  local entry = dict and read_entry(key) or nil
  if dict and command.default and not entry then
    break
  end
  local record = held
  if not held then
    -- The command names the rest of the lease, and a table of its own would cost more.
    ends_at = now + command.lease
    command.token, command.since, command["until"] = number, now, ends_at
    record = pack_lease(command)
  end
  local answer = (entry and MAP_OF_3 or MAP_OF_2) .. "\167ends_in\207" .. struct.pack(NUMBER, ends_at - now) .. "\165lease" .. record
  if entry then
    answer = answer .. cmsgpack.pack("entry", entry)
  end
  if not keep_answer(answer) then
    break
  end
  if not held then
    local number_text = text(number)
    local told = MAP_OF_2 .. "\163key" .. pack_text(key) .. "\166holder" .. pack_text(command.holder)
    tell_acquired(dict, key, number, number_text, floor, told)
    save_one(dict, key, record, command.lease)
    call("SET", counter_key, number_text)
    give_hints({ WAKE .. (dict and "watch:dict:" .. dict or "watch:lease::" .. key) }, { ALL })
  end
  return answer
until true
