--- Fast claim: the first messages of a queue without a limit are due, and time has overtaken nobody.
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

--- A message that is not fresh, claimed: packed without and with its value, its key, and its place among those that may come too late.
--
-- What became of it, where that is known, is all of it: what only a first claim added is of a claim that has not ended.
local function lease(put, later, token, ends_at)
  local message = cmsgpack.unpack(put)
  local value = message.value
  message = later and cmsgpack.unpack(later) or message
  local late = message.start_by and not message.attempts and struct.pack(MOMENT, message.start_by, message.n)
  message.state, message.holder, message.token, message.since = "leased", command.holder, token, now
  message["until"], message.expired_to, message.attempts = ends_at, command.expired_to, (message.attempts or 0) + 1
  message.value = nil
  local packed = cmsgpack.pack(message)
  message.value = value
  return packed, cmsgpack.pack(message), message.key, late
end

--- The first in line, all of them due, and the token to draw; nothing where the full rules must decide.
local function first_in_line(queue)
  local settings = call("HMGET", queue, "maxsize", "paused")
  local known = call("MGET", counter_key, moved_key)
  local token, passed = math.max((known[1] or 0) + 1, now), "(" .. struct.pack(NUMBER, now + 1)
  if known[2] or settings[1] or settings[2] ~= "0" or token % TIDY == 0 or command.limit > MOST then
    return nil
  end
  local members = call("ZRANGE", queue .. ":ready", "0", command.limit - 1)
  if #members == 0 or call("ZLEXCOUNT", queue .. ":leased", "-", passed) + call("ZLEXCOUNT", queue .. ":late", "-", passed) > 0 then
    return nil
  end
  for i = 1, #members do
    if struct.unpack(NUMBER, members[i], POSITION_AT) > now then
      return nil
    end
  end
  return members, token
end

local function pack_event(packed_ids, keys)
  if not keys then
    return MAP_OF_2 .. packed_ids .. cmsgpack.pack("holder", command.holder)
  end
  return MAP_OF_3 .. packed_ids .. cmsgpack.pack("holder", command.holder, "keys", keys)
end

--- How a packed list of so many begins.
local function list_of(count)
  return count < 16 and string.char(144 + count) or "\220" .. struct.pack(">I2", count)
end

--- Lease those that are not fresh, of which none can come too late any more; answer the keys of all, if any has one.
local function lease_stale(stale, later, found, kept, token, ends_at)
  local keys, has_keys, late = {}, false, {}
  for i = 1, #found do
    keys[i] = false
  end
  for place, i in ipairs(stale) do
    local key, moment
    kept[2 * i], found[i], key, moment = lease(found[i], later[place], token, ends_at)
    keys[i], has_keys = key or false, has_keys or key
    late[#late + 1] = moment and moment .. string.sub(kept[2 * i - 1], 1, -2) or nil
  end
  if #late > 0 then
    call("ZREM", KEYS[2] .. ":late", unpack(late))
  end
  return has_keys and keys
end

--- Messages to claim: their ids, members and records as if all were fresh, and the places and fields of those that are not.
local function plan_leases(members, token, ends_at)
  local claim_fields, claim_count = pack_claim(token, ends_at)
  local head, ends, sub = head_of(claim_count + 1) .. N, struct.pack(NUMBER, ends_at), string.sub
  local ids, moments, leased, kept, stale, stale_fields = {}, {}, {}, {}, {}, {}
  for i = 1, #members do
    local member = members[i]
    if string.byte(member, -1) == 0 then
      member = sub(member, 1, -2)
      stale[#stale + 1], stale_fields[#stale + 1] = i, sub(member, READY_ID_AT) .. "\0"
    end
    local id = sub(member, READY_ID_AT)
    ids[i], moments[i] = id, ends .. sub(member, READY_N_AT) -- n and id stand in both
    kept[2 * i - 1], kept[2 * i] = id .. "\0", head .. sub(member, READY_N_AT, READY_ID_AT - 1) .. claim_fields
  end
  for i = 1, #ids do
    -- The last goes first: a short order is a list, in which each then finds its place at once.
    leased[2 * i - 1], leased[2 * i] = "0", moments[#ids + 1 - i]
  end
  return ids, leased, kept, stale, stale_fields, string.char(128 + claim_count) .. claim_fields
end

--- The messages as they were put; nothing where there are more than one answer brings.
local function read_messages(messages, ids, stale_fields)
  if #ids > FEW and size_of(messages, ids) + size_of(messages, stale_fields) > ANSWER_BYTES then
    return nil
  end
  local found = call("HMGET", messages, unpack(ids))
  for i = 1, #ids do
    if not found[i] then
      return nil
    end
  end
  return found
end

local function fast_claim()
  local queue, messages = KEYS[2], KEYS[2] .. ":messages"
  local members, token = first_in_line(queue)
  if not members then
    return nil
  end
  local ends_at = command.lease and now + command.lease or NEVER
  local ids, leased, kept, stale, stale_fields, claim = plan_leases(members, token, ends_at)
  local found, packed_ids = read_messages(messages, ids, stale_fields), cmsgpack.pack("ids", ids)
  if not (found and keep_answer(MAP_OF_2 .. packed_ids .. cmsgpack.pack("token", token))) then
    return nil
  end
  local keys
  if #stale > 0 then
    keys = lease_stale(stale, call("HMGET", messages, unpack(stale_fields)), found, kept, token, ends_at)
  end
  call("ZREM", queue .. ":ready", unpack(members))
  call("ZADD", queue .. ":leased", unpack(leased))
  call("HSET", messages, unpack(kept))
  local token_text = text(token)
  call("SET", counter_key, token_text)
  write_event(queue, token, token_text, "claimed", pack_event(packed_ids, keys))
  give_hints({ WAKE .. "watch:queue:" .. command.queue }, { ALL })
  return MAP_OF_3 .. packed_ids .. cmsgpack.pack("claim") .. claim .. cmsgpack.pack("messages") .. list_of(#ids) .. table.concat(found)
end
