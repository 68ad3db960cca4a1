--- The short way of Claim: the first messages of a queue without a limit are due, and time has overtaken nobody.
--
-- What is less plain goes on to the rules of claim.lua, with nothing written. It answers ids, messages as they were put, and claim: what a
-- first claim added to them. Those that were not fresh are answered as they are now.
-- @include spliced

--- The fields that a first claim adds to a message, packed, and how many they are.
local function pack_claim(token, ends_at)
  local fields = TOKEN .. struct.pack(NUMBER, token) .. UNTIL .. struct.pack(NUMBER, ends_at)
  fields = fields .. cmsgpack.pack("state", "leased", "holder", command.holder, "since", now, "attempts", 1)
  if not command.expired_to then
    return fields, 6
  end
  return fields .. cmsgpack.pack("expired_to", command.expired_to), 7
end

--- A message that is not fresh, claimed: packed without and with its value, and its key; nothing where it may come too late.
--
-- What became of it, where that is known, is all of it: the spliced form is that of a claim that has not ended.
local function lease(put, later, token, ends_at)
  local message = cmsgpack.unpack(put)
  local value = message.value
  message = later and cmsgpack.unpack(later) or message
  message.state, message.holder, message.token, message.since = "leased", command.holder, token, now
  message["until"], message.expired_to, message.attempts = ends_at, command.expired_to, (message.attempts or 0) + 1
  message.value = nil
  local packed = not message.start_by and cmsgpack.pack(message)
  message.value = value
  return packed, cmsgpack.pack(message), message.key
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

while not command.key and not command.take and command.limit <= 1000 do
  local queue, messages, passed = KEYS[2], KEYS[2] .. ":messages", "(" .. struct.pack(NUMBER, now + 1)
  local settings = call("HMGET", queue, "created_at", "maxsize", "paused")
  local known = call("MGET", counter_key, moved_key)
  local token = math.max((known[1] or 0) + 1, now)
  local members = call("ZRANGE", queue .. ":ready", "0", command.limit - 1)
  local is_plain = #members > 0
    and not known[2]
    and not settings[2]
    and settings[3] == "0"
    and token % TIDY ~= 0
    and call("ZLEXCOUNT", queue .. ":leased", "-", passed) == 0
    and call("ZLEXCOUNT", queue .. ":late", "-", passed) == 0
  if not is_plain then
    break
  end
  local ends_at, sub, byte = command.lease and now + command.lease or NEVER, string.sub, string.byte
  local claim_fields, claim_count = pack_claim(token, ends_at)
  local head, ends = head_of(claim_count + 1) .. N, struct.pack(NUMBER, ends_at)
  local ids, moments, kept, stale, stale_fields = {}, {}, {}, {}, {}
  for i = 1, #members do
    local member = members[i]
    is_plain = is_plain and struct.unpack(NUMBER, member, 5) <= now
    if byte(member, -1) == 0 then
      member = sub(member, 1, -2)
      stale[#stale + 1], stale_fields[#stale + 1] = i, sub(member, 21) .. "\0"
    end
    local id = sub(member, 21)
    ids[i], moments[i] = id, ends .. sub(member, 13) -- n and id stand in both
    kept[2 * i - 1], kept[2 * i] = id .. "\0", head .. sub(member, 13, 20) .. claim_fields
  end
  if #ids > FEW and size_of(messages, ids) + size_of(messages, stale_fields) > ANSWER_BYTES then
    break
  end
  local found = call("HMGET", messages, unpack(ids))
  local later = #stale > 0 and call("HMGET", messages, unpack(stale_fields))
  local keys, has_keys, leased = {}, false, {}
  for i = 1, #ids do
    is_plain, keys[i] = is_plain and found[i], false
    -- The last goes first: a short order is a list, in which each then finds its place at once.
    leased[2 * i - 1], leased[2 * i] = "0", moments[#ids + 1 - i]
  end
  for place, i in ipairs(is_plain and stale or {}) do
    local key
    kept[2 * i], found[i], key = lease(found[i], later[place], token, ends_at)
    is_plain, keys[i], has_keys = is_plain and kept[2 * i], key or false, has_keys or key
  end
  local packed_ids = cmsgpack.pack("ids", ids)
  if not (is_plain and keep_answer(MAP_OF_2 .. packed_ids .. cmsgpack.pack("token", token))) then
    break
  end
  call("ZREM", queue .. ":ready", unpack(members))
  call("ZADD", queue .. ":leased", unpack(leased))
  call("HSET", messages, unpack(kept))
  local token_text = text(token)
  call("SET", counter_key, token_text)
  write_event(queue, token, token_text, "claimed", pack_event(packed_ids, has_keys and keys))
  give_hints({ WAKE .. "watch:queue:" .. command.queue }, { ALL })
  local claim = cmsgpack.pack("claim") .. string.char(128 + claim_count) .. claim_fields
  return MAP_OF_3 .. packed_ids .. claim .. cmsgpack.pack("messages") .. list_of(#ids) .. table.concat(found)
end
