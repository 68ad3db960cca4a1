--- Fast claim: the first messages of a queue without a limit are due, and time has overtaken nobody; with `take` all are fresh.
--
-- It answers ids, messages as they were put, and claim: what a first claim added to them. Those that were not fresh are answered as they
-- are now.
-- @include message_record

--- The fields that a first claim adds to a message, packed, and how many they are.
local function pack_claim(token, ends_at)
  local fields = TOKEN .. struct.pack(NUMBER, token) .. UNTIL .. struct.pack(NUMBER, ends_at)
  fields = fields .. cmsgpack.pack("state", "leased", "holder", command.holder, "since", now, "attempts", 1)
  if not command.expired_to then
    return fields, 6
  end
  return fields .. cmsgpack.pack("expired_to", command.expired_to), 7
end

repeat
  local queue, messages, limit, passed = KEYS[2], KEYS[2] .. ":messages", command.limit, "(" .. struct.pack(NUMBER, now + 1)
  local settings = call("HMGET", queue, "maxsize", "paused", "lease")
  local known = call("MGET", counter_key, moved_key)
  local token = math.max((known[1] or 0) + 1, now)
  if settings[2] == "1" then
    -- @include fast/laned_claim
  end
  if known[2] or settings[1] or settings[2] ~= "0" or token % TIDY == 0 or limit > MOST then
    break
  end
  local members = call("ZRANGE", queue .. ":ready", "0", limit == 1 and "0" or limit - 1)
  if #members == 0 or call("ZLEXCOUNT", queue .. ":leased", "-", passed) + call("ZLEXCOUNT", queue .. ":late", "-", passed) > 0 then
    break
  end
  -- As if all were fresh; `stale` has the places of those that are not.
  local lease_us = (command.by_policy or not command.lease) and settings[3] or command.lease
  local ends_at, sub, byte = lease_us and now + lease_us or NEVER, string.sub, string.byte
  local claim_fields, claim_count = pack_claim(token, ends_at)
  local head, ends, is_plain = head_of(claim_count + 1) .. N, struct.pack(NUMBER, ends_at), true
  local ids, moments, leased, kept, stale, stale_fields = {}, {}, {}, {}, {}, {}
  for i = 1, #members do
    local member = members[i]
    is_plain = is_plain and struct.unpack(NUMBER, member, POSITION_AT) <= now
    if byte(member, -1) == 0 then
      member = sub(member, 1, -2)
      stale[#stale + 1], stale_fields[#stale + 1] = i, sub(member, READY_ID_AT) .. "\0"
    end
    local id = sub(member, READY_ID_AT)
    ids[i], moments[i] = id, ends .. sub(member, READY_N_AT) -- n and id stand in both
    kept[2 * i - 1], kept[2 * i] = id .. "\0", head .. sub(member, READY_N_AT, READY_ID_AT - 1) .. claim_fields
  end
  local found, later, size
  if is_plain and #ids > FEW then
    -- @include fast/read_within
    found, size = read_within(messages, ids, 0)
    later = found and #stale > 0 and read_within(messages, stale_fields, size)
    is_plain = found and (later or #stale == 0)
  elseif is_plain then
    found = call("HMGET", messages, unpack(ids))
    later = #stale > 0 and call("HMGET", messages, unpack(stale_fields))
  end
  local packed_ids = cmsgpack.pack("ids", ids)
  for i = 1, #ids do
    is_plain = is_plain and found[i]
    -- The last goes first: a short order is a list, in which each then finds its place at once.
    leased[2 * i - 1], leased[2 * i] = "0", moments[#ids + 1 - i]
  end
  local count = #ids < 16 and string.char(144 + #ids) or "\220" .. struct.pack(">I2", #ids) -- how a packed list begins
  local claim = cmsgpack.pack("claim") .. string.char(128 + claim_count) .. claim_fields .. cmsgpack.pack("messages") .. count
  local taken = is_plain and command.take and MAP_OF_3 .. packed_ids .. claim .. table.concat(found)
  is_plain = is_plain and not (taken and #stale > 0)
  if not (is_plain and keep_answer(taken or MAP_OF_2 .. packed_ids .. cmsgpack.pack("token", token))) then
    break
  end
  local told = packed_ids .. cmsgpack.pack("holder", command.holder)
  local event = MAP_OF_2 .. told
  if #stale > 0 then
    -- @include fast/again
    local more, count_more = lease_stale(stale, later, found, kept, token, ends_at)
    event = string.char(130 + count_more) .. told .. more
  end
  call("ZREM", queue .. ":ready", unpack(members))
  if taken then
    call("HDEL", messages, unpack(ids))
  else
    call("ZADD", queue .. ":leased", unpack(leased))
    call("HSET", messages, unpack(kept))
  end
  local token_text = text(token)
  call("SET", counter_key, token_text)
  write_event(queue, token, token_text, "claimed", event)
  give_hints({ WAKE .. "watch:queue:" .. command.queue }, { ALL })
  return taken or MAP_OF_3 .. packed_ids .. claim .. table.concat(found)
until true
