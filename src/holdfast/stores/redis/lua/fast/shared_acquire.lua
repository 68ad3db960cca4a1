--- Fast acquire of a share: there is room for it, nobody waits in line, and no grant has ended. It is part of fast/acquire.lua; where it ends
-- without an answer, nothing is written. See shares.lua for where all lies.

repeat
  local id, weight, name = command.lease_id, command.weight, held and cmsgpack.unpack(held)
  local span_s, others, ends = math.ceil(command.lease / 1000000), KEYS[2] .. ":shares", KEYS[2] .. ":ends"
  if name then
    if not name.capacity or name.waiting > 0 or (name.capacity ~= command.capacity and not name.resized) then
      break
    elseif name.used + weight > name.capacity or (name.used == 0 and not name.resized) then
      break
    end
    local first = name.used > 0 and call("ZRANGE", ends, "0", "0")[1]
    if name.used > 0 and (not first or struct.unpack(NUMBER, first, 2) <= now) then
      break
    end
    local ttl = call("TTL", KEYS[2])
    if (ttl >= 0 and (name.resized or ttl < RETAINED_S + span_s)) or call("HEXISTS", others, id) == 1 then
      break
    end
  else
    name = { holder = "{{SHARED_HOLDER}}", lease_id = "", token = 0, since = 0, ["until"] = NEVER }
    name.capacity, name.used, name.waiting, name.last, name.resized = command.capacity, 0, 0, 0, false
  end
  ends_at = now + command.lease
  command.token, command.since, command["until"], command.capacity = number, now, ends_at, nil
  local record = pack_lease(command)
  local answer = MAP_OF_2 .. "\167ends_in\207" .. struct.pack(NUMBER, command.lease) .. "\165lease" .. record
  if not keep_answer(answer) then
    break
  end
  local number_text, told_weight = text(number), cmsgpack.pack("weight", weight)
  local told = MAP_OF_3 .. "\163key" .. pack_text(key) .. "\166holder" .. pack_text(command.holder) .. told_weight
  if held then
    write_event(KEYS[2], number, number_text, "acquired", told)
  else
    call("DEL", others, ends, KEYS[2] .. ":line") -- What may be left: see shares.lua.
    tell_acquired(dict, key, number, number_text, floor, told)
  end
  name.used = name.used + weight
  local packed = pack_lease(name)
  -- The lease that is answered, without its id and with two fields more.
  local share = "\134" .. string.sub(record, 2, -#LEASE_ID - #pack_text(id) - 1) .. told_weight .. "\165place\0"
  call("HSET", others, id, share)
  call("ZADD", ends, "0", "g" .. struct.pack(NUMBER, ends_at) .. id)
  if held then
    call("SET", KEYS[2], packed, "KEEPTTL")
  else
    local seconds = LOG_S + span_s
    call("SET", KEYS[2], packed, "EX", seconds)
    call("EXPIRE", others, seconds)
    call("EXPIRE", ends, seconds)
  end
  call("SET", counter_key, number_text)
  give_hints({ WAKE .. "watch:lease::" .. key }, { ALL })
  return answer
until true
