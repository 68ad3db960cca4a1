--- The short way of Claim: the first messages of a queue without a limit are due, and time has overtaken nobody.
--
-- What is less plain goes on to the rules of claim.lua, with nothing written.
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

--- A message in its usual form, claimed: packed, with its key; nothing where it may come too late.
local function lease(packed, token, ends_at)
  local message = cmsgpack.unpack(packed)
  message.state, message.holder, message.token, message.since = "leased", command.holder, token, now
  message["until"], message.expired_to, message.attempts = ends_at, command.expired_to, (message.attempts or 0) + 1
  return not message.start_by and cmsgpack.pack(message), message.key
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
  local queue, passed = KEYS[2], "(" .. struct.pack(NUMBER, now + 1)
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
  local ends_at = command.lease and now + command.lease or NEVER
  local ids, fields, leased, ends = {}, {}, {}, struct.pack(NUMBER, ends_at)
  for i = 1, #members do
    local member = members[i]
    local id = string.sub(member, 21)
    is_plain = is_plain and struct.unpack(NUMBER, member, 5) <= now
    ids[i], fields[2 * i - 1], fields[2 * i] = id, id, id .. "\0"
    leased[2 * i - 1], leased[2 * i] = "0", ends .. string.sub(member, 13) -- n and id stand in both
  end
  local found = call("HMGET", queue .. ":messages", unpack(fields))
  local claim_fields, claim_count = pack_claim(token, ends_at)
  local messages, values, keys, kept, has_keys = {}, {}, {}, {}, false
  for i = 1, #ids do
    local packed, key = found[2 * i - 1], nil
    if is_spliced(packed) then
      packed = head_of(string.byte(packed, 3) + claim_count) .. string.sub(packed, 4, 14) .. claim_fields .. string.sub(packed, 15)
    else
      packed, key = lease(packed, token, ends_at)
    end
    is_plain, keys[i], has_keys = is_plain and packed, key or false, has_keys or key
    messages[i], values[i], kept[2 * i - 1], kept[2 * i] = packed, found[2 * i], ids[i], packed
  end
  local packed_ids = cmsgpack.pack("ids", ids)
  if not (is_plain and keep_answer(MAP_OF_2 .. packed_ids .. cmsgpack.pack("token", token))) then
    break
  end
  call("ZREM", queue .. ":ready", unpack(members))
  call("ZADD", queue .. ":leased", unpack(leased))
  call("HSET", queue .. ":messages", unpack(kept))
  local token_text = text(token)
  call("SET", counter_key, token_text)
  write_event(queue, token, token_text, "claimed", pack_event(packed_ids, has_keys and keys))
  give_hints({ "watch:queue:" .. command.queue }, { ALL })
  return MAP_OF_3 .. packed_ids .. cmsgpack.pack("values", values, "messages") .. list_of(#ids) .. table.concat(messages)
end
